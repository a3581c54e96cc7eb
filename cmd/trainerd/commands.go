package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/cmd/internal/version"
	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

const runHelp = `Trains the model family that [model] describes, or the graph of [graph] meta,
which TensorFlow has exported; or keeps the program of [child] command alive,
or that after --, which trains by itself, in any language: what it reports
becomes an events file, its checkpoints are rotated, and it is started again
when it fails. See doc/any-language.md.

Resumes from the newest intact checkpoint in the logdir; without one it begins
at step 0. Ctrl-C, SIGTERM or a terminal that closes (SIGHUP) stops after the
current step, saves, and exits with 0; another Ctrl-C or SIGTERM, a second or
more later, exits at once. A log that nobody reads any more does not end it. A job
that is complete is left as it is.

A run is monitored and controlled by the commands status, save, pause, resume,
stop, set, keep, note and logs: it listens at the socket trainerd.sock in the logdir,
which only its own user can use. With --listen it answers programs over HTTP too:
/healthz, /readyz, /metrics and what package control lists.

Under systemd it reports its status, writes to the journal, and is killed by the
watchdog when it makes no steps. See doc/service.md.

EXAMPLES:
   trainerd run examples/digits/digits.toml
   trainerd run examples/graph/graph.toml
   trainerd run --logdir logs/a --set child.checkpoints='ckpt-*' -- python3 train.py
   trainerd run job.toml --logdir /data/run2 --set train.steps=5000
   trainerd run job.toml --set 'model.hidden=[64, 32]' --set model.activation=tanh

EXIT CODES:
`

// runExits lists the exit codes for the help of run.
func runExits() string {
	var lines []string
	for _, e := range daemon.Exits() {
		line := fmt.Sprintf("   %3d  %s", e.Code, e.Meaning)
		if e.Code == daemon.ExitConfig {
			line += ", or\n        the program after -- cannot be started or says so"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

const checkHelp = `Reads config, data and logdir, builds the model or reads the graph, and restores
the newest checkpoint, but changes nothing. All problems are reported at once.
The exit codes are those of run.

EXAMPLES:
   trainerd check examples/digits/digits.toml
   trainerd check job.toml --set data.label=-1`

func jobFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "logdir", Usage: "write checkpoints and events to `DIR` instead of the config's logdir"},
		&cli.StringFlag{Name: "master", Usage: "run the model at `M` instead of the config's master"},
		&cli.StringSliceFlag{Name: "set", Usage: "change the config: `KEY=VALUE`, as in train.steps=500; may be repeated"},
	}
}

func runCommand(stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name:        "run",
		Usage:       "train, from the newest checkpoint to the last step",
		UsageText:   "trainerd run [--logdir DIR] [--master M] [--set KEY=VALUE]... [--listen ADDR] [CONFIG] [-- PROGRAM ARGS...]",
		Description: runHelp + runExits(),
		Flags:       append(append(jobFlags(), serviceFlags()...), &cli.IntFlag{Name: "stop-code", Usage: "exit with `CODE` instead of 0 when stopped before the end, for a scheduler to start it again"}),
		Action: func(c *cli.Context) error {
			name, err := configArg(c)
			if err != nil {
				return err
			}
			job, err := config.Load(name, overrides(c))
			if err != nil {
				return err
			}
			if code := c.Int("stop-code"); code < 0 || code > 255 {
				return usagef("run: --stop-code: want 0 to 255, got %d", code)
			}
			outliveReaders()
			log := control.NewLog()
			out := unheld(c.App.Writer, stderr, log.Handler())
			ctx, release := stopOnSignal(c.Context, out.stderr, stopping(job))
			defer release()
			s, err := newService(c, job, out.stderr, log)
			if err != nil {
				return err
			}
			stopped := false
			err = s.run(ctx, daemon.RunOptions{
				Stdout: out.stdout, Stderr: out.stderr, Terminal: terminal.Is(stderr),
				Again: again(c, name), Command: commandPath, Stopped: func() { stopped = true },
			})
			if code := c.Int("stop-code"); err == nil && stopped && code != 0 {
				return stopError(code)
			}
			return err
		},
	}
}

// stopError is the exit code of a run that was stopped and has saved, where
// --stop-code wants one. The run has said what there is to say.
type stopError int

// Error implements error.
func (e stopError) Error() string { return fmt.Sprintf("stopped, with exit code %d", int(e)) }

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:        "check",
		Usage:       "report what run would do, and every problem, without training",
		UsageText:   "trainerd check [--logdir DIR] [--master M] [--set KEY=VALUE]... [CONFIG] [-- PROGRAM ARGS...]",
		Description: checkHelp,
		Flags:       jobFlags(),
		Action: func(c *cli.Context) error {
			name, err := configArg(c)
			if err != nil {
				return err
			}
			return daemon.Check(c.Context, name, overrides(c), c.App.Writer)
		},
	}
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("version takes no arguments")
			}
			_, err := fmt.Fprintln(c.App.Writer, "trainerd version", version.Line())
			return err
		},
	}
}

// configArg returns the only argument of a command. Words after "--" make it
// needless.
func configArg(c *cli.Context) (string, error) {
	words, ok := program(c)
	switch {
	case ok && len(words) == 0:
		return "", usagef("%s: no program after --", c.Command.Name)
	case ok && c.NArg() == 0:
		return "", nil
	case c.NArg() == 0 || c.Args().First() == "":
		return "", usagef("%s: the config file is missing", c.Command.Name)
	case c.NArg() > 1:
		return "", usagef("%s: one config file is wanted, got %d arguments", c.Command.Name, c.NArg())
	}
	return c.Args().First(), nil
}

// overrides returns what the flags change in the config. --logdir and --master
// win over --set.
func overrides(c *cli.Context) []config.Override {
	all := programOverride(c)
	for _, assignment := range c.StringSlice("set") {
		all = append(all, config.Override{Flag: "--set " + assignment, Assignment: assignment})
	}
	for _, name := range []string{"logdir", "master"} {
		if c.IsSet(name) {
			value := c.String(name)
			all = append(all, config.Override{Flag: fmt.Sprintf("--%s %s", name, value), Assignment: name + "=" + value, Literal: true})
		}
	}
	return all
}

// commandPath returns how a command that is installed with this one is called:
// where this one was called by its path, by its own.
func commandPath(name string) string {
	if !strings.ContainsRune(os.Args[0], filepath.Separator) {
		return name
	}
	path := filepath.Join(filepath.Dir(os.Args[0]), name)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return name
	}
	return path
}

// again returns the command line that starts the same job.
func again(c *cli.Context, config string) string {
	words := []string{os.Args[0], "run"}
	if config != "" {
		words = append(words, config)
	}
	for _, name := range []string{"logdir", "master", "listen", "token-file"} {
		if c.IsSet(name) {
			words = append(words, "--"+name, c.String(name))
		}
	}
	if c.Bool("pprof") {
		words = append(words, "--pprof")
	}
	for _, assignment := range c.StringSlice("set") {
		words = append(words, "--set", assignment)
	}
	if program, ok := program(c); ok {
		words = append(append(words, "--"), program...)
	}
	return shell.Join(words)
}
