//go:build unix

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

// TestPipesInFolders has a pipe to which nobody writes in the place of each file of the runs of an
// earlier release: no command that only looks waits for it.
func TestPipesInFolders(t *testing.T) {
	const runs = "../../fixtures/release-0.1.0/logs"
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.CopyFS(dir, os.DirFS(runs)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		whileAPipe(t, name, func() { lookAtAll(t, filepath.Dir(name), name) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// whileAPipe calls do while a pipe is in the place of a file.
func whileAPipe(t *testing.T, name string, do func()) {
	t.Helper()
	aside := filepath.Join(t.TempDir(), "aside")
	if err := os.Rename(name, aside); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(name, 0o666); err != nil {
		t.Skip(err)
	}
	do()
	if err := os.Rename(aside, name); err != nil {
		t.Fatal(err)
	}
}

func lookAtAll(t *testing.T, dir, name string) {
	t.Helper()
	prefix, _, _ := strings.Cut(name, ".manifest")
	for _, suffix := range []string{".index", ".meta", ".data-00000-of-00001"} {
		prefix = strings.TrimSuffix(prefix, suffix)
	}
	for _, args := range [][]string{
		{"ls", dir}, {"ls", "--why", dir}, {"verify", dir}, {"state", dir}, {"latest", dir}, {"gc", "-n", dir}, {"repair", "-n", dir},
		{"ls", prefix}, {"verify", prefix}, {"meta", prefix}, {"hash", prefix}, {"stat", prefix}, {"tree", prefix}, {"diff", prefix, dir}, {"ls", name}, {"meta", name},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(t.Context(), append([]string{"ckpt"}, args...), new(bytes.Buffer), new(bytes.Buffer))
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Errorf("ckpt %s waits for the pipe %s", strings.Join(args, " "), filepath.Base(name))
			os.WriteFile(name, nil, 0o666) // which ends the wait
			<-done
		}
	}
}
