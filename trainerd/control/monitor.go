package control

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/trainerd/trainerd/trainerd"
)

// Job is a training that can be controlled. Its methods are called by several
// goroutines.
type Job interface {
	Save(ctx context.Context) (trainerd.SavedCheckpoint, error)
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	// Set changes a setting of the run, and returns a description of the new
	// state.
	Set(ctx context.Context, key, value string) (string, error)
	// Keep protects the checkpoint of a step, and returns its prefix.
	Keep(step int64) (string, error)
	Note(ctx context.Context, text string) error
}

// RefusedError says that a request is not possible, now or with this job.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// Refusef returns a *RefusedError.
func Refusef(format string, args ...any) error {
	return &RefusedError{fmt.Sprintf(format, args...)}
}

// Monitor holds the state of a training. All methods are safe for concurrent
// use, and do nothing on a nil Monitor.
type Monitor struct {
	wake    chan struct{}
	metrics *metrics

	mu           sync.Mutex
	status       Status
	losses       Curve
	scalars      map[string]Scalar     // by tag
	tagBytes     int                   // of these tags
	counts       func() trainerd.Stats // nil for none
	job          Job                   // nil unless training
	stop         func()                // the run, nil for not yet
	ready        bool
	progress     int64     // counts steps and phases
	lastProgress time.Time // when progress changed
	savedAt      time.Time // when the newest checkpoint was written, by a clock that nobody sets
	rateStep     int64     // the step at which the rate was looked at
	rateTime     time.Time
}

// rateEvery is the time between two looks at the rate.
const rateEvery = time.Second

// NewMonitor returns the monitor of the job with a name and a logdir.
func NewMonitor(job, logdir string, pid int) *Monitor {
	m := &Monitor{wake: make(chan struct{}, 1)}
	m.status = Status{Job: job, Logdir: logdir, PID: pid, Phase: Preparing, Started: time.Now()}
	m.lastProgress = m.status.Started
	m.metrics = newMetrics(m)
	return m
}

// Enter begins a phase, and returns the previous one.
func (m *Monitor) Enter(p Phase) (before Phase) {
	if m == nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before = m.status.Phase
	if before == p {
		return before
	}
	m.status.Phase = p
	m.moves(time.Now())
	if p == Stopping || p == Ended {
		m.job = nil
	}
	if !p.passing() && !before.passing() {
		m.wakeUp()
	}
	return before
}

// Wait reports for whom or what the training waits; "" ends the wait, and so do Begin
// and Step.
func (m *Monitor) Wait(reason string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.status.Waiting != reason {
		m.status.Waiting = reason
		m.wakeUp()
	}
}

// Begin reports that the model is ready at a step, and sets the job that
// handles requests. steps is 0 for a training that ends with its input.
func (m *Monitor) Begin(job Job, step, steps int64, restored string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready {
		m.status.Restarts++ // of a session that was lost
	}
	now := time.Now()
	m.job, m.ready = job, true
	m.status.Step, m.status.Steps, m.status.Restored, m.status.Phase = step, steps, restored, Starting
	m.status.Rate, m.status.Waiting = 0, ""
	m.rateStep, m.rateTime = step, now
	m.moves(now)
	m.wakeUp()
}

// Leave ends what Begin has begun for a job whose session is lost: requests are refused, with the
// reason, until there is another.
func (m *Monitor) Leave(job Job) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.job == job {
		m.job = nil
	}
}

// OnStop sets the function that ends the run: after the current step, with a last checkpoint, or
// at once before the first step. It may be called more than once.
func (m *Monitor) OnStop(stop func()) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop = stop
}

// Stop requests that end, whether the run has a job yet or still.
func (m *Monitor) Stop() error {
	m.mu.Lock()
	stop, phase := m.stop, m.status.Phase
	m.mu.Unlock()
	if stop == nil {
		return Refusef("the job is %s and cannot be stopped yet; ask again when it trains", phase)
	}
	stop()
	return nil
}

// Step reports a completed step, and how long it took. The loss is NaN if there
// is none.
func (m *Monitor) Step(step int64, loss float64, took time.Duration) {
	if m == nil {
		return
	}
	m.metrics.step(took)
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Step, m.status.Loss, m.status.Waiting = step, nil, ""
	if !math.IsNaN(loss) && !math.IsInf(loss, 0) {
		m.status.Loss = &loss
		m.losses.Add(loss)
	}
	if m.status.Phase == Starting {
		m.status.Phase = Training
	}
	m.moves(now)
	if elapsed := now.Sub(m.rateTime); elapsed >= rateEvery {
		rate := float64(step-m.rateStep) / elapsed.Seconds()
		if m.status.Rate > 0 {
			rate = 0.5*rate + 0.5*m.status.Rate
		}
		m.status.Rate = rate
		m.rateStep, m.rateTime = step, now
	}
}

// Saved reports a checkpoint.
func (m *Monitor) Saved(s trainerd.SavedCheckpoint) {
	if m == nil {
		return
	}
	m.metrics.saved(s)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Saved = savedOf(s)
	now := time.Now()
	m.savedAt = now.Add(-max(now.Sub(s.Time), 0)) // the time of a file may be by another clock
}

// checkpointAge returns the age of the newest checkpoint, or of the process while there is none.
func (m *Monitor) checkpointAge() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.status.Saved == nil {
		return time.Since(m.status.Started)
	}
	return time.Since(m.savedAt)
}

// moves records progress. The caller holds mu.
func (m *Monitor) moves(now time.Time) {
	m.progress++
	m.lastProgress = now
}

// wakeUp lets the receiver of Wake look. The caller holds mu.
func (m *Monitor) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Wake delivers a value when the phase has changed. It is for one receiver.
func (m *Monitor) Wake() <-chan struct{} { return m.wake }

// Count takes the counts of a run from stats, which must be safe to call from
// any goroutine, even after the run has ended.
func (m *Monitor) Count(stats func() trainerd.Stats) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts = stats
}

// stats returns the counts of the run.
func (m *Monitor) stats() trainerd.Stats {
	m.mu.Lock()
	counts := m.counts
	m.mu.Unlock()
	if counts == nil {
		return trainerd.Stats{}
	}
	return counts()
}

// Status returns the state of the training.
func (m *Monitor) Status() Status {
	counts := m.stats()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.status
	s.Stalled, s.EventsDropped = counts.Stalled.Seconds(), counts.EventsDropped
	s.Losses, s.Scalars = m.losses.Points(), maps.Clone(m.scalars)
	s.Idle = time.Since(m.lastProgress).Seconds()
	if s.Rate > 0 && s.Steps > s.Step {
		s.ETA = math.Round(float64(s.Steps-s.Step) / s.Rate)
	}
	return s
}

// Progress returns a number that changes whenever the training has made
// progress.
func (m *Monitor) Progress() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.progress
}

// Ready reports whether the model was made ready, if only to find the job
// complete.
func (m *Monitor) Ready() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ready || m.status.Phase == Ended
}

// Job returns the job, or an error that says why there is none to control.
func (m *Monitor) Job() (Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.job == nil {
		return nil, m.refusal()
	}
	return m.job, nil
}

// refusal says why there is no job to control. The caller holds mu.
func (m *Monitor) refusal() error {
	s := &m.status
	switch {
	case s.Phase == Ended:
		return Refusef("the job has ended")
	case s.Phase == Stopping:
		return Refusef("the job is %s", s.Phase)
	case s.Waiting != "":
		return Refusef("the job is %s, and waits for %s; ask again when it trains", s.Phase, s.Waiting)
	}
	return Refusef("the job is %s; ask again when it trains", s.Phase)
}
