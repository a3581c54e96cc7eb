package trainerd

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
)

// rotation is the list of checkpoints that a Saver looks after, oldest first.
// What falls out of the list is deleted, or preserved for good. The zero
// rotation is empty.
type rotation struct {
	kept []keptCheckpoint
	// lastPreserved is the point of the keep-every grid that has passed: the
	// next checkpoint to be preserved is younger than lastPreserved + every.
	lastPreserved time.Time
}

// keptCheckpoint is a checkpoint in a rotation. Its prefix is absolute.
type keptCheckpoint struct {
	prefix string
	saved  time.Time
}

// add puts a checkpoint in the newest place, also if it was in the list, and
// returns those that fell out: all that are too many, so that a smaller limit
// takes effect at once. Max below zero means no limit and keeps no list.
func (r *rotation) add(c keptCheckpoint, limit int, every time.Duration) (evicted []keptCheckpoint) {
	if limit < 0 {
		return nil
	}
	r.kept = slices.DeleteFunc(r.kept, func(k keptCheckpoint) bool { return k.prefix == c.prefix })
	r.kept = append(r.kept, c)
	for len(r.kept) > limit {
		oldest := r.kept[0]
		r.kept = slices.Delete(r.kept, 0, 1)
		if !r.preserve(oldest, every) {
			evicted = append(evicted, oldest)
		}
	}
	return evicted
}

// preserve reports whether a checkpoint that fell out of the list is one of
// those kept every so often, and if so moves on to the next point of the grid.
func (r *rotation) preserve(c keptCheckpoint, every time.Duration) bool {
	if every <= 0 || !c.saved.After(r.lastPreserved.Add(every)) {
		return false
	}
	for c.saved.After(r.lastPreserved.Add(every)) {
		r.lastPreserved = r.lastPreserved.Add(every)
	}
	return true
}

// listed returns the prefixes for the `checkpoint` file: the list, and the
// newest if it is not in it.
func (r *rotation) listed(newest keptCheckpoint) []keptCheckpoint {
	all := slices.Clone(r.kept)
	if len(all) == 0 || all[len(all)-1].prefix != newest.prefix {
		all = append(all, newest)
	}
	return all
}

const indexSuffix = ".index"

// checkpointTime returns when a checkpoint was written, by its index or, for
// the older format, by the file itself.
func checkpointTime(prefix string) (time.Time, error) {
	info, err := os.Stat(prefix + indexSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(prefix)
	}
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// NoStep stands for a step number where there is none: such a checkpoint has
// no number in its name, such a summary no step.
const NoStep int64 = -1

// checkpointPrefix returns the name of the checkpoint of a step.
func checkpointPrefix(path string, step int64, pad bool) string {
	if step < 0 {
		return path
	}
	digits := strconv.FormatInt(step, 10)
	if pad && len(digits) < 8 {
		digits = strings.Repeat("0", 8-len(digits)) + digits
	}
	return path + "-" + digits
}

// stepOf returns the step number at the end of a checkpoint's name, or NoStep.
func stepOf(prefix string) int64 { return ckptfmt.StepOf(prefix) }
