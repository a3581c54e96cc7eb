package connlimit

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// Peers that say nothing give way, the oldest first; those that have said something stay,
// however silent they are afterwards.
func TestSilentPeersGiveWay(t *testing.T) {
	test(t, 3, func(ln *pipes) {
		first, talker, third := ln.dial(), ln.dial(), ln.dial()
		talker.Write([]byte("x"))
		began := time.Now()
		fourth := ln.dial()
		wantOpen(t, "the oldest", first, false)
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("another peer waited for %v", waited)
		}
		fourth.Write([]byte("x"))
		ln.dial().Write([]byte("x"))
		wantOpen(t, "the next one that has said nothing", third, false)

		fifth := ln.dial() // for which there is no room
		time.Sleep(time.Hour)
		wantOpen(t, "the oldest that has said something", talker, true)
		wantOpen(t, "one that has said something", fourth, true)
		if n := ln.open(); n != 3 {
			t.Errorf("%d connections are open, want 3", n)
		}
		talker.Close()
		fifth.Write([]byte("x")) // returns when it is read
	})
}

// A peer has time for its first bytes.
func TestPatience(t *testing.T) {
	test(t, 1, func(ln *pipes) {
		first := ln.dial()
		ln.dial()
		time.Sleep(patience / 2)
		first.Write([]byte("x"))
		time.Sleep(time.Hour)
		wantOpen(t, "the first", first, true)
	})
}

// Close ends an Accept that waits for room, and closes the connection that it has.
func TestCloseWhileFull(t *testing.T) {
	test(t, 1, func(ln *pipes) {
		ln.dial().Write([]byte("x"))
		waiting := ln.dial()
		synctest.Wait()
		for range 2 {
			if err := ln.limited.Close(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		wantOpen(t, "the connection that waited", waiting, false)
		if !errors.Is(ln.err, net.ErrClosed) {
			t.Errorf("Accept: %v, want %v", ln.err, net.ErrClosed)
		}
	})
}

// test runs f with a server that reads from all whom it has accepted.
func test(t *testing.T, limit int, f func(*pipes)) {
	synctest.Test(t, func(t *testing.T) {
		ln := &pipes{conns: make(chan net.Conn, 10), done: make(chan struct{}), dialled: map[net.Conn]bool{}}
		ln.limited = New(ln, limit)
		go ln.serve()
		f(ln)
		ln.limited.Close()
		for conn := range ln.dialled {
			conn.Close()
		}
	})
}

// wantOpen asks the peer's end: it can wait for bytes while the other end is open.
func wantOpen(t *testing.T, name string, conn net.Conn, want bool) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(time.Second))
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	if got := errors.As(err, &timeout) && timeout.Timeout(); got != want {
		t.Errorf("%s: open is %v, want %v", name, got, want)
	}
}

// pipes is a listener for peers in the process.
type pipes struct {
	limited net.Listener
	conns   chan net.Conn
	done    chan struct{}
	dialled map[net.Conn]bool
	err     error // of Accept
}

func (p *pipes) serve() {
	for {
		conn, err := p.limited.Accept()
		if err != nil {
			p.err = err
			return
		}
		go func() {
			defer conn.Close()
			for b := make([]byte, 1); err == nil; {
				_, err = conn.Read(b)
			}
		}()
	}
}

// dial connects a peer, as long after the one before as a slow network takes.
func (p *pipes) dial() net.Conn {
	time.Sleep(time.Millisecond)
	client, server := net.Pipe()
	p.dialled[client] = true
	p.conns <- server
	return client
}

func (p *pipes) open() int { return len(p.limited.(*listener).slots) }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
