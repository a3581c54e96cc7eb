package array

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops that join tensors, and cut them into parts.
var concatOps = exec.OpTable{
	"Concat":         {Types: exec.ValueTypes, Build: buildConcat(0, 1)},
	"ConcatV2":       {Types: exec.ValueTypes, Build: buildConcat(-1, 0)},
	"ParallelConcat": {Types: exec.ValueTypes, Build: exec.WithoutAttrs(parallelConcat)},
	"ConcatOffset":   {Build: buildConcatOffset},
	"Split":          {Types: exec.ValueTypes, Build: buildSplit},
	"SplitV":         {Types: exec.ValueTypes, Build: buildSplitV},
	"Pack":           {Types: exec.ValueTypes, Build: buildPack},
	"Unpack":         {Types: exec.ValueTypes, Build: buildUnpack},
}

// buildConcat builds a concatenation whose axis is input axisAt (-1: the last)
// and whose values begin at input first.
func buildConcat(axisAt, first int) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		n := b.NumInputs() - 1
		if n < 1 {
			b.Fail("nothing to concatenate")
		}
		at := axisAt
		if at < 0 {
			at = n
		}
		return func(c *exec.KernelContext) error { return concat(c, at, first, n) }, nil
	}
}

func concat(c *exec.KernelContext, axisAt, first, n int) error {
	x := c.In(first)
	a, err := c.Axis(axisAt, len(x.Shape))
	if err != nil {
		return err
	}
	shape := append(c.ScratchInts(0, 0), x.Shape...)
	shape[a] = 0
	for i := range n {
		y := c.In(first + i)
		if len(y.Shape) != len(shape) || !exec.SameShape(y.Shape[:a], x.Shape[:a]) || !exec.SameShape(y.Shape[a+1:], x.Shape[a+1:]) {
			return c.Invalid("%s and %s cannot be concatenated along axis %d", x.Describe(), y.Describe(), a)
		}
		shape[a] += y.Shape[a]
	}
	d := c.Out(0, x.DType, shape...)
	outer, row := exec.NumElements(shape[:a]), exec.NumElements(shape[a:])
	at := 0
	for i := range n {
		y := c.In(first + i)
		w := exec.NumElements(y.Shape[a:])
		for o := range outer {
			exec.CopyElems(d, o*row+at, y, o*w, w)
		}
		at += w
	}
	return nil
}

// parallelConcat joins pieces of one row each. TensorFlow writes each as soon as it is
// there.
func parallelConcat(c *exec.KernelContext) error {
	x, n := c.In(0), c.NumInputs()
	if len(x.Shape) == 0 {
		return c.Invalid("a piece must have one row, not be a scalar")
	}
	shape := append(c.ScratchInts(0, 0), x.Shape...)
	shape[0] = n
	d, row := c.Out(0, x.DType, shape...), x.NumElements()
	for i := range n {
		y := c.In(i)
		if !exec.SameShape(y.Shape, x.Shape) || y.Shape[0] != 1 {
			return c.Invalid("pieces must have one row and one shape, not %s and %s", x.Describe(), y.Describe())
		}
		exec.CopyElems(d, i*row, y, 0, row)
	}
	return nil
}

func buildConcatOffset(b *exec.OpConstruction) (exec.Kernel, error) {
	n := b.NumInputs() - 1
	return func(c *exec.KernelContext) error {
		x := c.In(1)
		a, err := c.Axis(0, x.NumElements())
		if err != nil {
			return err
		}
		at := 0
		for i := range n {
			s := c.In(i + 1)
			if !exec.SameShape(s.Shape, x.Shape) {
				return c.Invalid("the shapes have the ranks %d and %d", x.NumElements(), s.NumElements())
			}
			d := c.OutLike(i, s.DType, s)
			elem.Zero(d)
			exec.SetInt(d, a, at)
			at += s.IntAt(a)
		}
		return nil
	}, nil
}

func buildSplit(b *exec.OpConstruction) (exec.Kernel, error) {
	n := b.OutputsFrom("num_split")
	return func(c *exec.KernelContext) error {
		x := c.In(1)
		a, err := c.Axis(0, len(x.Shape))
		if err != nil {
			return err
		}
		if n == 0 || x.Shape[a]%n != 0 {
			return c.Invalid("axis %d of %s cannot be split into %d", a, x.Describe(), n)
		}
		sizes := c.ScratchInts(1, n)
		for i := range sizes {
			sizes[i] = x.Shape[a] / n
		}
		return split(c, x, a, sizes)
	}, nil
}

func buildSplitV(b *exec.OpConstruction) (exec.Kernel, error) {
	n := b.NumOutputs()
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		a, err := c.Axis(2, len(x.Shape))
		if err != nil {
			return err
		}
		sizes := c.IntsOf(1, c.In(1))
		open, total := -1, 0
		for i, s := range sizes {
			if s == -1 && open < 0 {
				open = i
				continue
			}
			if s < 0 {
				return c.Invalid("piece %d has size %d", i, s)
			}
			total += s
		}
		if open >= 0 && total <= x.Shape[a] {
			sizes[open] = x.Shape[a] - total
			total = x.Shape[a]
		}
		if len(sizes) != n || total != x.Shape[a] {
			return c.Invalid("axis %d of %s cannot be split into %s", a, x.Describe(), exec.ShapeString(sizes))
		}
		return split(c, x, a, sizes)
	}, nil
}

// split cuts x along axis a into pieces of the given sizes.
func split(c *exec.KernelContext, x *exec.Tensor, a int, sizes []int) error {
	outer, inner := exec.NumElements(x.Shape[:a]), exec.NumElements(x.Shape[a+1:])
	at := 0
	for i, s := range sizes {
		shape := append(c.ScratchInts(0, 0), x.Shape...)
		shape[a] = s
		d := c.Out(i, x.DType, shape...)
		for o := range outer {
			exec.CopyElems(d, o*s*inner, x, (o*x.Shape[a]+at)*inner, s*inner)
		}
		at += s
	}
	return nil
}

func buildPack(b *exec.OpConstruction) (exec.Kernel, error) {
	axis := b.Int("axis")
	return func(c *exec.KernelContext) error {
		if c.NumInputs() == 0 {
			return c.Invalid("nothing to pack")
		}
		x, n := c.In(0), c.NumInputs()
		a := axis
		if a < 0 {
			a += len(x.Shape) + 1
		}
		if a < 0 || a > len(x.Shape) {
			return c.Invalid("axis %d is outside a tensor of rank %d", axis, len(x.Shape)+1)
		}
		d := c.Out(0, x.DType, append(append(append(c.ScratchInts(0, 0), x.Shape[:a]...), n), x.Shape[a:]...)...)
		outer, inner := exec.NumElements(x.Shape[:a]), exec.NumElements(x.Shape[a:])
		for i := range n {
			if y := c.In(i); !exec.SameShape(x.Shape, y.Shape) {
				return c.Invalid("input %d has the shape %s, input 0 %s", i, exec.ShapeString(y.Shape), exec.ShapeString(x.Shape))
			}
		}
		if n == 2 && inner == 1 && alternate(d, x, c.In(1)) {
			return nil
		}
		for i := range n {
			y := c.In(i)
			if inner == 1 {
				interleave(d, y, n, i)
				continue
			}
			for o := range outer {
				exec.CopyElems(d, (o*n+i)*inner, y, o*inner, inner)
			}
		}
		return nil
	}, nil
}

// alternate puts the elements of x and y to d in turn, and reports false for
// types that it does not take.
func alternate(d, x, y *exec.Tensor) bool {
	switch {
	case x.DType != exec.String && exec.ElemSize(x.DType) == 4:
		inTurn(words[[2]uint32](d), exec.Elems[uint32](x), exec.Elems[uint32](y))
	case x.DType != exec.String && exec.ElemSize(x.DType) == 8:
		inTurn(words[[2]uint64](d), exec.Elems[uint64](x), exec.Elems[uint64](y))
	default:
		return false
	}
	return true
}

func inTurn[T uint32 | uint64](d [][2]T, x, y []T) {
	d, y = d[:len(x)], y[:len(x)]
	for i, v := range x {
		d[i] = [2]T{v, y[i]}
	}
}

// interleave puts the elements of y to every nth place of d, from the ith on.
func interleave(d, y *exec.Tensor, n, i int) {
	switch {
	case y.DType != exec.String && exec.ElemSize(y.DType) == 4:
		each, from := exec.Elems[uint32](d), exec.Elems[uint32](y)
		for o, v := range from {
			each[o*n+i] = v
		}
	case y.DType != exec.String && exec.ElemSize(y.DType) == 8:
		each, from := exec.Elems[uint64](d), exec.Elems[uint64](y)
		for o, v := range from {
			each[o*n+i] = v
		}
	default:
		for o := range y.NumElements() {
			exec.CopyElems(d, o*n+i, y, o, 1)
		}
	}
}

func buildUnpack(b *exec.OpConstruction) (exec.Kernel, error) {
	axis := b.Int("axis")
	n := b.OutputsFrom("num")
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		a := axis
		if a < 0 {
			a += len(x.Shape)
		}
		if a < 0 || a >= len(x.Shape) || x.Shape[a] != n {
			return c.Invalid("%s cannot be unpacked to %d along axis %d", x.Describe(), n, axis)
		}
		outer, inner := exec.NumElements(x.Shape[:a]), exec.NumElements(x.Shape[a+1:])
		for i := range n {
			d := c.Out(i, x.DType, append(append(c.ScratchInts(0, 0), x.Shape[:a]...), x.Shape[a+1:]...)...)
			for o := range outer {
				exec.CopyElems(d, o*inner, x, (o*n+i)*inner, inner)
			}
		}
		return nil
	}, nil
}
