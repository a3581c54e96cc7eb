//go:build unix

package eventlog

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/tfevents"
)

// TestScalarsNextToPipe has a pipe named as an events file is, which nobody writes to: the look
// at the points of a logdir does not wait for it.
func TestScalarsNextToPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "events.out.tfevents.1.pipe"), 0o666); err != nil {
		t.Skip(err)
	}
	for tag := range scalars(dir, tfevents.PurgeExact) {
		t.Errorf("tag %q", tag)
	}
}
