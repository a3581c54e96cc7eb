package queue

import (
	"fmt"
	"slices"
	"sort"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// Queue is a bounded buffer between runs. Calls that must wait do so without
// the session's state lock, and end with the run's context or the session.
//
// One enqueue and one dequeue are at work at a time, in order of arrival, so
// that the elements of one call stay together, as in TensorFlow.
type Queue struct {
	Name     string
	capacity int // negative: unbounded
	memory   int // bytes that the elements of a staging area may take; 0: no limit
	Types    []tfpb.DataType
	shapes   [][]int // nil: any; a nil entry: any
	pads     bool    // shapes may differ; batches are padded
	// shuffle draws what comes out next; nil for a queue in order.
	shuffle *philox.Words
	keep    int // elements that a shuffling queue holds back until closed
	sorted  bool
	stages  bool // it is a staging area

	in, out chan struct{} // turns: one token each

	exec.Cond // guards what follows
	items     []variant.Tuple
	closed    bool
	dropping  bool // closed together with the pending enqueues
	ended     bool // closed, but not to end pending enqueues: the input is over
	pending   int  // enqueues that wait for room

	// What the state in a checkpoint needs in addition.
	taken  []variant.Tuple   // out of the queue, for the dequeue that waits for more or a later one
	taking bool              // there is a dequeue that they are for
	puts   []*pendingEnqueue // in order of arrival
	lost   []variant.Tuple   // of enqueues that were cancelled
	fed    bool              // elements came from feeds: the program fills the queue, not the graph
	driven bool              // a queue runner fills it
}

// pendingEnqueue is an enqueue that is not over; items are left to be put in.
type pendingEnqueue struct{ items []variant.Tuple }

func newQueue(name string) *Queue {
	q := &Queue{Name: name, capacity: -1, in: make(chan struct{}, 1), out: make(chan struct{}, 1), Cond: exec.NewCond()}
	q.in <- struct{}{}
	q.out <- struct{}{}
	return q
}

// put adds items, waiting for room.
func (q *Queue) put(c *exec.KernelContext, items []variant.Tuple) error {
	p := &pendingEnqueue{items}
	q.L.Lock()
	q.puts = append(q.puts, p)
	q.fed = q.fed || c.HasFeeds()
	q.driven = q.driven || trainerd.IsQueueRunner(c.Context())
	q.L.Unlock()
	err := q.insert(c, p)
	q.L.Lock()
	q.puts = slices.DeleteFunc(q.puts, func(other *pendingEnqueue) bool { return other == p })
	lost := err != nil && !q.ended && !c.HasFeeds()
	if lost {
		// What came before the enqueue has happened, so the elements are part
		// of what a checkpoint has of the queue.
		q.lost = append(q.lost, p.items...)
	}
	q.L.Unlock()
	if lost {
		c.SettleStreams()
	}
	c.MarkEffect()
	return err
}

func (q *Queue) insert(c *exec.KernelContext, p *pendingEnqueue) error {
	back, err := c.AcquireToken(q.in)
	if err != nil {
		return err
	}
	defer back()
	q.L.Lock()
	if q.closed {
		q.L.Unlock()
		return c.Errorf(tfpb.Code_CANCELLED, "queue %q is closed", q.Name)
	}
	q.pending++
	q.L.Unlock()
	defer func() {
		q.L.Lock()
		q.pending--
		q.Broadcast()
		q.L.Unlock()
	}()
	return q.Wait(c, func() (bool, error) {
		if q.dropping {
			return false, c.Errorf(tfpb.Code_CANCELLED, "queue %q is closed", q.Name)
		}
		moved := false
		for len(p.items) > 0 && q.hasRoom(p.items[0]) {
			q.push(p.items[0])
			p.items = p.items[1:]
			moved = true
		}
		if moved {
			q.Broadcast()
		}
		return len(p.items) == 0, nil
	})
}

func (q *Queue) push(it variant.Tuple) {
	if q.sorted {
		// After those of the same rank.
		at := sort.Search(len(q.items), func(i int) bool { return q.items[i][0].IntAt(0) > it[0].IntAt(0) })
		q.items = slices.Insert(q.items, at, it)
		return
	}
	q.items = append(q.items, it)
}

// pop removes the next element. A queue that a runner fills has more or fewer
// of them, depending on how fast the runner is; so only the first ones that it
// holds back are drawn from, and the order is the same in every run.
func (q *Queue) pop() variant.Tuple {
	if q.shuffle != nil {
		n := len(q.items)
		if q.driven && q.keep > 0 {
			n = min(n, q.keep+1)
		}
		i := int(q.shuffle.Next() % uint32(n))
		it := q.items[i]
		q.items[i] = q.items[n-1]
		q.items = slices.Delete(q.items, n-1, n)
		return it
	}
	it := q.items[0]
	q.items[0] = nil
	q.items = q.items[1:]
	return it
}

// ready returns how many elements may leave now.
func (q *Queue) ready() int {
	if q.closed {
		return len(q.items)
	}
	return max(0, len(q.items)-q.keep)
}

// Take removes n items, waiting for them. Fewer remain at the end of a closed
// queue: an error, or with upTo the rest unless it is empty.
func (q *Queue) Take(c *exec.KernelContext, n int, upTo bool) ([]variant.Tuple, error) {
	back, err := c.AcquireToken(q.out)
	if err != nil {
		return nil, err
	}
	defer back()
	var got []variant.Tuple
	err = q.Wait(c, func() (bool, error) {
		q.taking = true
		moved := false
		for len(q.taken) < n && q.ready() > 0 {
			q.taken = append(q.taken, q.pop())
			moved = true
		}
		if moved {
			q.Broadcast()
		}
		over := q.closed && q.pending == 0
		switch {
		case len(q.taken) >= n || over && upTo && len(q.taken) > 0:
			k := min(n, len(q.taken))
			got, q.taken = slices.Clone(q.taken[:k]), slices.Delete(q.taken, 0, k)
			q.taking = false
			return true, nil
		case over:
			return false, c.Errorf(tfpb.Code_OUT_OF_RANGE, "queue %q is closed and has insufficient elements (requested %d, current size %d)", q.Name, n, len(q.taken)+len(q.items))
		}
		return false, nil
	})
	if err != nil {
		q.stopTaking()
		return nil, err
	}
	c.Take(&takenItems{q, got})
	return got, nil
}

// stopTaking returns what a dequeue that failed had taken. A queue that
// shuffles keeps it for the next one: to draw again would give another order.
func (q *Queue) stopTaking() {
	q.L.Lock()
	defer q.L.Unlock()
	q.taking = false
	if q.shuffle == nil {
		taken := q.taken
		q.taken = nil
		q.putBack(taken)
	}
	q.Broadcast()
}

// takenItems are items that a run has taken.
type takenItems struct {
	queue *Queue
	items []variant.Tuple
}

func (t *takenItems) GiveBack() { t.queue.giveBack(t.items) }

// giveBack returns items that a cancelled run had taken.
func (q *Queue) giveBack(got []variant.Tuple) {
	q.L.Lock()
	defer q.L.Unlock()
	if q.shuffle != nil {
		q.taken = slices.Insert(q.taken, 0, got...)
	} else {
		q.putBack(got)
	}
	q.Broadcast()
}

// putBack makes items the next ones again. The caller holds q.L.
func (q *Queue) putBack(got []variant.Tuple) {
	if q.sorted {
		for _, it := range got {
			q.push(it)
		}
		return
	}
	q.items = slices.Insert(q.items, 0, got...)
}

func (q *Queue) close(cancelPending bool) {
	q.L.Lock()
	defer q.L.Unlock()
	q.ended = q.ended || !q.closed && !cancelPending
	q.closed = true
	q.dropping = q.dropping || cancelPending
	q.Broadcast()
}

func (q *Queue) size() int {
	q.L.Lock()
	defer q.L.Unlock()
	if q.taking {
		return len(q.items)
	}
	return len(q.items) + len(q.taken)
}

// check reports why an element does not fit the queue. A leading -1 in dims
// represents the batch of a call that enqueues many.
func (q *Queue) check(i int, t *exec.Tensor, shape []int) error {
	if t.DType != q.Types[i] {
		return fmt.Errorf("component %d is %s, the queue's %s", i, exec.TypeName(t.DType), exec.TypeName(q.Types[i]))
	}
	if len(q.shapes) == 0 || q.shapes[i] == nil {
		return nil
	}
	v := exec.Variable{Shape: q.shapes[i]}
	if !v.Accepts(shape) {
		return fmt.Errorf("component %d has the shape %s, the queue's %s", i, exec.ShapeString(shape), exec.ShapeString(q.shapes[i]))
	}
	return nil
}
