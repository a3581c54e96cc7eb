package control

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/logdir"
)

// Nobody waits without end for a process that was stopped: its socket takes
// connections, and does not answer.
func TestSilent(t *testing.T) {
	dir := t.TempDir()
	ln, err := ListenUnix(dir, "", SocketName)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	lock, err := logdir.Acquire(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	client := NewClient(dir)
	defer client.Close()
	client.wait = 10 * time.Millisecond
	for name, ask := range map[string]func() error{
		"status": func() error { _, err := client.Status(t.Context()); return err },
		"save":   func() error { _, err := client.Save(t.Context()); return err },
		"stop":   func() error { _, err := client.Do(t.Context(), "stop", nil); return err },
		"logs":   func() error { return client.Logs(t.Context(), 1, false, func([]byte) error { return nil }) },
	} {
		err := ask()
		var silent *SilentError
		if !errors.As(err, &silent) || silent.Holder != logdir.Named(dir) || silent.Holder.PID == 0 {
			t.Errorf("%s: %v", name, err)
		} else if text := err.Error(); !strings.Contains(text, filepath.Base(dir)) || !strings.Contains(text, "kill -CONT") {
			t.Errorf("%s says %q", name, text)
		}
	}
}

// A logdir that is locked has a training, also where nothing listens at its socket.
func TestUnreachable(t *testing.T) {
	dir := t.TempDir()
	lock, err := logdir.Acquire(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := NewClient(dir)
	defer client.Close()
	var there *UnreachableError
	for node, socket := range []string{SocketName, WorkerSocketName(1)} { // the chief may be on another host
		client := NewChiefClient(dir, node)
		defer client.Close()
		if _, err := client.Status(t.Context()); !errors.As(err, &there) || there.Holder != logdir.Named(dir) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), socket) {
			t.Errorf("the chief of a locked logdir, node %d: %v", node, err)
		}
	}
	var gone *NotRunningError
	for _, worker := range []*Client{NewFirstNodeClient(dir), NewWorkerClient(dir, 1)} {
		defer worker.Close()
		if _, err := worker.Status(t.Context()); !errors.As(err, &gone) {
			t.Errorf("a worker that does not run: %v", err) // the lock is the chief's
		}
	}
	lock.Release()
	if _, err := client.Status(t.Context()); !errors.As(err, &gone) {
		t.Errorf("nobody has the logdir: %v", err)
	}
}
