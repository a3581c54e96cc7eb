package array

import (
	"fmt"

	"github.com/trainerd/trainerd/internal/blas"
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
		perm[i] = p
		shape[i], moved[i] = x.Shape[p], stride[p]
	}
	d := c.Out(0, x.DType, shape...)
	if fixed, by := rotation(perm); by > 0 && x.DType == exec.Float32 {
		if m, n := exec.NumElements(x.Shape[fixed:fixed+by]), exec.NumElements(x.Shape[fixed+by:]); len(perm) == 2 || m*n >= smallMatrix {
			turnMatrices(exec.Elems[float32](d), exec.Elems[float32](x), m, n)
			return nil
		}
	}
	elem.GatherStrided(d, x, moved, 0)
	return nil
}

// smallMatrix is how many elements make a matrix worth the blocks that it is transposed by.
const smallMatrix = 64

// rotation returns how many dimensions stay the first ones, and how many of the others follow the
// rest instead of leading them: then matrices are transposed. None is 0.
func rotation(perm []int) (fixed, by int) {
	for fixed < len(perm) && perm[fixed] == fixed {
		fixed++
	}
	if fixed == len(perm) {
		return 0, 0
	}
	by = perm[fixed] - fixed
	for i, p := range perm[fixed:] {
		if p != fixed+(i+by)%(len(perm)-fixed) {
			return 0, 0
		}
	}
	return fixed, by
}

// turnMatrices transposes matrices of m rows.
func turnMatrices(d, x []float32, m, n int) {
	for at := 0; at < len(x); at += m * n {
		blas.Transpose(d[at:at+m*n], m, x[at:at+m*n], m, n)
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
	// A row of a block is a run of elements in both.
	run := size * ch
	blocks, stride := []int{n * h, size, w, run}, []int{w * size * run, run, size * run, 1}
	if toDepth {
		elem.ScatterStrided(d, shaped(x, blocks), stride, 0)
	} else {
		elem.GatherStrided(shaped(d, blocks), x, stride, 0)
	}
	return nil
}

// shaped returns a view of a tensor.
func shaped(t *exec.Tensor, shape []int) *exec.Tensor {
	view := *t
	view.Shape = shape
	return &view
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
