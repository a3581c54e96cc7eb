package queue

import (
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Barriers: they collect the components of elements by key, and give out those
// that are complete in the order in which their keys came.
var barrierOps = exec.OpTable{
	"Barrier":               {Build: buildBarrier},
	"BarrierInsertMany":     {Flags: exec.Stateful | exec.Ordered, Build: buildBarrierInsert},
	"BarrierTakeMany":       {Flags: exec.Stateful | exec.Blocking, Build: buildBarrierTake},
	"BarrierClose":          {Flags: exec.Stateful | exec.Ordered, Build: buildBarrierClose},
	"BarrierReadySize":      {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(barrierReady)},
	"BarrierIncompleteSize": {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(barrierIncomplete)},
}

// barrier holds incomplete elements; complete ones are in ready, with the
// number of their key and the key before the components.
type barrier struct {
	types []tfpb.DataType
	ready *Queue

	exec.Cond
	next    int64
	waiting map[string]*partial
	closed  bool
}

// partial is an element that lacks components.
type partial struct {
	number int64
	parts  variant.Tuple
	lacks  int
}

func buildBarrier(b *exec.OpConstruction) (exec.Kernel, error) {
	types := b.Types("component_types")
	if len(types) == 0 {
		b.Fail("attribute component_types is empty")
		return nil, nil
	}
	r := b.Resource("barrier", func(name string) any {
		q := newQueue(name)
		q.Types = append([]tfpb.DataType{exec.Int64, exec.String}, types...)
		q.sorted = true
		return &barrier{types: types, ready: q, Cond: exec.NewCond(), next: math.MinInt64, waiting: map[string]*partial{}}
	})
	return exec.HandleKernel(r), nil
}

func barrierOf(c *exec.KernelContext) (*barrier, error) {
	b, ok := c.In(0).Value.(*barrier)
	if !ok {
		return nil, c.Invalid("input 0 is not a barrier")
	}
	return b, nil
}

func buildBarrierInsert(b *exec.OpConstruction) (exec.Kernel, error) {
	k := b.Int("component_index")
	return func(c *exec.KernelContext) error {
		b, err := barrierOf(c)
		if err != nil {
			return err
		}
		keys, values := c.In(1), c.In(2)
		if k < 0 || k >= len(b.types) || values.DType != b.types[k] || len(keys.Shape) != 1 || len(values.Shape) == 0 || values.Shape[0] != len(keys.Strings) {
			return c.Invalid("component %d, %s, of the keys %s for a barrier of %d components", k, values.Describe(), keys.Describe(), len(b.types))
		}
		var done []variant.Tuple
		b.L.Lock()
		number := b.next // of all keys that are new with this call
		for i, key := range keys.Strings {
			el, err := b.insert(c, string(key), number, k, variant.KeepRows(c, values, i, 1, values.Shape[1:]))
			if err != nil {
				b.L.Unlock()
				return err
			}
			if el != nil {
				done = append(done, el)
			}
		}
		last := b.closed && len(b.waiting) == 0
		b.L.Unlock()
		if len(done) > 0 {
			if err := b.ready.put(c, done); err != nil {
				return err
			}
		}
		if last {
			b.ready.close(false)
		}
		return nil
	}, nil
}

// insert adds a component and returns the element if that makes it complete.
// The caller holds b.L.
func (b *barrier) insert(c *exec.KernelContext, key string, number int64, k int, value *exec.Tensor) (variant.Tuple, error) {
	p := b.waiting[key]
	if p == nil {
		if b.closed {
			return nil, c.Errorf(tfpb.Code_CANCELLED, "the barrier %q is closed, and %q is a new key", b.ready.Name, key)
		}
		p = &partial{number: number, parts: make(variant.Tuple, len(b.types)), lacks: len(b.types)}
		b.waiting[key] = p
		b.next = number + 1
	}
	if p.parts[k] != nil {
		return nil, c.Invalid("component %d of key %q is inserted twice", k, key)
	}
	p.parts[k] = value
	if p.lacks--; p.lacks > 0 {
		return nil, nil
	}
	delete(b.waiting, key)
	index, name := exec.NewTensor(exec.Int64, nil), exec.NewTensor(exec.String, nil)
	exec.Elems[int64](index)[0] = p.number
	name.Strings[0] = []byte(key)
	return append(variant.Tuple{index, name}, p.parts...), nil
}

func buildBarrierTake(b *exec.OpConstruction) (exec.Kernel, error) {
	types := b.Types("component_types")
	small, wait := b.Bool("allow_small_batch"), b.Bool("wait_for_incomplete")
	return func(c *exec.KernelContext) error {
		b, err := barrierOf(c)
		if err != nil {
			return err
		}
		n, err := c.IntScalar(1, "the number of elements")
		if err != nil {
			return err
		}
		if n < 0 {
			return c.Invalid("%d elements asked for", n)
		}
		if err := sameTypes(c, b.ready, append([]tfpb.DataType{exec.Int64, exec.String}, types...)); err != nil {
			return err
		}
		if small && !wait {
			n = min(n, max(b.ready.size(), 1))
		}
		items, err := b.ready.Take(c, n, small)
		if err != nil {
			return err
		}
		for i := range b.ready.Types {
			if err := batch(c, b.ready, items, i); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func buildBarrierClose(b *exec.OpConstruction) (exec.Kernel, error) {
	cancel := b.Bool("cancel_pending_enqueues")
	return func(c *exec.KernelContext) error {
		b, err := barrierOf(c)
		if err != nil {
			return err
		}
		b.L.Lock()
		defer b.L.Unlock()
		b.closed = true
		if cancel {
			clear(b.waiting)
		}
		if len(b.waiting) == 0 {
			b.ready.close(cancel)
		}
		return nil
	}, nil
}

func barrierReady(c *exec.KernelContext) error {
	b, err := barrierOf(c)
	if err != nil {
		return err
	}
	exec.Elems[int32](c.Out(0, exec.Int32))[0] = int32(b.ready.size())
	return nil
}

func barrierIncomplete(c *exec.KernelContext) error {
	b, err := barrierOf(c)
	if err != nil {
		return err
	}
	b.L.Lock()
	defer b.L.Unlock()
	exec.Elems[int32](c.Out(0, exec.Int32))[0] = int32(len(b.waiting))
	return nil
}
