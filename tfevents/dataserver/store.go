package dataserver

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/tfevents"
)

// store holds the index of each run.
type store struct {
	fsys  fs.FS
	log   *slog.Logger
	limit *tfevents.MemoryLimit // nil: none

	readers int // runs read at the same time

	mu   sync.RWMutex
	runs map[string]*run
}

// run is one run of the store.
type run struct {
	mu    sync.RWMutex
	index *tfevents.RunData // nil until the files were read once

	// Guarded by Server.loading.
	files     []string
	damage    int       // how much of it was reported
	rebuildAt time.Time // when the run may be read as a whole again
	late      bool      // it has changed, but may not be read yet
	shut      bool      // its directory cannot be read: what was read of it stays
}

// newStore returns a store without runs, whose points take at most maxBytes; a negative number
// means no limit.
func newStore(fsys fs.FS, maxBytes int64, log *slog.Logger) *store {
	s := &store{fsys: fsys, log: log, readers: runtime.GOMAXPROCS(0), runs: make(map[string]*run)}
	if maxBytes >= 0 {
		s.limit = tfevents.NewMemoryLimit(maxBytes, s.thin)
	}
	return s
}

// thin thins out all runs except those being read, which do so themselves. It is called while a run
// is being read.
func (s *store) thin() {
	s.log.Info("memory is short: thinning out the longest series", "max_points", s.limit.MaxPoints())
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range s.runs {
		if !r.mu.TryLock() {
			continue
		}
		if r.index != nil {
			r.index.Thin()
		}
		r.mu.Unlock()
	}
}

// sorted returns the names of the runs that can be shown, in order.
func (s *store) sorted() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.runs))
}

// view calls f with the index of a run, unless there is none. The index does
// not change until f returns.
func (s *store) view(name string, f func(*tfevents.RunData)) {
	s.mu.RLock()
	r := s.runs[name]
	s.mu.RUnlock()
	if r == nil {
		return
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.index != nil && r.index.Events > 0 {
		f(r.index)
	}
}

// scan finds the existing runs and updates all, as many at a time as there are processors. It ends
// early with ctx.
func (s *store) scan(ctx context.Context) {
	found, err := tfevents.FindRuns(s.fsys, ".")
	if err != nil {
		s.log.Debug("looking through the log directory", "error", err)
	}
	hidden := map[string]bool{}
	found = slices.DeleteFunc(found, func(r tfevents.Run) bool { return s.hidden(r.Name, hidden) })
	s.updateAll(ctx, s.take(found))
}

// hideName is the name of the file that hides the runs of its directory and of
// those below.
const hideName = ".hide"

// hidden reports whether a run is hidden; known is what was found before.
func (s *store) hidden(dir string, known map[string]bool) bool {
	is, ok := known[dir]
	if !ok {
		_, err := fs.Stat(s.fsys, path.Join(dir, hideName))
		is = err == nil || dir != "." && s.hidden(path.Dir(dir), known)
		known[dir] = is
	}
	return is
}

// take makes the found runs the runs of the store, and returns them.
func (s *store) take(found []tfevents.Run) map[string]*run {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := make(map[string]*run, len(found))
	for _, f := range found {
		r := s.runs[f.Name]
		if r == nil {
			r = new(run)
		}
		r.files, r.shut = f.Files, false
		now[f.Name] = r
	}
	for name, r := range s.runs {
		switch {
		case now[name] != nil || r.index == nil:
		case s.isShut(r):
			r.shut = true
			now[name] = r
		default:
			r.index.Release()
		}
	}
	s.runs = now
	return now
}

// isShut reports whether the directory of a run that was not found exists, but cannot be read:
// missing permissions, or a network disk that is out of reach, may be temporary.
func (s *store) isShut(r *run) bool {
	_, err := fs.ReadDir(s.fsys, path.Dir(r.files[0]))
	return err != nil && !errors.Is(err, fs.ErrNotExist)
}

// late returns the runs whose changes were not read yet, nil if there are none.
func (s *store) late() (names map[string]struct{}) {
	for name, r := range s.runs { // which change only with Server.loading held
		if r.late {
			if names == nil {
				names = make(map[string]struct{})
			}
			names[name] = struct{}{}
		}
	}
	return names
}

// updateNamed updates the named runs, whose files have changed.
func (s *store) updateNamed(ctx context.Context, names map[string]struct{}) {
	changed := make(map[string]*run)
	s.mu.RLock()
	for name := range names {
		if r := s.runs[name]; r != nil {
			changed[name] = r
		}
	}
	s.mu.RUnlock()
	s.updateAll(ctx, changed)
}

func (s *store) updateAll(ctx context.Context, runs map[string]*run) {
	names := slices.Sorted(maps.Keys(runs))
	parallel.EachOf(ctx, s.readers, len(names), func(i int) { s.update(names[i], runs[names[i]]) })
}

// rebuildShare bounds the share of time spent on reading a run as a whole again and again, because
// several writers add to its files: one part in so many.
const rebuildShare = 10

// update brings one run up to date.
func (s *store) update(name string, r *run) {
	if r.shut {
		return
	}
	if r.index != nil {
		r.mu.Lock()
		_, ok := r.index.Update(r.files)
		r.mu.Unlock()
		r.late = !ok && time.Now().Before(r.rebuildAt)
		if ok {
			s.report(name, r)
		}
		if ok || r.late {
			return
		}
	}
	began := time.Now()
	index := tfevents.ReadRun(s.fsys, tfevents.Run{Name: name, Files: r.files}, &tfevents.RunOptions{Limit: s.limit})
	r.rebuildAt = time.Now().Add(rebuildShare * time.Since(began))
	if r.index != nil && cannotRead(index) {
		index.Release()
		return
	}
	r.mu.Lock()
	if r.index != nil {
		r.index.Release()
	}
	r.index, r.damage = index, 0
	r.mu.Unlock()
	s.report(name, r)
}

// cannotRead reports whether nothing could be read of existing files, so that their content is
// unknown.
func cannotRead(x *tfevents.RunData) bool {
	return x.Events == 0 && slices.ContainsFunc(x.Damage, func(err error) bool {
		var failed *fs.PathError
		return errors.As(err, &failed) && !errors.Is(err, fs.ErrNotExist)
	})
}

// report logs the new damage of a run.
func (s *store) report(name string, r *run) {
	for _, err := range r.index.Damage[min(r.damage, len(r.index.Damage)):] {
		s.log.Info("damaged events file", "run", name, "error", err)
	}
	r.damage = len(r.index.Damage)
}
