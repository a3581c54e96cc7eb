package master

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// incarnation distinguishes this life of the server from an earlier one.
var incarnation = func() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}()

// masterSession is the session that a client's handle names.
type masterSession struct {
	rt *runtime.Session

	// Guarded by Server.mu: the connections that it was used over, and what ends
	// it when there are none.
	conns map[*conn]bool
	gone  *time.Timer

	mu        sync.Mutex
	version   int64 // of the graph
	callables map[int64]*callable
	made      int64 // callables
}

// callable is a compiled step and the names of what it is fed.
type callable struct {
	compiled *runtime.Callable
	feeds    []string
}

// newHandle returns a name for a session that nobody can guess.
func newHandle() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// find returns the session of a handle. Clients take its error as the server
// having been restarted.
func (s *Server) find(ctx context.Context, handle string) (*masterSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.sessions[handle]; ok {
		s.use(ctx, handle, found)
		return found, nil
	}
	return nil, opError(tfpb.Code_ABORTED, "Session %s is not found. The server has restarted, or the session was closed.", handle)
}

func (s *Server) createSession(ctx context.Context, req *tfpb.CreateSessionRequest) (*tfpb.CreateSessionResponse, error) {
	options := s.options.Runtime
	if req.GetConfig().GetIsolateSessionState() {
		options.Resources = nil
	}
	rt, err := runtime.New(req.GetGraphDef(), &options)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) >= s.options.MaxSessions {
		rt.Close()
		return nil, opError(tfpb.Code_RESOURCE_EXHAUSTED, "%d sessions are open already; close some, or restart the server", len(s.sessions))
	}
	handle := newHandle()
	open := &masterSession{rt: rt, conns: map[*conn]bool{}, callables: map[int64]*callable{}}
	s.sessions[handle] = open
	s.use(ctx, handle, open)
	return &tfpb.CreateSessionResponse{SessionHandle: handle}, nil
}

func (s *Server) extendSession(ctx context.Context, req *tfpb.ExtendSessionRequest) (*tfpb.ExtendSessionResponse, error) {
	found, err := s.find(ctx, req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	if found.version != req.GetCurrentGraphVersion() {
		return nil, opError(tfpb.Code_ABORTED, "Current version is %d but caller expected %d.", found.version, req.GetCurrentGraphVersion())
	}
	if err := found.rt.Extend(req.GetGraphDef()); err != nil {
		return nil, err
	}
	found.version++
	return &tfpb.ExtendSessionResponse{NewGraphVersion: found.version}, nil
}

func (s *Server) closeSession(ctx context.Context, req *tfpb.CloseSessionRequest) (*tfpb.CloseSessionResponse, error) {
	found, err := s.find(ctx, req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.sessions, req.GetSessionHandle())
	found.stopWaiting()
	s.mu.Unlock()
	return &tfpb.CloseSessionResponse{}, found.rt.Close()
}

func (s *Server) reset(context.Context, *tfpb.ResetRequest) (*tfpb.ResetResponse, error) {
	if !s.options.AllowReset {
		return nil, opError(tfpb.Code_PERMISSION_DENIED, "Reset would end every client's session and drop the variables of a training; this server does not allow it")
	}
	s.endSessions()
	s.options.Runtime.Resources.Clear()
	return &tfpb.ResetResponse{}, nil
}

// endSessions closes every session.
func (s *Server) endSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for handle, open := range s.sessions {
		open.rt.Close()
		open.stopWaiting()
		delete(s.sessions, handle)
	}
}

func (s *Server) listDevices(ctx context.Context, req *tfpb.ListDevicesRequest) (*tfpb.ListDevicesResponse, error) {
	if h := req.GetSessionHandle(); h != "" {
		if _, err := s.find(ctx, h); err != nil {
			return nil, err
		}
	}
	return &tfpb.ListDevicesResponse{LocalDevice: []*tfpb.DeviceAttributes{device()}}, nil
}

// within bounds ctx by RunOptions.timeout_in_ms, if that is set, and by what
// the server allows.
//
// A caller with a deadline is answered a little before it. gRPC resets a call
// that is late, and TensorFlow's client may take that as CANCELLED where the
// user waits for DEADLINE_EXCEEDED.
func (s *Server) within(ctx context.Context, milliseconds int64) (context.Context, context.CancelFunc) {
	limit := s.options.MaxStepTime
	if milliseconds > 0 && milliseconds < limit.Milliseconds() {
		limit = time.Duration(milliseconds) * time.Millisecond
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		limit = min(limit, left-min(left/10, 100*time.Millisecond))
	}
	return context.WithTimeout(ctx, limit)
}
