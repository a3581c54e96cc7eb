package trainerd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// QueueRunner keeps a queue filled: it runs ops that add elements, each in its
// own goroutine, until the input ends or the training stops. The ops may be
// nodes of a graph, or Go functions that feed anything else.
//
// A QueueRunner may serve several sessions, and may be started again after it
// has ended.
type QueueRunner struct {
	// Name is the name of the queue.
	Name string
	// Enqueue are the ops that fill the queue. Each is run repeatedly.
	Enqueue []Op
	// Close runs when the input of the last op has ended. The elements in the queue can still be
	// dequeued.
	Close Op
	// Cancel runs when the training stops. It also ends calls that wait for
	// room in the queue.
	Cancel Op
	// ClosedErrors are the errors with which an op says that its input has
	// ended, matched by errors.Is. Nil means ErrOutOfRange.
	ClosedErrors []error

	mu   sync.Mutex
	live map[session.Session]int // ops whose input has not ended
}

// cancelTimeout bounds the Cancel op, which runs when everything else is to end.
const cancelTimeout = 10 * time.Second

// NewQueueRunner returns the QueueRunner that a graph describes.
func NewQueueRunner(def *tfpb.QueueRunnerDef) (*QueueRunner, error) {
	q := &QueueRunner{Name: graph.NodeName(def.GetQueueName())}
	if q.Name == "" || len(def.GetEnqueueOpName()) == 0 {
		return nil, fmt.Errorf("queue runner %q has no queue or no enqueue ops", q.Name)
	}
	for _, name := range def.GetEnqueueOpName() {
		q.Enqueue = append(q.Enqueue, Nodes(graph.NodeName(name)))
	}
	if name := graph.NodeName(def.GetCloseOpName()); name != "" {
		q.Close = Nodes(name)
	}
	if name := graph.NodeName(def.GetCancelOpName()); name != "" {
		q.Cancel = Nodes(name)
	}
	for _, code := range def.GetQueueClosedExceptionTypes() {
		q.ClosedErrors = append(q.ClosedErrors, &session.OpError{Code: code})
	}
	return q, nil
}

// name returns the name of a queue runner that may be nil.
func (q *QueueRunner) name() string {
	if q == nil {
		return ""
	}
	return q.Name
}

// Start starts the goroutines of a queue under a coordinator. It does nothing
// while those of an earlier Start for the same session are still running.
func (q *QueueRunner) Start(c *coord.Coordinator, s session.Session) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.live[s] > 0 || len(q.Enqueue) == 0 {
		return
	}
	if q.live == nil {
		q.live = make(map[session.Session]int)
	}
	q.live[s] = len(q.Enqueue)
	for _, op := range q.Enqueue {
		c.Go(fmt.Sprintf("QueueRunnerThread-%s-%v", q.Name, op), func(ctx context.Context) error { return q.fill(ctx, s, op) })
	}
	if !q.Cancel.IsNone() {
		c.Go(fmt.Sprintf("QueueRunnerThread-%s-close_on_stop", q.Name), func(ctx context.Context) error { return q.cancelOnStop(ctx, s) })
	}
}

// fill runs an op until its input ends.
func (q *QueueRunner) fill(ctx context.Context, s session.Session, op Op) error {
	var err error
	filling := context.WithValue(ctx, queueRunnerKey{}, true)
	for err == nil && ctx.Err() == nil {
		_, err = op.run(filling, s, nil)
	}
	closed := err != nil && q.inputEnded(err)
	// After a stop, the apparent end of the input may come from another queue that the stop has
	// closed: then a checkpoint must not say that the input has ended.
	if last := q.ended(s); closed && last && ctx.Err() == nil {
		// As in TensorFlow, it is not a failure if the queue is closed already.
		q.Close.run(ctx, s, nil)
	}
	if closed {
		return nil
	}
	return err
}

type queueRunnerKey struct{}

// IsQueueRunner reports whether a call of a session runs the op of a
// [QueueRunner].
func IsQueueRunner(ctx context.Context) bool { return ctx.Value(queueRunnerKey{}) != nil }

func (q *QueueRunner) inputEnded(err error) bool {
	if q.ClosedErrors == nil {
		return errors.Is(err, session.ErrOutOfRange)
	}
	for _, target := range q.ClosedErrors {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// ended counts an op that has ended, and reports whether it was the last.
func (q *QueueRunner) ended(s session.Session) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.live[s]--
	if q.live[s] > 0 {
		return false
	}
	delete(q.live, s)
	return true
}

func (q *QueueRunner) cancelOnStop(ctx context.Context, s session.Session) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()
	q.Cancel.run(ctx, s, nil) // a queue that is closed already cannot be cancelled
	return nil
}

// queueRunners returns the graph's queue runners.
func queueRunners(g graph.Collections) ([]*QueueRunner, error) {
	var runners []*QueueRunner
	for i, b := range g.Meta.GetCollectionDef()[graph.QueueRunnersKey].GetBytesList().GetValue() {
		def := new(tfpb.QueueRunnerDef)
		if err := proto.Unmarshal(b, def); err != nil {
			return nil, fmt.Errorf("meta graph: collection %s, item %d: %w", graph.QueueRunnersKey, i, err)
		}
		q, err := NewQueueRunner(def)
		if err != nil {
			return nil, fmt.Errorf("meta graph: %w", err)
		}
		runners = append(runners, q)
	}
	return runners, nil
}

// StartQueueRunners starts the given queue runners, or those of the graph if
// none are given. PrepareOrWaitForSession starts those of the graph unless
// NoStandardServices is set.
func (sv *Supervisor) StartQueueRunners(runners ...*QueueRunner) error {
	r := sv.current()
	if r == nil {
		return errNoRun
	}
	if len(runners) == 0 {
		var err error
		if runners, err = queueRunners((graph.Collections{Meta: r.plan.meta})); err != nil {
			return err
		}
	}
	for _, q := range runners {
		if q == nil || len(q.Enqueue) == 0 {
			return fmt.Errorf("queue runner %q has no enqueue ops", q.name())
		}
		q.Start(&sv.coord, r.sess)
	}
	return nil
}
