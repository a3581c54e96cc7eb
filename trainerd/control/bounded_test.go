package control

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Connections that say nothing neither use up the descriptors of a training nor keep
// others waiting.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		m, _ := begun(t)
		serve(t, Options{Monitor: m, Token: "x"}, ln)
		var idle []net.Conn
		for range 3 * maxConns {
			idle = append(idle, ln.dial())
		}
		synctest.Wait()
		if n := ln.accepted(); n > maxConns+1 {
			t.Errorf("%d connections were accepted at a time, want at most %d", n, maxConns)
		}
		conn := ln.dial()
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		began := time.Now()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("a request was answered after %v", waited)
		}
		for _, c := range append(idle, conn) {
			c.Close()
		}
	})
}

// A peer that does not read what it has asked for is hung up on.
func TestPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		conn := hurriedConn{server}
		if _, err := conn.Write([]byte("x")); err == nil {
			t.Error("a write that nobody reads has succeeded")
		}
	})
}

// pipeListener accepts connections within the process.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	close func()
	count atomic.Int64
}

func newPipeListener() *pipeListener {
	done := make(chan struct{})
	return &pipeListener{conns: make(chan net.Conn, 1000), done: done, close: sync.OnceFunc(func() { close(done) })}
}

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

func (l *pipeListener) accepted() int { return int(l.count.Load()) }

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		l.count.Add(1)
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.close(); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
