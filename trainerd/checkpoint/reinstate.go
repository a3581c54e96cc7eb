package checkpoint

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/logging"
)

// Reinstate renames a checkpoint that a crash has left only under its second
// name back to its own, and returns its new prefix. Any part of the checkpoint
// that should have replaced it is removed. Any other prefix is returned
// unchanged. No writer may be running.
//
// If that fails, the checkpoint keeps its second name until the next save: it
// is intact there.
func (s *Saver) Reinstate(prefix string) string {
	original, previous := cutPrevious(prefix)
	if !previous || whole(original) || !whole(prefix) {
		return prefix
	}
	log := logging.OrDiscard(s.Logger)
	if err := s.reinstate(prefix, original); err != nil {
		log.Warn("checkpoint keeps its temporary name", "checkpoint", prefix, "err", err)
		return prefix
	}
	s.lookAfter(original)
	log.Info("checkpoint has its own name again", "checkpoint", original)
	if err := removeCheckpoint(s.FS, prefix); err != nil {
		log.Warn("old checkpoint could not be deleted", "checkpoint", prefix, "err", err)
	}
	return original
}

// reinstate links the files of a checkpoint to their own names. The file that makes it a checkpoint
// is removed first, and linked last, once the others are durable.
func (s *Saver) reinstate(previous, original string) error {
	last, names, err := previousFiles(previous)
	if err != nil {
		return err
	}
	fsys, dir := atomicfile.OrOS(s.FS), filepath.Dir(original)
	own := func(name string) string {
		return filepath.Join(dir, strings.Replace(name, previousSuffix, "", 1))
	}
	if err := atomicfile.RemoveIfExists(fsys, own(last)); err != nil {
		return err
	}
	if err := removeCheckpoint(s.FS, original); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		if err := atomicfile.Link(s.FS, filepath.Join(dir, name), own(name)); err != nil {
			return err
		}
	}
	if err := fsys.SyncDir(dir); err != nil {
		return err
	}
	if err := atomicfile.Link(s.FS, filepath.Join(dir, last), own(last)); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// previousFiles returns the names of the files of a checkpoint, and separately the one that is
// published last.
func previousFiles(previous string) (last string, others []string, err error) {
	if unsharded(previous) == previous {
		names, err := layout.Files(previous)
		last = filepath.Base(previous) + indexSuffix
		return last, slices.DeleteFunc(names, func(name string) bool { return name == last }), err
	}
	paths, err := layout.MatchShards(previous)
	for _, path := range paths {
		others = append(others, filepath.Base(path))
	}
	if err != nil || len(others) == 0 {
		return "", nil, errors.Join(err, fs.ErrNotExist)
	}
	return others[0], others[1:], nil
}

// lookAfter makes the Saver manage a checkpoint, which has its own name again, as its newest.
func (s *Saver) lookAfter(prefix string) {
	abs, err := filepath.Abs(prefix)
	if err != nil {
		return
	}
	saved, err := checkpointTime(abs)
	if err != nil {
		return
	}
	step, metrics := storedMetrics(abs)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start()
	s.put(stored{prefix: abs, step: step, saved: saved, metrics: metrics})
	if s.last == previousName(abs) {
		s.last = abs
	}
}
