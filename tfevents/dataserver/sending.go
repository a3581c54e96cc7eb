package dataserver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/grpcmethod"
)

// sending bounds the memory of answers, from the beginning of their making until their clients have
// read them. The number of calls bounds the memory of small answers; large ones take turns.
type sending struct {
	small    int           // bytes that an answer may have without a turn
	turns    chan struct{} // one for each large answer
	patience time.Duration // with a client that does not read its answer while others wait
	waiting  atomic.Int64  // answers, for a turn
}

const (
	smallAnswer  = 1 << 20
	largeAnswers = 4
	// slowPatience is longer than the delay of a client that was stopped for a moment; slowest is
	// the rate of a slow line, in bytes a second.
	slowPatience = 30 * time.Second
	slowest      = 1 << 20
)

func newSending(small, large int, patience time.Duration) *sending {
	return &sending{small: small, turns: make(chan struct{}, large), patience: patience}
}

// answers describes a method whose answers may be large.
func answers[Req any, PReq grpcmethod.Message[Req], Resp proto.Message](name string, serve func(*Server, context.Context, PReq, *room) (Resp, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		req := PReq(new(Req))
		if err := decode(req); err != nil {
			return nil, err
		}
		s := srv.(*Server)
		return s.sending.answer(ctx, func(r *room) (proto.Message, error) { return serve(s, ctx, req, r) })
	}}
}

// errLarge says that an answer is large, and has no turn.
var errLarge = errors.New("the answer is large")

// answer makes an answer. One that turns out to be large is made again from the beginning when its
// turn comes, so that no call waits while it holds a part of the answer, or the lock of a run.
func (s *sending) answer(ctx context.Context, from func(*room) (proto.Message, error)) (any, error) {
	m, err := from(&room{left: s.small, small: true})
	if !errors.Is(err, errLarge) {
		return m, err
	}
	t, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	if m, err = from(&room{left: maxAnswer}); err == nil && proto.Size(m) > s.small {
		return &largeAnswer{m, t}, nil
	}
	t.end() // it took much only to be made
	return m, err
}

// take waits for a turn, in the order in which the answers came.
func (s *sending) take(ctx context.Context) (*turn, error) {
	t := &turn{of: s, conn: connOf(ctx)}
	select {
	case s.turns <- struct{}{}:
		return t, nil
	default:
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case s.turns <- struct{}{}:
		return t, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// turn is the right to make and send one large answer.
type turn struct {
	of   *sending
	conn *conn

	mu    sync.Mutex
	ended bool
	late  *time.Timer // nil while the answer is made
}

// sent records that the given number of bytes of the answer are ready for the client.
func (t *turn) sent(bytes int) {
	t.mu.Lock()
	if t.late == nil && !t.ended {
		t.late = time.AfterFunc(t.of.patience+time.Duration(bytes/slowest)*time.Second, t.hangUp)
	}
	t.mu.Unlock()
	if !t.conn.add(t) {
		t.end()
	}
}

// hangUp closes the connection of a client that has not read its answer, if others wait. gRPC has
// no other way to withdraw an answer that is being sent.
func (t *turn) hangUp() {
	t.mu.Lock()
	patient := t.of.waiting.Load() == 0
	if patient && !t.ended {
		t.late.Reset(t.of.patience)
	}
	ended := t.ended
	t.mu.Unlock()
	if !patient && !ended {
		t.conn.Close()
	}
}

// end gives the turn to the next answer.
func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = true
	if t.late != nil {
		t.late.Stop()
	}
	t.conn.remove(t)
	<-t.of.turns
}

// room is how much an answer may still take. The making of an answer that is too large to be sent,
// or whose call has ended, stops at the value that exceeds it.
type room struct {
	left  int
	small bool // more needs a turn
}

// take is called before the given number of bytes is added to the answer.
func (r *room) take(ctx context.Context, bytes int) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if err := r.need(bytes); err != nil {
		return err
	}
	if r.left -= bytes; r.left < 0 {
		return status.Errorf(codes.ResourceExhausted, "the answer is larger than %d bytes; ask for fewer points, or fewer tags at a time", maxAnswer)
	}
	return nil
}

// need is called before the given number of bytes is allocated to make the answer.
func (r *room) need(bytes int) error {
	if r.small && bytes > r.left {
		return errLarge
	}
	return nil
}
