package array

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// stridedSpec is a strided slice, as NumPy's index with slices, integers,
// ellipsis and new axes: the masks say per entry which it is.
type stridedSpec struct {
	begin, end, ellipsis, newAxis, shrink int
}

func strided(b *exec.OpConstruction) stridedSpec {
	return stridedSpec{b.Int("begin_mask"), b.Int("end_mask"), b.Int("ellipsis_mask"), b.Int("new_axis_mask"), b.Int("shrink_axis_mask")}
}

// stridedView is a strided slice resolved against a shape.
type stridedView struct {
	stride [exec.MaxRank]int // in elements, by dimension of the sliced tensor
	taken  [exec.MaxRank]int // elements taken of each dimension
	start  int
	shape  []int // of the result, with new and without shrunk axes
}

// stridedEntries returns what three inputs, from i on, say of the dimensions of a shape.
func stridedEntries(c *exec.KernelContext, shape []int, i int) (begin, end, step []int, err error) {
	for k := i; k < i+3; k++ {
		if len(c.In(k).Shape) != 1 {
			return nil, nil, nil, c.Invalid("begin, end and strides must be vectors, not %s", c.In(k).Describe())
		}
	}
	begin, end, step = c.IntsOf(0, c.In(i)), c.IntsOf(1, c.In(i+1)), c.IntsOf(2, c.In(i+2))
	if len(begin) != len(end) || len(begin) != len(step) || len(shape) > exec.MaxRank || len(begin) > 32 {
		err = c.Invalid("begin, end and strides have %d, %d and %d entries for a tensor of shape %s", len(begin), len(end), len(step), exec.ShapeString(shape))
	}
	return begin, end, step, err
}

// resolve computes the view of a tensor of the given shape that inputs i, i+1
// and i+2 (begin, end, strides) describe.
func (s stridedSpec) resolve(c *exec.KernelContext, v *stridedView, shape []int, i int) error {
	begin, end, step, err := stridedEntries(c, shape, i)
	if err != nil {
		return err
	}
	stride := elem.RowMajor(c, 3, shape)
	out := c.ScratchInts(4, 0)
	dim := 0
	ellipsis := false
	entry := func(k int) error {
		if dim >= len(shape) {
			return c.Invalid("too many indices for a tensor of shape %s", exec.ShapeString(shape))
		}
		b, n, st, err := s.entry(c, k, begin[k], end[k], step[k], shape[dim])
		if err != nil {
			return err
		}
		v.start += b * stride[dim]
		v.stride[dim], v.taken[dim] = st*stride[dim], n
		if s.shrink&(1<<k) == 0 {
			out = append(out, n)
		}
		dim++
		return nil
	}
	whole := func(n int) {
		for ; n > 0; n-- {
			v.stride[dim], v.taken[dim] = stride[dim], shape[dim]
			out = append(out, shape[dim])
			dim++
		}
	}
	for k := range begin {
		switch {
		case s.ellipsis&(1<<k) != 0:
			if ellipsis {
				return c.Invalid("more than one ellipsis")
			}
			ellipsis = true
			whole(len(shape) - dim - s.dimsAfter(k, len(begin)))
		case s.newAxis&(1<<k) != 0:
			out = append(out, 1)
		default:
			if err := entry(k); err != nil {
				return err
			}
		}
	}
	whole(len(shape) - dim)
	c.KeepInts(4, out)
	v.shape = out
	return nil
}

// dimsAfter counts the dimensions that the entries after k consume.
func (s stridedSpec) dimsAfter(k, n int) int {
	count := 0
	for j := k + 1; j < n; j++ {
		if s.newAxis&(1<<j) == 0 {
			count++
		}
	}
	return count
}

// entry resolves one entry against a dimension of n elements: the first index,
// how many, and the step.
func (s stridedSpec) entry(c *exec.KernelContext, k, begin, end, step, n int) (first, count, by int, err error) {
	if step == 0 {
		return 0, 0, 0, c.Invalid("stride %d is zero", k)
	}
	if s.shrink&(1<<k) != 0 {
		if begin < 0 {
			begin += n
		}
		if begin < 0 || begin >= n || step < 0 {
			return 0, 0, 0, c.Invalid("index %d of dimension with %d elements", begin, n)
		}
		return begin, 1, 1, nil
	}
	lo, hi := 0, n
	if step < 0 {
		lo, hi = -1, n-1
	}
	first = s.bound(begin, n, lo, hi, s.begin&(1<<k) != 0, step > 0)
	last := s.bound(end, n, lo, hi, s.end&(1<<k) != 0, step < 0)
	unit := 1
	if step < 0 {
		unit = -1
	}
	if d := last - first; d*unit > 0 {
		count = (d-unit)/step + 1
	}
	if count == 0 {
		first = 0
	}
	return first, count, step, nil
}

// bound clamps an index to [lo, hi]; a masked one is the low or the high end.
func (s stridedSpec) bound(i, n, lo, hi int, masked, low bool) int {
	if masked {
		if low {
			return lo
		}
		return hi
	}
	if i < 0 {
		i += n
	}
	return min(max(i, lo), hi)
}

func buildStridedSlice(b *exec.OpConstruction) (exec.Kernel, error) {
	spec := strided(b)
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		var v stridedView
		if err := spec.resolve(c, &v, x.Shape, 1); err != nil {
			return err
		}
		d := c.Out(0, x.DType, v.taken[:len(x.Shape)]...)
		elem.GatherStrided(d, x, v.stride[:len(x.Shape)], v.start)
		d.Shape = append(d.Shape[:0], v.shape...)
		return nil
	}, nil
}

func buildStridedSliceGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	spec := strided(b)
	return func(c *exec.KernelContext) error {
		shape := c.IntsOf(5, c.In(0))
		if len(c.In(0).Shape) != 1 {
			return c.Invalid("the shape must be a vector, not %s", c.In(0).Describe())
		}
		g := c.In(4)
		d := c.Out(0, g.DType, shape...)
		elem.Zero(d)
		var v stridedView
		if err := spec.resolve(c, &v, shape, 1); err != nil {
			return err
		}
		if !exec.SameShape(v.shape, g.Shape) {
			return c.Invalid("the gradient has the shape %s, the slice %s", exec.ShapeString(g.Shape), exec.ShapeString(v.shape))
		}
		view := *g
		view.Shape = v.taken[:len(shape)]
		elem.ScatterStrided(d, &view, v.stride[:len(shape)], v.start)
		return nil
	}, nil
}
