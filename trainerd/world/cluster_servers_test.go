//go:build unix

package world

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/grpcmethod"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A simCluster is a model of TensorFlow's servers, as doc/cluster.md and package
// remote describe them. What a server's devices hold, its variables, queues and
// accumulators, is lost with its process and with nothing else; the sessions that a
// server is the master of are lost with that. A session that has lost one of its
// servers stays lost. A step needs the servers of its own ops alone, so that some of
// them are made while another server is away.
//
// All of it computes in one embedded runtime. Each node has a container with the name
// of its server and the number of its life, which nobody else asks for.
type simCluster struct {
	network   *simNetwork
	resources runtime.Resources
	stepTime  time.Duration
	runID     string // the file

	// Set before servers start: what looks at the model after each step, and defects,
	// which change what is asked and what is answered.
	observe func(o *tfSession, req *tfpb.RunStepRequest, began time.Time)
	alter   func(*tfSession, *tfpb.RunStepRequest)
	spoil   func(*tfSession, *tfpb.RunStepRequest, *tfpb.RunStepResponse, error) (*tfpb.RunStepResponse, error)

	mu      sync.Mutex
	rnd     *rand.Rand
	servers map[string]*tfServer // by device
	changed chan struct{}        // closed whenever a server is another
}

// A tfServer is one of a cluster, perhaps without a process.
type tfServer struct {
	*simCluster
	device, host string

	// Guarded by mu of the cluster.
	life     int
	alive    context.Context // of the process; nil for none
	die      context.CancelCauseFunc
	frozen   bool
	sessions map[string]*tfSession
	made     int

	grpc    *grpc.Server
	serving sync.WaitGroup
}

// A tfSession is a session of a master.
type tfSession struct {
	*runtime.Session
	master *tfServer
	lives  map[string]int // of the servers, when it was made
	nodes  map[string]*tfpb.NodeDef
	needs  map[string][]string // devices, by what is run
}

func newSimCluster(network *simNetwork, rnd *rand.Rand, ps, workers int, stepTime time.Duration) *simCluster {
	c := &simCluster{network: network, rnd: rnd, stepTime: stepTime, servers: map[string]*tfServer{}, changed: make(chan struct{})}
	for job, n := range map[string]int{"ps": ps, "worker": workers} {
		for task := range n {
			s := &tfServer{simCluster: c, device: fmt.Sprintf("/job:%s/task:%d", job, task), host: fmt.Sprint(job, task)}
			c.servers[s.device] = s
		}
	}
	return c
}

var masterService = grpc.ServiceDesc{ServiceName: "tensorflow.MasterService", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{
	grpcmethod.New("CreateSession", (*tfServer).createSession),
	grpcmethod.New("ExtendSession", (*tfServer).extendSession),
	grpcmethod.New("RunStep", (*tfServer).runStep),
	grpcmethod.New("CloseSession", (*tfServer).closeSession),
}}

// start starts the server's process.
func (s *tfServer) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life++
	s.alive, s.die = context.WithCancelCause(context.Background())
	s.sessions = map[string]*tfSession{}
	s.grpc = grpc.NewServer(grpc.MaxRecvMsgSize(1 << 30))
	s.grpc.RegisterService(&masterService, s)
	s.network.refuse(s.host, false)
	ln, server := s.network.listen(s.host), s.grpc
	s.serving.Go(func() { server.Serve(ln) })
	s.tell()
}

// kill ends the server's process.
func (s *tfServer) kill(halfOpen func() bool) {
	s.network.fall(s.host, halfOpen)
	s.mu.Lock()
	if s.alive == nil {
		s.mu.Unlock()
		return
	}
	s.die(errLost)
	s.alive, s.frozen = nil, false
	sessions, server := s.sessions, s.grpc
	s.sessions = nil
	s.tell()
	s.mu.Unlock()
	for _, open := range sessions {
		open.Session.Close()
	}
	server.Stop()
	s.serving.Wait()
	s.network.stall(s.host, false)
}

// freeze stops the server's process, or lets it continue.
func (s *tfServer) freeze(frozen bool) {
	s.network.stall(s.host, frozen)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = frozen
	s.tell()
}

// tell wakes who waits for a server. The caller holds mu.
func (c *simCluster) tell() {
	close(c.changed)
	c.changed = make(chan struct{})
}

var errLost = errors.New("the server's process was killed")

// await waits until servers answer. It fails if one of them has another life than a
// session knows; nil lives take any.
func (c *simCluster) await(ctx context.Context, devices []string, lives map[string]int) error {
	for {
		c.mu.Lock()
		waits, changed := false, c.changed
		for _, d := range devices {
			s := c.servers[d]
			if lives != nil && (s.alive == nil || s.life != lives[d]) {
				c.mu.Unlock()
				return s.lost()
			}
			waits = waits || s.frozen || s.alive == nil
		}
		c.mu.Unlock()
		if !waits {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lost is what a master says of a server that its session has lost.
func (s *tfServer) lost() error {
	from := "From " + strings.Replace(s.device, "/task", "/replica:0/task", 1) + ":\n"
	if s.alive == nil {
		return status.Error(codes.Unavailable, from+"failed to connect to all addresses")
	}
	return status.Error(codes.Aborted, from+"Graph handle is not found: 0000000000000001. Possibly, this worker just restarted.")
}

func (s *tfServer) createSession(ctx context.Context, req *tfpb.CreateSessionRequest) (*tfpb.CreateSessionResponse, error) {
	filters := req.GetConfig().GetDeviceFilters()
	needs := []string{s.device}
	for _, d := range slices.Sorted(maps.Keys(s.servers)) {
		if len(filters) == 0 || slices.ContainsFunc(filters, func(f string) bool { return strings.HasPrefix(d, f) }) {
			needs = append(needs, d)
		}
	}
	if err := s.await(ctx, needs, nil); err != nil {
		return nil, wireError(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive == nil {
		return nil, status.Error(codes.Unavailable, "the process has ended")
	}
	made := &tfSession{master: s, lives: map[string]int{}, nodes: map[string]*tfpb.NodeDef{}, needs: map[string][]string{}}
	for _, d := range needs {
		made.lives[d] = s.servers[d].life
	}
	made.place(req.GetGraphDef())
	req.GraphDef.Node = append(req.GraphDef.Node, stepReaders()...)
	rt, err := runtime.New(req.GetGraphDef(), &runtime.Options{Resources: &s.resources})
	if err != nil {
		return nil, wireError(err)
	}
	made.Session = rt
	s.made++
	handle := fmt.Sprintf("%s %d %d", s.host, s.life, s.made)
	s.sessions[handle] = made
	return &tfpb.CreateSessionResponse{SessionHandle: handle}, nil
}

// holder matches the ops whose state is their device's.
var holder = regexp.MustCompile(`^(?:Variable|VariableV2|VarHandleOp|(?:Resource|Sparse)?ConditionalAccumulator|SparseConditionalAccumulator|Barrier|\w*Queue(?:V2)?|\w*Reader(?:V2)?|\w*Iterator(?:V2)?)$`)

// place gives what nodes hold to their servers.
func (o *tfSession) place(def *tfpb.GraphDef) {
	for _, n := range def.GetNode() {
		if n.Device == "" {
			n.Device = o.master.device
		}
		o.nodes[n.GetName()] = n
		if !holder.MatchString(n.GetOp()) {
			continue
		}
		if n.Attr == nil {
			n.Attr = map[string]*tfpb.AttrValue{}
		}
		n.Attr["container"] = attr.String(fmt.Sprintf("%s life %d %s", n.Device, o.lives[n.Device], n.Attr["container"].GetS()))
	}
}

// What the world reads of a model.
const (
	readStep = "world_step"
	hasStep  = "world_step_has"
)

func stepReaders() []*tfpb.NodeDef {
	return []*tfpb.NodeDef{
		{Name: hasStep, Op: "VarIsInitializedOp", Input: []string{session.DefaultGlobalStep}},
		{Name: readStep, Op: "ReadVariableOp", Input: []string{session.DefaultGlobalStep}, Attr: graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_INT64)}},
	}
}

func (s *tfServer) find(handle string) (*tfSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.sessions[handle]; found != nil {
		return found, nil
	}
	return nil, status.Errorf(codes.Aborted, "Session %s is not found.", handle)
}

func (s *tfServer) extendSession(_ context.Context, req *tfpb.ExtendSessionRequest) (*tfpb.ExtendSessionResponse, error) {
	found, err := s.find(req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found.place(req.GetGraphDef())
	clear(found.needs)
	if err := found.Extend(req.GetGraphDef()); err != nil {
		return nil, wireError(err)
	}
	return &tfpb.ExtendSessionResponse{NewGraphVersion: req.GetCurrentGraphVersion() + 1}, nil
}

func (s *tfServer) closeSession(_ context.Context, req *tfpb.CloseSessionRequest) (*tfpb.CloseSessionResponse, error) {
	found, err := s.find(req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.sessions, req.GetSessionHandle())
	s.mu.Unlock()
	return &tfpb.CloseSessionResponse{}, found.Session.Close()
}

func (s *tfServer) runStep(ctx context.Context, req *tfpb.RunStepRequest) (*tfpb.RunStepResponse, error) {
	found, err := s.find(req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	resp, err := found.step(ctx, req)
	if err != nil && req.GetStoreErrorsInResponseBody() {
		st, _ := status.FromError(wireError(err))
		return &tfpb.RunStepResponse{StatusCode: tfpb.Code(st.Code()), StatusErrorMessage: st.Message()}, nil
	}
	return resp, err
}

// step makes a step, which takes its time and may be lost at any moment of it.
func (o *tfSession) step(ctx context.Context, req *tfpb.RunStepRequest) (*tfpb.RunStepResponse, error) {
	c := o.master.simCluster
	devices, began := o.devices(req), time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.mu.Lock()
	for _, d := range devices {
		if alive := c.servers[d].alive; alive != nil {
			defer context.AfterFunc(alive, func() { cancel(errLost) })()
		}
	}
	before, after := c.pause(req), c.pause(req)
	c.mu.Unlock()
	if err := o.pass(ctx, devices, before); err != nil {
		return nil, err
	}
	resp, err := o.compute(ctx, req, began)
	if lost := o.pass(ctx, devices, after); lost != nil {
		return nil, lost
	}
	return resp, err
}

// shortCall is how long a call takes that computes nothing, at most.
const shortCall = 20 * time.Millisecond

// pause returns how long a part of a call takes. The caller holds mu.
func (c *simCluster) pause(req *tfpb.RunStepRequest) time.Duration {
	if !trains(req) {
		return time.Duration(c.rnd.Int64N(int64(shortCall)))
	}
	return time.Duration(c.rnd.Int64N(int64(c.stepTime)))
}

// pass lets time pass for servers, which must be the same at its end.
func (o *tfSession) pass(ctx context.Context, devices []string, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	err := o.master.await(ctx, devices, o.lives)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

func (o *tfSession) compute(ctx context.Context, req *tfpb.RunStepRequest, began time.Time) (*tfpb.RunStepResponse, error) {
	if o.master.alter != nil {
		o.master.alter(o, req)
	}
	feeds := map[string]*ckptfmt.Tensor{}
	for _, f := range req.GetFeed() {
		t, err := ckptfmt.TensorFromProto(f.GetTensor())
		if err != nil {
			return nil, err
		}
		feeds[f.GetName()] = t
	}
	tensors, err := o.Run(ctx, feeds, req.GetFetch(), req.GetTarget())
	o.master.observe(o, req, began)
	resp := &tfpb.RunStepResponse{}
	for i, t := range tensors {
		resp.Tensor = append(resp.Tensor, &tfpb.NamedTensorProto{Name: req.GetFetch()[i], Tensor: t.Proto()})
	}
	if o.master.spoil != nil {
		return o.master.spoil(o, req, resp, err)
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// devices returns the servers of what a step runs.
func (o *tfSession) devices(req *tfpb.RunStepRequest) []string {
	o.master.mu.Lock()
	defer o.master.mu.Unlock()
	key := fmt.Sprint(len(req.GetFeed()), req.GetFetch(), req.GetTarget())
	if known, ok := o.needs[key]; ok {
		return known
	}
	found, seen := map[string]bool{o.master.device: true}, map[string]bool{}
	for _, f := range req.GetFeed() {
		seen[nodeOf(f.GetName())] = true
	}
	for stack := slices.Concat(req.GetFetch(), req.GetTarget()); len(stack) > 0; {
		name := nodeOf(stack[len(stack)-1])
		stack = stack[:len(stack)-1]
		n := o.nodes[name]
		if n == nil || seen[name] {
			continue
		}
		seen[name] = true
		found[n.GetDevice()] = true
		stack = append(stack, n.GetInput()...)
	}
	maps.DeleteFunc(found, func(d string, _ bool) bool { return o.master.servers[d] == nil })
	o.needs[key] = slices.Sorted(maps.Keys(found))
	return o.needs[key]
}

// nodeOf returns the node of an input, a fetch or a target.
func nodeOf(name string) string {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "^"), ":")
	return name
}

// stepOfModel reads the step of the model; -1 is for none.
func (o *tfSession) stepOfModel() (int64, error) {
	ctx := context.Background()
	has, err := o.Run(ctx, nil, []string{hasStep}, nil)
	if err != nil || has[0].Data[0] == 0 {
		return -1, err
	}
	step, err := o.Run(ctx, nil, []string{readStep}, nil)
	if err != nil {
		return -1, err
	}
	return session.ScalarInt(step[0])
}

// wireError gives an error the form that it has on the wire.
func wireError(err error) error {
	var op *session.OpError
	switch {
	case errors.As(err, &op):
		text := op.Message
		if op.Err != nil {
			text += ": " + op.Err.Error()
		}
		if op.Node != "" {
			text += fmt.Sprintf("\n\t [[{{node %s}}]]", op.Node)
		}
		return status.Error(codes.Code(op.Code), text)
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Internal, err.Error())
}
