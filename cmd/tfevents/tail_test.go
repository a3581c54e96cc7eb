package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/tfevents"
)

// untilOutput ends a context with the first output.
type untilOutput struct {
	bytes.Buffer
	stop context.CancelFunc
}

func (w *untilOutput) Write(b []byte) (int, error) {
	defer w.stop()
	return w.Buffer.Write(b)
}

// TestTailOfOldName follows a file whose name is not UTF-8.
func TestTailOfOldName(t *testing.T) {
	dir := t.TempDir()
	w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{Host: "caf\xe9"})
	if err == nil {
		err = w.AddScalar(t.Context(), "loss", 1, 5)
	}
	if err == nil {
		err = w.Close()
	}
	files, _ := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Skip("this file system refuses such names:", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, problems := &untilOutput{stop: stop}, new(bytes.Buffer)
	run(ctx, []string{"tfevents", "tail", "-n", "1", filepath.Join(dir, files[0].Name())}, strings.NewReader(""), out, problems)
	if !strings.Contains(out.String(), "loss") {
		t.Errorf("printed %q, %q", out.String(), problems.String())
	}
}
