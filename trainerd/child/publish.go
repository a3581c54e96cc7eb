package child

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// publish writes the chief's state for the workers. A chief that has lost the logdir writes
// nothing: the workers there belong to another chief.
func (r *run) publish(p phase, reason string) {
	if r.nodes == nil || r.lost != nil {
		return
	}
	j := jobState{start: r.start(), Phase: p, Host: hostname(), Node: r.nodes.own, Reason: reason, Speaker: r.attempt.reportSource, Paused: r.attempt.paused, Ending: r.attempt.ending != nil, Save: r.attempt.save, Earlier: r.earlier}
	if c := r.attempt.given; c != nil {
		j.Step = c.Step
		if below, err := filepath.Rel(r.logdir, c.Path); err == nil {
			j.Checkpoint = filepath.ToSlash(below)
		}
	}
	r.job = j
	if err := r.nodes.send(r.nodes.jobFile(), j); err != nil {
		r.log.Error("cannot send instructions to the other nodes", "phase", p, "err", err)
	}
}

// UnpublishedError says that the other nodes do not know yet that the job was paused or resumed, because
// it could not be written to the disk.
type UnpublishedError struct {
	Paused bool
	Err    error
}

func (e *UnpublishedError) Error() string {
	done, again := "resumed", "resume"
	if e.Paused {
		done, again = "paused", "pause"
	}
	return fmt.Sprintf("the job is %s on the chief's node only, since the disk of the logdir has not taken that for the others: %v; "+
		"they are told once it does, unless this process ends before: `%s` again then", done, e.Err, again)
}

func (e *UnpublishedError) Unwrap() error { return e.Err }

// untold returns an [*UnpublishedError] while the other nodes do not know whether the job is paused:
// the next chief would not know it either.
func (r *run) untold() error {
	if r.nodes == nil || r.nodes.unsent[r.nodes.jobFile()] == nil {
		return nil
	}
	return &UnpublishedError{r.paused, r.nodes.unsent[r.nodes.jobFile()]}
}

// tellNodes makes the workers end the program, as the chief does now.
func (r *run) tellNodes() {
	if !r.follows {
		r.publish(nodeEnding, "")
	}
}

// publishEnd writes for the workers how the run has ended.
func (r *run) publishEnd(exit Exit, err error) {
	switch {
	case err != nil:
		r.publish(jobFailed, err.Error())
	case exit.Cause == Completed:
		r.publish(jobComplete, "")
	default:
		r.publish(jobStopped, "")
	}
	if r.lost == nil {
		r.nodes.sendLast()
	}
}

// start returns the newest start of a chief.
func (r *run) start() start { return start{lifeOf(r.lock.Holder()), r.attempts} }

func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return host
}

// tellNodesOfEnd makes the other nodes end the program, which has ended here, or lets it finish
// there if it has succeeded.
func (r *run) tellNodesOfEnd(e *Exit) {
	if e.Code == 0 && r.attempt.ending == nil {
		r.publish(nodeClosing, "")
	} else {
		r.publish(nodeEnded, "")
	}
}

// newsTime is how long it may take until the nodes know what the chief has published.
const newsTime = 2 * time.Second
