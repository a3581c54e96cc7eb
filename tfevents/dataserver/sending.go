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
	small    int           // bytes that an answer may have without a slot
	slots    chan struct{} // one for each large answer
	patience time.Duration // with a client that does not read its answer while others wait
	waiting  atomic.Int64  // answers, for a slot
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
	return &sending{small: small, slots: make(chan struct{}, large), patience: patience}
}

// answers describes a method whose answers may be large.
func answers[Req any, PReq grpcmethod.Message[Req], Resp proto.Message](name string, serve func(*Server, context.Context, PReq, *budget) (Resp, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		req := PReq(new(Req))
		if err := decode(req); err != nil {
			return nil, err
		}
		s := srv.(*Server)
		return s.sending.answer(ctx, func(r *budget) (proto.Message, error) { return serve(s, ctx, req, r) })
	}}
}

// errLarge says that an answer is large, and has no slot.
var errLarge = errors.New("the answer is large")

// answer makes an answer. One that turns out to be large is made again from the beginning when its
// slot comes, so that no call waits while it holds a part of the answer, or the lock of a run.
func (s *sending) answer(ctx context.Context, from func(*budget) (proto.Message, error)) (any, error) {
	m, err := from(&budget{left: s.small, small: true})
	if !errors.Is(err, errLarge) {
		return m, err
	}
	t, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	if m, err = from(&budget{left: maxAnswer}); err == nil && proto.Size(m) > s.small {
		return &largeAnswer{m, t}, nil
	}
	t.end() // it took much only to be made
	return m, err
}

// take waits for a slot, in the order in which the answers came.
func (s *sending) take(ctx context.Context) (*slot, error) {
	t := &slot{of: s, conn: connOf(ctx)}
	select {
	case s.slots <- struct{}{}:
		return t, nil
	default:
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case s.slots <- struct{}{}:
		return t, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// slot is the right to make and send one large answer.
type slot struct {
	of   *sending
	conn *conn

	mu    sync.Mutex
	ended bool
	late  *time.Timer // nil while the answer is made
}

// sent records that the given number of bytes of the answer are ready for the client.
func (s *slot) sent(bytes int) {
	s.mu.Lock()
	if s.late == nil && !s.ended {
		s.late = time.AfterFunc(s.of.patience+time.Duration(bytes/slowest)*time.Second, s.hangUp)
	}
	s.mu.Unlock()
	if !s.conn.add(s) {
		s.end()
	}
}

// hangUp closes the connection of a client that has not read its answer, if others wait. gRPC has
// no other way to withdraw an answer that is being sent.
func (s *slot) hangUp() {
	s.mu.Lock()
	patient := s.of.waiting.Load() == 0
	if patient && !s.ended {
		s.late.Reset(s.of.patience)
	}
	ended := s.ended
	s.mu.Unlock()
	if !patient && !ended {
		s.conn.Close()
	}
}

// end gives the slot to the next answer.
func (s *slot) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	if s.late != nil {
		s.late.Stop()
	}
	s.conn.remove(s)
	<-s.of.slots
}

// budget is how much an answer may still take. The making of an answer that is too large to be sent,
// or whose call has ended, stops at the value that exceeds it.
type budget struct {
	left  int
	small bool // more needs a slot
}

// take is called before the given number of bytes is added to the answer.
func (b *budget) take(ctx context.Context, bytes int) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if err := b.need(bytes); err != nil {
		return err
	}
	if b.left -= bytes; b.left < 0 {
		return status.Errorf(codes.ResourceExhausted, "the answer is larger than %d bytes; ask for fewer points, or fewer tags at a time", maxAnswer)
	}
	return nil
}

// need is called before the given number of bytes is allocated to make the answer.
func (b *budget) need(bytes int) error {
	if b.small && bytes > b.left {
		return errLarge
	}
	return nil
}
