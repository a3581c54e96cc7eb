package control

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/trainerd/logdir"
)

// TestCopiedLogdir has a copy of the logdir of a training whose socket is in a runtime
// directory: the link in the copy leads to that training, which is not the copy's. A run in the
// copy gets a socket of its own.
func TestCopiedLogdir(t *testing.T) {
	original, link := t.TempDir(), t.TempDir()
	ln, err := ListenUnix(original, t.TempDir(), SocketName)
	if err != nil {
		t.Fatal(err)
	}
	target, err := os.Readlink(filepath.Join(original, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	m, job := begun(t)
	m.status.Logdir, m.status.PID = original, os.Getpid()
	serve(t, Options{Monitor: m}, ln)
	for _, name := range []string{SocketName, WorkerSocketName(1)} {
		if err := os.Symlink(target, filepath.Join(link, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, client := range []*Client{NewClient(link), NewFirstNodeClient(link), NewWorkerClient(link, 1)} {
		defer client.Close()
		var gone *NotRunningError
		if _, err := client.Do(t.Context(), "pause", nil); !errors.As(err, &gone) || gone.Logdir != link {
			t.Errorf("in the copy: %v", err)
		}
	}
	if len(job.asked) > 0 {
		t.Errorf("the original was asked %q", job.asked)
	}
	checkOtherPath(t, link)
	own, err := ListenUnix(link, "", SocketName)
	if err != nil {
		t.Fatalf("a run in the copy: %v", err)
	}
	own.Close()
	client := NewClient(original)
	defer client.Close()
	if _, err := client.Status(t.Context()); err != nil {
		t.Errorf("the original: %v", err)
	}
}

// checkOtherPath has the training's own lock in a logdir, which it may know by another path, as
// in a container.
func checkOtherPath(t *testing.T, dir string) {
	t.Helper()
	lock, err := logdir.Acquire(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	client := NewClient(dir)
	defer client.Close()
	if _, err := client.Status(context.Background()); err != nil {
		t.Errorf("the training's logdir by another path: %v", err)
	}
}
