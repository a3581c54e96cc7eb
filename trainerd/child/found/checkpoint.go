package found

import (
	"cmp"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/session"
)

// NoStep is the step of a checkpoint whose name has none.
const NoStep = session.NoStep

// Checkpoint is what the program has written at one step.
type Checkpoint struct {
	Path  string // its name: a file or folder, or the common prefix of its files; absolute
	Step  int64  // NoStep for none
	Saved time.Time
	Size  int64
	// OnTrial says that nothing, not even the files, shows that the program had finished it: it does
	// not count yet.
	OnTrial bool

	files      []string                // below the logdir, with slashes
	still      int                     // how many scans have found it unchanged
	record     *manifest.Record        // what is recorded of it; nil where that is nothing, or could not be written
	metrics    checkpoint.Measurements // of a candidate: what the program has reported of its step
	first      Moment                  // when a scan has found it so
	begun      Moment                  // when a scan has found it first, perhaps in the middle of the save
	late       bool                    // it was written on after a report of a later step
	untried    bool                    // nothing shows yet that the program had finished it
	otherCount bool                    // the number in its name counts something else than the reports
	again      bool                    // the program has saved under its name before, in this start, at an earlier step
	reused     bool                    // the number in its name may be that of another, too: see habits
	only       bool                    // of a candidate: there are none with a step
	last       bool                    // of a candidate: nothing shows that the program has gone past it
	unread     bool                    // it is as its record says by size and time, and was not read since the start
}

// key identifies a checkpoint: by its step or, if it has none, by its name.
type key struct {
	step int64
	name string // of one without a step, or the numbers in it
}

// Attrs returns the log attributes of a checkpoint.
func (c *Checkpoint) Attrs() []any {
	attrs := []any{"checkpoint", c.Path, "bytes", c.Size}
	if c.Step == NoStep {
		return attrs
	}
	return append([]any{"step", c.Step}, attrs...)
}

// Written returns when the program had written the checkpoint. In a copied logdir, the files may
// have the time of the copy, but the record does not.
func (c *Checkpoint) Written() time.Time {
	if c.record != nil {
		return c.record.WallTime
	}
	return c.Saved
}

// At returns the reported step at which the checkpoint was written, or NoStep if that is not known:
// a name may count epochs, or saves.
func (c *Checkpoint) At() int64 {
	switch {
	case !c.CountsOtherUnit():
		return c.Step
	case c.Reported() > 0:
		return c.inReports(c.Reported())
	}
	return NoStep
}

// inReports returns the step of a checkpoint of an epoch, given the step that had been reported
// when it was found. If there are fewer than two steps per epoch, the reports count epochs, too,
// and some may have come before the checkpoint was found.
func (c *Checkpoint) inReports(reported int64) int64 {
	if reported < 2*c.Step {
		return c.Step
	}
	return reported
}

// countsEpochs reports whether the number in the name is an epoch.
func (c *Checkpoint) countsEpochs() bool {
	return len(c.files) > 0 && countsEpochs(path.Base(c.files[0]))
}

// CountsOtherUnit reports whether the number in the name is not a step of the program.
func (c *Checkpoint) CountsOtherUnit() bool { return c.countsEpochs() || c.otherCount || c.reused }

// CountsSteps reports whether the number in the name of a checkpoint can be used as a reported
// step: it is one, or it is an epoch and the program's reports count epochs.
func (c *Checkpoint) CountsSteps() bool {
	return c.NamesStep() || c.countsEpochs() && c.At() == c.Step
}

// FirstFound returns when a scan has first found the checkpoint in its present state.
func (c *Checkpoint) FirstFound() Moment { return c.first }

// IsLate reports whether the program has written the checkpoint while it trained: then further
// steps do not show that it has finished writing.
func (c *Checkpoint) IsLate() bool { return c.late }

// MayBeUnfinished reports whether the program has done nothing since the checkpoint was written,
// and its format does not show that it was finished.
func (c *Checkpoint) MayBeUnfinished(root *os.Root) bool {
	return c.untried && (c.OnTrial || !integrity.IsWhole(root, c.files))
}

// Is reports whether two are the same checkpoint, perhaps at different times.
func (c *Checkpoint) Is(other *Checkpoint) bool { return c.key() == other.key() }

// IsNewer compares checkpoints by their steps, or by time if one has none.
func (c *Checkpoint) IsNewer(than *Checkpoint) bool {
	if c.Step == NoStep || than.Step == NoStep {
		return c.Saved.After(than.Saved)
	}
	return c.Step > than.Step
}

// Precedes reports whether it is possible to go back from the other checkpoint to this one. It is
// not if names are always the same: then all are of the last save.
func (c *Checkpoint) Precedes(other *Checkpoint) bool {
	if other.reused {
		return !c.Is(other) && other.IsNewer(c)
	}
	return c.Step < other.Step
}

func (c *Checkpoint) key() key {
	if len(c.files) == 0 {
		return key{c.Step, c.Path}
	}
	return keyOf(c.files[0], c.reused)
}

// keyOf returns the key of the checkpoint that a file belongs to. If numbers are reused, all
// numbers in the name identify it.
func keyOf(name string, reused bool) key {
	step := stepOfName(path.Base(name))
	switch {
	case step == NoStep:
		return key{NoStep, shardTail().ReplaceAllString(name, "")}
	case reused:
		return key{NoStep, "#" + strings.Join(numbersIn(name), "/")}
	}
	return key{step: step}
}

func byStep(a, b Checkpoint) int {
	return cmp.Or(cmp.Compare(a.Step, b.Step), a.Saved.Compare(b.Saved))
}

// same reports whether nothing has changed between two scans.
func same(a, b Checkpoint) bool {
	return a.Size == b.Size && a.Saved.Equal(b.Saved) && slices.Equal(a.files, b.files)
}
