package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
