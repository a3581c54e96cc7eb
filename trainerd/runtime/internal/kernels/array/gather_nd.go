package array

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

func buildGatherNd(b *exec.OpConstruction) (exec.Kernel, error) {
	ignore := ignoresBadIndices(b)
	return func(c *exec.KernelContext) error { return gatherVectors(c, c.In(0), c.In(1), ignore) }, nil
}

// ignoresBadIndices reports whether indices outside a tensor are skipped.
func ignoresBadIndices(b *exec.OpConstruction) bool {
	policy := b.String("bad_indices_policy")
	if policy != "" && policy != "DEFAULT" && policy != "ERROR" && policy != "IGNORE" {
		b.Fail("attribute bad_indices_policy is %q", policy)
	}
	return policy == "IGNORE"
}

func buildResourceGatherNd(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	return func(c *exec.KernelContext) error {
		v, err := c.TypedVariable(0, dt)
		if err != nil {
			return err
		}
		return gatherVectors(c, &v.Value, c.In(1), false)
	}, nil
}

// gatherVectors copies the parts of x that the vectors of idx are the indices
// of. An index outside of x is an error, or gives zeros.
func gatherVectors(c *exec.KernelContext, x, idx *exec.Tensor, ignore bool) error {
	if len(idx.Shape) == 0 || !exec.Indices.Has(idx.DType) || idx.Dim(-1) > len(x.Shape) {
		return c.Invalid("indices %s do not fit %s", idx.Describe(), x.Describe())
	}
	depth := idx.Dim(-1)
	shape := append(append(c.ScratchInts(0, 0), idx.Shape[:len(idx.Shape)-1]...), x.Shape[depth:]...)
	d := c.Out(0, x.DType, shape...)
	row := exec.NumElements(x.Shape[depth:])
	for k := range exec.NumElements(idx.Shape[:len(idx.Shape)-1]) {
		from, ok := flatIndex(idx, k, x.Shape[:depth])
		switch {
		case ok:
			exec.CopyElems(d, k*row, x, from*row, row)
		case ignore:
			elem.ZeroElems(d, k*row, row)
		default:
			return badIndex(c, idx, k, x.Shape[:depth])
		}
	}
	return nil
}

// flatIndex returns the row-major position that vector k of idx names in shape,
// and false when that is outside.
func flatIndex(idx *exec.Tensor, k int, shape []int) (int, bool) {
	at := 0
	for j, n := range shape {
		i := idx.IntAt(k*len(shape) + j)
		if i < 0 || i >= n {
			return 0, false
		}
		at = at*n + i
	}
	return at, true
}

// badIndex says what is wrong with vector k of idx.
func badIndex(c *exec.KernelContext, idx *exec.Tensor, k int, shape []int) error {
	for j, n := range shape {
		if i := idx.IntAt(k*len(shape) + j); i < 0 || i >= n {
			return c.Invalid("index %d is %d in dimension %d, outside [0, %d)", k, i, j, n)
		}
	}
	return nil
}
