// Package connlimit bounds the connections of a listener, so that peers cannot use up
// the files that a process may open, and so that those who say nothing do not keep
// others waiting.
package connlimit

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long a peer may take to say something when others wait. A client sends
// its first bytes as soon as it is connected; a busy process may read them a little later.
const patience = 20 * time.Millisecond

// New returns a listener that has at most limit connections of ln open at a time. When
// there are as many, the next one takes the place of the oldest whose peer has sent
// nothing so far, or waits until one ends.
func New(ln net.Listener, limit int) net.Listener { return newListener(ln, limit) }

func newListener(ln net.Listener, limit int) *listener {
	return &listener{Listener: ln, slots: make(chan struct{}, limit), closed: make(chan struct{}), more: make(chan struct{}, 1)}
}

type listener struct {
	net.Listener
	byRequest bool          // a peer counts as silent until the server has the header of a request
	slots     chan struct{} // one for each open connection
	more      chan struct{} // has a value when another connection is silent
	closed    chan struct{}
	closing   sync.Once

	mu     sync.Mutex
	silent []*conn // the one that has been silent for longest is the first
}

// Accept returns the next connection, once there is room for it.
func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.makeRoom() {
		inner.Close()
		return nil, net.ErrClosed
	}
	c := &conn{Conn: inner, of: l}
	l.remember(c)
	return c, nil
}

// makeRoom takes a slot. It reports false if the listener is closed meanwhile.
func (l *listener) makeRoom() bool {
	for {
		select {
		case l.slots <- struct{}{}:
			return true
		default:
		}
		select {
		case l.slots <- struct{}{}:
			return true
		case <-l.closed:
			return false
		case <-l.more:
		case <-l.closeSilent():
		}
	}
}

// closeSilent closes the oldest connection whose peer has been silent for long enough.
// The channel says when to try again; nil means that all peers have sent something.
func (l *listener) closeSilent() <-chan time.Time {
	oldest, since := l.oldestSilent()
	if oldest == nil {
		return nil
	}
	left := patience - time.Since(since)
	if left <= 0 {
		oldest.Close()
	}
	return time.After(left)
}

func (l *listener) oldestSilent() (c *conn, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.silent) == 0 {
		return nil, time.Time{}
	}
	return l.silent[0], l.silent[0].since
}

// remember adds a connection to the silent ones, unless it is closed.
func (l *listener) remember(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.closed && !slices.Contains(l.silent, c) {
		c.since = time.Now()
		l.silent = append(l.silent, c)
		select {
		case l.more <- struct{}{}:
		default: // there is one already
		}
	}
}

// forget takes a connection from the silent ones, permanently if it is closed.
func (l *listener) forget(c *conn, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.closed = c.closed || closed
	if i := slices.Index(l.silent, c); i >= 0 {
		l.silent = slices.Delete(l.silent, i, i+1)
	}
}

// Close ends Accept. Connections stay open.
func (l *listener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type conn struct {
	net.Conn
	of    *listener
	heard atomic.Bool // its peer has sent something
	ended sync.Once

	since  time.Time // its peer is silent; of.mu guards this and what follows
	closed bool
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.of.byRequest && !c.heard.Swap(true) {
		c.of.forget(c, false)
	}
	return n, err
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.ended.Do(func() {
		c.of.forget(c, true)
		<-c.of.slots
	})
	return err
}
