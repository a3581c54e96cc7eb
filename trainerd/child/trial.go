package child

import (
	"slices"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/found"
)

// A program that is killed between two files of a folder leaves an incomplete folder in which each
// file is intact. A comparison with earlier folders shows that, and so do the completion marks of
// some formats; but nothing shows it for a program's first folder, nor for a raw file that is much
// shorter than the first one or two. Such a checkpoint is on trial: the program is given it, but it
// counts only once the program has shown that it had finished writing it.

// silentSave is how long a folder must stay unchanged while the program that has written it is
// alive, if the program makes no reports, or makes steps while it saves.
const silentSave = time.Minute

// moment returns the present moment. What is found before the program has started comes from an
// earlier start, perhaps of another trainerd.
func (r *run) moment() found.Moment {
	now := found.Moment{Step: max(r.attempt.step, 0), At: time.Now()}
	if r.attempt.started {
		now.Attempt = r.attempts
	}
	return now
}

// isPast reports whether the program has gone past a checkpoint: it has made a step since; or this
// start has written the checkpoint, and has then ended by itself, or, if steps prove nothing
// because it makes no reports or trains while it saves, was alive for long without changing it.
func (r *run) isPast(c *Checkpoint) bool {
	first := c.FirstFound()
	after, own := first.Step, first.Attempt == r.attempts
	if !c.CountsOtherUnit() {
		after = max(after, c.Step)
	}
	asynchronous := own && c.IsLate()
	if r.attempt.step > after && !asynchronous {
		return true
	}
	calm := !r.attempt.paused && time.Since(first.At) >= silentSave
	return own && (r.attempt.endedWell || calm && (r.attempt.step < 0 || asynchronous))
}

// endsWell reports whether such an end has interrupted nothing: the program was neither killed nor
// ended by an error.
func endsWell(e *Exit) bool {
	return e.Signal == 0 && slices.Contains([]int{0, exitTempFail, shellSignal + int(syscall.SIGTERM)}, e.Code)
}
