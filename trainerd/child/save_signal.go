package child

import (
	"errors"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/system"
)

// saveRequest is what the chief publishes when the program is to save on all nodes.
type saveRequest struct {
	Number int       `json:"number"` // of those of one start, from 1
	At     time.Time `json:"at"`     // when the program gets the signal on each of them
}

// askToSave sends the program SaveSignal. With several nodes, each sends it to its own ranks, all
// at the same time, once they know of the request: ranks agree on the next step that they save
// together, and a later signal would be treated as another request.
func (r *run) askToSave() error {
	if r.nodes == nil {
		return r.sendSaveSignal()
	}
	if r.attempt.saveDue != nil {
		return nil // it has not been sent yet
	}
	wait := r.saveLead()
	r.attempt.save = saveRequest{r.attempt.save.Number + 1, time.Now().Add(wait).UTC()}
	r.attempt.saveDue = time.After(wait)
	r.publish(r.job.Phase, "")
	return nil
}

// saveLead is the time from a request to save until the program gets the signal: by then all nodes
// know of it.
func (sv *Supervisor) saveLead() time.Duration {
	if sv.Nodes <= 1 {
		return 0
	}
	return min(newsTime, 4*sv.scanEvery(), sv.grace()/8)
}

// sendSaveSignal sends SaveSignal on this node. If nothing here handles it, that is logged once per
// start.
func (r *run) sendSaveSignal() error {
	r.attempt.saveDue = nil
	if r.attempt.process == nil {
		return ErrNotRunning
	}
	err := r.attempt.process.sendLeader(r.SaveSignal)
	if errors.Is(err, system.ErrUnhandled) && !r.attempt.deaf {
		r.attempt.deaf = true
		r.log.Warn("no process of the program handles child.save_signal, so it is not asked to save", "signal", r.SaveSignal)
	}
	return err
}

// sendDueSave sends SaveSignal at the time that the chief has published.
func (r *run) sendDueSave() { r.checkSaveSignal(r.sendSaveSignal()) }

// checkSaveSignal is checkSignal for SaveSignal, which is not delivered if the program has ended,
// or does not handle it.
func (r *run) checkSaveSignal(err error) {
	if !isGone(err) && !errors.Is(err, system.ErrUnhandled) {
		r.checkSignal(err)
	}
}
