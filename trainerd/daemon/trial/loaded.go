package trial

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A program may save in two places: what it continues from under one name, as
// recipe_state.pt or latest.pth, and a model for each epoch. Which it loads shows when it is started
// again, if nothing of its source says it: most file systems keep when a file was read for
// the first time after it had been written (relatime).

// loadedUntil returns which files of a look are read, and have not been written before that,
// until a program has said where it is, its end, or a time is over.
func (s snapshot) loadedUntil(ctx context.Context, said <-chan struct{}, limit time.Duration) []string {
	const between = 100 * time.Millisecond
	begun, over, tick := time.Now(), time.After(limit), time.NewTicker(between)
	defer tick.Stop()
	loaded := map[string]bool{}
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-said:
			ended = true
		case <-over:
			ended = true
		case <-tick.C:
		}
		for name, f := range s {
			info, err := os.Stat(name)
			if err == nil && info.Size() == f.size && info.ModTime().Equal(f.at) && !readAt(info).Before(begun) {
				loaded[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(loaded))
}

// preferLoaded has the checkpoints be those that the other start has loaded, where it has
// loaded none of those that were found, nor one next to them.
func (f *Findings) preferLoaded(before snapshot, loaded []string) {
	if f.Resumes || !f.Again.resumes(f) || slices.ContainsFunc(loaded, f.isSaved) {
		return
	}
	roots, groups := f.roots(), map[string]bool{}
	for _, name := range loaded {
		if key := roots.groupOf(name); key != "" && rank(key) <= rankOne {
			groups[key] = true
		}
	}
	changed := slices.DeleteFunc(roots.look().since(before), func(name string) bool {
		key := roots.groupOf(name)
		return key != "" && !groups[key]
	})
	if saved := roots.savedIn(changed, false); saved != nil && len(groups) > 0 {
		f.Saved = saved
	}
}

// isSaved reports whether a file is one of the checkpoints that were found, or next to one, and
// not of the same kind with other contents.
func (f *Findings) isSaved(name string) bool {
	return slices.ContainsFunc(f.Saved.Names, func(saved string) bool {
		abs, err := filepath.Abs(filepath.Join(f.Saved.Logdir, saved))
		switch {
		case err != nil:
			return false
		case filepath.Dir(name) != filepath.Dir(abs):
			return strings.HasPrefix(name, abs+string(filepath.Separator))
		}
		return name == abs || filepath.Ext(name) != filepath.Ext(abs) || alike(name, abs)
	})
}

// newest returns the absolute name of the newest checkpoint.
func (s *Saved) newest() string {
	name := filepath.Join(s.Logdir, s.Names[len(s.Names)-1])
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

// groupOf returns the pattern of the checkpoint that a file is, "" for none.
func (r roots) groupOf(name string) string {
	root, base := r.checkpointOf(name)
	if base == "" {
		return ""
	}
	return patternOf(filepath.Join(root, base))
}
