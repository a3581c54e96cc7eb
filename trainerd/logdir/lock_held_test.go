//go:build linux

package logdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// TestHeld does to a logdir what may happen during a run.
func TestHeld(t *testing.T) {
	write := func(t *testing.T, name string) { sessiontest.MustNoErr(t, os.WriteFile(name, nil, 0o666)) }
	move := func(t *testing.T, dir string) string {
		to := filepath.Join(filepath.Dir(filepath.Dir(dir)), "elsewhere")
		sessiontest.MustNoErr(t, os.Rename(dir, to))
		return to
	}
	for _, c := range []struct {
		name     string
		harm     func(t *testing.T, dir string) (place string)
		lost     []string // words of the error; nil where the lock holds
		log      string   // "" for nothing
		relocked int
	}{
		{"nothing", func(*testing.T, string) string { return "" }, nil, "", 0},
		{"moved", move, []string{"was moved to", "elsewhere", "ends"}, "logdir is lost", 0},
		{"moved, without its lock file", func(t *testing.T, dir string) string {
			sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, LockFile)))
			move(t, dir)
			return ""
		}, []string{"it was moved", "no place to save"}, "logdir is lost", 0},
		{"moved, with another in its place", func(t *testing.T, dir string) string {
			to := move(t, dir)
			sessiontest.MustNoErr(t, os.Mkdir(dir, 0o777))
			return to
		}, []string{"was moved to"}, "logdir is lost", 0},
		{"deleted", func(t *testing.T, dir string) string {
			sessiontest.MustNoErr(t, os.RemoveAll(dir))
			return ""
		}, nil, "it is made again", 1},
		{"deleted, with a folder of the name that the system gives it", func(t *testing.T, dir string) string {
			sessiontest.MustNoErr(t, errors.Join(os.RemoveAll(dir), os.Mkdir(dir+" (deleted)", 0o777)))
			return ""
		}, nil, "it is made again", 1},
		{"deleted with the folder above it", func(t *testing.T, dir string) string {
			sessiontest.MustNoErr(t, os.RemoveAll(filepath.Dir(dir)))
			return ""
		}, nil, "it is made again", 1},
		{"deleted, with an empty one in its place", func(t *testing.T, dir string) string {
			sessiontest.MustNoErr(t, errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777)))
			return ""
		}, nil, "it is made again", 1},
		{"deleted, with another in its place", func(t *testing.T, dir string) string {
			sessiontest.MustNoErr(t, errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777)))
			write(t, filepath.Join(dir, "of another"))
			return ""
		}, []string{"it was deleted, and another folder has its name; this run ends, and has no place to save; if the training itself has made", "start it again"}, "logdir is lost", 0},
		{"deleted, with what servers save in its place", func(t *testing.T, dir string) string {
			sessiontest.MustNoErr(t, errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, "model.ckpt-5_temp"), 0o777)))
			write(t, filepath.Join(dir, "model.ckpt-5.index"))
			return ""
		}, nil, "it is made again", 1},
		{"deleted, with that and another file in its place", func(t *testing.T, dir string) string {
			sessiontest.MustNoErr(t, errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, "model.ckpt-5_temp"), 0o777)))
			write(t, filepath.Join(dir, "of another"))
			return ""
		}, []string{"another folder has its name"}, "logdir is lost", 0},
		{"without its lock file", func(t *testing.T, dir string) string {
			sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, LockFile)))
			return ""
		}, nil, "lock file was removed", 1},
		{"with another lock file", func(t *testing.T, dir string) string {
			name := filepath.Join(dir, LockFile)
			sessiontest.MustNoErr(t, os.Remove(name))
			write(t, name)
			return ""
		}, nil, "lock file was removed", 1},
		{"with a folder as lock file", func(t *testing.T, dir string) string {
			name := filepath.Join(dir, LockFile)
			sessiontest.MustNoErr(t, errors.Join(os.Remove(name), os.Mkdir(name, 0o777)))
			return ""
		}, []string{"is lost", "is a directory"}, "logdir is lost", 0},
		{"locked by another run", func(t *testing.T, dir string) string {
			sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, LockFile)))
			other, err := Acquire(dir, nil)
			sessiontest.MustNoErr(t, err)
			t.Cleanup(func() { other.Release() })
			return ""
		}, []string{"the lock on logdir", "has it now", "process"}, "logdir is lost", 0},
		{"cannot be looked at", func(t *testing.T, dir string) string {
			parent := filepath.Dir(dir)
			sessiontest.MustNoErr(t, os.Rename(parent, parent+".away"))
			write(t, parent)
			return ""
		}, nil, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "logs", "run")
			sessiontest.MustNoErr(t, os.MkdirAll(dir, 0o777))
			log, lines := sessiontest.NewLog()
			lock, err := Acquire(dir, log)
			sessiontest.MustNoErr(t, err)
			if lock.Dir() != dir || lock.TakenOver() {
				t.Errorf("the lock is on %s, taken over %v", lock.Dir(), lock.TakenOver())
			}
			lock.Expect(func(name string) bool { return strings.HasPrefix(name, "model.ckpt-") })
			holder := Named(dir)
			place := c.harm(t, dir)
			err = lock.Held()
			var lost *LostError
			if errors.As(err, &lost) != (c.lost != nil) || lost != nil && lost.Place != place {
				t.Fatalf("Held = %v, in place %q, want %q", err, place, c.lost)
			}
			for _, words := range c.lost {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("Held = %q, want %q", err, words)
				}
			}
			if again := lock.Held(); again != err {
				t.Errorf("Held = %v, then %v", err, again)
			}
			if c.log == "" && lines.String() != "" || !strings.Contains(lines.String(), c.log) || strings.Count(lines.String(), "\n") > 1 {
				t.Errorf("the log says %q, want %q, once", lines, c.log)
			}
			if got := lock.Relocked(); got != c.relocked {
				t.Errorf("locked again %d times, want %d", got, c.relocked)
			}
			if c.relocked > 0 {
				var locked *LockedError
				if err := Check(dir); !errors.As(err, &locked) || locked.Holder != holder {
					t.Errorf("Check = %v, want that %v has it", err, holder)
				}
			}
			sessiontest.MustNoErr(t, lock.Release())
			if c.lost == nil && c.log != "" {
				sessiontest.MustNoErr(t, Check(dir))
			}
		})
	}
}

// TestNoLock: a nil Lock is none.
func TestNoLock(t *testing.T) {
	var lock *Lock
	if err := errors.Join(lock.Held(), lock.Release()); err != nil || lock.Relocked() != 0 {
		t.Errorf("%v, locked again %d times", err, lock.Relocked())
	}
}

// TestReleaseByFile: where the file is the lock, a release removes it, unless it is another's.
func TestReleaseByFile(t *testing.T) {
	for _, c := range []struct {
		name   string
		harm   func(name string) error
		stands bool
	}{
		{"as it was", func(string) error { return nil }, false},
		{"replaced", func(name string) error { return errors.Join(os.Remove(name), os.WriteFile(name, nil, 0o666)) }, true},
		{"moved away", func(name string) error { return os.Rename(name, name+".moved") }, false},
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, LockFile)
		lock, _, err := lockByFile(name)
		sessiontest.MustNoErr(t, errors.Join(err, lock.hold(dir)))
		sessiontest.MustNoErr(t, errors.Join(c.harm(name), lock.Release()))
		if _, err := os.Stat(name); (err == nil) != c.stands {
			t.Errorf("%s: the file after the release: %v", c.name, err)
		}
	}
}

// TestTry makes files in a logdir that is deleted now and then.
func TestTry(t *testing.T) {
	gone, damage := &fs.PathError{Op: "open", Err: fs.ErrNotExist}, errors.New("damage")
	for _, c := range []struct {
		name       string
		held       error
		do         []error // of its calls
		want       error
		heldAsked  int
		doneBefore int // calls of do
	}{
		{"there", nil, []error{nil}, nil, 1, 1},
		{"lost", damage, nil, damage, 1, 0},
		{"deleted once", nil, []error{gone, nil}, nil, 2, 2},
		{"deleted each time", nil, []error{gone, gone, gone}, gone, 3, 3},
		{"another error", nil, []error{damage}, damage, 1, 1},
	} {
		asked, done := 0, 0
		err := Try(func() error { asked++; return c.held }, func() error { done++; return c.do[done-1] })
		if err != c.want || asked != c.heldAsked || done != c.doneBefore {
			t.Errorf("%s: %v after %d looks and %d tries", c.name, err, asked, done)
		}
	}
}

// TestHoldGroup: a logdir is the processes' that have inherited its lock.
func TestHoldGroup(t *testing.T) {
	dir := t.TempDir()
	first, err := HoldGroup(dir)
	if err != nil || first == nil {
		t.Fatalf("%v, %v", first, err)
	}
	var taken *GroupError
	if second, err := HoldGroup(dir); !errors.As(err, &taken) || taken.Logdir != dir || second != nil {
		t.Errorf("HoldGroup = %v, %v", second, err)
	} else if text := err.Error(); !strings.Contains(text, "not visible from here") || !strings.Contains(text, GroupFile) {
		t.Errorf("the error is %q", text)
	}
	if text := (&GroupError{Logdir: dir, PIDs: []int{7}}).Error(); !strings.Contains(text, "[7]") {
		t.Errorf("the error is %q", text)
	}
	sessiontest.MustNoErr(t, first.Close())
	again, err := HoldGroup(dir)
	sessiontest.MustNoErr(t, err)
	sessiontest.MustNoErr(t, again.Close())
	if _, err := HoldGroup(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "locking logdir for a program") {
		t.Errorf("a missing logdir: %v", err)
	}
}

// TestNotWritable has a folder in which nobody may make a file: the error says what to do.
func TestNotWritable(t *testing.T) {
	const dir = "/sys"
	if _, err := os.Stat(dir); err != nil {
		t.Skip(err)
	}
	_, acquired := Acquire(dir, nil)
	_, held := HoldGroup(dir)
	for name, err := range map[string]error{"Acquire": acquired, "HoldGroup": held} {
		if err == nil || !strings.Contains(err.Error(), "logdir /sys is not writable: ") || !strings.Contains(err.Error(), "change its permissions") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCannotBeLocked has folders that have no lock, or cannot have one.
func TestCannotBeLocked(t *testing.T) {
	dir := t.TempDir()
	missing, file := filepath.Join(dir, "missing"), filepath.Join(dir, "file")
	sessiontest.MustNoErr(t, os.WriteFile(file, nil, 0o666))
	if _, err := Acquire(missing, nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "locking logdir: ") {
		t.Errorf("Acquire of a missing folder: %v", err)
	}
	if err := Check(missing); err != nil {
		t.Errorf("Check of a missing folder: %v", err)
	}
	if err := Check(file); err == nil || !strings.Contains(err.Error(), "looking for the logdir's holder") {
		t.Errorf("Check of a file: %v", err)
	}
	if got := Named(missing); got != (Holder{}) || got.String() != "another process" {
		t.Errorf("a missing folder is held by %v", got)
	}
}
