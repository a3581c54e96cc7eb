package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/eventlog"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

// Again is what the program did when it was started again after it had saved.
type Again struct {
	Given    string // the name of the checkpoint that it was given, "" for none
	Step     int64  // of its first report, -1 for none
	Ended    bool   // it came to its end without a report
	Counted  bool   // its lines have no step
	Absolute bool   // its lines say the step since the beginning
	Failure  error  // why it failed
}

// startAgain starts the program again, as a run does after a kill, until its first
// report says where it continues.
func (f *Findings) startAgain(ctx context.Context, auto, placing *recipe.Recipe, before snapshot) (*Again, error) {
	held := f.statesSince(before)
	trying, stop := context.WithCancel(ctx)
	defer stop()
	w := newWitness()
	o := f.Options
	o.Logdir = f.Saved.Logdir
	sv := o.supervisor(auto, placing, w)
	if f.Resumes {
		sv.Checkpoints, sv.ResumeArgs = f.Saved.Pattern, f.Resume.Args
	} else { // and so the program alone reads what it has saved
		sv.Env = append(sv.Env, "TRAINERD_CHECKPOINT="+f.Saved.newest())
	}
	seen := &firstReport{witness: w, said: make(chan struct{}, 1)}
	sv.Observer = seen
	var waiting sync.WaitGroup
	var loaded []string
	waiting.Go(func() {
		loaded = held.loadedUntil(trying, seen.said, startFactor*f.Limit)
		f.awaitQuiet(trying, before)
		stop()
	})
	events := eventlog.OwnFiles(o.Logdir)
	exit, err := sv.Run(trying)
	stop()
	waiting.Wait()
	dropEvents(o.Logdir, events)
	a := &Again{Given: seen.given, Step: -1, Ended: exit.Cause == child.Completed, Absolute: w.reader != nil && w.reader.Absolute()}
	if w.count() > 0 {
		a.Step, a.Counted = w.first, w.reader != nil && w.reader.Counted()
	}
	var failed *child.ExitError
	var lost *child.SaveLostError
	switch {
	case errors.As(err, &failed) && a.Step < 0:
		a.Failure = err
	case err != nil && !errors.As(err, &failed) && !errors.As(err, &lost):
		return nil, err
	}
	f.Again = a
	f.preferLoaded(before, loaded)
	return a, nil
}

// firstReport says when a program has said where it is.
type firstReport struct {
	*witness
	said  chan struct{} // of one element
	given string
}

// Started notes the checkpoint.
func (f *firstReport) Started(_ int, c *child.Checkpoint) {
	if c != nil {
		f.given = c.Path
	}
}

// Reported passes on that there is a report.
func (f *firstReport) Reported(r *child.Report) {
	f.witness.Reported(r)
	select {
	case f.said <- struct{}{}:
	default: // it is known
	}
}

// story says in a sentence what the other start did, "" where that says nothing.
func (a *Again) story(f *Findings) string {
	switch {
	case a == nil:
		return ""
	case a.Failure != nil:
		return fmt.Sprintf("started again, it failed: %v", a.Failure)
	case a.Step > f.First && !a.Counted:
		return fmt.Sprintf("started again, it continued at step %d", a.Step)
	case a.Step >= 0 && a.Absolute && f.Resumes:
		return fmt.Sprintf("started again, it began at step %d: it did not resume", a.Step)
	case a.Step >= 0 && a.Absolute:
		return fmt.Sprintf("started again, it began at step %d: have it load TRAINERD_CHECKPOINT from its environment, or set resume_args", a.Step)
	case a.hadNothingToDo(f):
		return "started again, it had nothing left to do: it resumes"
	}
	return ""
}

// resumes reports whether the other start has shown that the program resumes.
func (a *Again) resumes(f *Findings) bool {
	return a != nil && a.Failure == nil && (!a.Counted && a.Step > f.First || a.hadNothingToDo(f))
}

// hadNothingToDo reports whether the other start came to its end without a report, as
// one from the beginning would not.
func (a *Again) hadNothingToDo(f *Findings) bool {
	return a.Ended && a.Step < 0 && (f.Ended || f.Reports > 0)
}
