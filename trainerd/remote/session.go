package remote

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/ctxmutex"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Session is a session on a server. Its variables are the server's: they are
// shared with its other sessions and stay when it is closed.
//
// It is not a [session.VariableStore]: checkpoints go through the save and
// restore ops of its graph, on the disk of the servers, see [trainerd.Saver].
// [NewStore] turns it into one.
type Session struct {
	client  *Client
	handle  string
	timeout time.Duration // of each call, 0: none

	ctx       context.Context // done when the session is closed
	cancel    context.CancelCauseFunc
	closeOnce sync.Once
	closeErr  error

	extending ctxmutex.Mutex // during ExtendSession

	gate *gate // of steps that change variables

	mu      sync.Mutex // guards what follows
	version int64      // of the graph
	graph   *graphIndex
	writers *writers
	gated   map[string]bool // by names of a step: whether it changes variables
}

var _ session.StepHolder = (*Session)(nil)

// NewSession creates a session with a graph, which may be empty or nil, and
// configures it; a nil config is TensorFlow's default. Neither is kept.
//
// The server first waits, without limit, until every server of its cluster
// answers; use ctx to limit that, and config.DeviceFilters to leave out
// servers that are not needed. If ctx ends meanwhile, the server may still
// make the session and keep it until it is restarted.
func (c *Client) NewSession(ctx context.Context, graph *tfpb.GraphDef, config *tfpb.ConfigProto) (*Session, error) {
	index, timeout := newGraphIndex(graph), milliseconds(config.GetOperationTimeoutInMs())
	ctx, cancel := withTimeout(ctx, timeout)
	defer cancel()
	req := &tfpb.CreateSessionRequest{GraphDef: graph, Config: config, Target: c.target}
	resp := &tfpb.CreateSessionResponse{}
	if err := c.invoke(ctx, "CreateSession", req, resp, index.ops); err != nil {
		return nil, waitingForCluster(err)
	}
	s := &Session{client: c, handle: resp.GetSessionHandle(), timeout: timeout,
		version: resp.GetGraphVersion(), graph: index,
		gate: newGate(), writers: newWriters(graph), gated: make(map[string]bool)}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s, nil
}

// waitingForCluster says why a CreateSession that timed out may have done so.
func waitingForCluster(err error) error {
	var op *session.OpError
	if !errors.As(err, &op) || op.Code != tfpb.Code_DEADLINE_EXCEEDED {
		return err
	}
	e := *op
	e.Message += ": no answer to CreateSession; the server waits for all servers of its cluster that the device filters admit"
	return &e
}

// Handle returns the name that the server gave the session.
func (s *Session) Handle() string { return s.handle }

// Target returns the server's address as grpc://host:port.
func (s *Session) Target() string { return s.client.target }

// GraphVersion returns how often the graph was extended.
func (s *Session) GraphVersion() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Run implements [session.Session]: it is one step. The name of a resource
// variable means its value, as in TensorFlow's Python, if the graph has an
// op that reads it. A step that changes variables waits while they are saved;
// see HoldSteps.
func (s *Session) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	out, _, err := s.RunWithOptions(ctx, nil, feeds, fetches, targets)
	return out, err
}

// RunWithOptions is Run with options, such as a trace level, and returns the
// metadata that the server recorded about the step. A nil o is the default.
// The client enforces o.TimeoutInMs, as TensorFlow's does, because the server
// does not.
func (s *Session) RunWithOptions(ctx context.Context, o *tfpb.RunOptions, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) (
	[]*ckptfmt.Tensor, *tfpb.RunMetadata, error) {
	leave, err := s.enter(ctx, s.changes(feedNames(feeds), fetches, targets))
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	return s.runStep(ctx, &tfpb.RunStepRequest{Options: o}, feeds, fetches, targets)
}

// RunWhileHeld is Run without waiting while steps are held: for who holds them, and for steps that
// change nothing of the model.
func (s *Session) RunWhileHeld(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	out, _, err := s.runStep(ctx, &tfpb.RunStepRequest{}, feeds, fetches, targets)
	return out, err
}

// enter waits while variables are saved, before a step that changes them. The
// caller calls leave after the step.
func (s *Session) enter(ctx context.Context, changes bool) (leave func(), err error) {
	if !changes {
		return func() {}, nil
	}
	if err := s.gate.enter(ctx); err != nil {
		return nil, s.client.contextError(ctx, "waiting for a copy of the variables")
	}
	return s.gate.leave, nil
}

// changes is writers.step, remembered.
func (s *Session) changes(feeds, fetches, targets []string) bool {
	key := strings.Join(feeds, "\x00") + "\x01" + strings.Join(fetches, "\x00") + "\x01" + strings.Join(targets, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	changes, ok := s.gated[key]
	if !ok {
		changes = s.writers.step(feeds, fetches, targets)
		s.gated[key] = changes
	}
	return changes
}

// HoldSteps implements [session.StepHolder]. It holds steps, callables and parts of
// a [PartialRun], but not the steps of other clients.
func (s *Session) HoldSteps(ctx context.Context) (release func(), err error) {
	if err := s.gate.exclude(ctx); err != nil {
		return nil, s.client.contextError(ctx, "waiting for steps to end before variables are copied")
	}
	return sync.OnceFunc(s.gate.open), nil
}

// runStep completes req and runs it.
func (s *Session) runStep(ctx context.Context, req *tfpb.RunStepRequest, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) (
	[]*ckptfmt.Tensor, *tfpb.RunMetadata, error) {
	names := feedNames(feeds)
	graph := s.index()
	st, err := newStep(graph, names, fetches, targets)
	if err != nil {
		return nil, nil, err
	}
	fed := make(map[string]*ckptfmt.Tensor, len(names))
	for i, name := range st.feeds {
		t := feeds[names[i]]
		p, err := encode(name, t)
		if err != nil {
			return nil, nil, err
		}
		fed[name] = t
		req.Feed = append(req.Feed, &tfpb.NamedTensorProto{Name: name, Tensor: p})
	}
	req.Fetch, req.Target = st.fetches, st.targets
	resp := &tfpb.RunStepResponse{}
	if !st.idle() || req.PartialRunHandle != "" {
		if err := s.callRunStep(ctx, req, resp, graph.ops); err != nil {
			return nil, nil, err
		}
	} else if err := s.open(ctx); err != nil {
		return nil, nil, err
	}
	got := make(map[string]*tfpb.TensorProto, len(resp.GetTensor()))
	for _, nt := range resp.GetTensor() {
		got[nt.GetName()] = nt.GetTensor()
	}
	out, err := st.results(func(name string) (*ckptfmt.Tensor, error) {
		if t, ok := fed[name]; ok {
			return t, nil
		}
		if t, ok := got[name]; ok {
			return decode(name, t)
		}
		return nil, missing(name)
	})
	return out, resp.GetMetadata(), err
}

// callRunStep sends a RunStep. Its errors come in the body, where the server
// does not shorten them.
func (s *Session) callRunStep(ctx context.Context, req *tfpb.RunStepRequest, resp *tfpb.RunStepResponse, ops opTypes) error {
	req.SessionHandle = s.handle
	req.StoreErrorsInResponseBody = true
	req.RequestId = requestID()
	ctx, cancel := withTimeout(ctx, milliseconds(req.GetOptions().GetTimeoutInMs()))
	defer cancel()
	ctx, done := s.bound(ctx)
	defer done()
	if err := s.client.invoke(ctx, "RunStep", req, resp, ops); err != nil {
		return err
	}
	if code := tfpb.Code(resp.GetStatusCode()); code != tfpb.Code_OK {
		return s.client.callError(ctx, "RunStep", code, resp.GetStatusErrorMessage(), ops)
	}
	return nil
}

// Extend adds nodes to the graph. If one of them already exists, the error is
// INVALID_ARGUMENT.
//
// If ctx ends or the connection breaks during the call, it is unknown whether
// the nodes were added. If they were, every later Extend fails with
// FAILED_PRECONDITION, and the graph should be put into a new session.
func (s *Session) Extend(ctx context.Context, nodes *tfpb.GraphDef) error {
	if s.extending.Lock(ctx) != nil {
		return s.client.contextError(ctx, "")
	}
	defer s.extending.Unlock()
	s.mu.Lock()
	version, index := s.version, s.graph.extended(nodes.GetNode())
	s.mu.Unlock()
	req := &tfpb.ExtendSessionRequest{SessionHandle: s.handle, GraphDef: nodes, CurrentGraphVersion: version}
	resp := &tfpb.ExtendSessionResponse{}
	if err := s.call(ctx, "ExtendSession", req, resp, index.ops); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.graph = resp.GetNewGraphVersion(), index
	s.writers.add(nodes)
	clear(s.gated) // a name may have got its node only now
	return nil
}

// ListDevices returns the devices that the session may use, including those of
// all servers.
func (s *Session) ListDevices(ctx context.Context) ([]*tfpb.DeviceAttributes, error) {
	resp := &tfpb.ListDevicesResponse{}
	if err := s.call(ctx, "ListDevices", &tfpb.ListDevicesRequest{SessionHandle: s.handle}, resp, nil); err != nil {
		return nil, err
	}
	return append(resp.GetLocalDevice(), resp.GetRemoteDevice()...), nil
}

// Close ends the session. Calls in flight return with CANCELLED, and so do
// later ones. It returns within Options.CloseTimeout, even if the server does
// not answer; that is an error, because the session may be left there. A
// session that the server has lost is closed without error. Closing again
// returns the same result.
func (s *Session) Close() error {
	s.closeOnce.Do(func() {
		s.cancel(errSessionClosed)
		ctx, cancel := context.WithTimeout(context.Background(), s.client.closeTimeout)
		defer cancel()
		err := s.client.invoke(ctx, "CloseSession", &tfpb.CloseSessionRequest{SessionHandle: s.handle}, &tfpb.CloseSessionResponse{}, nil)
		if !isCode(err, tfpb.Code_ABORTED) {
			s.closeErr = err
		}
	})
	return s.closeErr
}

// call calls a method for the session.
func (s *Session) call(ctx context.Context, method string, req, resp proto.Message, ops opTypes) error {
	ctx, done := s.bound(ctx)
	defer done()
	return s.client.invoke(ctx, method, req, resp, ops)
}

// bound returns a ctx that also ends when the session is closed or the call
// takes longer than the session's calls may. The caller calls done after the
// call.
func (s *Session) bound(ctx context.Context) (_ context.Context, done func()) {
	ctx, stop := withTimeout(ctx, s.timeout)
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(s.ctx, func() { cancel(errSessionClosed) })
	return ctx, func() {
		detach()
		cancel(nil)
		stop()
	}
}

// withTimeout is context.WithTimeout, where zero is no timeout.
func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// milliseconds returns n of them, or as many as a Duration holds.
func milliseconds(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// open fails when the session is closed or ctx has ended.
func (s *Session) open(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return errSessionClosed
	}
	if ctx.Err() != nil {
		return s.client.contextError(ctx, "")
	}
	return nil
}

func (s *Session) index() *graphIndex {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph
}
