package child

import (
	"slices"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
)

// A program that is killed between two files of a folder leaves one in which each
// file is intact. What the folders before it had shows that, and so do the marks of
// some forms; of the first folder of a program nothing does, nor of a raw file that is
// much shorter than the first one or two. Such a one is on trial:
// the program is given it, but it counts only once the program has shown that it had
// finished writing it.

// silentSave is for how long looks must find a folder as it was, while the program that
// has written it is alive, if that makes no reports.
const silentSave = time.Minute

// moment is when a look takes place.
type moment struct {
	step    int64 // of the program's last report, 0 for none
	attempt int   // the start of the program that was under way, 0 for none
	at      time.Time
}

// moment returns the present one. What is found before the program has started is of
// an earlier start, which may be that of another trainerd.
func (r *run) moment() moment {
	now := moment{step: max(r.attempt.step, 0), at: time.Now()}
	if r.attempt.started {
		now.attempt = r.attempts
	}
	return now
}

// isProven reports whether the program has finished writing a checkpoint, as far as
// that can be known. found are all that there are.
func (s *checkpointStore) isProven(c *Checkpoint, found map[key]Checkpoint) bool {
	switch {
	case s.isPast == nil, c.record != nil, s.isPast(c):
		return true
	case s.maybeShort(c):
		return false
	case integrity.IsSealed(s.root, c.files), integrity.IsOfKind(c.files, s.markers):
		return true
	}
	names := integrity.Markers(s.root, c.files)
	for k, other := range found {
		if k != c.key() && slices.Equal(integrity.Markers(s.root, other.files), names) {
			return true
		}
	}
	return false
}

// isPast reports whether the program has gone past a checkpoint: it has made a step
// since; or this start of it has written the checkpoint, and has ended on its own will,
// or makes no reports and was alive for long without changing it.
func (r *run) isPast(c *Checkpoint) bool {
	after := c.first.step
	if !c.countsEpochs() && !c.counts {
		after = max(after, c.Step)
	}
	if r.attempt.step > after {
		return true
	}
	silent := r.attempt.step < 0 && !r.attempt.paused && time.Since(c.first.at) >= silentSave
	return c.first.attempt == r.attempts && (r.attempt.endedWell || silent)
}

// endsWell reports whether a program that has ended so was not in the middle of
// something: it was not killed, and no error has ended it.
func endsWell(e *Exit) bool {
	return e.Signal == 0 && slices.Contains([]int{0, exitTempFail, shellSignal + int(syscall.SIGTERM)}, e.Code)
}
