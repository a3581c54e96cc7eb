package lists

import (
	"bytes"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Values that are not plain tensors: lists of tensors, by which loops remember
// what their gradients need, and optional values, by which branches do. Both
// are never changed once made, so copies share them.
var tensorListOps = exec.OpTable{
	"EmptyTensorList":        {Flags: exec.Stateful, Build: exec.WithoutAttrs(emptyList)},
	"TensorListReserve":      {Flags: exec.Stateful, Build: buildReserve},
	"TensorListPushBack":     {Flags: exec.Stateful, Build: exec.WithoutAttrs(pushBack)},
	"TensorListPopBack":      {Flags: exec.Stateful, Build: buildPopBack},
	"TensorListLength":       {Flags: exec.Stateful, Build: exec.WithoutAttrs(listLength)},
	"TensorListGetItem":      {Flags: exec.Stateful, Build: buildGetItem},
	"TensorListSetItem":      {Flags: exec.Stateful, Build: buildSetItem},
	"TensorListStack":        {Flags: exec.Stateful, Build: buildListStack},
	"TensorListFromTensor":   {Flags: exec.Stateful, Build: exec.WithoutAttrs(listFromTensor)},
	"TensorListElementShape": {Flags: exec.Stateful, Build: buildElementShape},
}

func list(c *exec.KernelContext) (*variant.TensorList, error) { return variant.List(c, 0) }

// elementShape returns the shape that input i holds; a scalar -1 is unknown.
func elementShape(c *exec.KernelContext, i int) []int {
	t := c.In(i)
	if len(t.Shape) == 0 {
		return nil
	}
	return append([]int{}, c.IntsOf(0, t)...)
}

func emptyList(c *exec.KernelContext) error {
	c.SetVariant(0, &variant.TensorList{Shape: elementShape(c, 0)})
	return nil
}

func buildReserve(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		n, err := c.IntScalar(1, "the number of elements")
		if err != nil {
			return err
		}
		if n < 0 {
			return c.Invalid("a list of %d elements", n)
		}
		c.CheckSize([]int{n}, 8)
		c.SetVariant(0, &variant.TensorList{Shape: elementShape(c, 0), Items: make([]*exec.Tensor, n)})
		return nil
	}, nil
}

func pushBack(c *exec.KernelContext) error {
	l, err := list(c)
	if err != nil {
		return err
	}
	c.SetVariant(0, l.With(append(l.Items, nextItem(c, l, c.In(1)))))
	return nil
}

// nextItem returns a copy of a tensor, or the last item of the list if that is one already, for
// items do not change. The gradient of a loop has a list of each weight that the loop uses: the
// same value for every iteration.
func nextItem(c *exec.KernelContext, l *variant.TensorList, t *exec.Tensor) *exec.Tensor {
	if n := len(l.Items); n > 0 && len(t.Data) > 0 {
		last := l.Items[n-1]
		if last != nil && last.DType == t.DType && exec.SameShape(last.Shape, t.Shape) && bytes.Equal(last.Data, t.Data) {
			return last
		}
	}
	return c.Keep(t)
}

func buildPopBack(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("element_dtype")
	return func(c *exec.KernelContext) error {
		l, err := list(c)
		if err != nil {
			return err
		}
		n := len(l.Items)
		if n == 0 {
			return c.Invalid("the list is empty")
		}
		if err := listItem(c, 1, l, n-1, dt, elementShape(c, 1)); err != nil {
			return err
		}
		c.SetVariant(0, l.With(l.Items[:n-1]))
		return nil
	}, nil
}

// listItem makes output i an element. An unset one is zeros, if its shape is
// known.
func listItem(c *exec.KernelContext, i int, l *variant.TensorList, k int, dt tfpb.DataType, shape []int) error {
	if k < 0 || k >= len(l.Items) {
		return c.Invalid("element %d of a list of %d", k, len(l.Items))
	}
	t := l.Items[k]
	if t == nil {
		if exec.HasUnknownDim(shape) {
			shape = l.Shape
		}
		if exec.HasUnknownDim(shape) {
			return c.Invalid("element %d is not set, and its shape is not known", k)
		}
		elem.Zero(c.Out(i, dt, shape...))
		return nil
	}
	if t.DType != dt {
		return c.Invalid("element %d is %s, not %s", k, t.Describe(), exec.TypeName(dt))
	}
	c.Alias(i, t, t.Shape)
	return nil
}

func listLength(c *exec.KernelContext) error {
	l, err := list(c)
	if err != nil {
		return err
	}
	exec.Elems[int32](c.Out(0, exec.Int32))[0] = int32(len(l.Items))
	return nil
}

func buildGetItem(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("element_dtype")
	return func(c *exec.KernelContext) error {
		l, err := list(c)
		if err != nil {
			return err
		}
		k, err := c.IntScalar(1, "the index")
		if err != nil {
			return err
		}
		return listItem(c, 0, l, k, dt, elementShape(c, 2))
	}, nil
}

func buildSetItem(b *exec.OpConstruction) (exec.Kernel, error) {
	grows := b.Bool("resize_if_index_out_of_bounds")
	return func(c *exec.KernelContext) error {
		l, err := list(c)
		if err != nil {
			return err
		}
		k, err := c.IntScalar(1, "the index")
		if err != nil {
			return err
		}
		if k < 0 || k >= len(l.Items) && !grows {
			return c.Invalid("element %d of a list of %d", k, len(l.Items))
		}
		c.CheckSize([]int{k + 1}, 8)
		items := make([]*exec.Tensor, max(len(l.Items), k+1))
		copy(items, l.Items)
		items[k] = c.Keep(c.In(2))
		c.SetVariant(0, l.With(items))
		return nil
	}, nil
}

func buildListStack(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("element_dtype")
	return func(c *exec.KernelContext) error {
		l, err := list(c)
		if err != nil {
			return err
		}
		return l.Stack(c, dt, elementShape(c, 1))
	}, nil
}

func listFromTensor(c *exec.KernelContext) error {
	t := c.In(0)
	if len(t.Shape) == 0 {
		return c.Invalid("a scalar is not a list")
	}
	l := &variant.TensorList{Shape: append([]int{}, t.Shape[1:]...)}
	n := exec.NumElements(l.Shape)
	for k := range t.Shape[0] {
		if t.DType == exec.Variant {
			l.Items = append(l.Items, variant.Rows(t, k, 1, l.Shape))
			continue
		}
		e := c.NewTensor(t.DType, l.Shape)
		exec.CopyElems(e, 0, t, k*n, n)
		l.Items = append(l.Items, e)
	}
	c.SetVariant(0, l)
	return nil
}

func buildElementShape(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("shape_type")
	return func(c *exec.KernelContext) error {
		l, err := list(c)
		if err != nil {
			return err
		}
		if l.Shape == nil {
			exec.SetInt(c.Out(0, dt), 0, -1)
			return nil
		}
		d := c.Out(0, dt, len(l.Shape))
		for i, v := range l.Shape {
			exec.SetInt(d, i, v)
		}
		return nil
	}, nil
}
