package sparse

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Sums and maxima of sparse tensors, and what is the larger of two. A place
// without a value counts as zero among the results alone.
var sparseReduceOps = exec.OpTable{
	"SparseReduceMax":       {Types: exec.Numbers, Build: buildSparseReduce(true, false)},
	"SparseReduceMaxSparse": {Types: exec.Numbers, Build: buildSparseReduce(true, true)},
	"SparseReduceSum":       {Types: exec.Numbers, Build: buildSparseReduce(false, false)},
	"SparseReduceSumSparse": {Types: exec.Numbers, Build: buildSparseReduce(false, true)},
	"SparseSparseMaximum":   {Types: exec.Numbers, Build: buildSparseExtreme(true)},
	"SparseSparseMinimum":   {Types: exec.Numbers, Build: buildSparseExtreme(false)},
}

// sparseReduction is one of these ops.
type sparseReduction struct{ largest, keep, sparse bool }

func buildSparseReduce(largest, sparse bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		if sparse {
		}
		r := &sparseReduction{largest, b.Bool("keep_dims"), sparse}
		return exec.ByType(b.DType("T"), sparseReduce[float32](r), sparseReduce[float64](r), sparseReduce[int32](r), sparseReduce[int64](r))
	}
}

// sparseResult is the shape of a result, and which dimension of the input each
// of its dimensions is, negative for those that are kept at 1.
type sparseResult struct{ shape, from []int }

// result returns the shape that reducing the dimensions in input 3 leaves.
func (r *sparseReduction) result(c *exec.KernelContext, dims []int) (sparseResult, error) {
	n := len(dims)
	reduced := make([]bool, n)
	for _, a := range c.IntsOf(2, c.In(3)) {
		if a < -n || a >= n {
			return sparseResult{}, c.Invalid("Invalid reduction dimension %d, for input with %d dimensions.", a, n)
		}
		reduced[(a+n)%n] = true
	}
	var s sparseResult
	for i, d := range dims {
		switch {
		case !reduced[i]:
			s.shape, s.from = append(s.shape, d), append(s.from, i)
		case r.keep:
			s.shape, s.from = append(s.shape, 1), append(s.from, -1)
		}
	}
	return s, nil
}

// place returns the index of the result that an index of the input counts for.
func (s *sparseResult) place(index []int64, to []int64) {
	for k, i := range s.from {
		to[k] = 0
		if i >= 0 {
			to[k] = index[i]
		}
	}
}

func sparseReduce[T exec.Number](r *sparseReduction) exec.Kernel {
	return func(c *exec.KernelContext) error {
		given, err := sparseInput(c, 0, 1, 2)
		if err != nil {
			return err
		}
		dims := slices.Clone(given)
		s, err := r.result(c, dims)
		if err != nil {
			return err
		}
		values, n := exec.Elems[T](c.In(1)), len(dims)
		index, rank := exec.Elems[int64](c.In(0)), len(s.shape)
		places := make([]int64, len(values)*rank)
		order := make([]int, len(values))
		for i := range order {
			order[i] = i
			s.place(index[i*n:(i+1)*n], places[i*rank:(i+1)*rank])
		}
		at := func(i int) []int64 { return places[i*rank : (i+1)*rank] }
		slices.SortStableFunc(order, func(i, j int) int { return slices.Compare(at(i), at(j)) })
		var sums []T
		var firsts []int
		for k, i := range order {
			switch {
			case k == 0 || !slices.Equal(at(i), at(order[k-1])):
				sums, firsts = append(sums, values[i]), append(firsts, i)
			case r.largest:
				sums[len(sums)-1] = elem.LaterLarger(sums[len(sums)-1], values[i])
			default:
				sums[len(sums)-1] += values[i]
			}
		}
		if r.sparse {
			sparseSums(c, s.shape, len(firsts), func(k int) []int64 { return at(firsts[k]) })
			copy(exec.Elems[T](c.Out(1, exec.DTypeOf[T](), len(sums))), sums)
			return nil
		}
		d := c.Out(0, exec.DTypeOf[T](), s.shape...)
		elem.Zero(d)
		for k, v := range sums {
			exec.Elems[T](d)[elem.FlatIndex(at(firsts[k]), s.shape)] = v
		}
		return nil
	}
}

// sparseSums writes the indices of n values and the shape, outputs 0 and 2.
func sparseSums(c *exec.KernelContext, shape []int, n int, at func(k int) []int64) {
	index := exec.Elems[int64](c.Out(0, exec.Int64, n, len(shape)))
	for k := range n {
		copy(index[k*len(shape):], at(k))
	}
	d := c.Out(2, exec.Int64, len(shape))
	for i, v := range shape {
		exec.SetInt(d, i, v)
	}
}

func buildSparseExtreme(largest bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByType(b.DType("T"), sparseExtreme[float32](largest), sparseExtreme[float64](largest), sparseExtreme[int32](largest), sparseExtreme[int64](largest))
	}
}

// sparseExtreme is the larger, or smaller, value at each place that either
// tensor has one at, with zero for the other.
func sparseExtreme[T exec.Number](largest bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		given, err := sparseInput(c, 0, 1, 2)
		if err != nil {
			return err
		}
		dims := slices.Clone(given)
		other, err := sparseInput(c, 3, 4, 5)
		if err != nil {
			return err
		}
		if len(dims) == 0 || !slices.Equal(dims, other) {
			return c.Invalid("Operands' shapes do not match: got %s and %s", exec.ShapeString(dims), exec.ShapeString(other))
		}
		r, a, z := len(dims), exec.Elems[int64](c.In(0)), exec.Elems[int64](c.In(3))
		xs, ys := exec.Elems[T](c.In(1)), exec.Elems[T](c.In(4))
		var at [][]int64
		var out []T
		for i, j := 0, 0; i < len(xs) || j < len(ys); {
			var x, y T
			order := compareEntries(a, i, z, j, r)
			if order >= 0 {
				y = ys[j]
				j++
				at = append(at[:len(out)], z[(j-1)*r:j*r])
			}
			if order <= 0 {
				x = xs[i]
				i++
				at = append(at[:len(out)], a[(i-1)*r:i*r])
			}
			if (y > x) == largest {
				x = y
			}
			out = append(out, x)
		}
		index := exec.Elems[int64](c.Out(0, exec.Int64, len(out), r))
		for k, from := range at {
			copy(index[k*r:], from)
		}
		copy(exec.Elems[T](c.Out(1, exec.DTypeOf[T](), len(out))), out)
		return nil
	}
}
