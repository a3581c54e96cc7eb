package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// controlCommands are those that ask a run. Their first argument is its logdir,
// the config that it was started with, or the name of its service.
func controlCommands() []*cli.Command {
	return []*cli.Command{
		statusCommand(),
		lsCommand(),
		{
			Name: "save", Usage: "have a run write a checkpoint now", UsageText: "trainerd save CONFIG|LOGDIR",
			Action: asking(0, func(c *cli.Context, client *control.Client, _ []string) error {
				saved, err := client.Save(c.Context)
				if err != nil {
					return err
				}
				fmt.Fprintf(c.App.Writer, "saved%s: %s\n", stepText(saved.Step), shown(saved.Checkpoint))
				return nil
			}),
		},
		plainCommand("pause", "pause a run between two steps"),
		plainCommand("resume", "resume a paused run"),
		stopCommand(),
		logsCommand(),
		setCommand(),
		{
			Name: "keep", Usage: "keep a checkpoint from being rotated away", UsageText: "trainerd keep CONFIG|LOGDIR STEP",
			Action: asking(1, func(c *cli.Context, client *control.Client, args []string) error {
				step, err := strconv.ParseInt(args[0], 10, 64)
				if err != nil || step < 0 {
					return usagef("keep: %q is not a step", args[0])
				}
				return say(c, client, "keep", map[string]any{"step": step})
			}),
		},
		{
			Name: "note", Usage: "write a text into a run's events file, for TensorBoard", UsageText: "trainerd note CONFIG|LOGDIR TEXT",
			Action: asking(1, func(c *cli.Context, client *control.Client, args []string) error {
				return say(c, client, "note", map[string]any{"text": args[0]})
			}),
		},
	}
}

// workerFlag picks a process of those that share a logdir.
var workerFlag = &cli.IntFlag{Name: "worker", Usage: "ask the worker with this `TASK` instead of the chief"}

// asking returns an action that connects to the run that the first argument
// names; n more are wanted.
func asking(n int, do func(c *cli.Context, client *control.Client, args []string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		args := c.Args().Slice()
		if len(args) != n+1 || args[0] == "" {
			return usagef("%s: want %s", c.Command.Name, strings.TrimPrefix(c.Command.UsageText, "trainerd "+c.Command.Name+" "))
		}
		logdir, err := logdirOf(args[0])
		if err == nil {
			err = runsElsewhere(args[0], logdir)
		}
		if err != nil {
			return err
		}
		client := chiefClient(logdir)
		if c.IsSet(workerFlag.Name) {
			client = workerClient(logdir, c.Int(workerFlag.Name))
		}
		defer client.Close()
		return orRunsBelow(do(c, client, args[1:]), logdir)
	}
}

// orRunsBelow returns an error of a command that is about one run. Where that is a folder with runs
// in it, it says how these are listed.
func orRunsBelow(err error, dir string) error {
	gone, notRunning := errors.AsType[*control.NotRunningError](err)
	if !notRunning || gone.Other != "" || isRun(dir) {
		return err
	}
	entries, _ := os.ReadDir(dir) // where that fails, none is known
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isRun(filepath.Join(dir, e.Name())) }) {
		return err
	}
	return &folderError{Dir: dir, Err: err}
}

// folderError says that a folder is not the logdir of a run, but has some in it.
type folderError struct {
	Dir string
	Err error
}

func (e *folderError) Error() string {
	return fmt.Sprintf("%s is a folder of runs: `trainerd ls %s` lists them; name one", e.Dir, e.Dir)
}

// Unwrap returns that nothing runs there.
func (e *folderError) Unwrap() error { return e.Err }

// runsElsewhere returns an error for the config of a job whose logdir is not there, but was in
// another folder.
func runsElsewhere(arg, logdir string) error {
	if _, err := os.Stat(logdir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	job, _ := config.Load(arg, nil) // was loaded before
	if job == nil {
		return nil
	}
	if other := daemon.Elsewhere(job); other != "" {
		return &control.NotRunningError{Logdir: config.Absolute(logdir), Other: other}
	}
	return nil
}

// chiefClient returns a client for the chief of a logdir: with several nodes, any of them may
// have become it. Close it.
func chiefClient(logdir string) *control.Client {
	return control.NewChiefClient(logdir, child.ChiefNode(logdir))
}

// workerClient returns a client for a worker of a cluster, or for a node of a program. Close it.
func workerClient(logdir string, task int) *control.Client {
	if task == 0 && child.HasNodes(logdir) {
		return control.NewFirstNodeClient(logdir) // another node may be the chief
	}
	return control.NewWorkerClient(logdir, task)
}

// serviceLogdirs has the logdirs of the jobs that systemd runs as
// trainerd@NAME.service.
const serviceLogdirs = "/var/lib/trainerd"

// logdirOf returns the logdir that an argument names: itself, by a config, or
// by the name of a job of systemd.
func logdirOf(arg string) (string, error) { return logdirAmong(serviceLogdirs, arg) }

func logdirAmong(services, arg string) (string, error) {
	isDir, err := isFolder(arg)
	if isDir {
		return arg, nil
	}
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(arg) == arg {
		for _, name := range jobNames(arg) {
			dir := filepath.Join(services, name)
			if isDir, err := isFolder(dir); isDir || errors.Is(err, fs.ErrPermission) {
				return dir, forOwner(err)
			}
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no logdir or config here: %w; trainerd ls lists the runs", err)
	case errors.Is(err, fs.ErrPermission):
		return "", forOwner(err)
	}
	job, err := config.Load(arg, nil)
	if job != nil && job.Logdir != "" {
		return job.Logdir, nil // whatever else may be wrong with it
	}
	return "", err
}

func isFolder(name string) (bool, error) {
	info, err := os.Stat(name)
	return err == nil && info.IsDir(), err
}

// forOwner says who may see what this user may not, such as the logdir of a service.
func forOwner(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; type the command as the user of the run, or as root, as with sudo", err)
}

func setCommand() *cli.Command {
	return &cli.Command{
		Name: "set", Usage: "change a setting of a run", UsageText: "trainerd set CONFIG|LOGDIR KEY=VALUE",
		Description: `Changes model.learning_rate (learning_rate for short), or one of the intervals
eval.steps, eval.secs, supervisor.save_model_secs, supervisor.save_model_steps,
supervisor.save_summaries_secs and supervisor.save_summaries_steps. The change
lasts until the process ends; then the config applies again. Only a learning rate
that the model has in a variable of that name stays, as it is saved with the others.

Of a job whose program trains it changes when that is asked to save, by
supervisor.save_model_secs, supervisor.save_model_steps, supervisor.max_risk_secs
and supervisor.max_save_share, and child.hang_secs.`,
		Action: asking(1, func(c *cli.Context, client *control.Client, args []string) error {
			key, value, ok := strings.Cut(args[0], "=")
			if !ok || key == "" {
				return usagef("set: %q is not KEY=VALUE", args[0])
			}
			return say(c, client, "set", map[string]any{"key": key, "value": value})
		}),
	}
}

func plainCommand(name, usage string) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, UsageText: "trainerd " + name + " CONFIG|LOGDIR",
		Action: asking(0, func(c *cli.Context, client *control.Client, _ []string) error { return say(c, client, name, nil) }),
	}
}

func stopCommand() *cli.Command {
	return &cli.Command{
		Name: "stop", Usage: "end a run after the current step, with a last checkpoint", UsageText: "trainerd stop [--now] [--worker TASK] CONFIG|LOGDIR",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "now", Usage: "end the process at once, without a checkpoint"}, workerFlag},
		Action: asking(0, func(c *cli.Context, client *control.Client, _ []string) error {
			return say(c, client, "stop", map[string]any{"now": c.Bool("now")})
		}),
	}
}

// say asks for an action, and prints the answer.
func say(c *cli.Context, client *control.Client, action string, args map[string]any) error {
	text, err := client.Do(c.Context, action, args)
	if err == nil {
		fmt.Fprintln(c.App.Writer, terminal.Plain(text))
	}
	return err
}

func statusCommand() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show the status of a run", UsageText: "trainerd status [--watch] [--json] [--worker TASK] CONFIG|LOGDIR",
		Description: `Of a run that has ended or was killed it shows how, and its last checkpoint; the
exit code is then 3.`,
		Flags: []cli.Flag{
			workerFlag,
			&cli.BoolFlag{Name: "watch", Usage: "continue until the run ends, or Ctrl-C"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON, with --watch one line each second"},
		},
		Action: asking(0, func(c *cli.Context, client *control.Client, _ []string) error {
			show := showText
			if c.Bool("json") {
				show = showJSON
			}
			if c.Bool("watch") {
				return watch(c.Context, client, c.App.Writer, c.Bool("json"))
			}
			st, err := client.Status(c.Context)
			if gone := (*control.NotRunningError)(nil); errors.As(err, &gone) {
				return showLast(c.App.Writer, gone.Logdir, c.Bool("json"), err)
			}
			if err != nil {
				return err
			}
			return show(c.App.Writer, st)
		}),
	}
}

func showJSON(w io.Writer, st *control.Status) error { return json.NewEncoder(w).Encode(st) }

func showText(w io.Writer, st *control.Status) error {
	fmt.Fprintln(w, statusLine(st, ""))
	fmt.Fprintf(w, "  logdir    %s\n  process   %d, since %s\n", shown(st.Logdir), st.PID, st.Started.Local().Format(time.DateTime))
	if curve := control.Sparkline(st.Losses, curveWidth); curve != "" {
		fmt.Fprintf(w, "  loss      %s\n", curve)
	}
	if st.Restored != "" {
		fmt.Fprintf(w, "  restored  %s\n", shown(st.Restored))
	}
	if st.Saved != nil {
		fmt.Fprintf(w, "  saved     %s, %s\n", shown(st.Saved.Checkpoint), ago(st.Saved.Time))
	}
	return nil
}

// statusLine is the status of a run, which may be another user's, in one line with a curve.
func statusLine(st *control.Status, curve string) string {
	return terminal.Line(fmt.Sprintf("%s: %s%s", st.Job, curve, st.Text()))
}

// ago says when something was: by the clock, where that was set back since.
func ago(at time.Time) string {
	if d := time.Since(at).Round(time.Second); d >= 0 {
		return d.String() + " ago"
	}
	return at.Local().Format(time.DateTime)
}

// curveWidth is the width of a curve of the loss.
const curveWidth = 24

// shorten cuts a line to a width: one that wraps could not be drawn over.
func shorten(line string, width int) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:max(width, 0)])
	}
	return line
}

// watch shows the status each second until the run ends. On a terminal a line
// takes the place of the one before.
func watch(ctx context.Context, client *control.Client, w io.Writer, asJSON bool) error {
	redraw := terminal.Is(w) && !asJSON
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for first := true; ; first = false {
		st, err := client.Status(ctx)
		var gone *control.NotRunningError
		var silent *control.SilentError
		var unreachable *control.UnreachableError
		switch {
		case (errors.As(err, &silent) || errors.As(err, &unreachable) && !first) && !asJSON:
			_, err = fmt.Fprintln(w, terminal.Plain(err.Error()))
		case errors.As(err, &gone) && !first:
			if redraw {
				fmt.Fprintln(w)
			}
			if !asJSON {
				fmt.Fprintln(w, "the run has ended")
			}
			return nil
		case err != nil:
			return err
		case asJSON:
			err = showJSON(w, st)
		case redraw:
			line := statusLine(st, control.Sparkline(st.Losses, curveWidth)+" ")
			fmt.Fprint(terminal.Beneath(w), "\r\x1b[K")
			_, err = fmt.Fprint(w, shorten(line, terminal.Width(w)-1))
		default:
			_, err = fmt.Fprintln(w, statusLine(st, ""))
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// stepText returns the step of a checkpoint, "" for that of a program with one name for
// all.
func stepText(step int64) string {
	if step < 0 {
		return ""
	}
	return fmt.Sprintf(" step %d", step)
}
