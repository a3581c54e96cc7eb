package runtime

import (
	"fmt"
	"slices"
	"sort"
	"sync"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// item is one element of a queue: a tensor per component.
type item []*tensor

// queue is a bounded buffer between runs. Calls that must wait do so without
// the session's state lock, and end with the run's context or the session.
//
// One enqueue and one dequeue are at work at a time, in order of arrival, so
// that the elements of one call stay together, as in TensorFlow.
type queue struct {
	name     string
	capacity int // negative: unbounded
	memory   int // bytes that the elements of a staging area may take; 0: no limit
	types    []tfpb.DataType
	shapes   [][]int // nil: any; a nil entry: any
	pads     bool    // shapes may differ; batches are padded
	// shuffle draws what comes out next; nil for a queue in order.
	shuffle *philox.Words
	keep    int // elements that a shuffling queue holds back until closed
	sorted  bool

	in, out chan struct{} // turns: one token each

	gate     // guards what follows
	items    []item
	closed   bool
	dropping bool // closed together with the pending enqueues
	pending  int  // enqueues that wait for room
}

func newQueue(name string) *queue {
	q := &queue{name: name, capacity: -1, in: make(chan struct{}, 1), out: make(chan struct{}, 1), gate: newGate()}
	q.in <- struct{}{}
	q.out <- struct{}{}
	return q
}

// gate is a lock whose holder may wait for changes by others.
type gate struct {
	mu      sync.Mutex
	changed chan struct{} // closed at every change
}

func newGate() gate { return gate{changed: make(chan struct{})} }

// wake tells all waiting calls to look again. The caller holds g.mu.
func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// await calls try under g.mu until it is done or fails, waiting for changes in
// between.
func (g *gate) await(c *call, try func() (done bool, err error)) error {
	for {
		g.mu.Lock()
		done, err := try()
		changed := g.changed
		g.mu.Unlock()
		if done || err != nil {
			return err
		}
		if err := c.wait(changed); err != nil {
			return err
		}
	}
}

// wait blocks, without the state lock, until ch is ready.
func (c *call) wait(ch <-chan struct{}) error {
	return c.run.unlocked(func() error {
		select {
		case <-ch:
			return nil
		case <-c.ctx.Done():
			return c.run.cancelled(c.step)
		case <-c.run.sess.ctx.Done():
			return errClosed
		}
	})
}

// turn takes the token of ch, which the returned function gives back.
func (c *call) turn(ch chan struct{}) (func(), error) {
	select {
	case <-ch:
	default:
		if err := c.wait(ch); err != nil {
			return nil, err
		}
	}
	return func() { ch <- struct{}{} }, nil
}

// put adds items, waiting for room.
func (q *queue) put(c *call, items []item) error {
	back, err := c.turn(q.in)
	if err != nil {
		return err
	}
	defer back()
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return c.errorf(tfpb.Code_CANCELLED, "queue %q is closed", q.name)
	}
	q.pending++
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		q.pending--
		q.wake()
		q.mu.Unlock()
	}()
	return q.await(c, func() (bool, error) {
		if q.dropping {
			return false, c.errorf(tfpb.Code_CANCELLED, "queue %q is closed", q.name)
		}
		moved := false
		for len(items) > 0 && q.hasRoom(items[0]) {
			q.push(items[0])
			items = items[1:]
			moved = true
		}
		if moved {
			q.wake()
		}
		return len(items) == 0, nil
	})
}

func (q *queue) push(it item) {
	if q.sorted {
		// Behind those of the same rank.
		at := sort.Search(len(q.items), func(i int) bool { return q.items[i][0].intAt(0) > it[0].intAt(0) })
		q.items = slices.Insert(q.items, at, it)
		return
	}
	q.items = append(q.items, it)
}

func (q *queue) pop() item {
	if q.shuffle != nil {
		i := int(q.shuffle.Next() % uint32(len(q.items)))
		it := q.items[i]
		last := len(q.items) - 1
		q.items[i] = q.items[last]
		q.items[last] = nil
		q.items = q.items[:last]
		return it
	}
	it := q.items[0]
	q.items[0] = nil
	q.items = q.items[1:]
	return it
}

// ready returns how many elements may leave now.
func (q *queue) ready() int {
	if q.closed {
		return len(q.items)
	}
	return max(0, len(q.items)-q.keep)
}

// take removes n items, waiting for them. Fewer remain at the end of a closed
// queue: an error, or with upTo the rest unless it is empty.
func (q *queue) take(c *call, n int, upTo bool) ([]item, error) {
	back, err := c.turn(q.out)
	if err != nil {
		return nil, err
	}
	defer back()
	got := make([]item, 0, min(n, 1<<10))
	err = q.await(c, func() (bool, error) {
		moved := false
		for len(got) < n && q.ready() > 0 {
			got = append(got, q.pop())
			moved = true
		}
		if moved {
			q.wake()
		}
		if len(got) == n {
			return true, nil
		}
		if q.closed && q.pending == 0 {
			if upTo && len(got) > 0 {
				return true, nil
			}
			return false, c.errorf(tfpb.Code_OUT_OF_RANGE, "queue %q is closed and has insufficient elements (requested %d, current size %d)", q.name, n, len(got)+len(q.items))
		}
		return false, nil
	})
	if err != nil {
		q.giveBack(got)
		return nil, err
	}
	return got, nil
}

// giveBack returns items that a failed call had taken.
func (q *queue) giveBack(got []item) {
	if len(got) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sorted {
		for _, it := range got {
			q.push(it)
		}
	} else {
		q.items = append(got, q.items...)
	}
	q.wake()
}

func (q *queue) close(cancelPending bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.dropping = q.dropping || cancelPending
	q.wake()
}

func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// resource returns the object of the builder's node, which nodes of
// one op with the same container and shared name have in common, making it at
// first use.
func (b *builder) resource(kind string, make func(name string) any) any {
	name := b.string("shared_name", "")
	if name == "" {
		name = b.path
	}
	key := kind + "\x00" + b.string("container", "") + "\x00" + name
	return b.sess.res.object(key, func() any { return make(name) })
}

// handleKernel makes output 0 a handle.
func handleKernel(r any) kernel {
	return func(c *call) error {
		t := c.slot(0)
		t.dtype, t.res = tResource, r
		return nil
	}
}

// check reports why an element does not fit the queue. A leading -1 in dims
// stands for the batch of a call that enqueues many.
func (q *queue) check(i int, t *tensor, shape []int) error {
	if t.dtype != q.types[i] {
		return fmt.Errorf("component %d is %s, the queue's %s", i, typeName(t.dtype), typeName(q.types[i]))
	}
	if len(q.shapes) == 0 || q.shapes[i] == nil {
		return nil
	}
	v := variable{shape: q.shapes[i]}
	if !v.fits(shape) {
		return fmt.Errorf("component %d has the shape %s, the queue's %s", i, shapeString(shape), shapeString(q.shapes[i]))
	}
	return nil
}
