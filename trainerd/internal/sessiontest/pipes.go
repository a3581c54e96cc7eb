package sessiontest

import (
	"context"
	"net"
	"sync"
)

// Pipes is a listener in memory, for the clock of testing/synctest.
type Pipes struct {
	dialed chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipes returns a listener that nobody has dialed yet.
func NewPipes() *Pipes { return &Pipes{dialed: make(chan net.Conn), closed: make(chan struct{})} }

// Dial connects to the listener, whatever address it is given.
func (p *Pipes) Dial(ctx context.Context, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.dialed <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept returns the next connection.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialed:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial.
func (p *Pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr returns an address that says nothing.
func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{} }
