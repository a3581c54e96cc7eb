package math

import (
	"cmp"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Ops that count, or sum weights of, equal integers as those of bincountOps do, and give
// only the counters that count something: those of a sparse tensor.
var countOps = exec.OpTable{
	"DenseCountSparseOutput":  {Types: exec.Indices, Build: buildCount(counting{values: 0, weights: 1, split: denseRows})},
	"SparseCountSparseOutput": {Types: exec.Indices, Build: buildCount(counting{values: 1, weights: 3, split: sparseBatches})},
	"RaggedCountSparseOutput": {Types: exec.Indices, Build: buildCount(counting{values: 1, weights: 2, split: raggedRows})},
}

// counting says where the inputs are, and what is counted.
type counting struct {
	values, weights int
	split           func(c *exec.KernelContext, values int) (*rows, error)
	dtype           tfpb.DataType
	least, most     int // of counters; there are as many as needed if most is negative
	binary          bool
}

func buildCount(k counting) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		k := k
		k.dtype, k.binary = b.DType("output_type"), b.Bool("binary_output")
		k.least, k.most = int(b.Int("minlength")), int(b.Int("maxlength"))
		return exec.ByType(k.dtype, count[float32](k), count[float64](k), count[int32](k), count[int64](k))
	}
}

func count[T exec.Number](k counting) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, weights := c.In(k.values), c.In(k.weights)
		if len(x.Shape) == 0 || weights.NumElements() > 0 && !exec.SameShape(weights.Shape, x.Shape) {
			return c.Invalid("%s cannot be counted with the weights %s", x.Describe(), weights.Describe())
		}
		r, err := k.split(c, x.NumElements())
		if err != nil {
			return err
		}
		if r != nil && r.n < 1 {
			return c.Invalid("there is no row to count in")
		}
		s, err := k.sorted(c, x, r)
		if err != nil {
			return err
		}
		s.store(c, k.dtype)
		add(s, k.binary, exec.Elems[T](weights), exec.Elems[T](c.Output(1)))
		return nil
	}
}

// sortedCounts are the values that are counted, by row and value.
type sortedCounts struct {
	x     *exec.Tensor
	rows  *rows   // nil if there is but one
	order []int64 // the numbers of values
	row   []int64 // of each value
	size  int     // the number of counters of a row
}

func (k counting) sorted(c *exec.KernelContext, x *exec.Tensor, r *rows) (*sortedCounts, error) {
	n := x.NumElements()
	s := &sortedCounts{x: x, rows: r, order: exec.Scratch[int64](c, exec.ScratchA, n)[:0], row: exec.Scratch[int64](c, exec.ScratchB, n)}
	largest := 0
	for i := range n {
		v := x.IntAt(i)
		if v < 0 {
			return nil, c.Invalid("element %d is negative: %d", i, v)
		}
		s.row[i] = 0
		if r != nil {
			s.row[i] = int64(r.of(i))
		}
		if k.most >= 0 && v >= k.most {
			continue
		}
		s.order = append(s.order, int64(i))
		largest = max(largest, v)
	}
	if s.size = k.most; k.most < 0 {
		s.size = max(largest+1, k.least)
	}
	slices.SortFunc(s.order, func(a, b int64) int { return cmp.Or(s.compare(a, b), cmp.Compare(a, b)) })
	return s, nil
}

// compare orders two values by their counters.
func (s *sortedCounts) compare(a, b int64) int {
	return cmp.Or(cmp.Compare(s.row[a], s.row[b]), cmp.Compare(s.x.IntAt(int(a)), s.x.IntAt(int(b))))
}

// each calls f with each value, and the number of its counter among those that count
// something.
func (s *sortedCounts) each(f func(counter int, i int64)) (counters int) {
	for k, i := range s.order {
		if k == 0 || s.compare(s.order[k-1], i) != 0 {
			counters++
		}
		f(counters-1, i)
	}
	return counters
}

// store makes the outputs: where the counters are, the counters, which are zero, and the
// shape that they are a part of.
func (s *sortedCounts) store(c *exec.KernelContext, dt tfpb.DataType) {
	n, rank := s.each(func(int, int64) {}), 1
	if s.rows != nil {
		rank = 2
	}
	indices, shape := exec.Elems[int64](c.Out(0, exec.Int64, n, rank)), exec.Elems[int64](c.Out(2, exec.Int64, rank))
	s.each(func(counter int, i int64) {
		indices[counter*rank] = s.row[i]
		indices[(counter+1)*rank-1] = int64(s.x.IntAt(int(i)))
	})
	if s.rows != nil {
		shape[0] = int64(s.rows.n)
	}
	shape[rank-1] = int64(s.size)
	clear(c.Out(1, dt, n).Data)
}

// add counts the values.
func add[T exec.Number](s *sortedCounts, binary bool, weights, counters []T) {
	s.each(func(counter int, i int64) {
		switch {
		case binary:
			counters[counter] = 1
		case len(weights) == 0:
			counters[counter]++
		default:
			counters[counter] += weights[i]
		}
	})
}

// sparseBatches are the elements of a sparse tensor along its first dimension; a sparse
// vector is counted as a whole.
func sparseBatches(c *exec.KernelContext, values int) (*rows, error) {
	indices, shape := c.In(0), c.In(2)
	rank := shape.NumElements()
	if len(indices.Shape) != 2 || indices.Shape[0] != values || indices.Shape[1] != rank || rank < 1 {
		return nil, c.Invalid("indices %s of %d values in %d dimensions", indices.Describe(), values, rank)
	}
	for i := range values * rank {
		if at, size := indices.IntAt(i), shape.IntAt(i%rank); at < 0 || at >= size {
			return nil, c.Invalid("Invalid index value at %d: dimension %d has value %d which is not in [0, %d)", i/rank, i%rank, at, size)
		}
	}
	if rank == 1 {
		return nil, nil
	}
	return &rows{n: shape.IntAt(0), of: func(i int) int { return indices.IntAt(i * rank) }}, nil
}
