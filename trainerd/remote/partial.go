package remote

import (
	"context"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/ctxmutex"
	tfpb "github.com/trainerd/trainerd/proto"
)

// PartialRun is one step that is run in parts: later parts may be fed with
// values computed from the tensors of earlier ones. It is safe for concurrent
// use; its parts run one after another.
//
// A step that changes variables waits before each part while they are saved. What
// a part has begun may continue after it, and during a save, unless it is fetched.
//
// It ends when everything announced has been fed and fetched, or with the
// first part that fails. An unfinished one is kept on the server until the
// session is closed.
type PartialRun struct {
	sess    *Session
	handle  string
	running ctxmutex.Mutex // during a part
	changes bool           // variables
}

// PartialRunSetup begins a step in parts. It announces every tensor that any
// part will feed or fetch; targets run as soon as their inputs are there.
func (s *Session) PartialRunSetup(ctx context.Context, feeds, fetches, targets []string) (*PartialRun, error) {
	graph := s.index()
	st, err := newStep(graph, feeds, fetches, targets)
	if err != nil {
		return nil, err
	}
	req := &tfpb.PartialRunSetupRequest{SessionHandle: s.handle, Feed: st.feeds, Fetch: st.fetches, Target: st.targets, RequestId: requestID()}
	resp := &tfpb.PartialRunSetupResponse{}
	if err := s.call(ctx, "PartialRunSetup", req, resp, graph.ops); err != nil {
		return nil, err
	}
	changes := s.changes(feeds, fetches, targets)
	return &PartialRun{sess: s, handle: resp.GetPartialRunHandle(), changes: changes}, nil
}

// Run runs the next part: it feeds and fetches tensors that were announced and
// not yet fed or fetched by an earlier part.
func (p *PartialRun) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches []string) ([]*ckptfmt.Tensor, error) {
	if p.running.Lock(ctx) != nil {
		return nil, p.sess.client.contextError(ctx, "")
	}
	defer p.running.Unlock()
	leave, err := p.sess.enter(ctx, p.changes)
	if err != nil {
		return nil, err
	}
	defer leave()
	out, _, err := p.sess.runStep(ctx, &tfpb.RunStepRequest{PartialRunHandle: p.handle}, feeds, fetches, nil)
	return out, err
}
