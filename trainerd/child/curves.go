package child

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/eventlog"
)

const (
	ownRun     = eventlog.OwnRun
	purgeInfix = eventlog.MarkInfix
)

// foreignEvents is what a run has found, and logged once, about the events that the program itself writes.
type foreignEvents struct {
	mixed    bool            // they cannot be separated from trainerd's
	beyond   []string        // links to them that lead out of the logdir
	counting map[string]bool // folders where they count other steps than the reports
}

// isForeignEvents reports whether a file has events of the program.
func isForeignEvents(base string) bool {
	return strings.Contains(base, "tfevents") && !eventlog.IsOwn(base) && !strings.HasSuffix(base, ".profile-empty")
}

// isOwnEvents reports whether a file has trainerd's events of a run, and not just the mark of
// a restart.
func isOwnEvents(base string) bool {
	return eventlog.IsOwn(base) && !eventlog.IsMark(base)
}

// hasForeignEvents reports whether the program writes events into the logdir.
func (r *run) hasForeignEvents() bool {
	entries, err := fs.ReadDir(r.root.FS(), ".")
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return isForeignEvents(e.Name()) && leadsToFile(r.abs(e.Name()))
	})
}

// openEvents begins the events of this run, in a folder where they do not disturb the program's.
func (r *run) openEvents() (*events, error) {
	dir := r.logdir
	info, err := r.root.Lstat(ownRun)
	isFile := err == nil && !info.IsDir() // the command itself, maybe
	if !isFile && (err == nil || r.hasForeignEvents()) {
		dir = filepath.Join(dir, ownRun)
	}
	return r.newEvents(dir)
}

// makeWay moves trainerd's events to a separate run once the program writes events into the logdir.
func (r *run) makeWay() {
	if r.events.Dir() != r.logdir || !r.hasForeignEvents() || !r.events.Ready(r.ectx) {
		return // what waits for a file would not come along
	}
	if err := r.moveEvents(); err != nil {
		if !r.foreign.mixed {
			r.log.Warn("cannot separate the events of this run from the program's", "err", err)
		}
		r.foreign.mixed = true
		return
	}
	r.log.Info("the program writes events into the logdir; those of trainerd are in a run of their own", "run", ownRun)
}

func (r *run) moveEvents() (err error) {
	if err := atomicfile.MkdirSync(r.disk, r.abs(ownRun)); err != nil {
		return err
	}
	entries, err := fs.ReadDir(r.root.FS(), ".")
	if err != nil {
		return err
	}
	r.events.Close() // its error was logged, and the file that follows has the rest
	defer func() {
		if err != nil {
			r.events.Renew()
		}
	}()
	for _, e := range entries {
		name := e.Name()
		if isOwnEvents(name) {
			if err := r.disk.Rename(r.abs(name), r.abs(path.Join(ownRun, name))); err != nil {
				return err
			}
		}
	}
	moved, err := r.newEvents(filepath.Join(r.logdir, ownRun))
	if err == nil {
		r.events = moved
	}
	return err
}

// purgeFrom makes TensorBoard drop the points in the program's own events files from a step on,
// because the program is about to repeat these steps: it adds a file with a START at that step
// after the newest file of each folder that existed before this start. The program's files stay
// unchanged. after is the checkpoint that the program continues from, or nil if that is not known.
func (r *run) purgeFrom(step int64, after *Checkpoint) {
	left := int64(mostOwnEventBytes)
	for _, dir := range slices.Sorted(maps.Keys(r.attempt.eventFiles.newest)) {
		newest := r.attempt.eventFiles.newest[dir]
		if untilAfter(newest) > maxSkew {
			r.log.Warn("the clock was set back: the program's new events come before its old ones, so TensorBoard may show points twice, or not at all; moving the old file out of the logdir cures that", "file", path.Join(dir, newest))
			continue // a mark would drop the new ones
		}
		if from, marked := r.markedFrom(dir, step, after, &left); marked {
			r.mark(path.Join(dir, newest), from)
		}
	}
	r.attempt.purgedFrom = step
	for _, link := range r.attempt.eventFiles.beyond {
		if !slices.Contains(r.foreign.beyond, link) {
			r.foreign.beyond = append(r.foreign.beyond, link)
			r.log.Warn("this link leads out of the logdir to a folder with events, where trainerd writes nothing; curves that the program writes there step back at a restart; have the logdir itself there, or the folder in the logdir", "link", link)
		}
	}
}

// mark adds the mark of a restart to a folder with events of the program, after a file.
func (r *run) mark(file string, step int64) {
	name := fmt.Sprintf("%s%s%d%s", file, purgeInfix, time.Now().UnixNano(), eventlog.OwnSuffix)
	if err := r.writePurge(name, step); err != nil {
		r.log.Warn("cannot mark a restart among the program's events; its curves may step back", "file", name, "err", err)
		return
	}
	r.attempt.marks = append(r.attempt.marks, name)
	r.log.Debug("marked a restart among the program's events", "file", name, "step", step)
}

// withdrawMarks removes the marks whose file the program has written to since, and returns the
// others. A program that begins its file again under the same name, as CatBoost does, repeats the
// earlier points, and a loader that reads the mark after them would drop them.
func (r *run) withdrawMarks(marks []string) (left []string) {
	for _, mark := range marks {
		file, _, _ := strings.Cut(mark, purgeInfix)
		of, err := os.Stat(r.abs(file)) // what a link is to may be anywhere
		own, ownErr := r.root.Lstat(mark)
		if err != nil || ownErr != nil || !of.ModTime().After(own.ModTime()) || isCopied(mark, own.ModTime()) {
			left = append(left, mark)
			continue
		}
		if r.removeMark(mark) {
			r.log.Debug("withdrew the mark of a restart: the program has begun its events file again", "file", mark)
		}
	}
	return left
}

func (r *run) removeMark(mark string) (removed bool) {
	err := r.disk.Remove(r.abs(mark))
	if err != nil {
		r.log.Warn("cannot withdraw the mark of a restart among the program's events; TensorBoard may hide points; delete it", "file", mark, "err", err)
	}
	return err == nil
}

// isCopied reports whether a mark's file time differs from the one in its name: then the file times
// in its folder do not show what came first.
func isCopied(mark string, at time.Time) bool {
	_, rest, _ := strings.Cut(path.Base(mark), purgeInfix)
	nanos, _ := strconv.ParseInt(strings.TrimSuffix(rest, eventlog.OwnSuffix), 10, 64) // 0 if it says none
	return at.Sub(time.Unix(0, nanos)).Abs() > time.Minute
}

// writePurge writes an events file that drops what comes before it from a step on.
// TensorBoard's Python loader skips the first START of a run, so there are
// two.
func (r *run) writePurge(name string, step int64) error {
	f, err := r.disk.Create(r.abs(name))
	if err != nil {
		return err
	}
	at := tfevents.WallTime(time.Now())
	start := &tfpb.Event{WallTime: at, Step: step, What: &tfpb.Event_SessionLog{SessionLog: &tfpb.SessionLog{Status: tfpb.SessionLog_START}}}
	w := tfevents.NewEventsWriter(f, nil) // it begins with the version
	return errors.Join(w.WriteEvent(start), w.WriteEvent(start), f.Close())
}

// purgeBefore prepares the program's curves for a start from a checkpoint.
// What it writes next must sort after the marks: names of events files have the
// second in which they were created.
func (r *run) purgeBefore(ctx context.Context) {
	there := r.findEvents()
	r.withdrawMarks(r.dropAhead(there.marks))
	r.attempt.eventFiles = there
	c := r.attempt.given
	if c == nil || !c.NamesStep() {
		return // its first report will say where it is
	}
	r.purgeFrom(c.Step+1, c)
	pause := time.Duration(0)
	for _, name := range there.newest {
		if left := untilAfter(name); left <= maxSkew {
			pause = max(pause, left)
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// maxSkew is how far the clocks of hosts that start a program one after another may differ.
const maxSkew = 10 * time.Second

// untilAfter returns how long it takes until a new events file sorts after an existing one.
func untilAfter(name string) time.Duration { return time.Until(time.Unix(secondOf(name)+1, 0)) }

// dropAhead removes the marks that would drop what the program writes next, because the clock was
// set back since, and returns the others.
func (r *run) dropAhead(marks []string) (left []string) {
	for _, mark := range marks {
		if untilAfter(path.Base(mark)) <= maxSkew {
			left = append(left, mark)
		} else {
			r.removeMark(mark)
		}
	}
	return left
}

// notPurged is the value of purgedFrom for a start without marks.
const notPurged = int64(math.MaxInt64)

// purgeAt handles the first report of a start, which shows where the program really continues.
func (r *run) purgeAt(step int64) {
	again := r.attempts > 1 || r.attempt.given != nil
	if again && step < r.attempt.purgedFrom-1 {
		r.purgeFrom(step, r.attempt.given)
	}
}

// secondOf returns the second in the name of an events file, 0 for none.
func secondOf(name string) int64 {
	_, rest, _ := strings.Cut(name, "tfevents.")
	digits, _, _ := strings.Cut(rest, ".")
	second, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return second
}
