package child

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/system"
)

// maxConnections bounds the programs that send reports at the same time.
const maxConnections = 64

// drainTime is how long what a program has sent before its end may take to be
// read, if something that it has started still holds the other end open.
const drainTime = 5 * time.Second

// acceptTime is how long to look for a connection after the end of the program:
// those that it made are waiting to be accepted already.
const acceptTime = 50 * time.Millisecond

// addressOf returns the address of a socket, "" for none.
func addressOf(ln system.Listener) string {
	if ln == nil {
		return ""
	}
	return ln.Addr().String()
}

// closeSocket removes the socket of a start, if it has one.
func (a *process) closeSocket() {
	if a.listener != nil {
		a.listener.Close()
	}
}

// accept reads from all who connect until drain sets a deadline, and then from
// those who wait: on a busy machine they may have done so for long.
func (a *process) accept() {
	slots := make(chan struct{}, maxConnections)
	var last time.Time // drain has come, and this is the end for all
	for {
		conn, err := a.listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			time.Sleep(acceptTime) // this process has no descriptor left for now, and who has connected waits
			continue
		}
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
			a.track(conn)
			a.read(conn, source{parse: true})
			a.untrack(conn)
		})
	}
}
