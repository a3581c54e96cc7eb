package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// Outcomes without a report, because the run could not write one.
const (
	Killed  = "killed"  // the process died without ending the run
	Copied  = "copied"  // the logdir is a copy of that of a run which has not ended
	Empty   = "empty"   // no run has written there
	Unknown = "unknown" // its report or lock cannot be read; Why says why
)

// Last is what a logdir records about its newest run, for when the run itself
// cannot be queried.
type Last struct {
	Logdir string `json:"logdir"`
	// Outcome is that of the report, or Killed, or Running for a locked logdir,
	// or Copied, or Empty, or Unknown.
	Outcome string `json:"outcome"`
	// Why says by whom a run was stopped, what failed, or which process was killed.
	Why string `json:"why,omitempty"`
	// Step is that of the newest checkpoint, or the last one in the report; -1
	// for none.
	Step int64 `json:"step"`
	// Checkpoint is the newest one's name.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Metrics are those of the newest checkpoint, if the report has them.
	Metrics map[string]manifest.Metric `json:"metrics,omitempty"`
	// Ended is when the run ended, or was last known to run.
	Ended time.Time `json:"ended,omitzero"`
}

// ReadLast reads the records of a logdir. It changes nothing. A record that is damaged, or of
// another user and not to be read, is not an error: the others may say enough.
func ReadLast(dir string) (*Last, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder; give the logdir of a run", dir)
	}
	l := &Last{Logdir: dir, Outcome: Empty, Step: -1}
	for _, read := range []func() error{l.fromReport, l.fromLock} {
		if err := read(); err != nil {
			l.Outcome, l.Why = Unknown, err.Error()
		}
	}
	if l.Checkpoint == "" || l.Outcome == Killed || l.Outcome == Copied || l.Outcome == Running {
		l.fromCheckpoints()
	}
	return l, nil
}

// maxReport bounds what is read of a report, whose file may belong to another user.
const maxReport = 256 << 20

// fromReport reads the report of the last run that has ended.
func (l *Last) fromReport() error {
	text, err := atomicfile.ReadFileLimit(nil, filepath.Join(l.Logdir, JSONName), maxReport, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var r Run
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(l.Logdir, JSONName), err)
	}
	l.Outcome, l.Step, l.Ended = r.Outcome, r.LastStep, r.Ended
	switch {
	case r.Error != "":
		l.Why, _, _ = strings.Cut(r.Error, "\n")
	case r.StoppedBy != "":
		l.Why = "by " + r.StoppedBy
	}
	if n := len(r.Checkpoints); n > 0 {
		newest := r.Checkpoints[n-1]
		l.Checkpoint = newest.Name
		l.Metrics = newest.Metrics
	}
	return nil
}

// fromLock finds a run that has not ended, or has not been able to say so.
func (l *Last) fromLock() error {
	holder := logdir.Named(l.Logdir)
	var locked *logdir.LockedError
	switch err := logdir.Check(l.Logdir); {
	case errors.As(err, &locked):
		l.Outcome, l.Why, l.Metrics = Running, locked.Holder.String(), nil
	case err != nil:
		return err // as of a lock that this user may not read
	case holder.PID != 0:
		l.Outcome, l.Why, l.Metrics = Killed, holder.String(), nil
		if from := holder.Logdir(); from != "" {
			l.Outcome, l.Why = Copied, fmt.Sprintf("from %s, in use by %v", from, holder)
		}
		l.Ended = holder.Start
	}
	return nil
}

// fromCheckpoints takes the newest checkpoint that the file `checkpoint` names.
func (l *Last) fromCheckpoints() {
	state, err := ckptdir.ReadState(l.Logdir, nil)
	if err != nil || state.GetModelCheckpointPath() == "" {
		l.fromRecords()
		return
	}
	latest := state.GetModelCheckpointPath()
	l.Checkpoint = filepath.Base(latest)
	if step := ckptdir.StepOf(latest); step >= 0 {
		l.Step = step
	}
	if l.Outcome == Empty {
		l.Outcome = Stopped // by a program that writes no report
	}
	if info, err := os.Stat(filepath.Join(l.Logdir, ckptdir.StateName)); err == nil && info.ModTime().After(l.Ended) {
		l.Ended = info.ModTime()
	}
}

// fromRecords takes the newest checkpoint of a program that was verified.
func (l *Last) fromRecords() {
	all, _ := manifest.Records(l.Logdir) // what cannot be read names none
	if len(all) == 0 {
		return
	}
	newest := all[len(all)-1]
	l.Checkpoint, l.Step = path.Base(newest.Name), max(l.Step, newest.Step)
	if newest.Verified.After(l.Ended) {
		l.Ended = newest.Verified
	}
}

// Text is the state in one line.
func (l *Last) Text() string {
	text := l.Outcome
	if l.Step >= 0 {
		text += fmt.Sprintf(" at step %d", l.Step)
	}
	if l.Why != "" {
		text += " (" + l.Why + ")"
	}
	return text
}
