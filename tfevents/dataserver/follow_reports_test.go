package dataserver

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watched returns a follower of a directory that reports its changes.
func watched(t *testing.T, dir string) *follower {
	t.Helper()
	f := &follower{s: &Server{o: Options{Logdir: dir, Logger: slog.New(slog.DiscardHandler)}}}
	f.watch()
	t.Cleanup(f.close)
	if f.watcher == nil {
		t.Skip("this file system does not report changes")
	}
	return f
}

// TestReportsAlone has an hour until the next look through all directories: what the system reports is shown at once.
func TestReportsAlone(t *testing.T) {
	dir := t.TempDir()
	watched(t, dir)
	appendEvents(t, filepath.Join(dir, "run", "1.tfevents"), point("loss", 1, 0))
	c := serve(t, &Options{Logdir: dir, Reload: time.Hour})
	c.waitForSteps("run", "loss", 1)
	for step := int64(2); step < 4; step++ { // with files of its own, a run that is not known yet
		appendEvents(t, filepath.Join(dir, "run", "1.tfevents"), point("loss", step, 0))
		c.waitFor("the next point", func() bool { return len(c.curve("run", "loss", 100).GetStep()) == int(step) })
		appendEvents(t, filepath.Join(dir, "deep", "er", "1.tfevents"), point("loss", step, 0))
		c.waitFor("a new folder", func() bool { return len(c.curve("deep/er", "loss", 100).GetStep()) == int(step-1) })
	}
	if err := os.RemoveAll(filepath.Join(dir, "deep")); err != nil {
		t.Fatal(err)
	}
	c.waitFor("that a run is gone", func() bool { return c.curve("deep/er", "loss", 100) == nil })
}

// TestLinksEndTheReports: what a link to a folder leads to may change without a report, so nothing is watched.
func TestLinksEndTheReports(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	watched(t, dir)
	if err := os.Symlink(other, filepath.Join(dir, "linked")); err != nil {
		t.Skip(err)
	}
	f := &follower{s: &Server{o: Options{Logdir: dir, Logger: slog.New(slog.DiscardHandler)}}}
	f.watch()
	if f.watcher != nil {
		f.close()
		t.Error("the directory is watched")
	}
	c := serve(t, &Options{Logdir: dir, Reload: 20 * time.Millisecond})
	appendEvents(t, filepath.Join(other, "1.tfevents"), point("loss", 1, 0))
	c.waitForSteps("linked", "loss", 1)
	appendEvents(t, filepath.Join(other, "1.tfevents"), point("loss", 2, 0))
	c.waitForSteps("linked", "loss", 1, 2)
}

// TestWatcherIsClosed after which it reports nothing more.
func TestWatcherIsClosed(t *testing.T) {
	f := watched(t, t.TempDir())
	w := f.watcher
	f.close()
	if events, failures := f.channels(); events != nil || failures != nil {
		t.Error("there are channels of no watcher")
	}
	if err := w.Add(t.TempDir()); !errors.Is(err, fsnotify.ErrClosed) {
		t.Errorf("Add = %v", err)
	}
}

// TestScanPause: while changes are reported, the next look comes after many times what the last one took, at least
// after Reload; and without reports, after that.
func TestScanPause(t *testing.T) {
	dir := t.TempDir()
	w := watched(t, dir)
	for _, reload := range []time.Duration{time.Minute, 2 * maxScanPause} {
		s, err := New(&Options{Logdir: dir, Reload: reload})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []*follower{{s: s}, {s: s, watcher: w.watcher, rescan: true}} {
			if pause := f.scan(t.Context()); pause != reload || f.rescan {
				t.Errorf("the next look is in %v, want %v", pause, reload)
			}
		}
	}
}

// TestBlind: once the log directory is gone, nothing is watched that could report another one.
func TestBlind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f := watched(t, dir)
	if f.blind() {
		t.Error("it is blind while there is a directory")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if f.watchAll(); !f.blind() || (&follower{}).blind() {
		t.Error("it does not see that the directory is gone, or is blind without reports")
	}
}
