package tfevents

import (
	"errors"
	"os"
	"testing"

	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func TestNoopWriter(t *testing.T) {
	t.Chdir(t.TempDir())
	w := NewNoopWriter()
	mustAdd(t, w, 1, 2, 3)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.AddScalar(t.Context(), "loss", 1, 4); !errors.Is(err, tfrecord.ErrClosed) {
		t.Errorf("after Close: %v, want %v", err, tfrecord.ErrClosed)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) != 0 {
		t.Errorf("files %v, %v", files, err)
	}
}
