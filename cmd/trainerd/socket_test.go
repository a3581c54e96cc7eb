package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// keptSocket is a keeper whose socket gives each client the letter x.
func keptSocket(t *testing.T, logdir, runtimeDir string) (*socketKeeper, *bytes.Buffer) {
	var log bytes.Buffer
	k := &socketKeeper{
		listen: func() (*control.Socket, error) { return control.ListenUnix(logdir, runtimeDir, control.SocketName) },
		log:    slog.New(slog.NewTextHandler(&log, nil)),
	}
	k.answer = func(ln net.Listener) {
		t.Cleanup(func() { ln.Close() })
		go func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				io.WriteString(conn, "x")
				conn.Close()
			}
		}()
	}
	return k, &log
}

// isAnswered reports whether a client in that folder is answered by a kept socket.
func isAnswered(logdir string) bool {
	conn, err := net.Dial("unix", filepath.Join(logdir, control.SocketName))
	if err != nil {
		return false
	}
	defer conn.Close()
	got, err := io.ReadAll(conn)
	return err == nil && string(got) == "x"
}

// The socket is made as soon as the run that had it has ended, also when that has left its
// file.
func TestSocketAfterAnother(t *testing.T) {
	for _, killed := range []bool{false, true} {
		dir := t.TempDir()
		other, err := control.ListenUnix(dir, "", control.SocketName)
		if err != nil {
			t.Fatal(err)
		}
		k, log := keptSocket(t, dir, "")
		k.look()
		k.look()
		if got := strings.Count(log.String(), "no control socket"); got != 1 || k.now != nil {
			t.Errorf("%d warnings, want 1; socket %v:\n%s", got, k.now, log)
		}
		if killed {
			other.UnixListener.Close()
		} else {
			other.Close()
		}
		k.look()
		if !isAnswered(dir) || !strings.Contains(log.String(), "control socket is made") {
			t.Errorf("killed %v: no socket is made:\n%s", killed, log)
		}
	}
}

// A socket that is deleted is made again, there or in the logdir that is made again.
func TestSocketMadeAgain(t *testing.T) {
	for _, runtimeDir := range []string{"", t.TempDir()} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		k, log := keptSocket(t, dir, runtimeDir)
		k.look()
		if err := os.Remove(filepath.Join(dir, control.SocketName)); err != nil {
			t.Fatal(err)
		}
		k.look()
		if !isAnswered(dir) {
			t.Errorf("runtime dir %q: not made again", runtimeDir)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		k.look()
		if _, err := os.Stat(dir); err == nil {
			t.Error("the logdir is made")
		}
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		k.look()
		if !isAnswered(dir) || log.Len() > 0 {
			t.Errorf("runtime dir %q: not made again in a new logdir:\n%s", runtimeDir, log)
		}
	}
}

// A logdir that is moved takes its socket along.
func TestSocketOfMovedLogdir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	k, _ := keptSocket(t, dir, "")
	k.look()
	if err := os.Rename(dir, dir+"2"); err != nil {
		t.Fatal(err)
	}
	k.look()
	if !isAnswered(dir + "2") {
		t.Error("it is not answered at its new place")
	}
}

// TestFirstFolder has the runtime folder of a job whose name has a colon, next to that of another.
func TestFirstFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "a:b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	a, both := filepath.Join(dir, "a"), filepath.Join(dir, "a:b")
	for list, want := range map[string]string{"": "", a: a, both: both, a + ":" + both: a} {
		if got := firstFolder(list); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

// A run that cannot write its logdir ends with the reason for that, and says nothing of its socket before.
func TestSocketOfARunThatFails(t *testing.T) {
	k, log := keptSocket(t, filepath.Join(t.TempDir(), "none"), "")
	k.every = time.Hour
	k.start()()
	if log.Len() > 0 || k.now != nil {
		t.Errorf("socket %v; the log has:\n%s", k.now, log)
	}
}

// The socket is looked after until the end; one that could not be made just once, or that is made in place of
// another, is not in the log, and the one before is closed.
func TestSocketIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	k, log := keptSocket(t, dir, "")
	k.look()
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	k.every = time.Millisecond
	end := k.start()
	name := filepath.Join(dir, control.SocketName)
	if !isAnswered(dir) {
		t.Error("it is not made at once")
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(time.Minute); !isAnswered(dir) && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	if end(); !isAnswered(dir) {
		t.Error("it is not made again")
	}
	before := k.now
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	k.look()
	if err := before.UnixListener.Close(); !errors.Is(err, net.ErrClosed) || before == k.now || log.Len() > 0 {
		t.Errorf("the socket before ends with %v; the log has:\n%s", err, log)
	}
}

// Each process of a job has a socket of its own.
func TestSocketName(t *testing.T) {
	for _, tt := range []struct {
		change func(c *config.Config)
		want   string
	}{
		{func(*config.Config) {}, control.SocketName},
		{func(c *config.Config) { c.Supervisor.IsChief, c.Cluster.Task = false, 3 }, control.WorkerSocketName(3)},
		{func(c *config.Config) { c.Child.Nodes, c.Child.Node = 2, 1 }, control.WorkerSocketName(1)},
		{func(c *config.Config) { c.Child.Nodes, c.Child.Node = 2, 0 }, control.SocketName},
		{func(c *config.Config) { c.Child.Nodes, c.Child.Node = 1, 1 }, control.SocketName},
	} {
		c := config.Default()
		tt.change(c)
		if got := (&service{config: c}).socketName(); got != tt.want {
			t.Errorf("of node %d of %d: %s, want %s", c.Child.Node, c.Child.Nodes, got, tt.want)
		}
	}
}

// A socket that is in its place is left alone: to make another would begin with a connection to it.
func TestSocketInItsPlace(t *testing.T) {
	k, _ := keptSocket(t, t.TempDir(), "")
	k.look()
	k.listen = func() (*control.Socket, error) {
		t.Error("another is made")
		return nil, errors.New("none")
	}
	k.look()
}

// A chief has its socket as soon as there is a logdir, which it makes.
func TestKeepSocket(t *testing.T) {
	t.Setenv("RUNTIME_DIRECTORY", "")
	c := config.Default()
	c.Logdir = filepath.Join(t.TempDir(), "run")
	answered := 0
	(&service{config: c}).keepSocket(slog.New(slog.DiscardHandler), func(ln net.Listener) {
		answered++
		ln.Close()
	})()
	if answered != 1 {
		t.Errorf("%d sockets are made", answered)
	}
}
