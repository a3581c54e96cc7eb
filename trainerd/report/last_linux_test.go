package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/nobody"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// TestReadLastOfCopy has a copy of the logdir of a run that has not ended: nobody has killed that.
// Once it has ended without unlocking its logdir, nobody knows whether this one is a copy.
func TestReadLastOfCopy(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	lock, err := logdir.Acquire(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(from, logdir.LockFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, logdir.LockFile), text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if l, err := ReadLast(to); err != nil || l.Outcome != Copied || !strings.Contains(l.Text(), "copied (from "+from) {
		t.Errorf("while the run lasts: %v, %v", l, err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if l, err := ReadLast(to); err != nil || l.Outcome != Killed {
		t.Errorf("then: %v, %v", l, err)
	}
}

// TestReadLastOfUnreadableLock has a logdir whose lock file another user lets nobody read: it
// is not known whether a run has it, whatever the report of an earlier run says.
func TestReadLastOfUnreadableLock(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{JSONName: `{"outcome": "completed", "last_step": 5}`, logdir.LockFile: `{"host":"h","pid":1}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(filepath.Join(dir, logdir.LockFile), 0)); err != nil {
		t.Fatal(err)
	}
	nobody.Become(t)
	if l, err := ReadLast(dir); err != nil || l.Outcome != Unknown || !strings.Contains(l.Why, "permission denied") {
		t.Errorf("%+v, %v", l, err)
	}
}
