package state

import (
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Conditional accumulators: they sum gradients of one global step, from as many
// workers as there are, until enough are there to take their mean. Replicas
// that train in step use them.
var accumulatorOps = exec.OpTable{
	"ConditionalAccumulator":         {Build: buildAccumulator},
	"ResourceConditionalAccumulator": {Build: buildAccumulator},
	"SparseConditionalAccumulator":   {Build: buildAccumulator},

	"AccumulatorApplyGradient":          {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(applyDense)},
	"ResourceAccumulatorApplyGradient":  {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(applyDense)},
	"SparseAccumulatorApplyGradient":    {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(applySparse)},
	"AccumulatorTakeGradient":           {Flags: exec.Stateful | exec.Blocking, Build: exec.WithoutAttrs(takeDense)},
	"ResourceAccumulatorTakeGradient":   {Flags: exec.Stateful | exec.Blocking, Build: exec.WithoutAttrs(takeDense)},
	"SparseAccumulatorTakeGradient":     {Flags: exec.Stateful | exec.Blocking, Build: buildTakeSparse},
	"AccumulatorSetGlobalStep":          {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(setAccumulatorStep)},
	"ResourceAccumulatorSetGlobalStep":  {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(setAccumulatorStep)},
	"AccumulatorNumAccumulated":         {Flags: exec.Stateful, Build: exec.WithoutAttrs(accumulatorCount)},
	"ResourceAccumulatorNumAccumulated": {Flags: exec.Stateful, Build: exec.WithoutAttrs(accumulatorCount)},
}

// accumulator sums gradients. Those of an older step than its own are dropped.
type accumulator struct {
	name  string
	dtype tfpb.DataType
	shape []int // nil: any; -1: any dimension
	mean  bool

	exec.Cond // guards what follows
	step      int
	count     int
	sum       *exec.Tensor
	// Of a sparse one: the rows that the sum is of, and the number of gradients
	// that each had a part in.
	rows  []int64
	parts []int
}

func buildAccumulator(b *exec.OpConstruction) (exec.Kernel, error) {
	shape, known := b.Shape("shape")
	if known && shape == nil {
		shape = []int{}
	}
	dt, kind := b.DType("dtype"), b.String("reduction_type")
	if !exec.Numbers.Has(dt) {
		b.Fail("no kernel for dtype=%s", exec.TypeName(dt))
	}
	if kind != "MEAN" && kind != "SUM" {
		b.Fail("attribute reduction_type is %q", kind)
	}
	if b.Err() != nil {
		return nil, b.Err()
	}
	r := b.Resource("accumulator", func(name string) any {
		return &accumulator{name: name, dtype: dt, shape: shape, mean: kind == "MEAN", Cond: exec.NewCond()}
	})
	return exec.HandleKernel(r), nil
}

func accumulatorOf(c *exec.KernelContext) (*accumulator, error) {
	a, ok := c.In(0).Value.(*accumulator)
	if !ok {
		return nil, c.Invalid("input 0 is not an accumulator")
	}
	return a, nil
}

// stale reports whether a gradient of the given step comes too late.
func (a *accumulator) stale(c *exec.KernelContext) (bool, error) {
	step, err := c.IntScalar(1, "the local step")
	return step < a.step, err
}

func applyDense(c *exec.KernelContext) error {
	a, err := accumulatorOf(c)
	if err != nil {
		return err
	}
	g := c.In(2)
	if g.DType != a.dtype || !exec.ShapeCompatible(a.shape, g.Shape) {
		return c.Invalid("a gradient %s for accumulator %q of %s%s", g.Describe(), a.name, exec.TypeName(a.dtype), exec.ShapeString(a.shape))
	}
	a.L.Lock()
	defer a.L.Unlock()
	if late, err := a.stale(c); late || err != nil {
		return err
	}
	if a.count == 0 {
		a.sum = c.Keep(g)
	} else {
		if !exec.SameShape(g.Shape, a.sum.Shape) {
			return c.Invalid("a gradient %s is added to one of shape %s", g.Describe(), exec.ShapeString(a.sum.Shape))
		}
		if err := elem.AddTensor(c, a.sum, g); err != nil {
			return err
		}
	}
	a.count++
	a.Broadcast()
	return nil
}

// taken waits for enough gradients and returns how many there are; the caller
// holds a.L then.
func taken(c *exec.KernelContext, a *accumulator) (int, error) {
	want, err := c.IntScalar(1, "the number of gradients")
	if err != nil {
		return 0, err
	}
	if want < 1 {
		return 0, c.Invalid("%d gradients asked for", want)
	}
	for {
		if err := a.Wait(c, func() (bool, error) { return a.count >= want, nil }); err != nil {
			return 0, err
		}
		a.L.Lock()
		if a.count >= want {
			return a.count, nil
		}
		a.L.Unlock() // another call was faster
	}
}

// reset begins the next global step. The caller holds a.L.
func (a *accumulator) reset() {
	a.count, a.sum, a.rows, a.parts = 0, nil, nil, nil
	a.step++
	a.Broadcast()
}

func takeDense(c *exec.KernelContext) error {
	a, err := accumulatorOf(c)
	if err != nil {
		return err
	}
	n, err := taken(c, a)
	if err != nil {
		return err
	}
	defer a.L.Unlock()
	if a.mean {
		divideRange(a.sum, 0, a.sum.NumElements(), n)
	}
	c.Alias(0, a.sum, a.sum.Shape)
	a.reset()
	return nil
}

// divideRange divides n elements of t from one on.
func divideRange(t *exec.Tensor, at, n, by int) {
	switch t.DType {
	case exec.Float32:
		divideElems(exec.Elems[float32](t)[at:at+n], float32(by))
	case exec.Float64:
		divideElems(exec.Elems[float64](t)[at:at+n], float64(by))
	case exec.Int32:
		divideElems(exec.Elems[int32](t)[at:at+n], int32(by))
	case exec.Int64:
		divideElems(exec.Elems[int64](t)[at:at+n], int64(by))
	}
}

func divideElems[T exec.Number](x []T, by T) {
	for i := range x {
		x[i] /= by
	}
}

func setAccumulatorStep(c *exec.KernelContext) error {
	a, err := accumulatorOf(c)
	if err != nil {
		return err
	}
	step, err := c.IntScalar(1, "the global step")
	if err != nil {
		return err
	}
	a.L.Lock()
	defer a.L.Unlock()
	a.step = step // it may go back, as after a restore; TensorFlow only warns of that
	return nil
}

func accumulatorCount(c *exec.KernelContext) error {
	a, err := accumulatorOf(c)
	if err != nil {
		return err
	}
	a.L.Lock()
	defer a.L.Unlock()
	exec.Elems[int32](c.Out(0, exec.Int32))[0] = int32(a.count)
	return nil
}

// applySparse adds a gradient of some rows.
func applySparse(c *exec.KernelContext) error {
	a, err := accumulatorOf(c)
	if err != nil {
		return err
	}
	index, g := c.In(2), c.In(3)
	if g.DType != a.dtype || len(index.Shape) != 1 || len(g.Shape) == 0 || g.Shape[0] != index.Shape[0] || index.Shape[0] == 0 {
		return c.Invalid("a gradient %s of the rows %s for accumulator %q", g.Describe(), index.Describe(), a.name)
	}
	if len(a.shape) > 0 && !exec.ShapeCompatible(a.shape[1:], g.Shape[1:]) {
		return c.Invalid("a gradient %s for accumulator %q of shape %s", g.Describe(), a.name, exec.ShapeString(a.shape))
	}
	a.L.Lock()
	defer a.L.Unlock()
	if late, err := a.stale(c); late || err != nil {
		return err
	}
	if a.count == 0 {
		a.sum, a.rows = c.Keep(g), append([]int64(nil), exec.Elems[int64](index)...)
		a.parts = make([]int, len(a.rows))
		for i := range a.parts {
			a.parts[i] = 1
		}
	} else if err := a.merge(c, exec.Elems[int64](index), g); err != nil {
		return err
	}
	a.count++
	a.Broadcast()
	return nil
}

// merge adds rows to the sum; both are in ascending order.
func (a *accumulator) merge(c *exec.KernelContext, index []int64, g *exec.Tensor) error {
	if !exec.SameShape(g.Shape[1:], a.sum.Shape[1:]) {
		return c.Invalid("a gradient %s is added to one of shape %s", g.Describe(), exec.ShapeString(a.sum.Shape))
	}
	var rows []int64
	var parts []int
	var from [][2]int // by row: where in the sum and in the gradient, -1 for nowhere
	for i, j := 0, 0; i < len(a.rows) || j < len(index); {
		switch {
		case j == len(index) || i < len(a.rows) && a.rows[i] < index[j]:
			rows, parts, from = append(rows, a.rows[i]), append(parts, a.parts[i]), append(from, [2]int{i, -1})
			i++
		case i == len(a.rows) || index[j] < a.rows[i]:
			rows, parts, from = append(rows, index[j]), append(parts, 1), append(from, [2]int{-1, j})
			j++
		default:
			rows, parts, from = append(rows, index[j]), append(parts, a.parts[i]+1), append(from, [2]int{i, j})
			i++
			j++
		}
	}
	n := exec.NumElements(g.Shape[1:])
	sum := c.NewTensor(a.dtype, append([]int{len(rows)}, g.Shape[1:]...))
	for r, f := range from {
		if f[0] >= 0 {
			exec.CopyElems(sum, r*n, a.sum, f[0]*n, n)
		}
		if f[1] < 0 {
			continue
		}
		if f[0] < 0 {
			exec.CopyElems(sum, r*n, g, f[1]*n, n)
			continue
		}
		size := n * exec.ElemSize(a.dtype)
		part := func(t *exec.Tensor, k int) *exec.Tensor {
			return &exec.Tensor{DType: t.DType, Shape: []int{n}, Data: t.Data[k*size : (k+1)*size]}
		}
		if err := elem.AddTensor(c, part(sum, r), part(g, f[1])); err != nil {
			return err
		}
	}
	a.sum, a.rows, a.parts = sum, rows, parts
	return nil
}

func buildTakeSparse(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		a, err := accumulatorOf(c)
		if err != nil {
			return err
		}
		if _, err := taken(c, a); err != nil {
			return err
		}
		defer a.L.Unlock()
		n := exec.NumElements(a.sum.Shape[1:])
		for r, parts := range a.parts {
			if a.mean {
				divideRange(a.sum, r*n, n, parts)
			}
		}
		copy(exec.Elems[int64](c.Out(0, exec.Int64, len(a.rows))), a.rows)
		c.Alias(1, a.sum, a.sum.Shape)
		shape := slices.Clone(a.sum.Shape)
		shape[0] = -1
		if len(a.shape) > 0 {
			shape[0] = a.shape[0] // the sum has the rows that gradients had
		}
		elem.SetShape(c, 2, exec.Int64, &exec.Tensor{Shape: shape})
		a.reset()
		return nil
	}, nil
}
