package checkpoint

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/internal/logging"
)

var (
	dataFilePattern = lazyregexp.New(`^(.+)\.data-[0-9]{5,}-of-[0-9]{5,}$`)
	v1ShardPattern  = lazyregexp.New(`^(.+)-[0-9]{5}-of-([0-9]{5})$`)
)

// RemoveLeftovers removes files from a directory that nothing would ever use or
// remove after a run was killed during a save: data files without an index, and
// checkpoints kept only while they were being overwritten. Checkpoints that the
// Saver manages are kept. No writer may be running.
func (s *Saver) RemoveLeftovers(dir, basename string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	prefixes := make(map[string]bool)
	for _, e := range entries {
		if !strings.Contains(e.Name(), "-of-") || !e.Type().IsRegular() {
			continue // such as the events of thousands of runs, which need no closer look
		}
		if m := dataFilePattern().FindStringSubmatch(e.Name()); m != nil {
			prefixes[filepath.Join(abs, m[1])] = true
		} else if m := v1ShardPattern().FindStringSubmatch(e.Name()); m != nil && layout.IsTable(filepath.Join(abs, e.Name())) {
			prefixes[filepath.Join(abs, m[1]+layout.ShardMark+m[2])] = true
		}
	}
	var errs []error
	for _, prefix := range slices.Sorted(maps.Keys(prefixes)) {
		if !s.isLeftover(prefix, basename) {
			continue
		}
		if original, previous := cutPrevious(prefix); previous && unsharded(prefix) == prefix {
			errs = append(errs, s.removePrevious(original))
		} else if previous {
			errs = append(errs, s.removePreviousShards(original))
		} else {
			errs = append(errs, removeCheckpoint(s.FS, prefix))
		}
		logging.OrDiscard(s.Logger).Info("removed the partial checkpoint of a killed run", "checkpoint", prefix)
	}
	return errors.Join(errs...)
}

func (s *Saver) isLeftover(prefix, basename string) bool {
	original, previous := cutPrevious(prefix)
	if baseOf(original) != basename || s.looksAfter(prefix) || IsPinned(prefix) {
		return false
	}
	if previous { // if that is pinned and not whole, this is all that is left of it
		return whole(original) || !s.looksAfter(original) && !IsPinned(original)
	}
	return !whole(prefix)
}

// whole reports whether the file that is published last exists.
func whole(prefix string) bool {
	if unsharded(prefix) != prefix {
		return missingShard(prefix) == nil
	}
	return v2(prefix)
}

// present reports whether the file by which readers find a checkpoint exists.
func present(prefix string) bool {
	return whole(prefix) || unsharded(prefix) == prefix && layout.Exists(prefix)
}

func (s *Saver) looksAfter(prefix string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if prefix == s.last {
		return true
	}
	is := func(k stored) bool { return k.prefix == prefix }
	return slices.ContainsFunc(s.kept, is) || slices.ContainsFunc(s.pendingDelete, is)
}
