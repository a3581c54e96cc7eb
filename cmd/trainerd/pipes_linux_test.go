package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPipesInLogdirs has a pipe to which nobody writes in the place of each file of the runs of an
// earlier release: no command that only looks waits for it.
func TestPipesInLogdirs(t *testing.T) {
	const runs = "../../fixtures/release-0.1.0/logs"
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.CopyFS(dir, os.DirFS(runs)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
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
		lookAtRuns(t, dir, name)
		return os.Rename(aside, name)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func lookAtRuns(t *testing.T, runs, name string) {
	t.Helper()
	dir := filepath.Dir(name)
	for _, args := range [][]string{{"ls", runs}, {"status", dir}, {"logs", dir}, {"eval", dir}, {"predict", dir, "/dev/null"}} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(t.Context(), append([]string{"trainerd"}, args...), new(bytes.Buffer), new(bytes.Buffer), new(bytes.Buffer))
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Errorf("trainerd %s waits for the pipe %s", strings.Join(args, " "), filepath.Base(name))
			os.WriteFile(name, nil, 0o666) // which ends the wait
			<-done
		}
	}
}
