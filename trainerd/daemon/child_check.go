package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// describeChild writes what a run would do.
func describeChild(c *config.Config, w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("job", "%s", c.Name)
	row("command", "%s", shell.Join(c.Child.Command))
	if why := hidesEnd(c.Child.Command); why != "" {
		row("end", "%s", why)
	}
	row("directory", "%s", config.Absolute(c.Child.Dir))
	if c.Train.Steps > 0 {
		row("steps", "%d", c.Train.Steps)
	}
	switch s := c.Supervisor; {
	case c.Child.Checkpoints == "":
		row("checkpoints", "not managed; set child.checkpoints to say where they are")
	case s.MaxToKeep == 0:
		row("checkpoints", "%s; all are kept", c.Child.Checkpoints)
	case c.Child.KeepBest > 0:
		row("checkpoints", "%s; the newest %d are kept, and the best %d by %s", c.Child.Checkpoints, s.MaxToKeep, c.Child.KeepBest, c.Child.Metric)
	default:
		row("checkpoints", "%s; the newest %d are kept", c.Child.Checkpoints, s.MaxToKeep)
	}
	if saves := describeChildSaves(c); saves != "" {
		row("saves", "%s", saves)
	}
	row("restarts", "%d within %v", c.Child.MaxRestarts, c.Child.RestartWindowSecs.Duration())
	if c.Child.HangSecs > 0 {
		row("hang", "after %v without a step", c.Child.HangSecs.Duration())
	}
	row("logdir", "%s", config.Absolute(c.Logdir))
	state := "fresh"
	there, err := found.Scan(c.Logdir, c.Child.Checkpoints)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if n := len(there); n > 0 {
		state = "resumes from " + there[n-1].Path
		if step := there[n-1].Step; step != found.NoStep {
			state += fmt.Sprintf(" (step %d)", step)
		}
	} else {
		state += describeElsewhere(c)
	}
	row("state", "%s%s", state, describeHolder(c.Logdir))
	return t.Flush()
}

// describeChildSaves says when the program is asked to save, "" for never.
func describeChildSaves(c *config.Config) string {
	s, x := c.Supervisor, c.Child
	when := describeWhen(s.SaveModelSteps, c.ChildSaveEvery())
	if s.MaxRiskSecs > 0 {
		when = append(when, fmt.Sprintf("at the latest %v after the last", s.MaxRiskSecs.Duration()))
	}
	if len(when) == 0 {
		return ""
	}
	return fmt.Sprintf("requested by %s %s", x.SaveSignal, strings.Join(when, ", "))
}
