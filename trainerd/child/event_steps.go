package child

import (
	"io"
	"os"
	"path"
	"slices"

	"github.com/trainerd/trainerd/tfevents"
)

// A START drops the points of all curves in a folder. If one of them counts other steps than the
// program's reports, as Keras' TensorBoard callback counts iterations next to epochs, the START
// would drop that curve almost from its beginning.

// How much is read of the events in a folder to find out what they count, and of trainerd's own
// events to find out how far the reports have come.
const (
	mostEventFiles    = 20
	mostEventBytes    = 4 << 20
	mostOwnEventBytes = 64 << 20
)

// otherSteps is the factor by which steps of events must exceed the reported steps to count
// something else.
const otherSteps = 4

// countsOther reports whether the program's events in a folder of the logdir count other steps than
// its reports, which have reached the given step in this run.
func (r *run) countsOther(dir string, reached int64) bool {
	if r.foreign.counting[dir] || reached <= 0 {
		return r.foreign.counting[dir]
	}
	if highest := r.highestStep(dir); highest <= otherSteps*reached || highest <= otherSteps*r.reportedBefore() {
		return false
	}
	if r.foreign.counting == nil {
		r.foreign.counting = map[string]bool{}
	}
	r.foreign.counting[dir] = true
	r.log.Info("the events in this folder count other steps than the program reports, so a restart is not marked among them; TensorBoard may show repeated points twice", "folder", r.abs(dir))
	return true
}

// highestStep returns the highest step in the newest events file of a folder that has any, 0
// for none.
func (r *run) highestStep(dir string) (highest int64) {
	for _, name := range r.eventFilesIn(dir, isForeignEvents) {
		if highest = highestStepOf(name, mostEventBytes); highest > 0 {
			break
		}
	}
	return highest
}

// reportedBefore returns the highest step that was reported in earlier runs, or by an earlier
// chief. The newest checkpoint may have a much lower step, for example if the program keeps only
// its best.
func (r *run) reportedBefore() (highest int64) {
	for _, dir := range []string{".", ownRun} { // where makeWay has moved them
		for _, name := range r.eventFilesIn(dir, isOwnEvents) {
			highest = max(highest, highestStepOf(name, mostOwnEventBytes))
		}
	}
	return highest
}

// eventFilesIn returns the newest events files of a folder that are of a kind, newest first.
func (r *run) eventFilesIn(dir string, isKind func(base string) bool) (names []string) {
	entries, _ := os.ReadDir(r.abs(dir)) // what cannot be read has none
	for _, e := range slices.Backward(entries) {
		name := r.abs(path.Join(dir, e.Name()))
		if isKind(e.Name()) && leadsToFile(name) && len(names) < mostEventFiles {
			names = append(names, name)
		}
	}
	return names
}

// highestStepOf returns the highest step in the first events of a file.
func highestStepOf(name string, mostBytes int64) (highest int64) {
	f, err := os.Open(name)
	if err != nil {
		return 0
	}
	defer f.Close()
	for e, err := range tfevents.NewReader(io.LimitReader(f, mostBytes)).Events() {
		if err != nil {
			break
		}
		highest = max(highest, e.Step)
	}
	return highest
}
