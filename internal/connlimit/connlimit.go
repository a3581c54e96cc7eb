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
func New(ln net.Listener, limit int) net.Listener {
	return &listener{Listener: ln, slots: make(chan struct{}, limit), closed: make(chan struct{})}
}

type listener struct {
	net.Listener
	slots   chan struct{} // one for each open connection
	closed  chan struct{}
	closing sync.Once

	mu     sync.Mutex
	silent []*conn // whose peers have sent nothing yet, the oldest first
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
	c := &conn{Conn: inner, of: l, accepted: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = append(l.silent, c)
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
		case <-l.closeSilent():
		}
	}
}

// closeSilent closes the oldest connection whose peer has been silent for long enough.
// The channel says when to try again; nil means that all peers have sent something.
func (l *listener) closeSilent() <-chan time.Time {
	oldest := l.oldestSilent()
	if oldest == nil {
		return nil
	}
	left := patience - time.Since(oldest.accepted)
	if left <= 0 {
		oldest.Close()
	}
	return time.After(left)
}

func (l *listener) oldestSilent() *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.silent) == 0 {
		return nil
	}
	return l.silent[0]
}

// forget takes a connection from the silent ones.
func (l *listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
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
	of       *listener
	accepted time.Time
	heard    atomic.Bool // its peer has sent something
	ended    sync.Once
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard.Swap(true) {
		c.of.forget(c)
	}
	return n, err
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.ended.Do(func() {
		c.of.forget(c)
		<-c.of.slots
	})
	return err
}
