package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/alert"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// errFired sets the exit code of watch --once.
var errFired = errors.New("a rule holds")

func watchCommand() *cli.Command {
	return &cli.Command{
		Name:      "watch",
		Usage:     "alert when a loss is NaN, an accuracy stalls, or a run is silent",
		ArgsUsage: "LOGDIR",
		Description: "Each rule fires once for each run, also after a restart of watch. TAG is a tag, one in\n" +
			"double quotes, or /REGEXP/; DURATION is like 90s, 15m, 1h30m or 2d.\n\n" +
			"  TAG is NaN | is Inf | is not finite\n" +
			"  TAG < N | <= N | > N | >= N\n" +
			"  TAG stalls DURATION                   neither a new highest nor lowest value\n" +
			"  TAG stops rising for DURATION | stops falling for DURATION\n" +
			"  TAG rises by N% over K steps | falls by N% over K steps\n" +
			"  TAG has no new point for DURATION | run is silent for DURATION\n\n" +
			"`K steps` and DURATION may replace each other where a value is compared; so may N and\n" +
			"N%. Without --exec and --webhook it only prints.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "when", Usage: "fire when `RULE` holds; repeat for several rules"},
			&cli.StringSliceFlag{Name: "exec", Usage: "run `COMMAND` with the shell: TFEVENTS_TEXT, _RULE, _RUN, _TAG, _STEP, _VALUE, _WALL_TIME and _LOGDIR are in its environment, JSON in its standard input"},
			&cli.StringSliceFlag{Name: "webhook", Usage: "post JSON to `URL`"},
			runFlag(),
			&cli.DurationFlag{Name: "poll", Value: 5 * time.Second, Usage: "how often to look, as in 30s"},
			&cli.BoolFlag{Name: "once", Usage: "look once; ends with 6 if a rule fired"},
			&cli.BoolFlag{Name: "skip-existing", Usage: "do not fire for what holds already when LOGDIR is watched for the first time"},
			&cli.StringFlag{Name: "state", Usage: "remember in `FILE` what has fired (default: a file of the user's state directory)"},
			jsonFlag(),
		},
		Action: watch,
	}
}

func watch(c *cli.Context) error {
	logdir, err := oneArg(c, "LOGDIR")
	if err != nil {
		return err
	}
	w, err := newWatcher(c, logdir)
	if err != nil {
		return err
	}
	screenOf(c).progress = nil
	if !c.Bool("once") {
		if !c.IsSet("exec") { // else programs are started, and waited for
			defer system.KeepReaping()()
		}
		err := w.Watch(c.Context)
		if errors.Is(err, context.Canceled) {
			return context.Canceled
		}
		return err
	}
	alerts, err := w.Once(c.Context)
	if err == nil && len(alerts) > 0 {
		err = errFired
	}
	return err
}

func newWatcher(c *cli.Context, logdir string) (*alert.Watcher, error) {
	if info, err := os.Stat(logdir); err == nil && !info.IsDir() {
		return nil, usagef("watch: %s is not a directory", logdir)
	}
	w := &alert.Watcher{
		FS: tfevents.DirFS(logdir), Logdir: logdir, Poll: c.Duration("poll"), SkipExisting: c.Bool("skip-existing"),
		Logger: slog.New(slog.NewTextHandler(c.App.ErrWriter, nil)),
	}
	w.Found = func(a *alert.Alert) { printAlert(c, a) }
	if w.Poll <= 0 {
		return nil, usagef("watch: --poll %v: want more than 0", w.Poll)
	}
	var err error
	if w.Run, err = selected(c, "run"); err != nil {
		return nil, err
	}
	for _, text := range c.StringSlice("when") {
		rule, err := alert.ParseRule(text)
		if err != nil {
			return nil, usagef("watch: --when: %w", err)
		}
		w.Rules = append(w.Rules, rule)
	}
	if len(w.Rules) == 0 {
		return nil, usagef("watch: want a rule, as in --when 'loss is NaN'")
	}
	if err := addActions(c, w); err != nil {
		return nil, err
	}
	path := c.String("state")
	if path == "" {
		if path, err = alert.StatePath(logdir); err != nil {
			return nil, usagef("watch: no directory for the state: %w; name a file with --state", err)
		}
	}
	w.State, err = alert.OpenState(path, logdir, time.Now())
	return w, err
}

func addActions(c *cli.Context, w *alert.Watcher) error {
	view := screenOf(c)
	for _, command := range c.StringSlice("exec") {
		w.Actions = append(w.Actions, &alert.Exec{Command: command, Stdout: view.stdout, Stderr: view.stderr})
	}
	for _, text := range c.StringSlice("webhook") {
		hook, err := alert.ParseWebhook(text)
		if err != nil {
			return usagef("watch: --webhook: %w", err)
		}
		w.Actions = append(w.Actions, hook)
	}
	return nil
}

// printAlert prints an alert at once, for a reader who follows the output.
func printAlert(c *cli.Context, a *alert.Alert) {
	line := []byte(terminal.Line(a.Text))
	if c.Bool("json") {
		line, _ = json.Marshal(a) // it cannot fail: all parts are strings and numbers
	}
	fmt.Fprintf(c.App.Writer, "%s\n", line)
	if f, ok := c.App.Writer.(interface{ Flush() error }); ok {
		_ = f.Flush() // the end of the command says so again
	}
}
