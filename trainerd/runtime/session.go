package runtime

import (
	"context"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Session runs a graph in this process. It implements [session.LazyStore],
// [session.ChangeTracker] and [session.OptionsRunner]. All methods are safe for
// concurrent use.
type Session struct{ exec *exec.Session }

var (
	_ session.LazyStore     = (*Session)(nil)
	_ session.Adopter       = (*Session)(nil)
	_ session.ChangeTracker = (*Session)(nil)
	_ session.OptionsRunner = (*Session)(nil)
)

// New returns a session for a graph. Ops that the runtime lacks are an error
// only if a run needs them; see [Session.Unsupported].
func New(def *tfpb.GraphDef, o *Options) (*Session, error) {
	ops, err := kernels()
	if err != nil {
		return nil, err
	}
	s, err := exec.New(ops, def, o.exec())
	if err != nil {
		return nil, err
	}
	return &Session{s}, nil
}

// Extend adds nodes and functions to the graph. The nodes may have existing
// ones as inputs. All are added or, after an error, none. Compiled plans stay
// valid, because a graph only grows.
func (s *Session) Extend(def *tfpb.GraphDef) error { return s.exec.Extend(def) }

// Close ends the session. Runs that wait for a queue return with CANCELLED;
// later calls fail.
func (s *Session) Close() error { return s.exec.Close() }

// Run implements [session.Session]. The first call with a given set of names
// compiles a plan; later ones find it. A loop that runs the same names often
// is better served by [Session.MakeCallable].
func (s *Session) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	return s.exec.Run(ctx, feeds, fetches, targets)
}

// RunWithOptions implements [session.OptionsRunner]: it is Run with a timeout,
// and with a trace level it records when each op ran.
func (s *Session) RunWithOptions(ctx context.Context, o *tfpb.RunOptions, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) (
	[]*ckptfmt.Tensor, *tfpb.RunMetadata, error) {
	return s.exec.RunWithOptions(ctx, o, feeds, fetches, targets)
}

// Prepare has a step compiled in the background that [Session.Run] will be called for
// with the same names, while the program does other things. Run waits for the end of
// that. An error is not reported before Run finds it again.
func (s *Session) Prepare(feeds, fetches, targets []string) { s.exec.Prepare(feeds, fetches, targets) }

// MakeCallable compiles a plan for repeated use, unless ctx ends first.
func (s *Session) MakeCallable(ctx context.Context, feeds, fetches, targets []string) (*Callable, error) {
	c, err := s.exec.MakeCallable(ctx, feeds, fetches, targets)
	if err != nil {
		return nil, err
	}
	return &Callable{c}, nil
}

// Callable is a compiled set of feeds, fetches and targets. It is safe for
// concurrent use.
type Callable struct{ exec *exec.Callable }

// Run runs the callable; feeds are in the order given to MakeCallable.
// Otherwise it is like Session.Run.
func (c *Callable) Run(ctx context.Context, feeds []*ckptfmt.Tensor) ([]*ckptfmt.Tensor, error) {
	return c.exec.Run(ctx, feeds)
}

// Check returns the error with which Run would refuse these names before
// running anything: names that the graph does not have, and all required nodes
// that the runtime cannot build, in one error.
func (s *Session) Check(feeds, fetches, targets []string) error {
	return s.exec.Check(feeds, fetches, targets)
}

// Unsupported lists the nodes of the session's graph that the runtime cannot
// build, including those in functions that it calls, in the graph's order: with
// the code UNIMPLEMENTED those without a kernel, with INVALID_ARGUMENT those
// that TensorFlow does not accept either. Message is "" if the op is unknown,
// otherwise it names the attribute and the value, or the input. A run that
// needs none of them works; see [Session.Check].
func (s *Session) Unsupported() []*session.OpError { return s.exec.Unsupported() }

// NotResumable returns a line for each node of the graph's input that does not
// continue exactly after a kill and a resume, with the reason. runners are the
// queue runners that will fill the queues.
func (s *Session) NotResumable(runners []*tfpb.QueueRunnerDef) []string {
	return s.exec.NotResumable(runners)
}
