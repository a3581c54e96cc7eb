// Package report describes the outcome of a run: the types of its
// run-report.json, and their text for people, run-report.md. A Supervisor writes
// both into the logdir when a run ends. The package has no state.
package report

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// Names of the report of a run in its logdir.
const (
	JSONName     = "run-report.json"
	MarkdownName = "run-report.md"
)

// Outcomes of a run in its report.
const (
	Running   = "running"   // it has not ended yet
	Completed = "completed" // the training completed
	Stopped   = "stopped"   // it was asked to stop; StoppedBy says by whom
	Failed    = "failed"    // Error says why
)

// Seconds is a duration that is written as a number of seconds.
type Seconds time.Duration

// MarshalJSON writes the number of seconds.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// UnmarshalJSON reads a number of seconds.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	var v float64
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*s = Seconds(v * float64(time.Second))
	return nil
}

func (s Seconds) String() string { return time.Duration(s).Round(time.Millisecond).String() }

// Run is the outcome of a run. The chief writes it into the logdir when the
// run ends, as JSON and as Markdown.
type Run struct {
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Logdir  string    `json:"logdir"`
	Begun   time.Time `json:"begun"`
	Ended   time.Time `json:"ended"`
	Outcome string    `json:"outcome"`
	// StoppedBy says who or what requested the stop, if known; see
	// [trainerd.StopRequest].
	StoppedBy string `json:"stopped_by,omitempty"`
	Error     string `json:"error,omitempty"`

	// Restored is the checkpoint from which the run started, "" for none, and
	// PassedOver the damaged ones that it skipped.
	Restored   string   `json:"restored,omitempty"`
	PassedOver []string `json:"passed_over,omitempty"`

	// FirstStep and LastStep are the global step at the beginning and at the
	// end, -1 if the model does not count steps.
	FirstStep      int64   `json:"first_step"`
	LastStep       int64   `json:"last_step"`
	Steps          int64   `json:"steps"` // made, including repeated ones
	StepsPerSecond float64 `json:"steps_per_second"`

	Time     Times    `json:"time"`
	Saves    Saves    `json:"saves"`
	Restarts Restarts `json:"restarts"`

	// Checkpoints are those that are kept, oldest first, and why.
	Checkpoints []Checkpoint `json:"checkpoints"`
}

// Write writes the report into a folder, as JSON and as Markdown.
func (r *Run) Write(fsys atomicfile.FS, dir string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("report of the run: %w", err)
	}
	for name, text := range map[string][]byte{JSONName: append(b, '\n'), MarkdownName: r.Markdown()} {
		if err := atomicfile.WriteFile(fsys, filepath.Join(dir, name), text); err != nil {
			return fmt.Errorf("report of the run: %w", err)
		}
	}
	return nil
}

// Times says how the time of a run was spent.
type Times struct {
	Total     Seconds `json:"total"`
	Preparing Seconds `json:"preparing"` // restoring or initialising
	Training  Seconds `json:"training"`  // including the time that the training stalled
	Stopping  Seconds `json:"stopping"`  // including the final checkpoint
}

// Saves is the cost of saving.
type Saves struct {
	Count   int     `json:"count"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"` // because of the SaveBudget
	Writing Seconds `json:"writing"` // mostly during the training
	Longest Seconds `json:"longest"`
	// Stalled is how long the training waited for saves.
	Stalled      Seconds `json:"stalled"`
	LongestStall Seconds `json:"longest_stall"`
}

// Restarts is the cost of lost sessions.
type Restarts struct {
	Count      int     `json:"count"`
	Rewinds    int     `json:"rewinds"`
	Lost       Seconds `json:"lost"` // from the failure to the next session
	StepsAgain int64   `json:"steps_again"`
}

// Checkpoint is a checkpoint that is kept.
type Checkpoint struct {
	Name    string                     `json:"name"`
	Step    int64                      `json:"step"`
	Saved   time.Time                  `json:"saved"`
	Metrics map[string]manifest.Metric `json:"metrics,omitempty"` // of the model in it
	Sources map[string]string          `json:"sources,omitempty"` // what measured them; see manifest.Measurement
	Why     []string                   `json:"why"`
}

// Checkpoints lists checkpoints that are kept.
func Checkpoints(kept []checkpoint.Kept) []Checkpoint {
	all := make([]Checkpoint, len(kept))
	for i, k := range kept {
		all[i] = Checkpoint{Name: filepath.Base(k.Prefix), Step: k.Step, Saved: k.Saved.UTC(), Sources: k.Sources, Why: k.Why}
		for name, v := range k.Metrics {
			if all[i].Metrics == nil {
				all[i].Metrics = make(map[string]manifest.Metric)
			}
			all[i].Metrics[name] = manifest.Metric(v)
		}
	}
	return all
}
