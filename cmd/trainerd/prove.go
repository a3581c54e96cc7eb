package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/prove"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

// exitDiffers is the exit code of prove for a training that does not resume
// exactly, as that of diff.
const exitDiffers = 3

const proveHelp = `Runs a training undisturbed, then again and again with a kill, a stop, or a kill
with the newest checkpoint damaged, at moments that --seed chooses, and compares what
the runs leave to the bit: the tensors of their checkpoints and their curves. A
training that differs is run undisturbed once more, to see whether it repeats itself
at all; what differs there, too, is not held against it.

It says the verdict, the first step and tensor that differ, the likely cause, how many
steps a disturbance costs, and which share of the time advanced the model. Every run
has a logdir of its own in a temporary folder, and all checkpoints are kept, so train
few steps: what shows in a hundred shows in a million.

A program that is given alone is first run for a while, as ` + "`trainerd init`" + `
does, to see what it saves, and where. If that is below the current folder, each run
has a copy of the folder: without checkpoints that are there already, and with links
to large files of data. Nothing in the folder itself is changed.

EXAMPLES:
   trainerd prove -- python3 train.py --steps 100
   trainerd prove --set 'child.checkpoints=ckpt-*.pt' -- python3 train.py --steps 100
   trainerd prove job.toml --set train.steps=200 --runs 9

EXIT CODES:
     0  the same, or within what it varies by itself
     3  it does not resume exactly, or not at all
     1  it could not be proven`

func proveCommand() *cli.Command {
	return &cli.Command{
		Name:        "prove",
		Usage:       "test whether a training resumes exactly",
		UsageText:   "trainerd prove [--runs N] [--seed N] [--set KEY=VALUE]... [CONFIG] [-- PROGRAM ARGS...]",
		Description: proveHelp,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "runs", Value: 3, Usage: "disturb `N` runs: killed, stopped, damaged in turn"},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "choose the moments by `N`"},
			&cli.StringSliceFlag{Name: "set", Usage: "change the config: `KEY=VALUE`, as in train.steps=500; may be repeated"},
			&cli.StringFlag{Name: "scratch", Usage: "keep the logdirs of the runs, in the new folder `DIR`"},
			&cli.BoolFlag{Name: "json", Usage: "print the report as JSON"},
		},
		Action: proveAction,
	}
}

func proveAction(c *cli.Context) error {
	name, err := configArg(c)
	if err != nil {
		return err
	}
	if c.Int("runs") < 1 {
		return usagef("prove: --runs: want 1 or more")
	}
	job, workdir, err := jobToProve(c, name)
	if err != nil {
		return err
	}
	scratch, remove, err := scratchFolder(c)
	if err != nil {
		return err
	}
	defer remove()
	ctx, release := stopOnSignal(c.Context, c.App.ErrWriter, "ending the runs")
	defer release()
	if isUnknown(job, name) {
		if name, err = learn(ctx, c, job, scratch); err != nil {
			return err
		}
		if job, workdir, err = jobToProve(c, name); err != nil {
			return err
		}
	}
	self, err := exec.LookPath(os.Args[0])
	if err != nil {
		return err
	}
	o := prove.Options{
		Command: func(dir, logdir string) []string { return proveWords(c, job, self, name, dir, logdir) },
		Workdir: workdir,
		Program: job.IsChild(), Pattern: job.Child.Checkpoints, Scratch: scratch, Runs: c.Int("runs"), Seed: c.Uint64("seed"),
		Progress: func(line string) { fmt.Fprintln(c.App.ErrWriter, line) },
	}
	if job.IsChild() {
		o.Below = outputBelow(job, workdir)
		o.Source = recipe.Source(job.Child.Dir, job.Child.Command)
	}
	report, err := prove.Run(ctx, o)
	if err != nil {
		return err
	}
	return printProof(c, report)
}

// jobToProve reads the config, with a logdir where it has none. workdir is where a
// program works whose logdir is below that.
func jobToProve(c *cli.Context, name string) (job *config.Config, workdir *prove.Workdir, err error) {
	job, err = config.Load(name, overrides(c))
	if err != nil { // that it has no logdir does not matter
		job, err = config.Load(name, append(overrides(c), config.Override{Flag: "prove", Assignment: "logdir=prove", Literal: true}))
		return job, nil, err
	}
	if !job.IsChild() || !job.IsSet("logdir") {
		return job, nil, nil
	}
	dir, err := filepath.EvalSymlinks(config.Absolute(job.Child.Dir))
	if err != nil {
		return job, nil, nil // the first run says what is wrong with it
	}
	output, err := filepath.Rel(config.Absolute(job.Child.Dir), config.Absolute(job.Logdir))
	if err != nil || !filepath.IsLocal(output) {
		return job, nil, nil
	}
	return job, &prove.Workdir{Dir: dir, Output: output, Pattern: job.Child.Checkpoints, Command: job.Child.Command}, nil
}

// errNotExact is the error of a proof that has found a difference, which the report
// has said already.
var errNotExact = errors.New("the training does not resume exactly")

func printProof(c *cli.Context, r *prove.Report) (err error) {
	if c.Bool("json") {
		e := json.NewEncoder(c.App.Writer)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = r.Write(c.App.Writer)
	}
	switch {
	case err != nil:
		return err
	case r.Verdict == prove.Unproven:
		return errors.New("the training could not be proven")
	case r.Verdict == prove.Differs || r.Verdict == prove.Fails || r.Verdict == prove.NoResume:
		return errNotExact
	}
	return nil
}

// scratchFolder returns a new folder for the runs, and what removes it.
func scratchFolder(c *cli.Context) (dir string, remove func(), err error) {
	if dir = c.String("scratch"); dir != "" {
		if err := os.Mkdir(dir, 0o777); err != nil {
			return "", nil, err
		}
		dir, err = filepath.Abs(dir)
		return dir, func() {}, err
	}
	if dir, err = os.MkdirTemp("", "trainerd-prove-"); err != nil {
		return "", nil, fmt.Errorf("making a folder for the runs: %w; --scratch names another place", err)
	}
	return dir, func() { os.RemoveAll(dir) }, nil
}

// proveWords returns the command line of a run: all checkpoints are kept, restarts
// come at once, and every step of a job of our own has a point.
func proveWords(c *cli.Context, job *config.Config, self, name, dir, logdir string) []string {
	words := []string{self, "run"}
	if name != "" {
		words = append(words, name)
	}
	for _, assignment := range c.StringSlice("set") {
		words = append(words, "--set", assignment)
	}
	set := func(key string, value any) { words = append(words, "--set", fmt.Sprintf("%s=%v", key, value)) }
	if job.IsChild() {
		set("child.dir", strconv.Quote(cmp.Or(dir, config.Absolute(job.Child.Dir))))
	}
	if job.IsChild() {
		set("child.backoff_secs", 0.01)
		set("child.max_backoff_secs", 0.05)
	} else {
		set("supervisor.save_summaries_steps", 1)
		// A run needs several checkpoints to be resumed from one.
		if steps, every := job.Train.Steps, job.Supervisor.SaveModelSteps; steps > 8 && (every == 0 || every > steps/4) {
			set("supervisor.save_model_steps", steps/8)
		}
	}
	if !job.IsChild() || job.Child.Checkpoints != "" {
		set("supervisor.max_to_keep", 0)
	}
	words = append(words, "--logdir", logdir)
	moved := programOf(job, dir, logdir)
	if _, ok := program(c); ok || !slices.Equal(moved, job.Child.Command) {
		words = append(append(words, "--"), moved...)
	}
	return words
}
