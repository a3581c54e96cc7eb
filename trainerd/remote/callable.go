package remote

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Callable is a set of feeds, fetches and targets that the server has compiled
// for repeated use. It is safe for concurrent use.
type Callable struct {
	sess    *Session
	step    *step
	handle  int64
	changes bool // variables

	released  atomic.Bool
	closeOnce sync.Once
	closeErr  error
}

// MakeCallable compiles a step. It must fetch at least one tensor that is not
// fed, or run one target. Later extensions of the graph do not change it.
func (s *Session) MakeCallable(ctx context.Context, feeds, fetches, targets []string) (*Callable, error) {
	graph := s.index()
	st, err := newStep(graph, feeds, fetches, targets)
	if err != nil {
		return nil, err
	}
	req := &tfpb.MakeCallableRequest{SessionHandle: s.handle, RequestId: requestID(),
		Options: &tfpb.CallableOptions{Feed: st.feeds, Fetch: st.fetches, Target: st.targets}}
	resp := &tfpb.MakeCallableResponse{}
	if err := s.call(ctx, "MakeCallable", req, resp, graph.ops); err != nil {
		return nil, err
	}
	return &Callable{sess: s, step: st, handle: resp.GetHandle(), changes: s.changes(feeds, fetches, targets)}, nil
}

// Run runs the callable, as Session.Run runs a step, and like one waits while the
// variables that it changes are saved; feeds are in the order given to MakeCallable.
func (c *Callable) Run(ctx context.Context, feeds []*ckptfmt.Tensor) ([]*ckptfmt.Tensor, error) {
	if c.released.Load() {
		return nil, errReleased
	}
	if len(feeds) != len(c.step.feeds) {
		return nil, invalid("%d tensors fed where the callable takes %d", len(feeds), len(c.step.feeds))
	}
	req := &tfpb.RunCallableRequest{SessionHandle: c.sess.handle, Handle: c.handle, RequestId: requestID()}
	for i, t := range feeds {
		p, err := encode(c.step.feeds[i], t)
		if err != nil {
			return nil, err
		}
		req.Feed = append(req.Feed, p)
	}
	leave, err := c.sess.enter(ctx, c.changes)
	if err != nil {
		return nil, err
	}
	defer leave()
	resp := &tfpb.RunCallableResponse{}
	if err := c.sess.call(ctx, "RunCallable", req, resp, c.sess.index().ops); err != nil {
		return nil, err
	}
	if got, want := len(resp.GetFetch()), len(c.step.fetches); got != want {
		return nil, &session.OpError{Code: tfpb.Code_INTERNAL, Message: "the server did not send what the callable fetches"}
	}
	fed, got := positions(c.step.feeds), positions(c.step.fetches)
	return c.step.results(func(name string) (*ckptfmt.Tensor, error) {
		if i, ok := fed[name]; ok {
			return feeds[i], nil
		}
		return decode(name, resp.GetFetch()[got[name]])
	})
}

// positions returns where each name is in a list.
func positions(names []string) map[string]int {
	at := make(map[string]int, len(names))
	for i, name := range names {
		at[name] = i
	}
	return at
}

// Close makes the server forget the callable. Closing the session does so too.
// It takes no longer than Session.Close, and a session that is gone or closed
// is not an error.
func (c *Callable) Close() error {
	c.closeOnce.Do(func() {
		c.released.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), c.sess.client.closeTimeout)
		defer cancel()
		req := &tfpb.ReleaseCallableRequest{SessionHandle: c.sess.handle, Handle: c.handle}
		err := c.sess.call(ctx, "ReleaseCallable", req, &tfpb.ReleaseCallableResponse{}, nil)
		if !isCode(err, tfpb.Code_ABORTED) && c.sess.ctx.Err() == nil {
			c.closeErr = err
		}
	})
	return c.closeErr
}
