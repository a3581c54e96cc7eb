package array

import (
	"fmt"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops that move elements without looking at them.
var layoutOps = exec.OpTable{
	"Slice":            {Types: exec.ValueTypes, Build: exec.WithoutAttrs(slice)},
	"StridedSlice":     {Types: exec.Indices | exec.SetOf(exec.Int16), TypeAttr: "Index", Build: exec.CheckedType("T", exec.ValueTypes, exec.WidenedIndices("Index", buildStridedSlice, 1, 2, 3))},
	"StridedSliceGrad": {Types: exec.ValueTypes, Build: buildStridedSliceGrad},
	"Tile":             {Types: exec.ValueTypes, Build: buildMove(tile[uint8], tile[uint16], tile[uint32], tile[uint64], tile[complex128], tile[[]byte])},
	"Transpose":        {Types: exec.ValueTypes, Build: exec.WithoutAttrs(transposed)},
	"SpaceToDepth":     {Types: exec.ValueTypes, Build: buildSpaceDepth(true)},
	"DepthToSpace":     {Types: exec.ValueTypes, Build: buildSpaceDepth(false)},

	"Roll": {Types: exec.ValueTypes, Build: exec.WithoutAttrs(roll)},

	"ConjugateTranspose": {Types: exec.ValueTypes, Build: buildConjTranspose},
}

// ranked returns an error for tensors of more dimensions than the loops take.
func ranked(c *exec.KernelContext, x *exec.Tensor) error {
	if len(x.Shape) > exec.MaxRank {
		return c.Invalid("%s has more than %d dimensions", x.Describe(), exec.MaxRank)
	}
	return nil
}

func slice(c *exec.KernelContext) error {
	x := c.In(0)
	begin, size := c.IntsOf(1, c.In(1)), c.IntsOf(2, c.In(2))
	if err := ranked(c, x); err != nil {
		return err
	}
	if len(begin) != len(x.Shape) || len(size) != len(x.Shape) {
		return c.Invalid("begin %s and size %s do not fit %s", exec.ShapeString(begin), exec.ShapeString(size), x.Describe())
	}
	for i, d := range x.Shape {
		if size[i] == -1 {
			size[i] = d - begin[i]
		}
		if begin[i] < 0 || size[i] < 0 || begin[i] > d-size[i] {
			return c.Invalid("begin %s and size %s are outside %s", exec.ShapeString(begin), exec.ShapeString(size), x.Describe())
		}
	}
	stride := elem.RowMajor(c, 0, x.Shape)
	start := 0
	for i, b := range begin {
		start += b * stride[i]
	}
	elem.GatherStrided(c.Out(0, x.DType, size...), x, stride, start)
	return nil
}

func tile[T exec.Element](c *exec.KernelContext) error {
	x := c.In(0)
	times := c.IntsOf(0, c.In(1))
	if err := ranked(c, x); err != nil {
		return err
	}
	if len(times) != len(x.Shape) {
		return c.Invalid("multiples %s do not fit %s", exec.ShapeString(times), x.Describe())
	}
	shape := c.ScratchInts(1, len(times))
	for i, t := range times {
		if t < 0 {
			return c.Invalid("multiples %s", exec.ShapeString(times))
		}
		shape[i] = x.Shape[i] * t
	}
	if d := exec.Elems[T](c.Out(0, x.DType, shape...)); len(d) > 0 {
		elem.Repeat(c, d, exec.Elems[T](x), x.Shape, times)
	}
	return nil
}

func transposed(c *exec.KernelContext) error {
	x := c.In(0)
	perm := c.IntsOf(0, c.In(1))
	if err := ranked(c, x); err != nil {
		return err
	}
	if len(perm) != len(x.Shape) {
		return c.Invalid("permutation %s does not fit %s", exec.ShapeString(perm), x.Describe())
	}
	stride := elem.RowMajor(c, 1, x.Shape)
	shape, moved := c.ScratchInts(2, len(perm)), c.ScratchInts(3, len(perm))
	seen := 0
	for i, p := range perm {
		if p < 0 {
			p += len(perm)
		}
		if p < 0 || p >= len(perm) || seen&(1<<p) != 0 {
			return c.Invalid("%s is not a permutation", exec.ShapeString(perm))
		}
		seen |= 1 << p
		shape[i], moved[i] = x.Shape[p], stride[p]
	}
	d := c.Out(0, x.DType, shape...)
	if x.DType == exec.Float32 && len(perm) == 2 && perm[0] == 1 {
		transpose32(exec.Elems[float32](d), exec.Elems[float32](x), x.Shape[0], x.Shape[1])
		return nil
	}
	elem.GatherStrided(d, x, moved, 0)
	return nil
}

func transpose32(d, x []float32, m, n int) {
	for i := range m {
		row := x[i*n : (i+1)*n]
		for j, v := range row {
			d[j*m+i] = v
		}
	}
}

func buildSpaceDepth(toDepth bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		size := b.Int("block_size")
		if f := b.String("data_format"); f != "NHWC" {
			return nil, fmt.Errorf("no kernel for data_format=%s", f)
		}
		return func(c *exec.KernelContext) error { return spaceDepth(c, size, toDepth) }, nil
	}
}

// spaceDepth moves blocks of size x size pixels into channels, or back.
func spaceDepth(c *exec.KernelContext, size int, toDepth bool) error {
	x := c.In(0)
	if len(x.Shape) != 4 || size < 1 || size > 1<<15 {
		return c.Invalid("blocks of %d in %s", size, x.Describe())
	}
	n, h, w, ch := x.Shape[0], x.Shape[1], x.Shape[2], x.Shape[3]
	if toDepth && (h%size != 0 || w%size != 0) || !toDepth && ch%(size*size) != 0 {
		return c.Invalid("blocks of %d do not fit %s", size, x.Describe())
	}
	var d *exec.Tensor
	if toDepth {
		h, w = h/size, w/size
		d = c.Out(0, x.DType, n, h, w, ch*size*size)
	} else {
		ch /= size * size
		d = c.Out(0, x.DType, n, h*size, w*size, ch)
	}
	for i := range n * h * w * size * size {
		q := i % size
		p := i / size % size
		j := i / (size * size) % w
		r := i / (size * size * w) // row of blocks over the batch
		deep := ((r*w+j)*size*size + p*size + q) * ch
		flat := ((r*size+p)*w*size + j*size + q) * ch
		if toDepth {
			exec.CopyElems(d, deep, x, flat, ch)
		} else {
			exec.CopyElems(d, flat, x, deep, ch)
		}
	}
	return nil
}

func buildConjTranspose(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	return func(c *exec.KernelContext) error {
		if err := transposed(c); err != nil {
			return err
		}
		switch d := c.Slot(0); dt {
		case exec.Complex64:
			each(exec.Elems[complex64](d), elem.Conj[complex64])
		case exec.Complex128:
			each(exec.Elems[complex128](d), elem.Conj[complex128])
		}
		return nil
	}, nil
}

func each[T any](x []T, f func(T) T) {
	for i, v := range x {
		x[i] = f(v)
	}
}

func roll(c *exec.KernelContext) error {
	x := c.In(0)
	shifts, axes := c.IntsOf(0, c.In(1)), c.IntsOf(1, c.In(2))
	if !exec.SameShape(c.In(1).Shape, c.In(2).Shape) || len(c.In(1).Shape) > 1 || len(x.Shape) == 0 {
		return c.Invalid("shifts %s along axes %s of %s", exec.ShapeString(shifts), exec.ShapeString(axes), x.Describe())
	}
	total := elem.Zeros(c, 2, len(x.Shape))
	for i, a := range axes {
		if a < -len(x.Shape) || a >= len(x.Shape) {
			return c.Invalid("axis %d is outside %s", a, x.Describe())
		}
		if a < 0 {
			a += len(x.Shape)
		}
		if n := x.Shape[a]; n > 0 {
			total[a] = ((total[a]+shifts[i]%n)%n + n) % n
		}
	}
	d := c.OutLike(0, x.DType, x)
	stride := elem.RowMajor(c, 3, x.Shape)
	for o := range x.NumElements() {
		to := 0
		for a, n := range x.Shape {
			to += (o/stride[a]%n + total[a]) % n * stride[a]
		}
		exec.CopyElems(d, to, x, o, 1)
	}
	return nil
}
