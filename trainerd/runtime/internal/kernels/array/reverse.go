package array

import (
	"math/bits"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops that turn the order of elements round.
var reverseOps = exec.OpTable{
	"Reverse":         {Types: exec.ValueTypes, Build: exec.WithoutAttrs(reverseMask)},
	"ReverseV2":       {Types: exec.ValueTypes, Build: exec.WithoutAttrs(reverse)},
	"ReverseSequence": {Types: exec.ValueTypes, Build: buildReverseSequence},
}

func reverseMask(c *exec.KernelContext) error {
	x, flags := c.In(0), exec.Elems[bool](c.In(1))
	if isTheSameReversed(x) {
		return flip(c, x, 0)
	}
	if len(flags) != len(x.Shape) || len(c.In(1).Shape) != 1 {
		return c.Invalid("flags %s do not fit %s", c.In(1).Describe(), x.Describe())
	}
	var mask uint64
	for i, m := range flags {
		if m {
			mask |= 1 << i
		}
	}
	return flip(c, x, mask)
}

// isTheSameReversed reports whether nothing is to be reversed. Then TensorFlow
// does not look at what is asked for.
func isTheSameReversed(x *exec.Tensor) bool { return len(x.Shape) == 0 || x.NumElements() == 0 }

func reverse(c *exec.KernelContext) error {
	x := c.In(0)
	if isTheSameReversed(x) {
		return flip(c, x, 0)
	}
	if axes := c.In(1); len(axes.Shape) != 1 {
		return c.Invalid("the axes must be a vector, not %s", axes.Describe())
	}
	var mask uint64
	for _, a := range c.IntsOf(0, c.In(1)) {
		if a < -len(x.Shape) || a >= len(x.Shape) {
			return c.Invalid("axis %d is outside %s", a, x.Describe())
		}
		if a < 0 {
			a += len(x.Shape)
		}
		if mask&(1<<a) != 0 {
			return c.Invalid("axis %d is given twice", a)
		}
		mask |= 1 << a
	}
	return flip(c, x, mask)
}

// flip reverses the dimensions whose bits are set.
func flip(c *exec.KernelContext, x *exec.Tensor, mask uint64) error {
	if err := ranked(c, x); err != nil {
		return err
	}
	stride := elem.RowMajor(c, 0, x.Shape)
	start := 0
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros64(mask)
		start += stride[i] * (x.Shape[i] - 1)
		stride[i] = -stride[i]
	}
	elem.GatherStrided(c.OutLike(0, x.DType, x), x, stride, start)
	return nil
}

func buildReverseSequence(b *exec.OpConstruction) (exec.Kernel, error) {
	seq, batch := b.Int("seq_dim"), b.Int("batch_dim")
	return func(c *exec.KernelContext) error {
		x, lens := c.In(0), c.In(1)
		r := len(x.Shape)
		if seq < 0 || batch < 0 || seq >= r || batch >= r || seq == batch || len(lens.Shape) != 1 || lens.Shape[0] != x.Shape[batch] {
			return c.Invalid("lengths %s do not fit dimensions %d and %d of %s", lens.Describe(), seq, batch, x.Describe())
		}
		d := c.OutLike(0, x.DType, x)
		if x.NumElements() == 0 {
			return nil
		}
		for i := range lens.Shape[0] {
			if n := lens.IntAt(i); n < 0 || n > x.Shape[seq] {
				return c.Invalid("a length is %d, outside [0, %d]", n, x.Shape[seq])
			}
		}
		reverseSequences(d, x, lens, seq, batch)
		return nil
	}, nil
}

// reverseSequences moves runs of the elements after the two dimensions.
func reverseSequences(d, x, lens *exec.Tensor, seq, batch int) {
	first, second := min(seq, batch), max(seq, batch)
	size := exec.NumElements
	run, between := size(x.Shape[second+1:]), size(x.Shape[first+1:second])
	step := run // from one place in a sequence to the next
	if seq == first {
		step = between * x.Shape[second] * run
	}
	o := 0
	for range size(x.Shape[:first]) {
		for i := range x.Shape[first] {
			for range between {
				for k := range x.Shape[second] {
					at, b := i, k
					if seq == second {
						at, b = k, i
					}
					from := o
					if n := lens.IntAt(b); at < n {
						from += (n - 1 - 2*at) * step
					}
					exec.CopyElems(d, o, x, from, run)
					o += run
				}
			}
		}
	}
}
