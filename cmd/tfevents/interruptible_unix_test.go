//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// waitingReader tells when it is read, which then waits.
type waitingReader struct {
	io.Reader
	read func()
}

func (w *waitingReader) Read(b []byte) (int, error) {
	w.read()
	return w.Reader.Read(b)
}

// TestInterruptedWait interrupts commands that wait for a standard input on which nothing
// comes, or for somebody who writes to a pipe.
func TestInterruptedWait(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "1.tfevents")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{
		{"ls", "-"}, {"cat", "-"}, {"verify", "-"}, {"export", "-"}, {"write", pipe + ".new"}, {"ls", pipe}, {"cat", pipe}, {"repair", pipe, pipe + ".new"},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		silent, end := io.Pipe()
		in := &waitingReader{silent, interrupt}
		if args[1] == pipe {
			time.AfterFunc(time.Millisecond, interrupt) // whether it waits by then does not matter
		}
		ended := make(chan int, 1)
		var said bytes.Buffer
		go func() { ended <- run(ctx, append([]string{"tfevents"}, args...), in, &said, &said) }()
		select {
		case code := <-ended:
			if code != exitInterrupted {
				t.Errorf("%v: exit code %d, %s", args, code, &said)
			}
		case <-time.After(time.Minute):
			t.Errorf("%v: an interrupt does not end it", args)
		}
		end.Close() // what was left behind ends
		if fd, err := syscall.Open(pipe, syscall.O_RDWR|syscall.O_NONBLOCK, 0); err == nil {
			_ = syscall.Close(fd)
		}
	}
}
