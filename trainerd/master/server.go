package master

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/trainerd/trainerd/internal/connlimit"
	"github.com/trainerd/trainerd/internal/grpcmethod"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// ServiceName is the name under which TensorFlow's servers register.
const ServiceName = "tensorflow.MasterService"

const (
	// maxConns bounds the connections, more wait: each takes one of the files that the
	// training needs to save. A client has one.
	maxConns = 256
	// greeting is how long a client may take to begin to speak HTTP/2.
	greeting = 10 * time.Second
)

// Options changes how a Server works. The zero value and nil are valid.
type Options struct {
	// Runtime is for the sessions that clients create. Its Resources are the
	// server's variables; nil gives the server its own.
	Runtime runtime.Options
	// MaxSessions limits the number of open sessions. 0 means 1000.
	MaxSessions int
	// SessionGrace is how long a session is kept after all connections that used
	// it have ended. The connection of an unresponsive client ends after about
	// 90 seconds. 0 means one minute.
	SessionGrace time.Duration
	// MaxRequestBytes limits a request: a graph, or the feeds of a step. 0
	// means 256 MiB.
	MaxRequestBytes int
	// MaxStepTime limits a step, including compiling it. 0 means one hour.
	MaxStepTime time.Duration
	// MaxSessionMemory limits the memory of each session's steps; it replaces
	// Runtime.MaxMemory. 0 means 4 GiB, a negative
	// number no limit.
	MaxSessionMemory int64
	// AllowReset lets a client end every session and drop the variables.
	AllowReset bool
}

// Server answers MasterService. Make one with [New].
type Server struct {
	options Options
	grpc    *grpc.Server

	mu       sync.Mutex
	sessions map[string]*masterSession
}

// New returns a server without sessions.
func New(o *Options) *Server {
	s := &Server{sessions: map[string]*masterSession{}}
	if o != nil {
		s.options = *o
	}
	if s.options.Runtime.Resources == nil {
		s.options.Runtime.Resources = &runtime.Resources{}
	}
	s.options.setDefaults()
	s.grpc = grpc.NewServer(grpc.ConnectionTimeout(greeting), grpc.MaxRecvMsgSize(s.options.MaxRequestBytes), grpc.MaxSendMsgSize(math.MaxInt32), grpc.WaitForHandlers(true),
		grpc.StatsHandler(clients{s}), grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 30 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}))
	s.grpc.RegisterService(&service, s)
	return s
}

func (o *Options) setDefaults() {
	if o.MaxSessions <= 0 {
		o.MaxSessions = 1000
	}
	if o.SessionGrace <= 0 {
		o.SessionGrace = time.Minute
	}
	if o.MaxRequestBytes <= 0 {
		o.MaxRequestBytes = 256 << 20
	}
	if o.MaxStepTime <= 0 {
		o.MaxStepTime = time.Hour
	}
	if o.MaxSessionMemory == 0 {
		o.MaxSessionMemory = 4 << 30
	}
	o.Runtime.MaxMemory, o.Runtime.MemoryOption = o.MaxSessionMemory, cmp.Or(o.Runtime.MemoryOption, "Options.MaxSessionMemory")
}

// Serve serves clients that connect to ln, until Close. It closes ln. The
// error is nil after Close.
func (s *Server) Serve(ln net.Listener) error {
	err := s.grpc.Serve(connlimit.New(ln, maxConns))
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Close ends every session and its steps, breaks the connections, and waits
// for everything that still runs.
func (s *Server) Close() error {
	s.endSessions()
	s.grpc.Stop()
	s.endSessions() // those that were being created
	return nil
}

// service lists the methods; each decodes its request and hands it over.
var service = grpc.ServiceDesc{ServiceName: ServiceName, HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{
	method("CreateSession", (*Server).createSession),
	method("ExtendSession", (*Server).extendSession),
	method("RunStep", (*Server).runStep),
	method("PartialRunSetup", (*Server).partialRunSetup),
	method("MakeCallable", (*Server).makeCallable),
	method("RunCallable", (*Server).runCallable),
	method("ReleaseCallable", (*Server).releaseCallable),
	method("ListDevices", (*Server).listDevices),
	method("CloseSession", (*Server).closeSession),
	method("Reset", (*Server).reset),
}}

// method describes a method of the service, whose errors it gives their form on
// the wire.
func method[Req, Resp any, PReq grpcmethod.Message[Req], PResp grpcmethod.Message[Resp]](name string, serve func(*Server, context.Context, PReq) (PResp, error)) grpc.MethodDesc {
	return grpcmethod.New(name, func(s *Server, ctx context.Context, req PReq) (PResp, error) {
		resp, err := serve(s, ctx, req)
		if err != nil {
			return nil, wireError(err)
		}
		return resp, nil
	})
}

// device is what the server computes on.
func device() *tfpb.DeviceAttributes {
	return &tfpb.DeviceAttributes{Name: "/job:localhost/replica:0/task:0/device:CPU:0", DeviceType: "CPU",
		MemoryLimit: 256 << 20, Incarnation: incarnation}
}
