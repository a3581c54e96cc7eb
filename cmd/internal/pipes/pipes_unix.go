//go:build unix

// Package pipes lets a test put a pipe to which nobody writes in the place of a file, where a reader waits for ever.
package pipes

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// InPlaceOfEach calls look for each file of a copy of a folder, while a pipe is in its place.
func InPlaceOfEach(t *testing.T, folder string, look func(copied, name string)) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), filepath.Base(folder))
	if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(copied, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		aside := filepath.Join(t.TempDir(), "aside")
		if err := os.Rename(name, aside); err != nil {
			return err
		}
		if err := syscall.Mkfifo(name, 0o666); err != nil {
			t.Skip(err)
		}
		look(copied, name)
		return os.Rename(aside, name)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// MustNotWait calls run, which is described by what, and fails where that waits for the pipe.
func MustNotWait(t *testing.T, pipe, what string, run func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Errorf("%s waits for the pipe %s", what, filepath.Base(pipe))
		os.WriteFile(pipe, nil, 0o666) // which ends the wait
		<-done
	}
}
