package elem

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// MaxReduced bounds the rank of what is reduced: the gradient of a Tile has two
// dimensions for each one of the tensor.
const MaxReduced = 2 * exec.MaxRank

// Reduction is the loop nest of a reduction over the input in memory order.
type Reduction struct {
	Loops   int
	Dim, So [MaxReduced]int // so: stride in the output, 0 for reduced loops
	Rank    int
	Out     [MaxReduced]int
	Folded  int // elements per result
}

// Init computes the loops for a reduction of shape over axes.
func (r *Reduction) Init(c *exec.KernelContext, shape, axes []int, keep bool) error {
	if len(shape) > MaxReduced {
		return c.Invalid("a tensor of rank %d is beyond the %d that can be reduced", len(shape), MaxReduced)
	}
	var reduced [MaxReduced]bool
	for _, a := range axes {
		if a < -len(shape) || a >= len(shape) {
			return c.Invalid("axis %d is outside a tensor of rank %d", a, len(shape))
		}
		if a < 0 {
			a += len(shape)
		}
		if reduced[a] {
			return c.Invalid("axis %d is named twice", a)
		}
		reduced[a] = true
	}
	r.Rank, r.Folded, r.Loops = 0, 1, 0
	for i, d := range shape {
		switch {
		case !reduced[i]:
			r.Out[r.Rank] = d
			r.Rank++
		case keep:
			r.Out[r.Rank] = 1
			r.Rank++
			fallthrough
		default:
			r.Folded *= d
		}
	}
	r.collapse(shape, &reduced)
	return nil
}

func (r *Reduction) collapse(shape []int, reduced *[MaxReduced]bool) {
	stride := 1
	last := -1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] == 1 {
			continue
		}
		mode := 0
		if reduced[i] {
			mode = 1
		}
		if mode == last {
			r.Dim[r.Loops-1] *= shape[i]
		} else {
			r.Dim[r.Loops], r.So[r.Loops] = shape[i], stride*(1-mode)
			r.Loops++
			last = mode
		}
		if mode == 0 {
			stride *= shape[i]
		}
	}
	if r.Loops == 0 {
		r.Dim[0], r.So[0], r.Loops = 1, 1, 1
	}
	for i, j := 0, r.Loops-1; i < j; i, j = i+1, j-1 {
		r.Dim[i], r.Dim[j] = r.Dim[j], r.Dim[i]
		r.So[i], r.So[j] = r.So[j], r.So[i]
	}
}
