package connlimit

import (
	"net"
	"net/http"
)

// NewHTTP is [New] for an [http.Server] whose ConnState is [Track]. There a peer counts as silent
// until the server has read the header of a request from it, and again between two requests: a
// connection that is kept open for the next one is the first to make room, and one whose header
// comes byte by byte does not keep others waiting.
func NewHTTP(ln net.Listener, limit int) net.Listener {
	l := newListener(ln, limit)
	l.byRequest = true
	return l
}

// Track is the ConnState of an [http.Server] that serves connections of [NewHTTP].
func Track(c net.Conn, state http.ConnState) {
	limited, ok := c.(*conn)
	switch {
	case !ok:
	case state == http.StateActive:
		limited.of.forget(limited, false)
	case state == http.StateIdle:
		limited.of.remember(limited)
	}
}
