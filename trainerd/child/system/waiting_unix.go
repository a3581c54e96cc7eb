//go:build unix

package system

import (
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// AcceptWaiting implements [Listener].
func (ln ownedListener) AcceptWaiting() (net.Conn, error) {
	waits, err := hasWaiting(ln.UnixListener)
	if err != nil {
		return nil, err
	}
	if !waits {
		return nil, os.ErrDeadlineExceeded
	}
	if err := ln.SetDeadline(time.Now().Add(goneTime)); err != nil {
		return nil, err
	}
	return ln.Accept()
}

// goneTime bounds the wait for a connection that was there a moment ago, because some systems may
// drop it.
const goneTime = 5 * time.Second

// hasWaiting reports whether a connection waits to be accepted. Accept does not check that when its
// deadline has passed, and waits when it has not.
func hasWaiting(ln *net.UnixListener) (waits bool, err error) {
	raw, err := ln.SyscallConn()
	if err != nil {
		return false, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		look := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for failed = unix.EINTR; failed == unix.EINTR; {
			_, failed = unix.Poll(look, 0)
		}
		waits = look[0].Revents != 0
	})
	return waits, errors.Join(err, failed)
}
