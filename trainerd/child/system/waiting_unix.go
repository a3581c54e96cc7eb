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

// goneTime bounds the wait for one that was there a moment ago, as some systems let it go.
const goneTime = 5 * time.Second

// hasWaiting reports whether somebody has connected who is not accepted yet. Accept with a deadline
// that is over does not look, and with another one it waits.
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
