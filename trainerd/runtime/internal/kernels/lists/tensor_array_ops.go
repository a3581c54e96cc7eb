package lists

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Arrays of tensors: what the loops of TensorFlow 1 keep values of each
// iteration in. They live as long as the run; the graph hands their handle
// around, and a float called flow that orders the accesses.
var tensorArrayOps = exec.OpTable{
	"TensorArrayV3":            {Flags: exec.Stateful, Build: buildTensorArray},
	"TensorArrayGradV3":        {Flags: exec.Stateful, Build: buildTensorArrayGrad},
	"TensorArrayGradWithShape": {Flags: exec.Stateful, Build: buildTensorArrayGrad},
	"TensorArrayWriteV3":       {Flags: exec.Stateful, Build: exec.WithoutAttrs(arrayWrite)},
	"TensorArrayReadV3":        {Flags: exec.Stateful, Build: buildArrayRead},
	"TensorArrayGatherV3":      {Flags: exec.Stateful, Build: buildArrayGather},
	"TensorArrayScatterV3":     {Flags: exec.Stateful, Build: exec.WithoutAttrs(arrayScatter)},
	"TensorArrayConcatV3":      {Flags: exec.Stateful, Build: buildArrayConcat},
	"TensorArraySplitV3":       {Flags: exec.Stateful, Build: exec.WithoutAttrs(arraySplit)},
	"TensorArraySizeV3":        {Flags: exec.Stateful, Build: exec.WithoutAttrs(arraySize)},
	"TensorArrayCloseV3":       {Flags: exec.Stateful, Build: exec.WithoutAttrs(arrayClose)},
}

func buildTensorArray(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	shape := elementShapeAttr(b, "element_shape")
	proto := tensorArray{dtype: dt, shape: shape, same: b.Bool("identical_element_shapes"), grows: b.Bool("dynamic_size"), once: b.Bool("clear_after_read")}
	return func(c *exec.KernelContext) error {
		n, err := c.IntScalar(0, "the size")
		if err != nil {
			return err
		}
		if n < 0 {
			return c.Invalid("an array of %d elements", n)
		}
		c.CheckSize([]int{n}, 64)
		a := proto
		a.items = make([]arrayItem, n)
		c.FreeAtEnd(&a)
		handleAndFlow(c, &a)
		return nil
	}, nil
}

// handleAndFlow makes the outputs a handle and the flow, if there is one.
func handleAndFlow(c *exec.KernelContext, a *tensorArray) {
	c.SetHandle(0, a)
	if c.NumOutputs() > 1 {
		flow(c, 1)
	}
}

// flow sets the output that orders accesses.
func flow(c *exec.KernelContext, i int) { exec.Elems[float32](c.Out(i, exec.Float32))[0] = 0 }

func array(c *exec.KernelContext) (*tensorArray, error) {
	a, ok := c.In(0).Value.(*tensorArray)
	if !ok {
		return nil, c.Invalid("input 0 is not an array of tensors")
	}
	if a.closed {
		return nil, c.Invalid("the array of tensors is closed")
	}
	return a, nil
}

// buildTensorArrayGrad builds the op that finds the array of gradients that
// belongs to an array and to one backward pass, its source.
func buildTensorArrayGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	source := b.String("source")
	widened := b.Op() == "TensorArrayGradWithShape"
	return func(c *exec.KernelContext) error {
		a, err := array(c)
		if err != nil {
			return err
		}
		if a.grads == nil {
			a.grads = map[string]*tensorArray{}
		}
		g := a.grads[source]
		if g == nil {
			g = &tensorArray{dtype: a.dtype, shape: a.shape, same: a.same, once: false, adds: true, items: make([]arrayItem, len(a.items))}
			if widened {
				g.leading = append([]int{}, c.IntsOf(0, c.In(2))...)
			}
			for i, it := range a.items {
				g.items[i] = arrayItem{shape: append(append([]int{}, g.leading...), it.shape...), known: it.known}
			}
			if g.shape != nil {
				g.shape = append(append([]int{}, g.leading...), g.shape...)
			}
			a.grads[source] = g
		}
		handleAndFlow(c, g)
		return nil
	}, nil
}

func arrayWrite(c *exec.KernelContext) error {
	a, err := array(c)
	if err != nil {
		return err
	}
	i, err := c.IntScalar(1, "the index")
	if err != nil {
		return err
	}
	if err := a.put(c, i, c.Keep(c.In(2))); err != nil {
		return err
	}
	flow(c, 0)
	return nil
}

func buildArrayRead(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	return func(c *exec.KernelContext) error {
		a, err := array(c)
		if err != nil {
			return err
		}
		i, err := c.IntScalar(1, "the index")
		if err != nil {
			return err
		}
		t, err := a.get(c, i)
		if err != nil {
			return err
		}
		if t.DType != dt {
			return c.Invalid("an array of %s is read as %s", exec.TypeName(t.DType), exec.TypeName(dt))
		}
		if a.adds {
			// It may be added to after this.
			exec.CopyElems(c.OutLike(0, dt, t), 0, t, 0, t.NumElements())
			return nil
		}
		if a.once {
			c.HandOut(0, t)
			return nil
		}
		c.Alias(0, t, t.Shape)
		return nil
	}, nil
}

func buildArrayGather(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	shape := elementShapeAttr(b, "element_shape")
	return func(c *exec.KernelContext) error {
		a, err := array(c)
		if err != nil {
			return err
		}
		if a.dtype != dt {
			return c.Invalid("an array of %s is read as %s", exec.TypeName(a.dtype), exec.TypeName(dt))
		}
		index := append([]int(nil), c.IntsOf(0, c.In(1))...)
		if len(index) == 0 {
			if exec.HasUnknownDim(shape) {
				shape := a.shape
				if exec.HasUnknownDim(shape) {
					return c.Invalid("no elements are gathered, and their shape is not known")
				}
				c.Out(0, dt, append([]int{0}, shape...)...)
				return nil
			}
			c.Out(0, dt, append([]int{0}, shape...)...)
			return nil
		}
		return a.gather(c, index, shape)
	}, nil
}

// elementShapeAttr returns the shape in an attribute, nil when it is not known.
func elementShapeAttr(b *exec.OpConstruction, attr string) []int {
	shape, known := b.Shape(attr)
	if known && shape == nil {
		return []int{}
	}
	return shape
}

// buildArrayPack builds the op that gathers all elements.
func buildArrayPack(b *exec.OpConstruction) (exec.Kernel, error) {
	dt, shape := b.DType("dtype"), elementShapeAttr(b, "element_shape")
	return func(c *exec.KernelContext) error {
		a, err := array(c)
		if err != nil {
			return err
		}
		if a.dtype != dt {
			return c.Invalid("an array of %s is read as %s", exec.TypeName(a.dtype), exec.TypeName(dt))
		}
		if len(a.items) == 0 {
			if exec.HasUnknownDim(a.shape) {
				return c.Invalid("no elements are gathered, and their shape is not known")
			}
			c.Out(0, dt, append([]int{0}, a.shape...)...)
			return nil
		}
		return a.gather(c, counting(len(a.items)), shape)
	}, nil
}

// counting returns the numbers below n.
func counting(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// arrayUnpack scatters to all elements.
func arrayUnpack(c *exec.KernelContext) error {
	a, err := array(c)
	if err != nil {
		return err
	}
	n := len(a.items)
	if t := c.In(1); a.grows && len(t.Shape) > 0 {
		n = t.Shape[0]
	}
	return a.scatter(c, c.In(1), counting(n))
}

func arrayScatter(c *exec.KernelContext) error {
	a, err := array(c)
	if err != nil {
		return err
	}
	return a.scatter(c, c.In(2), append([]int(nil), c.IntsOf(0, c.In(1))...))
}

func buildArrayConcat(b *exec.OpConstruction) (exec.Kernel, error) {
	dt, rest := b.DType("dtype"), elementShapeAttr(b, "element_shape_except0")
	return func(c *exec.KernelContext) error {
		a, err := array(c)
		if err != nil {
			return err
		}
		if a.dtype != dt {
			return c.Invalid("an array of %s is read as %s", exec.TypeName(a.dtype), exec.TypeName(dt))
		}
		return a.concat(c, rest)
	}, nil
}

func arraySplit(c *exec.KernelContext) error {
	a, err := array(c)
	if err != nil {
		return err
	}
	t, lengths := c.In(1), append([]int(nil), c.IntsOf(0, c.In(2))...)
	if len(t.Shape) == 0 {
		return c.Invalid("a scalar cannot be split")
	}
	at := 0
	for i, n := range lengths {
		if n < 0 || n > t.Shape[0]-at {
			return c.Invalid("%s cannot be split into the lengths %v", t.Describe(), lengths)
		}
		if err := a.put(c, i, variant.KeepRows(c, t, at, n, append([]int{n}, t.Shape[1:]...))); err != nil {
			return err
		}
		at += n
	}
	if at != t.Shape[0] || len(lengths) != len(a.items) {
		return c.Invalid("%s does not split into the lengths %v of an array of %d", t.Describe(), lengths, len(a.items))
	}
	flow(c, 0)
	return nil
}

// arrayClose lets go of the elements.
func arrayClose(c *exec.KernelContext) error {
	a, err := array(c)
	if err != nil {
		return err
	}
	a.closed, a.items = true, nil
	return nil
}

func arraySize(c *exec.KernelContext) error {
	a, err := array(c)
	if err != nil {
		return err
	}
	exec.Elems[int32](c.Out(0, exec.Int32))[0] = int32(len(a.items))
	return nil
}
