package child

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/system"
)

// maxConnections bounds the programs that send reports at the same time.
const maxConnections = 64

// drainTime is how long the reading of what a program has sent before its end may take, if a
// process that it has started still holds the other end open.
const drainTime = 5 * time.Second

// acceptRetry is how long to wait for a descriptor of this process to become free.
const acceptRetry = 50 * time.Millisecond

// addressOf returns the address of a socket, "" for none.
func addressOf(ln system.Listener) string {
	if ln == nil {
		return ""
	}
	return ln.Addr().String()
}

// closeSocket removes the socket of a start, if it has one.
func (p *process) closeSocket() {
	if p.listener != nil {
		p.listener.Close()
	}
}

// accept reads from all connections until drain sets a deadline, and then from those that are
// waiting: on a busy machine they may have waited for long. The next start waits for no others.
func (p *process) accept() {
	slots := make(chan struct{}, maxConnections)
	next, last := p.listener.Accept, time.Time{} // the end for all, once drain has come
	for last.IsZero() || time.Now().Before(last) {
		conn, err := next()
		switch {
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			time.Sleep(acceptRetry) // who has connected waits
		case last.IsZero() && errors.Is(err, os.ErrDeadlineExceeded):
			next, last = p.listener.AcceptWaiting, time.Now().Add(drainTime)
		case err != nil:
			return
		default:
			p.hear(conn, slots)
		}
	}
}

// hear reads from a new connection, unless there are too many.
func (p *process) hear(conn net.Conn, slots chan struct{}) {
	select {
	case slots <- struct{}{}:
	default:
		conn.Close()
		return
	}
	p.readers.Go(func() {
		defer func() { <-slots }()
		defer conn.Close()
		p.track(conn)
		p.read(conn, source{parse: true})
		p.untrack(conn)
	})
}
