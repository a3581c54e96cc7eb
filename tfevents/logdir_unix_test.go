//go:build unix

package tfevents

import (
	"context"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
)

// TestPipesAreNoEventsFiles has pipes, sockets and devices named as events files are, and
// links to them: to open a pipe without a writer would wait for ever.
func TestPipesAreNoEventsFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // the path of a socket must be short
	sound := "events.out.tfevents.1"
	if err := os.WriteFile(sound, eventsFile(t, losses(1, 1, 5)...).Data, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo("pipe.tfevents", 0o666); err != nil {
		t.Skip(err)
	}
	listener, err := net.Listen("unix", "socket.tfevents")
	if err != nil {
		t.Skip(err)
	}
	defer listener.Close()
	for link, to := range map[string]string{"a.tfevents": "pipe.tfevents", "b.tfevents": os.DevNull, "c.tfevents": sound} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := FindRuns(DirFS(dir), ".")
	if err != nil || len(runs) != 1 || !slices.Equal(runs[0].Files, []string{"c.tfevents", sound}) {
		t.Errorf("%q, %v", runs, err)
	}
	if err := os.Remove("c.tfevents"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := 0
	for e, err := range Follow(ctx, DirFS(dir), ".", nil) {
		if err != nil {
			t.Fatal(err)
		}
		if events++; e.GetStep() == 5 {
			cancel()
		}
	}
	if events != 6 {
		t.Errorf("%d events are followed, want the version and 5 values", events)
	}
}
