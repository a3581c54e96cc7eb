package control

import (
	"net"
	"time"

	"github.com/trainerd/trainerd/internal/connlimit"
)

// Limits of a listener. A training needs file descriptors for its checkpoints, so
// peers must not be able to use them up.
const (
	maxConns     = 64 // at a time
	writeTimeout = 30 * time.Second
)

// bounded returns a listener of at most maxConns connections, each of which ends
// when its peer does not read what it has asked for.
func bounded(ln net.Listener) net.Listener {
	return connlimit.New(hurried{ln}, maxConns)
}

type hurried struct{ net.Listener }

func (l hurried) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return hurriedConn{conn}, nil
}

type hurriedConn struct{ net.Conn }

func (c hurriedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
