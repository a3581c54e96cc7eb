package child

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// maxConnections bounds the programs that send reports at the same time.
const maxConnections = 64

// drainTime is how long what a program has sent before its end may take to be
// read, if something that it has started still holds the other end open.
const drainTime = 5 * time.Second

// acceptTime is how long to look for a connection after the end of the program:
// those that it made are waiting to be accepted already.
const acceptTime = 50 * time.Millisecond

// listen makes the socket for one start, in a folder that nobody else can
// enter: its path must be shorter than that of many a logdir.
func listen() (*net.UnixListener, error) {
	dir, err := os.MkdirTemp("", "trainerd-")
	if err != nil {
		return nil, fmt.Errorf("making the socket for reports: %w", err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "reports"), Net: "unix"})
	if err != nil {
		os.Remove(dir)
		return nil, fmt.Errorf("making the socket for reports: %w", err)
	}
	return ln, nil
}

// ownedListener is a socket in a folder of its own.
type ownedListener struct{ *net.UnixListener }

// Close ends the socket and removes its folder.
func (ln ownedListener) Close() error {
	err := ln.UnixListener.Close() // which removes its file
	return errors.Join(err, os.Remove(filepath.Dir(ln.Addr().String())))
}

// accept reads from all who connect until drain sets a deadline, and then from
// those who wait: on a busy machine they may have done so for long.
func (a *process) accept() {
	slots := make(chan struct{}, maxConnections)
	var last time.Time // drain has come, and this is the end for all
	for {
		conn, err := a.listener.Accept()
		drained := last.IsZero() && errors.Is(err, os.ErrDeadlineExceeded)
		if err != nil && !drained {
			return
		}
		if drained {
			last = time.Now().Add(drainTime)
		}
		if next := time.Now().Add(acceptTime); next.Before(last) {
			a.listener.SetDeadline(next)
		}
		if drained {
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		a.readers.Go(func() {
			defer func() { <-slots }()
			defer conn.Close()
			if !a.track(conn) {
				return
			}
			a.read(conn, source{parse: true})
			a.untrack(conn)
		})
	}
}
