package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Defaults of what a step may take once all function calls are written out. A
// function is compiled once for each call, so a graph of some hundred bytes may
// stand for any number of nodes.
const (
	defaultMaxNodes     = 1 << 18
	defaultMaxConstants = 8 << 30
	defaultCompileTime  = 10 * time.Minute
	sessionPlans        = 16 // how many steps of the largest size a session may compile
	nodesBetweenLooks   = 256
)

// budget is what is left for compiling one step.
type budget struct {
	ctx     context.Context // bounds the time
	session context.Context // done when the session is closed; nil while it is made
	all     *atomic.Int64   // nodes that the session has compiled

	own             int // nodes of the graph itself
	maxNodes, nodes int // that calls of functions add
	maxBytes, bytes int64
	unlooked        int
}

func (s *Session) newBudget(ctx context.Context) (b *budget, done context.CancelFunc) {
	ctx, done = context.WithTimeout(ctx, s.compileTime)
	return &budget{ctx: ctx, session: s.ctx, all: &s.compiled, own: len(s.graph().nodes), maxNodes: s.maxNodes, maxBytes: s.maxConstants}, done
}

// charge takes nodes of a function, or of the graph at path "", from the
// budget.
func (b *budget) charge(function, path string, nodes int) error {
	b.unlooked += nodes
	if function != "" {
		b.nodes += nodes
	}
	limit := sessionPlans * (int64(b.maxNodes) + int64(b.own))
	switch {
	case b.all.Add(int64(nodes)) > limit:
		return exhausted(path, "the different steps of this session have more than %d nodes; run fewer sets of different names", limit)
	case b.unlooked < nodesBetweenLooks && function == "":
		return nil
	}
	b.unlooked = 0
	return b.checkTime(path)
}

// checkTime fails when the time is over.
func (b *budget) checkTime(path string) error {
	err := b.ctx.Err()
	if err == nil && b.session != nil {
		err = b.session.Err()
	}
	if err == nil {
		return nil
	}
	code := tfpb.Code_CANCELLED
	if errors.Is(err, context.DeadlineExceeded) {
		code = tfpb.Code_DEADLINE_EXCEEDED
	}
	return &session.OpError{Code: code, Node: strings.TrimSuffix(path, "/"), Message: fmt.Sprintf("compiling was stopped after %d nodes", b.nodes), Err: err}
}

// chargeBytes takes the memory of a constant from the budget.
func (b *budget) chargeBytes(path string, n int) error {
	if b.bytes += int64(n); b.bytes > b.maxBytes {
		return exhausted(path, "the constants of the step take more than %d bytes, counting those of a function once for each call; feed large values or keep them in variables", b.maxBytes)
	}
	return nil
}

func exhausted(path, format string, args ...any) error {
	return &session.OpError{Code: tfpb.Code_RESOURCE_EXHAUSTED, Node: strings.TrimSuffix(path, "/"), Message: fmt.Sprintf(format, args...)}
}
