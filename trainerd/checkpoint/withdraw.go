package checkpoint

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/logging"
)

// lineup is what a Saver manages: the rotation, the checkpoints to be deleted, and the one that the
// training continues from.
type lineup struct {
	rotation
	pendingDelete []stored
	last          string
}

// lineup returns a copy of the present lineup.
func (s *Saver) lineup() lineup {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start()
	l := lineup{rotation: s.rotation, pendingDelete: slices.Clone(s.pendingDelete), last: s.last}
	l.kept, l.outside = slices.Clone(l.kept), slices.Clone(l.outside)
	return l
}

// dropMissing removes the checkpoints that do not exist.
func (l *lineup) dropMissing() {
	missing := func(k stored) bool { return !present(k.prefix) }
	l.kept = slices.DeleteFunc(l.kept, missing)
	l.pendingDelete = slices.DeleteFunc(l.pendingDelete, missing)
	l.outside = slices.DeleteFunc(l.outside, func(k Kept) bool { return !present(k.Prefix) })
	if l.last != "" && !present(l.last) {
		l.last = ""
	}
}

// newest returns the newest checkpoint, and whether there is any.
func (l *lineup) newest() (stored, bool) {
	if len(l.kept) > 0 {
		return l.kept[len(l.kept)-1], true
	}
	return stored{prefix: l.last}, l.last != ""
}

// errDeleted says that the files of a checkpoint were deleted before it counted as saved.
var errDeleted = fmt.Errorf("its files were deleted meanwhile: %w", fs.ErrNotExist)

// checkPublished fails if the files of a checkpoint that was just published have been deleted
// since, if they were visible from here. The state file must not name it then: if it is the
// only one, a start would wait for somebody to put it back.
func (s *Saver) checkPublished(prefix string, visible bool, before lineup) error {
	if !visible || present(prefix) {
		return nil
	}
	if err := s.withdraw(filepath.Dir(prefix), before); err != nil {
		logging.OrDiscard(s.Logger).Warn("state file still names a deleted checkpoint", "checkpoint", prefix, "err", err)
	}
	return fmt.Errorf("saving %s: %w", prefix, errDeleted)
}

// withdraw restores the previous lineup, without the checkpoints that were deleted together with
// the new one. If none is left, the state file is removed too.
func (s *Saver) withdraw(dir string, before lineup) error {
	before.dropMissing()
	newest, some := before.newest()
	s.mu.Lock()
	s.rotation, s.pendingDelete, s.last = before.rotation, before.pendingDelete, before.last
	state := s.stateFor(s.currentOr(newest))
	s.mu.Unlock()
	if some {
		return s.updateState(dir, state)
	}
	return atomicfile.RemoveIfExists(s.FS, filepath.Join(dir, s.latestFilename()))
}
