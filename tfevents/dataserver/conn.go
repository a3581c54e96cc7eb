package dataserver

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
)

// conn is the connection of a client, with the large answers that it has not read yet.
type conn struct {
	net.Conn

	mu     sync.Mutex
	closed bool
	unread map[*slot]struct{}
}

// add reports false if the connection is closed: nobody will read the answer.
func (c *conn) add(t *slot) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.unread[t] = struct{}{}
	}
	return !c.closed
}

func (c *conn) remove(t *slot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unread, t)
}

// Close also ends the slots of answers that were not read: gRPC forgets them.
func (c *conn) Close() error {
	err := c.Conn.Close()
	for _, t := range c.shut() {
		t.end()
	}
	return err
}

// shut returns the answers that were not read.
func (c *conn) shut() (unread []*slot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for t := range c.unread {
		unread = append(unread, t)
	}
	return unread
}

// handshake lets a call find its connection: there is no encryption.
type handshake struct {
	credentials.TransportCredentials
}

func newHandshake() credentials.TransportCredentials { return handshake{insecure.NewCredentials()} }

func (handshake) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c := &conn{Conn: raw, unread: make(map[*slot]struct{})}
	return c, c, nil
}

// AuthType makes a conn a credentials.AuthInfo.
func (c *conn) AuthType() string { return "insecure" }

// connOf returns the connection of a call.
func connOf(ctx context.Context) *conn {
	p, _ := peer.FromContext(ctx)
	return p.AuthInfo.(*conn)
}
