//go:build !unix

package system

import (
	"net"
	"time"
)

// acceptTime is how long to wait for a waiting connection: this system does not say at once that
// there is none.
const acceptTime = 50 * time.Millisecond

// AcceptWaiting implements [Listener].
func (ln ownedListener) AcceptWaiting() (net.Conn, error) {
	if err := ln.SetDeadline(time.Now().Add(acceptTime)); err != nil {
		return nil, err
	}
	return ln.Accept()
}
