package math

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops that count, or sum weights of, equal small integers: of all, or of each row
// of a matrix, a sparse tensor or a ragged one.
var bincountOps = exec.OpTable{
	"Bincount":       {Types: exec.Numbers, Build: buildBincount(bins{values: 0, size: 1, weights: 2}, wholeRows)},
	"DenseBincount":  {Types: exec.Numbers, Build: buildBincount(bins{values: 0, size: 1, weights: 2}, denseRows)},
	"SparseBincount": {Types: exec.Numbers, Build: buildBincount(bins{values: 1, size: 3, weights: 4}, sparseRows)},
	"RaggedBincount": {Types: exec.Numbers, Build: buildBincount(bins{values: 1, size: 2, weights: 3}, raggedRows)},
}

// bins are the inputs that all of these ops have, by their numbers.
type bins struct{ values, size, weights int }

// rows says how the values of an op are counted: together, or in so many rows,
// where of returns the row of value i.
type rows struct {
	n  int
	of func(i int) int
}

func buildBincount(in bins, split func(c *exec.KernelContext, values int) (*rows, error)) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		binary := b.Bool("binary_output")
		return exec.ByType(b.DType("T"), bincount[float32](in, split, binary), bincount[float64](in, split, binary),
			bincount[int32](in, split, binary), bincount[int64](in, split, binary))
	}
}

func bincount[T exec.Number](in bins, split func(*exec.KernelContext, int) (*rows, error), binary bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, weights := c.In(in.values), c.In(in.weights)
		size, err := c.IntScalar(in.size, "the number of counters")
		if err != nil {
			return err
		}
		if size < 0 || weights.NumElements() != 0 && weights.NumElements() != x.NumElements() {
			return c.Invalid("%d counters for %s weighted with %s", size, x.Describe(), weights.Describe())
		}
		r, err := split(c, x.NumElements())
		if err != nil {
			return err
		}
		shape := append(c.ScratchInts(0, 0), size)
		if r != nil {
			shape = append(c.ScratchInts(0, 0), r.n, size)
		}
		d := c.Out(0, weights.DType, shape...)
		elem.Zero(d)
		return tally(c, x, r, size, binary, exec.Elems[T](weights), exec.Elems[T](d))
	}
}

// tally counts in counters of zero. Values that are too large count nowhere.
func tally[T exec.Number](c *exec.KernelContext, x *exec.Tensor, r *rows, size int, binary bool, weights, counters []T) error {
	for i := range x.NumElements() {
		v := x.IntAt(i)
		if v < 0 {
			return c.Invalid("element %d is negative: %d", i, v)
		}
		if v >= size {
			continue
		}
		at := v
		if r != nil {
			at += r.of(i) * size
		}
		switch {
		case binary:
			counters[at] = 1
		case len(weights) == 0:
			counters[at]++
		default:
			counters[at] += weights[i]
		}
	}
	return nil
}

func wholeRows(*exec.KernelContext, int) (*rows, error) { return nil, nil }

// denseRows are the rows of a matrix; a vector is counted as a whole.
func denseRows(c *exec.KernelContext, values int) (*rows, error) {
	x := c.In(0)
	if len(x.Shape) > 2 {
		return nil, c.Invalid("the values are %s, of more than two dimensions", x.Describe())
	}
	if len(x.Shape) < 2 {
		return nil, nil
	}
	return &rows{n: x.Shape[0], of: func(i int) int { return i / x.Shape[1] }}, nil
}

// sparseRows are those of a sparse matrix; a sparse vector is counted as a whole.
func sparseRows(c *exec.KernelContext, values int) (*rows, error) {
	indices, shape := c.In(0), c.In(2)
	rank := shape.NumElements()
	if len(indices.Shape) != 2 || indices.Shape[0] != values || indices.Shape[1] != rank || rank < 1 || rank > 2 {
		return nil, c.Invalid("indices %s of %d values in %d dimensions", indices.Describe(), values, rank)
	}
	if rank == 1 {
		return nil, nil
	}
	n := shape.IntAt(0)
	for i := range values {
		if row := indices.IntAt(2 * i); row < 0 || row >= n {
			return nil, c.Invalid("value %d is in row %d of %d", i, row, n)
		}
	}
	return &rows{n: n, of: func(i int) int { return indices.IntAt(2 * i) }}, nil
}

// raggedRows are those that begin where the splits say.
func raggedRows(c *exec.KernelContext, values int) (*rows, error) {
	splits, err := elem.RowSplits(c, 0, values)
	if err != nil {
		return nil, err
	}
	row := 0
	return &rows{n: len(splits) - 1, of: func(i int) int {
		for i >= splits[row+1] {
			row++
		}
		return row
	}}, nil
}
