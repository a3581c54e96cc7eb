//go:build unix

package eventlog

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// TestScalarsNextToPipe has a pipe named as an events file is, which nobody writes to: the look
// at the points of a logdir does not wait for it.
func TestScalarsNextToPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "events.out.tfevents.1.pipe"), 0o666); err != nil {
		t.Skip(err)
	}
	for s := range scalars(dir, tfevents.PurgeExact) {
		t.Errorf("tag %q", s.Tag)
	}
}

// TestScalarsOfOldName has the file of a host whose name is not UTF-8.
func TestScalarsOfOldName(t *testing.T) {
	dir := t.TempDir()
	w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{Host: "caf\xe9"})
	sessiontest.MustNoErr(t, err)
	if err := w.AddScalar(t.Context(), "loss", 1, 5); err != nil {
		t.Skip(err) // this file system refuses such names
	}
	if err := w.Close(); err != nil {
		t.Skip(err)
	}
	if got := superseded(dir, 3); len(got) != 1 || got["loss"] != 5 {
		t.Errorf("superseded: %v", got)
	}
}
