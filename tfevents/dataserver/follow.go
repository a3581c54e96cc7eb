package dataserver

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/trainerd/trainerd/tfevents"
)

const (
	// settle is how long changes are collected before they are read.
	settle = 200 * time.Millisecond
	// latePause is how long a run waits that was just read as a whole.
	latePause = time.Second
	// scanShare bounds the share of time spent scanning directories that report their changes
	// anyway: one part in so many.
	scanShare = 1000
	// maxScanPause is the longest time until a scan finds a change that the system has not
	// reported.
	maxScanPause = 5 * time.Minute
)

// errUnwatched says that a directory may change without a report.
var errUnwatched = errors.New("holds symbolic links")

// follow reads the log directory, and then what changes, until ctx ends.
func (s *Server) follow(ctx context.Context) {
	f := follower{s: s}
	if s.o.Reload >= 0 {
		f.watch() // first, so that nothing is added in between unseen
		defer f.close()
	}
	began := time.Now()
	s.Load(ctx)
	s.o.Logger.Info("Finished load cycle", "seconds", time.Since(began).Seconds()) // as TensorBoard's own says
	if s.o.Reload < 0 {
		<-ctx.Done()
		return
	}
	f.loop(ctx)
}

// follower keeps the store up to date. It belongs to one goroutine.
type follower struct {
	s       *Server
	watcher *fsnotify.Watcher // nil where directories do not report changes

	dirs map[string]struct{} // those that are watched

	dirty  map[string]struct{} // runs whose files have changed
	rescan bool                // a file or directory appeared or is gone
}

// watch asks the system to report changes of the directories. If that fails, they are scanned
// instead.
func (f *follower) watch() {
	if !reportsChanges(f.s.o.Logdir) {
		return
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		f.s.o.Logger.Debug("watching the log directory", "error", err)
		return
	}
	f.watcher = w
	f.watchAll()
}

// watchAll watches all directories that exist so far.
func (f *follower) watchAll() {
	f.dirs = make(map[string]struct{})
	err := filepath.WalkDir(f.s.o.Logdir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // it is gone, or cannot be read: the scan says so
		case d.Type()&fs.ModeSymlink != 0 && mayLeadToRuns(path):
			return errUnwatched // what it leads to may change without a report
		case d.IsDir():
			return f.watchDir(path)
		}
		return nil
	})
	if err != nil {
		f.s.o.Logger.Debug("watching the log directory", "error", err)
		f.close()
	}
}

// watchDir asks for the changes of one directory. If it cannot be watched because it is gone, or
// may not be read, nothing is lost: its parent reports when that changes.
func (f *follower) watchDir(path string) error {
	err := f.watcher.Add(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f.dirs[path] = struct{}{}
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// mayLeadToRuns reports whether a symbolic link may lead to runs: a link to the latest checkpoint,
// as trainings keep it, does not.
func mayLeadToRuns(link string) bool {
	info, err := os.Stat(link)
	return err != nil || info.IsDir() || tfevents.IsEventsFile(link)
}

func (f *follower) close() {
	if f.watcher != nil {
		f.watcher.Close()
	}
	f.watcher = nil
}

// channels returns those of the watcher, or nil ones that never deliver.
func (f *follower) channels() (chan fsnotify.Event, chan error) {
	if f.watcher == nil {
		return nil, nil
	}
	return f.watcher.Events, f.watcher.Errors
}

// loop ends with ctx.
func (f *follower) loop(ctx context.Context) {
	scan := time.NewTimer(f.s.o.Reload)
	defer scan.Stop()
	var settled <-chan time.Time
	for {
		events, failures := f.channels()
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			if f.note(e) && settled == nil {
				settled = time.After(settle)
			}
		case err := <-failures: // reports were lost
			f.s.o.Logger.Debug("watching the log directory", "error", err)
			f.rescan = true
			if settled == nil {
				settled = time.After(settle)
			}
		case <-settled:
			settled = nil
			if f.apply(ctx) {
				settled = time.After(latePause)
			}
			if f.blind() {
				scan.Reset(f.s.o.Reload)
			}
		case <-scan.C:
			scan.Reset(f.scan(ctx))
		}
	}
}

// blind reports whether the log directory is gone, so that nothing would report a new one.
func (f *follower) blind() bool { return f.watcher != nil && len(f.dirs) == 0 }

// note records a change and reports whether it matters: a training writes other files to its log
// directory, too.
func (f *follower) note(e fsnotify.Event) bool {
	switch {
	case e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename):
		if !f.concerns(e.Name) {
			return false
		}
		f.rescan = true
		return true
	case e.Has(fsnotify.Chmod) && f.isWatched(e.Name):
		f.rescan = true
		return true
	case !tfevents.IsEventsFile(e.Name):
		return false
	}
	dir, err := filepath.Rel(f.s.o.Logdir, filepath.Dir(e.Name))
	if err != nil {
		return false
	}
	if f.dirty == nil {
		f.dirty = make(map[string]struct{})
	}
	f.dirty[tfevents.RunName(filepath.ToSlash(dir))] = struct{}{}
	return true
}

// concerns reports whether a file that appeared or is gone may change the set of runs.
func (f *follower) concerns(name string) bool {
	if tfevents.IsEventsFile(name) || filepath.Base(name) == hideName {
		return true
	}
	if f.isWatched(name) {
		return true
	}
	info, err := os.Lstat(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return mayLeadToRuns(name)
	}
	return err == nil && info.IsDir()
}

func (f *follower) isWatched(dir string) bool {
	_, ok := f.dirs[dir]
	return ok
}

// apply reads what has changed. It reports whether some of it must wait.
func (f *follower) apply(ctx context.Context) (late bool) {
	if f.rescan {
		f.scan(ctx)
	} else {
		f.s.loadNamed(ctx, f.dirty)
	}
	f.dirty = f.s.late()
	return f.dirty != nil
}

// scan scans all directories and returns when to do so again.
func (f *follower) scan(ctx context.Context) time.Duration {
	began := time.Now()
	f.rescan = false
	if f.watcher != nil {
		f.watchAll() // first, so that nothing appears in between unseen
	}
	f.s.Load(ctx)
	if f.watcher == nil {
		return f.s.o.Reload
	}
	return min(max(f.s.o.Reload, scanShare*time.Since(began)), max(f.s.o.Reload, maxScanPause))
}
