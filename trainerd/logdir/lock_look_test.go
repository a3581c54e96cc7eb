//go:build unix

package logdir

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Looking keeps neither others from looking nor needs more than to read the lock file: a killed
// run is none that runs because two commands look at it.
func TestLooksTogether(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, LockFile)
	if err := os.WriteFile(name, []byte(`{"host":"h","pid":7,"start":"2026-01-01T00:00:00Z"}`), 0o444); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := flockAs(f, unix.LOCK_SH); err != nil { // as another command that looks
		t.Skip("no flock here: ", err)
	}
	if err := Check(dir); err != nil {
		t.Errorf("a killed run, while another command looks at it: %v", err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	looked := time.AfterFunc(3*lookPause, func() { unlockClose(f) })
	defer looked.Stop()
	lock, err := Acquire(dir, nil)
	if err != nil {
		t.Fatal("a run that starts while a command looks: ", err)
	}
	defer lock.Release()
	if locked, known := lockedByOther(name); !locked || !known {
		t.Errorf("a run that has the lock: %v, known %v", locked, known)
	}
}
