package child

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/found"
	runreport "github.com/trainerd/trainerd/trainerd/report"
)

// counts are what a run counts for its report and for [Supervisor.Stats].
type counts struct {
	mu       sync.Mutex
	stats    trainerd.Stats
	restored string
	from     int64    // its step, 0 without one
	skipped  []string // damaged checkpoints
	first    int64    // step of the first report, or of the checkpoint before it; -1 for none
	steps    int64
	again    int64 // steps that an earlier start had done
	saves    int
	starts   int
	pauses   time.Duration
}

// update changes the counts.
func (c *counts) update(change func(c *counts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// Stats returns the counts of the current run, or of the last one. It may be called
// at any time.
func (sv *Supervisor) Stats() trainerd.Stats {
	sv.mu.Lock()
	c := sv.counts
	sv.mu.Unlock()
	if c == nil {
		return trainerd.Stats{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// begins counts a start.
func (c *counts) begins(given *Checkpoint) {
	c.update(func(c *counts) {
		if c.starts++; c.starts > 1 {
			c.stats.Restarts++
		} else if given != nil {
			c.restored, c.from = filepath.Base(given.Path), max(given.Reached(), 0)
		}
	})
}

// trained counts the steps between two reports. before is -1 at the first report of a start,
// furthest the highest step of all earlier starts.
func (c *counts) trained(before, step, furthest int64, given *Checkpoint) {
	if before < 0 {
		if before = step - 1; given != nil && given.At() != found.NoStep {
			before = min(given.At(), step)
		}
	}
	c.update(func(c *counts) {
		if c.first < 0 {
			c.first = max(before, 0)
		}
		c.steps += max(step-before, 0)
		c.again += max(min(step, furthest)-before, 0)
	})
}

// hasReports reports whether any start has reported a step.
func (c *counts) hasReports() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first >= 0
}

// refused counts a checkpoint that does not count.
func (c *counts) refused(b found.Rejected) {
	c.update(func(c *counts) {
		c.stats.FailedSaves++
		if b.Damaged() {
			c.skipped = append(c.skipped, filepath.Base(b.Path))
		}
	})
}

// writeReport writes the report of a run that has ended into the logdir.
func (r *run) writeReport(ctx context.Context, begun time.Time, exit Exit, failure error) error {
	if r.lost != nil {
		return nil // it is another's by now
	}
	rep := r.report(begun)
	rep.Outcome, rep.StoppedBy = runreport.Completed, ""
	switch {
	case exit.Cause == Stopped:
		rep.Outcome = runreport.Stopped
		r.setStopping(rep)
		if ctx.Err() != nil {
			rep.StoppedBy = trainerd.StopperOf(ctx)
		}
	case failure != nil:
		rep.Outcome = runreport.Failed
	}
	if failure != nil {
		rep.Error = failure.Error()
	}
	return rep.Write(r.disk, r.logdir)
}

// report returns the report of the run up to now.
func (r *run) report(begun time.Time) *runreport.Run {
	host, _ := os.Hostname() // one without a name has none in the report
	now := time.Now()
	c := r.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	rep := &runreport.Run{
		Host: host, PID: os.Getpid(), Logdir: r.Logdir, Begun: begun.UTC(), Ended: now.UTC(),
		Restored: c.restored, PassedOver: c.skipped, FirstStep: c.first, LastStep: r.lastStep(), Steps: c.steps,
		Time:     runreport.Times{Total: runreport.Seconds(now.Sub(begun)), Training: runreport.Seconds(now.Sub(begun) - c.pauses)},
		Saves:    runreport.Saves{Count: c.saves, Failed: c.stats.FailedSaves},
		Restarts: runreport.Restarts{Count: c.stats.Restarts, Rewinds: c.stats.Rewinds, Lost: runreport.Seconds(c.pauses), StepsAgain: c.again},
	}
	switch {
	case c.starts == 0: // what there is was there before
		rep.FirstStep = rep.LastStep
	case c.first < 0 && r.maxStep >= 0: // without reports, what was saved says how far it came
		rep.FirstStep, rep.Steps = c.from, max(r.maxStep-c.from, 0)
	}
	setRate(rep)
	rep.Checkpoints = runreport.Checkpoints(r.staying())
	return rep
}

// lastStep returns the step of the model: a start may end before it gets as far as an earlier one,
// for example after a rewind. A start that has reported nothing leaves the model of the newest
// checkpoint.
func (r *run) lastStep() int64 {
	if r.attempt.step >= 0 {
		return r.attempt.step
	}
	if c, ok := r.usable(); ok && c.At() != found.NoStep {
		return c.At()
	}
	return r.maxStep
}

// setStopping separates the time since the stop began.
func (r *run) setStopping(rep *runreport.Run) {
	if e := r.attempt.ending; e != nil {
		rep.Time.Stopping = runreport.Seconds(rep.Ended.Sub(e.begun))
		rep.Time.Training = max(rep.Time.Training-rep.Time.Stopping, 0)
		setRate(rep)
	}
}

// setRate sets the steps per second.
func setRate(rep *runreport.Run) {
	if training := rep.Time.Training; training > 0 {
		rep.StepsPerSecond = float64(rep.Steps) / time.Duration(training).Seconds()
	}
}

// staying returns the checkpoints that stay.
func (r *run) staying() (all []checkpoint.Kept) {
	for _, k := range r.store.Retained() {
		if len(k.Why) > 0 {
			all = append(all, k)
		}
	}
	return all
}

// closing ends a run with its report.
func (r *run) closing(ctx context.Context, begun time.Time, exit Exit, err error) error {
	defer logging.Waiting(r.log.Warn, "the events file and the report")()
	if err == nil && exit.Cause == Completed {
		r.endHParams()
	}
	if r.suspect != nil && r.lost == nil {
		r.putBack() // nothing has shown that it was to blame
	}
	if e := r.writeReport(ctx, begun, exit, err); e != nil {
		r.log.Warn("cannot write the report of the run", "err", e)
	}
	return errors.Join(err, r.close())
}
