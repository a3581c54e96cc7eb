package config

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/internal/glob"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

// maxSource bounds the size of a script that is looked into.
const maxSource = 1 << 20

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
		way, _ := r.ResumeOf(ProgramSource(x.Dir, x.Command))
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

// ProgramSource returns the words of a command, and the text of the scripts among
// them, which say how the program resumes.
func ProgramSource(dir string, command []string) string {
	text := strings.Join(command, " ")
	for _, word := range command {
		if !filepath.IsAbs(word) {
			word = filepath.Join(dir, word)
		}
		info, err := os.Stat(word)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxSource {
			continue
		}
		if b, err := os.ReadFile(word); err == nil && isText(b) {
			text += "\n" + string(b)
		}
	}
	return text
}

// isText reports whether a file is a script, and not the program itself.
func isText(b []byte) bool { return !strings.Contains(string(b[:min(len(b), 512)]), "\x00") }
