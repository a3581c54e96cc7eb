//go:build unix

package world

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A simNetwork joins the hosts of a cluster. As with TCP nothing that was sent is
// lost, doubled or swapped: it comes late, or the connection breaks, at one end or
// at both.
type simNetwork struct {
	mu        sync.Mutex
	rnd       *rand.Rand
	latency   time.Duration // at most
	listeners map[string]*simListener
	conns     map[*simConn]bool // the ends of all
	stalled   map[string]bool   // hosts that are cut off: nothing comes through, nobody is told
	closed    map[string]bool   // hosts that refuse connections
}

func newSimNetwork(rnd *rand.Rand, latency time.Duration) *simNetwork {
	return &simNetwork{rnd: rnd, latency: latency, listeners: map[string]*simListener{}, conns: map[*simConn]bool{},
		stalled: map[string]bool{}, closed: map[string]bool{}}
}

// listen makes a host accept connections, until the listener is closed.
func (n *simNetwork) listen(host string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &simListener{network: n, host: host, conns: make(chan net.Conn, 100), closed: make(chan struct{})}
	n.listeners[host] = l
	return l
}

// dialer returns how a host opens connections, as long as it lives.
func (n *simNetwork) dialer(from string) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		to, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		for n.isStalled(from, to) { // a SYN is sent again and again
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(time.Second):
			}
		}
		return n.connect(from, to)
	}
}

func (n *simNetwork) isStalled(hosts ...string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range hosts {
		if n.stalled[h] {
			return true
		}
	}
	return false
}

func (n *simNetwork) connect(from, to string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[to]
	if l == nil || n.closed[to] || n.closed[from] {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	there, back := newWire(n, from, to), newWire(n, from, to)
	near, far := &simConn{host: from, peer: to, in: back, out: there}, &simConn{host: to, peer: from, in: there, out: back}
	near.other, far.other = far, near
	select {
	case l.conns <- far:
		n.conns[near], n.conns[far] = true, true
		return near, nil
	default:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ETIMEDOUT} // nobody accepts
	}
}

// stall cuts a host off, or joins it again: what was sent meanwhile then arrives.
func (n *simNetwork) stall(host string, stalled bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stalled[host] = stalled
	for c := range n.conns {
		if c.host == host || c.peer == host {
			c.in.wake()
		}
	}
}

// refuse has a host refuse new connections, or take them again.
func (n *simNetwork) refuse(host string, refuses bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed[host] = refuses
}

// sever breaks the connections of a host. Ends that are half open hear nothing of
// it before they send something.
func (n *simNetwork) sever(host string, halfOpen func() bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if c.host != host {
			continue
		}
		delete(n.conns, c)
		c.in.end(syscall.ECONNRESET)
		c.out.end(syscall.ECONNRESET)
		if !halfOpen() {
			delete(n.conns, c.other)
			continue
		}
		c.other.in.reopen()
	}
}

// fall ends a host: it listens no more, and its connections break.
func (n *simNetwork) fall(host string, halfOpen func() bool) {
	n.mu.Lock()
	l := n.listeners[host]
	delete(n.listeners, host)
	n.mu.Unlock()
	n.refuse(host, true)
	n.sever(host, halfOpen)
	if l != nil {
		l.Close()
	}
}

// delay returns when something that is sent now arrives. The caller holds mu.
func (n *simNetwork) delay() time.Duration {
	if n.latency == 0 {
		return 0
	}
	return time.Duration(n.rnd.Int64N(int64(n.latency)))
}

type simListener struct {
	network *simNetwork
	host    string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *simListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *simListener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

func (l *simListener) Addr() net.Addr { return simAddr(l.host) }

type simAddr string

func (simAddr) Network() string  { return "tcp" }
func (a simAddr) String() string { return string(a) + ":2222" }

// A simConn is one end of a connection.
type simConn struct {
	host, peer string
	in, out    *wire
	other      *simConn
}

func (c *simConn) Read(p []byte) (int, error)         { return c.in.read(p) }
func (c *simConn) LocalAddr() net.Addr                { return simAddr(c.host) }
func (c *simConn) RemoteAddr() net.Addr               { return simAddr(c.peer) }
func (c *simConn) SetDeadline(t time.Time) error      { return c.in.setDeadline(t) } // there is always room to write
func (c *simConn) SetReadDeadline(t time.Time) error  { return c.in.setDeadline(t) }
func (c *simConn) SetWriteDeadline(t time.Time) error { return nil }

func (c *simConn) Write(p []byte) (int, error) {
	err := c.out.write(p)
	if err != nil {
		c.in.end(err) // an answer to a packet tells this end that the other is gone
		return 0, err
	}
	return len(p), nil
}

func (c *simConn) Close() error {
	c.out.finish()
	c.in.end(net.ErrClosed)
	n := c.in.network
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
	return nil
}

// A wire is one direction of a connection, with room for all that is sent.
type wire struct {
	network *simNetwork
	hosts   [2]string

	mu       sync.Mutex
	sent     []packet
	err      error // of reads and writes from now on
	over     bool  // nothing more is sent
	deadline time.Time
	changed  chan struct{} // closed at every change
}

type packet struct {
	due  time.Time
	data []byte
}

func newWire(n *simNetwork, from, to string) *wire {
	return &wire{network: n, hosts: [2]string{from, to}, changed: make(chan struct{})}
}

func (w *wire) write(p []byte) error {
	w.network.mu.Lock()
	due := time.Now().Add(w.network.delay())
	w.network.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if n := len(w.sent); n > 0 && due.Before(w.sent[n-1].due) {
		due = w.sent[n-1].due
	}
	w.sent = append(w.sent, packet{due, append([]byte(nil), p...)})
	w.signal()
	return nil
}

func (w *wire) read(p []byte) (int, error) {
	for {
		stalled := w.network.isStalled(w.hosts[:]...)
		w.mu.Lock()
		now := time.Now()
		var wait time.Duration = -1
		switch {
		case w.err != nil:
			w.mu.Unlock()
			return 0, w.err
		case !w.deadline.IsZero() && !now.Before(w.deadline):
			w.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(w.sent) > 0 && !stalled && !now.Before(w.sent[0].due):
			n := copy(p, w.sent[0].data)
			if w.sent[0].data = w.sent[0].data[n:]; len(w.sent[0].data) == 0 {
				w.sent = w.sent[1:]
			}
			w.mu.Unlock()
			return n, nil
		case len(w.sent) > 0 && !stalled:
			wait = w.sent[0].due.Sub(now)
		case w.over && !stalled:
			w.mu.Unlock()
			return 0, io.EOF
		}
		if !w.deadline.IsZero() && (wait < 0 || w.deadline.Sub(now) < wait) {
			wait = w.deadline.Sub(now)
		}
		changed := w.changed
		w.mu.Unlock()
		await(changed, wait)
	}
}

// await waits for a change, for so long at most if that is not negative.
func await(changed <-chan struct{}, most time.Duration) {
	if most < 0 {
		<-changed
		return
	}
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	}
}

// signal wakes who reads. The caller holds mu.
func (w *wire) signal() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *wire) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signal()
}

// end has reads and writes fail, unless they do already.
func (w *wire) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil || errors.Is(err, net.ErrClosed) {
		w.err = err
	}
	w.signal()
}

// reopen lets reads wait although the other end is gone, until the keep-alive of
// TCP notices.
func (w *wire) reopen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.sent = nil, nil
	time.AfterFunc(time.Minute, func() { w.end(syscall.ETIMEDOUT) })
}

// finish says that nothing more is sent.
func (w *wire) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.signal()
}

func (w *wire) setDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = t
	w.signal()
	return nil
}
