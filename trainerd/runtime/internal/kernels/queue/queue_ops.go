package queue

import (
	"fmt"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

var queueOps = exec.OpTable{
	"FIFOQueueV2":          {Build: buildQueue},
	"PaddingFIFOQueueV2":   {Build: buildQueue},
	"PriorityQueueV2":      {Build: buildQueue},
	"RandomShuffleQueueV2": {Build: buildQueue},
	"QueueEnqueueV2":       {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: exec.WithoutAttrs(enqueue)},
	"QueueEnqueueManyV2":   {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: exec.WithoutAttrs(enqueueMany)},
	"QueueDequeueV2":       {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: buildDequeue},
	"QueueDequeueManyV2":   {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: buildDequeueMany(false)},
	"QueueDequeueUpToV2":   {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: buildDequeueMany(true)},
	"QueueCloseV2":         {Flags: exec.Stateful | exec.TakesInput, Build: buildQueueClose},
	"QueueSizeV2":          {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(queueSize)},
	"QueueIsClosedV2":      {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(queueIsClosed)},
}

func buildQueue(b *exec.OpConstruction) (exec.Kernel, error) {
	types, shapes := b.Types("component_types"), b.Shapes("shapes")
	op := strings.TrimSuffix(b.Op(), "V2")
	if op == "PriorityQueue" {
		types = append([]tfpb.DataType{exec.Int64}, types...)
		shapes = append([][]int{{}}, shapes...)
	}
	if len(shapes) > 0 && len(shapes) != len(types) {
		b.Fail("%d shapes for %d components", len(shapes), len(types))
	}
	if len(types) == 0 {
		b.Fail("attribute component_types is empty")
	}
	if b.Err() != nil {
		return nil, b.Err()
	}
	r := b.Resource(exec.KindQueue, func(name string) any {
		q := newQueue(name)
		q.Types, q.shapes = types, shapes
		q.capacity = b.Int("capacity")
		q.pads, q.sorted = op == "PaddingFIFOQueue", op == "PriorityQueue"
		if op == "RandomShuffleQueue" {
			q.keep = max(0, b.Int("min_after_dequeue"))
			g := exec.SeededGenerator(uint64(b.Int("seed")), uint64(b.Int("seed2")))
			q.shuffle = philox.NewWords(&g)
		}
		return q
	})
	return exec.HandleKernel(r), nil
}

func queue(c *exec.KernelContext) (*Queue, error) {
	q, ok := c.In(0).Value.(*Queue)
	if !ok {
		return nil, c.Invalid("input 0 is not a queue")
	}
	return q, nil
}

// components returns the number of components given, which must be the
// queue's.
func components(c *exec.KernelContext, q *Queue) (int, error) {
	n := c.NumInputs() - 1
	if n != len(q.Types) {
		return 0, c.Invalid("%d components where queue %q has %d", n, q.Name, len(q.Types))
	}
	return n, nil
}

func enqueue(c *exec.KernelContext) error {
	q, err := queue(c)
	if err != nil {
		return err
	}
	n, err := components(c, q)
	if err != nil {
		return err
	}
	it := make(variant.Tuple, n)
	for i := range it {
		t := c.In(i + 1)
		if err := q.check(i, t, t.Shape); err != nil {
			return c.Invalid("%v", err)
		}
		it[i] = c.Keep(t)
	}
	return q.put(c, []variant.Tuple{it})
}

func enqueueMany(c *exec.KernelContext) error {
	q, err := queue(c)
	if err != nil {
		return err
	}
	n, err := components(c, q)
	if err != nil {
		return err
	}
	first := c.In(1)
	if len(first.Shape) == 0 {
		return c.Invalid("component 0 must have a batch dimension")
	}
	items := make([]variant.Tuple, first.Shape[0])
	for k := range items {
		items[k] = make(variant.Tuple, n)
	}
	for i := range n {
		t := c.In(i + 1)
		if len(t.Shape) == 0 || t.Shape[0] != len(items) {
			return c.Invalid("component %d has the shape %s for a batch of %d", i, exec.ShapeString(t.Shape), len(items))
		}
		if err := q.check(i, t, t.Shape[1:]); err != nil {
			return c.Invalid("%v", err)
		}
		row := exec.NumElements(t.Shape[1:])
		for k := range items {
			items[k][i] = c.NewTensor(t.DType, t.Shape[1:])
			exec.CopyElems(items[k][i], 0, t, k*row, row)
		}
	}
	return q.put(c, items)
}

func buildDequeue(b *exec.OpConstruction) (exec.Kernel, error) {
	types := b.Types("component_types")
	return func(c *exec.KernelContext) error {
		q, err := queue(c)
		if err != nil {
			return err
		}
		return takeOne(c, q, types)
	}, nil
}

// takeOne takes an item out of a queue; its components are the outputs.
func takeOne(c *exec.KernelContext, q *Queue, types []tfpb.DataType) error {
	if err := sameTypes(c, q, types); err != nil {
		return err
	}
	items, err := q.Take(c, 1, false)
	if err != nil {
		return err
	}
	for i, t := range items[0] {
		c.Alias(i, t, t.Shape)
	}
	return nil
}

func sameTypes(c *exec.KernelContext, q *Queue, types []tfpb.DataType) error {
	same := len(types) == len(q.Types)
	for i := 0; same && i < len(types); i++ {
		same = types[i] == q.Types[i]
	}
	if !same {
		return c.Invalid("the components of queue %q are %v, not %v", q.Name, q.Types, types)
	}
	return nil
}

func buildDequeueMany(upTo bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		types := b.Types("component_types")
		return func(c *exec.KernelContext) error {
			q, err := queue(c)
			if err != nil {
				return err
			}
			if err := sameTypes(c, q, types); err != nil {
				return err
			}
			n, err := c.IntScalar(1, "the batch size")
			if err != nil {
				return err
			}
			if n < 0 {
				return c.Invalid("a batch of %d elements", n)
			}
			items, err := q.Take(c, n, upTo && !q.sorted) // as in TensorFlow, a queue by priority gives no small batch
			if err != nil {
				return err
			}
			for i := range types {
				if err := batch(c, q, items, i); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}
}

// batch stacks component i of the items.
func batch(c *exec.KernelContext, q *Queue, items []variant.Tuple, i int) error {
	shape, err := q.elementShape(items, i)
	if err != nil {
		return c.Invalid("%v", err)
	}
	d := c.Out(i, q.Types[i], append(append(c.ScratchInts(0, 0), len(items)), shape...)...)
	row := exec.NumElements(shape)
	if q.pads {
		elem.Zero(d)
	}
	for k, it := range items {
		if exec.SameShape(it[i].Shape, shape) {
			exec.CopyElems(d, k*row, it[i], 0, row)
			continue
		}
		stride := elem.RowMajor(c, 1, shape)
		elem.ScatterStrided(d, it[i], stride, k*row)
	}
	return nil
}

// elementShape returns the shape of one element of a batch: that of all, or
// the smallest that holds each when the queue pads.
func (q *Queue) elementShape(items []variant.Tuple, i int) ([]int, error) {
	if len(items) == 0 {
		if len(q.shapes) == 0 || exec.HasUnknownDim(q.shapes[i]) {
			return nil, fmt.Errorf("an empty batch of component %d, whose shape is not known", i)
		}
		return q.shapes[i], nil
	}
	shape := append([]int{}, items[0][i].Shape...)
	for _, it := range items[1:] {
		s := it[i].Shape
		if exec.SameShape(shape, s) {
			continue
		}
		if !q.pads || len(s) != len(shape) || len(s) > exec.MaxRank {
			return nil, fmt.Errorf("component %d has elements of shapes %s and %s in one batch", i, exec.ShapeString(shape), exec.ShapeString(s))
		}
		for k, d := range s {
			shape[k] = max(shape[k], d)
		}
	}
	return shape, nil
}

func buildQueueClose(b *exec.OpConstruction) (exec.Kernel, error) {
	cancel := b.Bool("cancel_pending_enqueues")
	return func(c *exec.KernelContext) error {
		q, err := queue(c)
		if err != nil {
			return err
		}
		q.close(cancel)
		c.MarkEffect()
		return nil
	}, nil
}

func queueSize(c *exec.KernelContext) error {
	q, err := queue(c)
	if err != nil {
		return err
	}
	exec.Elems[int32](c.Out(0, exec.Int32))[0] = int32(q.size())
	return nil
}

func queueIsClosed(c *exec.KernelContext) error {
	q, err := queue(c)
	if err != nil {
		return err
	}
	q.L.Lock()
	defer q.L.Unlock()
	exec.Elems[bool](c.Out(0, exec.Bool))[0] = q.closed
	return nil
}
