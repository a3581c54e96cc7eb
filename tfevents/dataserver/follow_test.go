package dataserver

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/trainerd/trainerd/tfevents"
)

// shutFS is a log directory in which one file or directory can be made unreadable.
type shutFS struct {
	fs.FS

	mu   sync.Mutex
	name string
}

func (s *shutFS) shut(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.name = name
}

func (s *shutFS) check(op, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name != "" && (name == s.name || filepath.Dir(name) == s.name && op != "readdir") {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
	}
	return nil
}

func (s *shutFS) Open(name string) (fs.File, error) {
	if err := s.check("open", name); err != nil {
		return nil, err
	}
	return s.FS.Open(name)
}

func (s *shutFS) Stat(name string) (fs.FileInfo, error) {
	if err := s.check("stat", name); err != nil && name != s.name { // what chmod 000 denies is what is in it
		return nil, err
	}
	return fs.Stat(s.FS, name)
}

func (s *shutFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := s.check("readdir", name); err != nil {
		return nil, err
	}
	return fs.ReadDir(s.FS, name)
}

// TestUnreadable: what cannot be read for a while keeps its points, and what was added
// meanwhile is found.
func TestUnreadable(t *testing.T) {
	for _, what := range []string{"a", "a/1.tfevents"} {
		dir := t.TempDir()
		appendEvents(t, filepath.Join(dir, "a", "1.tfevents"), point("loss", 1, 0))
		appendEvents(t, filepath.Join(dir, "b", "1.tfevents"), point("loss", 1, 0))
		fsys := &shutFS{FS: tfevents.DirFS(dir)}
		s := newStore(fsys, -1, slog.New(slog.DiscardHandler))
		steps := func(run string) (steps []int64) {
			s.view(run, func(x *tfevents.RunData) {
				for p := range x.Lookup("loss").Points() {
					steps = append(steps, p.Step)
				}
			})
			return steps
		}
		s.scan(t.Context())
		fsys.shut(what)
		for step := int64(2); step < 4; step++ {
			appendEvents(t, filepath.Join(dir, "a", "1.tfevents"), point("loss", step, 0))
			s.updateNamed(t.Context(), map[string]struct{}{"a": {}})
			s.scan(t.Context())
			if got := steps("a"); !slices.Equal(got, []int64{1}) {
				t.Errorf("%s is not readable: run a has steps %v", what, got)
			}
		}
		fsys.shut("")
		s.scan(t.Context())
		if got := steps("a"); !slices.Equal(got, []int64{1, 2, 3}) {
			t.Errorf("%s is readable again: run a has steps %v", what, got)
		}
		if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
			t.Fatal(err)
		}
		s.scan(t.Context())
		if got := s.sorted(); !slices.Equal(got, []string{"b"}) {
			t.Errorf("run a is gone: runs %q", got)
		}
	}
}

// TestNote: which reports of the system have the directories or files read again.
func TestNote(t *testing.T) {
	dir := t.TempDir()
	join := func(name string) string { return filepath.Join(dir, name) }
	appendEvents(t, join("run/1.tfevents"), point("loss", 1, 0))
	if err := os.WriteFile(join("run/model.ckpt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"run/last.ckpt": "model.ckpt", "other": "run", "2.tfevents": "run/model.ckpt", "nowhere": "later"}
	for link, to := range links {
		if err := os.Symlink(to, join(link)); err != nil {
			t.Skip(err)
		}
	}
	for _, c := range []struct {
		name         string
		op           fsnotify.Op
		rescan, read bool
	}{
		{"run/1.tfevents", fsnotify.Write, false, true},
		{"run/1.tfevents", fsnotify.Chmod, false, true},
		{"run/1.tfevents", fsnotify.Create, true, false},
		{"run/model.ckpt", fsnotify.Write, false, false},
		{"run/model.ckpt", fsnotify.Chmod, false, false},
		{"run/model.ckpt", fsnotify.Create, false, false},
		{"run/last.ckpt", fsnotify.Create, false, false},
		{"run", fsnotify.Chmod, true, false},
		{"run", fsnotify.Remove, true, false},
		{"other", fsnotify.Create, true, false},
		{"2.tfevents", fsnotify.Create, true, false},
		{"nowhere", fsnotify.Create, true, false},
	} {
		f := follower{s: &Server{o: Options{Logdir: dir}}, dirs: map[string]struct{}{join("run"): {}}}
		if got := f.note(fsnotify.Event{Name: join(c.name), Op: c.op}); got != (c.rescan || c.read) {
			t.Errorf("%s of %s matters: %v", c.op, c.name, got)
		}
		if _, read := f.dirty["run"]; read != c.read || f.rescan != c.rescan {
			t.Errorf("%s of %s: looks through directories %v, reads the run %v", c.op, c.name, f.rescan, read)
		}
	}
}

// TestWatched: a link to a file, and a directory that is gone by the time that it is to
// be watched, do not end the reports.
func TestWatched(t *testing.T) {
	dir := t.TempDir()
	appendEvents(t, filepath.Join(dir, "run", "1.tfevents"), point("loss", 1, 0))
	if err := os.WriteFile(filepath.Join(dir, "model.ckpt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("model.ckpt", filepath.Join(dir, "last.ckpt")); err != nil {
		t.Skip(err)
	}
	f := follower{s: &Server{o: Options{Logdir: dir, Logger: slog.New(slog.DiscardHandler)}}}
	f.watch()
	if f.watcher == nil {
		t.Skip("this file system does not report changes")
	}
	defer f.close()
	if err := f.watchDir(filepath.Join(dir, "gone")); err != nil {
		t.Errorf("a directory that is gone: %v", err)
	}
	if len(f.dirs) != 2 {
		t.Errorf("%d directories are watched, want 2", len(f.dirs))
	}
}

// TestLogdirMadeAgain: `rm -rf logs` and a new training show the new one, whenever the
// next look through all directories is due.
func TestLogdirMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	file := filepath.Join(dir, "run", "1.tfevents")
	appendEvents(t, file, point("loss", 1, 0))
	c := serve(t, &Options{Logdir: dir, Reload: 20 * time.Millisecond})
	for step := int64(1); step < 5; step++ {
		c.waitForSteps("run", "loss", step)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		appendEvents(t, file, point("loss", step+1, 0))
	}
}
