package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/trial"
	"github.com/trainerd/trainerd/trainerd/prove"
)

// trialLimit is how long a program may run from its first report until it has saved.
const trialLimit = time.Minute

// isUnknown reports whether nothing says what a program saves, nor where.
func isUnknown(job *config.Config, name string) bool {
	return name == "" && job.IsChild() && job.Child.Checkpoints == "" && !job.IsSet("logdir")
}

// learn runs a program for a while, as init does, in a copy of the working directory, and
// returns the name of a config that it writes into the scratch folder.
func learn(ctx context.Context, c *cli.Context, job *config.Config, scratch string) (name string, err error) {
	here := config.Absolute(job.Child.Dir)
	words, dir := job.Child.Command, filepath.Join(scratch, "trial")
	if err := (&prove.Workdir{Dir: here, Output: ".", Command: words}).Make(dir); err != nil {
		return "", err
	}
	fmt.Fprintf(c.App.ErrWriter, "trial: running %s for up to %v from its first report, to see what it saves\n", shell.Join(words), trialLimit)
	f, err := trial.Run(ctx, trial.Options{Command: programOf(job, dir, ""), Dir: dir, Logdir: filepath.Join(dir, "logs", jobName(words)), Limit: trialLimit})
	if err != nil {
		return "", startOutOfCopy(here, dir, err)
	}
	for _, line := range f.Story() {
		fmt.Fprintln(c.App.ErrWriter, " ", strings.ReplaceAll(strings.ReplaceAll(line, filepath.ToSlash(dir)+"/", ""), filepath.ToSlash(dir), "."))
	}
	if err := checkOutput(f, words, here, dir); err != nil {
		return "", err
	}
	f.Command, f.Logdir = words, outOfCopy(here, dir, f.Logdir)
	if f.Saved != nil {
		f.Saved.Logdir = outOfCopy(here, dir, f.Saved.Logdir)
	}
	name = filepath.Join(scratch, "job.toml")
	text, err := f.Text(jobName(words), name, here)
	if err != nil {
		return "", err
	}
	return name, os.WriteFile(name, []byte(text), 0o666)
}

// checkOutput has an error for a program that saves elsewhere than in the copy of its working
// directory, in a folder that its command does not name.
func checkOutput(f *trial.Findings, words []string, here, copied string) error {
	if f.Saved == nil {
		return nil
	}
	if below, err := filepath.Rel(copied, f.Saved.Logdir); err == nil && filepath.IsLocal(below) {
		return nil
	}
	if output, _ := outputOf(words, here, f.Saved.Logdir); output != "" {
		return nil
	}
	return fmt.Errorf("the program saves in %s, whatever its working directory and TRAINERD_LOGDIR are: the runs would share that folder, and change what is there. "+
		"Have it save below TRAINERD_LOGDIR, or in a folder that is an argument", f.Saved.Logdir)
}

// outOfCopy returns the folder that one in a copy is in the working directory itself.
func outOfCopy(here, copied, name string) string {
	if below, err := filepath.Rel(copied, name); err == nil && filepath.IsLocal(below) {
		return filepath.Join(here, below)
	}
	return name
}

// startOutOfCopy has the error of a program that cannot be started name the file in the
// working directory.
func startOutOfCopy(here, copied string, err error) error {
	start, isStart := errors.AsType[*child.StartError](err)
	file, isFile := errors.AsType[*fs.PathError](err)
	if !isStart || !isFile {
		return err
	}
	return &child.StartError{Command: start.Command, Err: &fs.PathError{Op: file.Op, Path: outOfCopy(here, copied, file.Path), Err: file.Err}}
}
