package control

import (
	"path/filepath"
	"strconv"
	"time"

	"github.com/trainerd/trainerd/trainerd"
)

// Phase is what a training is doing.
type Phase string

// The phases of a training. All except Training may take any time.
const (
	Preparing   Phase = "preparing"   // reads data, restores or initialises the model, waits for the chief
	Starting    Phase = "starting"    // makes the first step, which also compiles the graph
	Training    Phase = "training"    // makes steps
	Waiting     Phase = "waiting"     // makes a step together with other workers
	Saving      Phase = "saving"      // waits for a checkpoint
	Evaluating  Phase = "evaluating"  // evaluates on the test part
	Supervising Phase = "supervising" // supervises a program that trains, and itself detects when that hangs
	Paused      Phase = "paused"      // was asked to wait
	Stopping    Phase = "stopping"    // ends its services and writes the last checkpoint
	Ended       Phase = "ended"
)

// phases are all of them, in the order in which a training comes to them.
var phases = []Phase{Preparing, Starting, Training, Waiting, Saving, Evaluating, Supervising, Paused, Stopping, Ended}

// Busy reports whether no steps are expected, so that their absence is not a
// hang.
func (p Phase) Busy() bool { return p != Training }

// passing reports whether a phase may come with each step, and be over after
// microseconds.
func (p Phase) passing() bool { return p == Saving || p == Waiting }

// Status is the state of a training.
type Status struct {
	Job     string    `json:"job"`
	Logdir  string    `json:"logdir"`
	PID     int       `json:"pid"`
	Phase   Phase     `json:"phase"`
	Started time.Time `json:"started"`
	Step    int64     `json:"step"`
	Steps   int64     `json:"steps,omitempty"` // 0: until the input ends
	// Loss is of the newest step, nil for none.
	Loss     *float64 `json:"loss,omitempty"`
	Rate     float64  `json:"steps_per_second"`
	ETA      float64  `json:"eta_seconds,omitempty"`
	Waiting  string   `json:"waiting,omitempty"`  // for whom or what the training waits
	Restored string   `json:"restored,omitempty"` // the checkpoint from which it started
	Saved    *Saved   `json:"saved,omitempty"`    // the newest checkpoint of this run
	Restarts int64    `json:"restarts"`           // of the session in this process
	// Idle is the time since the newest step.
	Idle float64 `json:"idle_seconds"`
	// Stalled is how long the training has waited for saves.
	Stalled       float64 `json:"stalled_seconds"`
	EventsDropped int64   `json:"events_dropped,omitempty"`
	// Losses are means of the loss over equal stretches of the run; see Curve.
	Losses []float64 `json:"losses,omitempty"`
	// Scalars are the newest points of the curves that a program has reported, by
	// tag.
	Scalars map[string]Scalar `json:"scalars,omitempty"`
}

// Saved is a checkpoint.
type Saved struct {
	Step       int64     `json:"step"`
	Checkpoint string    `json:"checkpoint"`
	Time       time.Time `json:"time"`
	Took       float64   `json:"took_seconds"`
}

func savedOf(s trainerd.SavedCheckpoint) *Saved {
	return &Saved{Step: s.Step, Checkpoint: s.Prefix, Time: s.Time, Took: s.Took.Seconds()}
}

// Text is the status in one line.
func (s *Status) Text() string {
	text := string(s.Phase) + ", step " + strconv.FormatInt(s.Step, 10)
	if s.Steps > 0 {
		text += " of " + strconv.FormatInt(s.Steps, 10)
	}
	if s.Loss != nil {
		text += ", loss " + short(*s.Loss)
	}
	if s.Rate > 0 {
		text += ", " + short(s.Rate) + " steps/s"
	}
	if s.ETA > 0 && s.Phase != Ended {
		text += ", ETA " + (time.Duration(s.ETA) * time.Second).String()
	}
	switch {
	case s.Saved != nil && s.Saved.Step >= 0:
		text += ", saved " + strconv.FormatInt(s.Saved.Step, 10)
	case s.Saved != nil: // by a program that has one name for all
		text += ", saved " + filepath.Base(s.Saved.Checkpoint)
	}
	if s.Waiting != "" {
		text += ", waits for " + s.Waiting
	}
	return text
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
