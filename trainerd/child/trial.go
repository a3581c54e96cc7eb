package child

import (
	"slices"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/found"
)

// A program that is killed between two files of a folder leaves one in which each
// file is intact. What the folders before it had shows that, and so do the marks of
// some forms; of the first folder of a program nothing does, nor of a raw file that is
// much shorter than the first one or two. Such a one is on trial:
// the program is given it, but it counts only once the program has shown that it had
// finished writing it.

// silentSave is for how long looks must find a folder as it was, while the program that
// has written it is alive, if that makes no reports, or makes steps while it saves.
const silentSave = time.Minute

// moment returns the present one. What is found before the program has started is of
// an earlier start, which may be that of another trainerd.
func (r *run) moment() found.Moment {
	now := found.Moment{Step: max(r.attempt.step, 0), At: time.Now()}
	if r.attempt.started {
		now.Attempt = r.attempts
	}
	return now
}

// isPast reports whether the program has gone past a checkpoint: it has made a step
// since; or this start of it has written the checkpoint, and has ended on its own will,
// or was alive for long without changing it, where steps show nothing: it makes no reports,
// or trains while it saves.
func (r *run) isPast(c *Checkpoint) bool {
	first := c.FirstFound()
	after, own := first.Step, first.Attempt == r.attempts
	if !c.CountsOther() {
		after = max(after, c.Step)
	}
	asynchronous := own && c.IsLate()
	if r.attempt.step > after && !asynchronous {
		return true
	}
	calm := !r.attempt.paused && time.Since(first.At) >= silentSave
	return own && (r.attempt.endedWell || calm && (r.attempt.step < 0 || asynchronous))
}

// endsWell reports whether a program that has ended so was not in the middle of
// something: it was not killed, and no error has ended it.
func endsWell(e *Exit) bool {
	return e.Signal == 0 && slices.Contains([]int{0, exitTempFail, shellSignal + int(syscall.SIGTERM)}, e.Code)
}
