package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/trial"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

//go:embed trainerd_report.py
var reportModule string

const initProgramHelp = `

With words after -- the job is that program: it is run in the current directory for
up to --limit seconds from its first report, for which it has three times as long,
and what it prints and saves meanwhile is written into the config: its curves, the
names of its checkpoints, how it resumes. The files that it makes stay.

--recipe NAME prints what is known of a kind of program, to be changed and named in
child.recipe. --python prints a module of Python by which a program can report
exactly, in one file: trainerd_report.py.

EXAMPLES:
   trainerd init -- python3 train.py
   trainerd init --limit 300 job.toml -- torchrun train.py
   trainerd init --recipe transformers > my.toml`

func initProgramFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "limit", Value: 60, Usage: "run a program after -- for up to `SECONDS` from its first report"},
		&cli.StringFlag{Name: "recipe", Usage: "print the recipe `NAME`: " + strings.Join(recipe.Names(), ", ")},
		&cli.BoolFlag{Name: "python", Usage: "print trainerd_report.py"},
	}
}

// initProgram does what init can do for a program; done says that it was asked for
// that.
func initProgram(c *cli.Context) (done bool, err error) {
	words, given := program(c)
	switch {
	case c.IsSet("recipe"):
		text, err := recipe.Text(c.String("recipe"))
		if err != nil {
			return true, usagef("init: %w", err)
		}
		_, err = fmt.Fprint(c.App.Writer, text)
		return true, err
	case c.Bool("python"):
		_, err := fmt.Fprint(c.App.Writer, reportModule)
		return true, err
	case !given:
		return false, nil
	case len(words) == 0:
		return true, usagef("init: no program after --")
	case c.NArg() > 1:
		return true, usagef("init: want one CONFIG")
	case !(c.Float64("limit") > 0):
		return true, usagef("init: --limit: want more than 0 seconds")
	}
	return true, tryProgram(c, words)
}

// tryProgram runs a program and writes the config of a job for it.
func tryProgram(c *cli.Context, words []string) error {
	job := jobName(words)
	name := c.Args().First()
	if name == "" {
		name = job + ".toml"
	}
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s already exists; give another name", name)
	}
	limit := time.Duration(c.Float64("limit") * float64(time.Second))
	fmt.Fprintf(c.App.ErrWriter, "running %s for up to %v from its first report\n", shell.Join(words), limit)
	ctx, release := stopOnSignal(c.Context, c.App.ErrWriter, "ending the program")
	defer release()
	f, err := trial.Run(ctx, trial.Options{
		Command: words, Dir: ".", Logdir: filepath.Join("logs", job), Limit: limit, Stdout: c.App.ErrWriter, Stderr: c.App.ErrWriter,
	})
	if err != nil {
		return err
	}
	if f.Failure != nil && f.Reports == 0 && f.Saved == nil {
		return fmt.Errorf("no config was written, since the program failed before it had reported or saved anything: %w", f.Failure)
	}
	text, err := f.Text(job, name, workingDir(name))
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(nil, name, []byte(text)); err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "found:\n  %s\nwrote %s; it comes to:\n\n", strings.Join(f.Story(), "\n  "), name)
	err = daemon.Check(c.Context, name, nil, c.App.Writer)
	fmt.Fprintf(c.App.Writer, "\nnext:\n  %s\n", shell.Join([]string{"trainerd", "run", name}))
	return errors.Join(err, f.Failure)
}

// settingsFiles end the names of files that a launcher or a script reads.
var settingsFiles = []string{".yaml", ".yml", ".json", ".toml", ".cfg", ".ini"}

// jobName returns a name for a program: that of its script, or of the module that Python or
// a launcher runs by -m.
func jobName(words []string) string {
	name := words[0]
	for i, word := range words[1:] {
		if words[i] == "-m" {
			name = strings.ReplaceAll(word, ".", "-")
		}
		if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() && !slices.Contains(settingsFiles, filepath.Ext(word)) {
			name = word
			break
		}
	}
	return baseName(name)
}

// workingDir returns the current directory as a config at a place has it.
func workingDir(config string) string {
	if filepath.Dir(config) == "." {
		return "."
	}
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	return dir
}
