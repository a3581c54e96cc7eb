package exec

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Options are those of package runtime, which says what they do.
type Options struct {
	MaxTensorBytes   int64
	Dir              string
	Resources        *Resources
	MaxInputState    int
	FilesWithin      []string
	MaxMemory        int64
	MemoryOption     string
	MaxNodes         int
	MaxConstantBytes int64
	CompileTimeout   time.Duration
	Logger           *slog.Logger
	Stdout, Stderr   io.Writer
}

// Session runs a graph in this process. It implements [session.LazyStore].
// All methods are safe for concurrent use.
type Session struct {
	ops OpTable
	sessionLimits
	dir     string
	printer *Printer
	res     *Resources
	// ownsResources says that no other session has them, but for observers.
	ownsResources bool
	state         *sync.RWMutex // of res
	// probing says that nodes are built to see whether that can be done, and
	// never run.
	probing bool

	memory   memory
	compiled atomic.Int64 // nodes

	closed atomic.Bool
	ctx    context.Context // done when the session is closed
	cancel context.CancelFunc

	observes bool // it leaves the model as it was; see Observer

	mu      sync.Mutex // guards what follows
	g       *graph
	library map[string]*tfpb.FunctionDef
	plans   map[string]*Plan
	ahead   map[string]chan struct{} // by key: closed when a plan is compiled, or cannot be; see Prepare
	vars    map[string]*Variable     // those of res that the graph has nodes of
	streams map[string]*RandomStream
	input   inputStates
	tables  tableStates

	observed int64 // the step for which an observer's streams are

	background sync.WaitGroup // the goroutines of Prepare and RunAhead
}

// sessionLimits are what a session may take; see [Options].
type sessionLimits struct {
	limit        int      // bytes of a tensor
	within       []string // nil: no limit
	maxNodes     int
	maxConstants int64
	compileTime  time.Duration
}

func (o *Options) limits() sessionLimits {
	l := sessionLimits{
		limit: 16 << 30, within: o.FilesWithin,
		maxNodes:     cmp.Or(max(0, o.MaxNodes), defaultMaxNodes),
		maxConstants: cmp.Or(max(0, o.MaxConstantBytes), defaultMaxConstants),
		compileTime:  cmp.Or(max(0, o.CompileTimeout), defaultCompileTime),
	}
	if o.MaxTensorBytes > 0 {
		l.limit = int(o.MaxTensorBytes)
	}
	return l
}

var (
	_ session.LazyStore     = (*Session)(nil)
	_ session.ChangeTracker = (*Session)(nil)
)

var errClosed error = &session.OpError{Code: tfpb.Code_CANCELLED, Message: "the session is closed"}

// New returns a session for a graph; ops has the kernels.
func New(ops OpTable, def *tfpb.GraphDef, o *Options) (*Session, error) {
	if o == nil {
		o = &Options{}
	}
	s := &Session{ops: ops, g: &graph{}, sessionLimits: o.limits(), dir: o.Dir, printer: o.printer(), res: o.Resources, library: map[string]*tfpb.FunctionDef{},
		plans: map[string]*Plan{}, ahead: map[string]chan struct{}{}, vars: map[string]*Variable{}, streams: map[string]*RandomStream{}}
	if s.res == nil {
		s.res, s.ownsResources = &Resources{}, true
	}
	s.state = &s.res.state
	s.memory.init(o, &s.res.buffers)
	s.input.init(o)
	s.tables.init()
	if err := s.Extend(def); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Extend adds nodes and functions to the graph. The nodes may have those that
// are there already as inputs. All are added or, after an error, none. What
// was compiled stays valid, for a graph only grows.
func (s *Session) Extend(def *tfpb.GraphDef) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	library := maps.Clone(s.library)
	for _, f := range def.GetLibrary().GetFunction() {
		library[f.GetSignature().GetName()] = f
	}
	nodes := s.g.defs()
	for _, n := range def.GetNode() {
		nodes = append(nodes, asCall(s.ops, n, func(name string) (*tfpb.FunctionDef, bool) { f, ok := library[name]; return f, ok }))
	}
	g, err := newGraph(nodes)
	if err != nil {
		return err
	}
	for i := range g.nodes[len(s.g.nodes):] {
		n := &g.nodes[len(s.g.nodes)+i]
		if n.op != "VariableV2" && n.op != "Variable" && n.op != "VarHandleOp" {
			continue
		}
		if _, err := s.declareLocked(&OpConstruction{sess: s, node: n, path: n.name}); err != nil {
			return err
		}
	}
	for i := range s.g.built {
		g.built[i].Store(s.g.built[i].Load())
	}
	s.g, s.library = g, library
	s.input.findInput(g, library)
	return nil
}

// graph returns the graph as it is now.
func (s *Session) graph() *graph {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.g
}

// function returns a function of the graph's library.
func (s *Session) function(name string) (*tfpb.FunctionDef, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.library[name]
	return f, ok
}

// Close ends the session. Runs that wait for a queue return with CANCELLED;
// later calls fail. Files that readers and iterators have open are closed, unless
// other sessions share them.
func (s *Session) Close() error {
	s.mu.Lock()
	first := !s.closed.Swap(true) // from here on nothing is started
	s.mu.Unlock()
	s.cancel()
	s.background.Wait()
	if first {
		s.memory.close()
	}
	if s.ownsResources {
		return s.res.Close()
	}
	return nil
}

// Run implements [session.Session]. The first call with a given set of names
// compiles a plan; later ones find it. A loop that runs the same names often
// is better served by [Session.MakeCallable].
func (s *Session) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	_, out, err := s.runTraced(ctx, nil, feeds, fetches, targets)
	return out, err
}

// Callable is a compiled set of feeds, fetches and targets. It is safe for
// concurrent use.
type Callable struct {
	sess *Session
	plan *Plan
}

// MakeCallable compiles a plan for repeated use, unless ctx ends first.
func (s *Session) MakeCallable(ctx context.Context, feeds, fetches, targets []string) (*Callable, error) {
	p, err := s.plan(ctx, feeds, fetches, targets)
	if err != nil {
		return nil, err
	}
	return &Callable{sess: s, plan: p}, nil
}

// Run runs the callable; feeds are in the order given to MakeCallable. Apart
// from that it is as Session.Run.
func (c *Callable) Run(ctx context.Context, feeds []*ckptfmt.Tensor) ([]*ckptfmt.Tensor, error) {
	if len(feeds) != len(c.plan.feeds) {
		return nil, &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: fmt.Sprintf("%d tensors fed where the callable takes %d", len(feeds), len(c.plan.feeds))}
	}
	return c.sess.do(ctx, c.plan, func(i int) *ckptfmt.Tensor { return feeds[i] })
}

// Prepare has a step compiled, in the background, which Run will be called for with
// the same names; it waits for that. Where it cannot be compiled, Run says so. The
// goroutine ends with the session: Close waits for it.
func (s *Session) Prepare(feeds, fetches, targets []string) {
	feeds = slices.Sorted(slices.Values(feeds)) // as Run has them
	key := string(planKey(feeds, fetches, targets))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plans[key] != nil || s.ahead[key] != nil || s.closed.Load() {
		return
	}
	done := make(chan struct{})
	s.ahead[key] = done
	s.background.Go(func() {
		var p *Plan
		defer func() {
			recover() // Run meets the panic again, in the goroutine of its caller
			s.mu.Lock()
			defer s.mu.Unlock()
			if p != nil {
				s.plans[key] = p
			}
			delete(s.ahead, key)
			close(done)
		}()
		p, _ = s.compile(s.ctx, feeds, fetches, targets)
	})
}

// inBackground calls f in a goroutine that Close waits for. It reports false when the
// session is closed.
func (s *Session) inBackground(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return false
	}
	s.background.Go(f)
	return true
}

// compiledPlan returns the plan for a key, nil if it has to be compiled. It waits for
// one that is being prepared.
func (s *Session) compiledPlan(ctx context.Context, key []byte) *Plan {
	s.mu.Lock()
	p, done := s.plans[string(key)], s.ahead[string(key)]
	s.mu.Unlock()
	if done == nil {
		return p
	}
	select {
	case <-done:
	case <-ctx.Done(): // which compiling reports
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plans[string(key)]
}

// plan returns the plan for the given names, compiling it at first sight.
func (s *Session) plan(ctx context.Context, feeds, fetches, targets []string) (*Plan, error) {
	key := planKey(feeds, fetches, targets)
	if p := s.compiledPlan(ctx, key); p != nil {
		return p, nil
	}
	p, err := s.compile(ctx, slices.Clone(feeds), fetches, targets)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.plans[string(key)]; first != nil {
		return first, nil
	}
	s.plans[string(key)] = p
	return p, nil
}

// planKey is unambiguous whatever the names contain.
func planKey(lists ...[]string) []byte {
	var key []byte
	for _, list := range lists {
		key = strconv.AppendInt(key, int64(len(list)), 10)
		for _, name := range list {
			key = append(key, ' ')
			key = strconv.AppendInt(key, int64(len(name)), 10)
			key = append(key, ':')
			key = append(key, name...)
		}
		key = append(key, '\n')
	}
	return key
}
