package master

import (
	"context"
	"time"

	"google.golang.org/grpc/stats"
)

// conn is the connection of a client.
type conn struct{ open bool } // guarded by Server.mu

type connKey struct{}

// clients watches the connections of a server: a session whose clients are all
// gone is ended after a while. It implements stats.Handler.
type clients struct{ s *Server }

func (c clients) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connKey{}, &conn{open: true})
}

func (c clients) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, ended := s.(*stats.ConnEnd); !ended {
		return
	}
	if of, ok := ctx.Value(connKey{}).(*conn); ok {
		c.s.connEnded(of)
	}
}

func (c clients) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (c clients) HandleRPC(context.Context, stats.RPCStats)                       {}

// connEnded begins to wait for the clients of the sessions that were used over
// a connection only.
func (s *Server) connEnded(of *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.open = false
	for handle, open := range s.sessions {
		if open.conns[of] {
			delete(open.conns, of)
			s.expect(handle, open)
		}
	}
}

// use records the connection over which a session is used. The caller holds s.mu.
func (s *Server) use(ctx context.Context, handle string, open *masterSession) {
	of, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return
	}
	if !of.open {
		s.expect(handle, open) // a request that outlived its connection
		return
	}
	open.conns[of] = true
	open.stopWaiting()
}

// stopWaiting lets the session stay. The caller holds Server.mu.
func (s *masterSession) stopWaiting() {
	if s.gone != nil {
		s.gone.Stop()
		s.gone = nil
	}
}

// expect ends a session that nobody is connected for, unless someone comes in
// time: connections break and are made again. The caller holds s.mu.
func (s *Server) expect(handle string, open *masterSession) {
	if len(open.conns) > 0 || open.gone != nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(s.options.SessionGrace, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if open.gone != timer { // someone has come, or the session was closed
			return
		}
		delete(s.sessions, handle)
		open.rt.Close()
	})
	open.gone = timer
}
