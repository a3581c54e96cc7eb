package config

import (
	"path/filepath"

	"github.com/trainerd/trainerd/internal/glob"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

// resolveRecipe fills in what the recipe of a program knows and the config does
// not say. One that cannot be loaded is a problem for the check.
func (c *Config) resolveRecipe() {
	x := &c.Child
	if recipe.IsFile(x.Recipe) {
		x.Recipe = c.ResolvePath("child.recipe", x.Recipe)
	}
	r, err := recipe.Load(x.Recipe)
	if err != nil || x.Recipe == recipe.Auto {
		return
	}
	if x.Checkpoints == "" {
		x.Checkpoints = usualPattern(c.Logdir, r.Checkpoints)
	}
	if x.SaveSignal == "" && x.Checkpoints != "" {
		x.SaveSignal = r.SaveSignal
	}
	if x.ResumeArgs == nil && x.Checkpoints != "" && !x.isShellLine() {
		way, _ := r.ResumeOf(recipe.Source(x.Dir, x.Command))
		x.ResumeArgs = way.Args
	}
}

// isShellLine reports whether the command is a line for a shell, which gives the
// program no arguments but those in it.
func (x *Child) isShellLine() bool {
	return len(x.Command) == 3 && x.Command[0] == "/bin/sh" && x.Command[1] == "-c"
}

// usualPattern returns the first pattern that means something in a logdir, else
// the first of all.
func usualPattern(logdir string, patterns []string) string {
	for _, p := range patterns {
		if found, err := filepath.Glob(filepath.Join(glob.Escape(logdir), p)); err == nil && len(found) > 0 {
			return p
		}
	}
	if len(patterns) == 0 {
		return ""
	}
	return patterns[0]
}
