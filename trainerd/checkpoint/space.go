package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

// NoSpaceError says that a checkpoint was not started because it would not fit
// on the disk. Nothing is damaged: the next save may succeed. It matches syscall.ENOSPC, as the
// error of a write that began does.
type NoSpaceError struct {
	Dir        string
	Need, Free int64 // bytes
}

func (e *NoSpaceError) Error() string {
	return fmt.Sprintf("a checkpoint of about %d bytes does not fit on the disk of %s, which has %d left; make room, or keep fewer checkpoints",
		e.Need, e.Dir, e.Free)
}

func (e *NoSpaceError) Unwrap() error { return syscall.ENOSPC }

// spaceFS is a file system that knows how many bytes are free in a directory.
type spaceFS interface {
	FreeSpace(dir string) (int64, error)
}

// The space that a checkpoint takes in addition to its elements: in the index
// for each tensor, and in total for the rest.
const (
	spacePerTensor = 128
	spaceForRest   = 64 << 10
)

// makeRoom ensures that a checkpoint fits on the disk before any of it is written. If necessary, it
// first removes what retention would remove after the save, but never the newest checkpoint.
func (s *Saver) makeRoom(cut *Snapshot, prefix string) error {
	if cut.tensors == nil {
		return nil // the session writes, to a disk of its own
	}
	dir := filepath.Dir(prefix)
	need := s.need(cut)
	if free, err := s.freeSpace(dir); !s.tight && (err != nil || free >= need) {
		return nil // where the disk does not tell, the write will
	}
	if err := s.evictAhead(prefix); err != nil {
		return err
	}
	free, err := s.freeSpace(dir)
	if err != nil || free >= need {
		return nil
	}
	return &NoSpaceError{Dir: dir, Need: need, Free: free}
}

// noteFull handles the error of a save. If the disk was full although it had free bytes, because
// the inodes or a quota are used up, its free space is not trusted any more: from then on room is
// made before each save.
func (s *Saver) noteFull(cut *Snapshot, dir string, err error) error {
	var forecast *NoSpaceError
	if cut.tensors == nil || errors.As(err, &forecast) || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	s.tight = true
	if free, e := s.freeSpace(dir); e == nil && free >= s.need(cut) {
		return fmt.Errorf("%w; the disk has %d bytes left, so there are too many files on it, or a quota is used up", err, free)
	}
	return err
}

// need estimates the size of a checkpoint.
func (s *Saver) need(cut *Snapshot) int64 {
	need := int64(spaceForRest) + int64(len(cut.tensors))*spacePerTensor
	for i := range cut.tensors {
		need += cut.tensors[i].bytes()
	}
	if s.MetaGraph != nil {
		need += int64(len(s.EncodedMetaGraph()))
	}
	return need
}

// evictAhead deletes the checkpoints that the coming one will rotate out, except the newest, and
// the one that the training continues from, which may be an earlier one. Before that the state file
// is made to name the latter: if the last save could not write the state file, it still names one
// of those to be deleted. If even that finds no room, the checkpoint that it names is deleted
// later.
func (s *Saver) evictAhead(coming string) error {
	dir := filepath.Dir(coming)
	s.mu.Lock()
	if len(s.kept) == 0 {
		s.mu.Unlock()
		return nil
	}
	newest := s.kept[len(s.kept)-1]
	after := rotation{kept: slices.Clone(s.kept), lastPreserved: s.lastPreserved} // to try it out
	evicted := s.evictFor(&after, stored{prefix: coming, saved: time.Now()})
	evicted = slices.DeleteFunc(evicted, func(k stored) bool { return k.prefix == newest.prefix || k.prefix == s.last })
	s.kept = slices.DeleteFunc(s.kept, func(k stored) bool {
		return slices.ContainsFunc(evicted, func(e stored) bool { return e.prefix == k.prefix })
	})
	s.pendingDelete = append(s.pendingDelete, evicted...)
	gone, current := s.pendingDelete, s.currentOr(newest)
	s.mu.Unlock()
	if !slices.ContainsFunc(gone, func(k stored) bool { return !IsPinned(k.prefix) }) {
		return nil
	}
	var later []stored
	if err := s.MakeCurrent(dir, current.prefix); err != nil {
		if later, gone = s.apartFromNamed(dir, gone); len(gone) == 0 {
			return err
		}
	}
	logging.OrDiscard(s.Logger).Warn("disk is nearly full; deleting old checkpoints before the save instead of after it", "checkpoints", len(gone))
	left := s.removeAll(gone, dir)
	s.mu.Lock()
	s.pendingDelete = append(later, left...)
	state := s.stateFor(current)
	s.mu.Unlock()
	return s.updateState(dir, state)
}

// apartFromNamed separates the checkpoint that the state file names, or all if that is not known,
// from the others.
func (s *Saver) apartFromNamed(dir string, all []stored) (named, others []stored) {
	prefix, err := ckptdir.LatestCheckpoint(dir, &ckptdir.StateOptions{Name: s.latestFilename()})
	if err != nil {
		return all, nil
	}
	for _, k := range all {
		if k.prefix == prefix {
			named = append(named, k)
		} else {
			others = append(others, k)
		}
	}
	return named, others
}

// currentOr returns the checkpoint that was last restored or saved, if it exists, otherwise the
// newest. The caller holds s.mu.
func (s *Saver) currentOr(newest stored) stored {
	if s.last == "" {
		return newest
	}
	saved, err := checkpointTime(s.last)
	if err != nil {
		return newest
	}
	return stored{prefix: s.last, saved: saved}
}

func (s *Saver) freeSpace(dir string) (int64, error) { return FreeSpace(s.FS, dir) }

// FreeSpace returns how many bytes are free on the disk of a directory; fsys may be nil.
func FreeSpace(fsys ckptfmt.FS, dir string) (int64, error) {
	if sp, ok := atomicfile.OrOS(fsys).(spaceFS); ok {
		return sp.FreeSpace(dir)
	}
	return logdir.FreeSpace(dir)
}

// bytes returns about how many bytes a tensor takes.
func (t *snapshotTensor) bytes() int64 {
	if t.tensor == nil {
		return t.size
	}
	n := int64(len(t.tensor.Data))
	for _, s := range t.tensor.Strings {
		n += int64(len(s)) + 10
	}
	return n
}

// byteSize returns about how much a variable takes in a checkpoint.
func byteSize(v session.VariableInfo) int64 {
	n, err := dtype.NumElements(v.Shape)
	if err != nil {
		return 0
	}
	return n * max(dtype.Size(v.DType), 1)
}
