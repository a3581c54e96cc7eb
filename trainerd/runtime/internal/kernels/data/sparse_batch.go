package data

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// buildSparseBatch builds the op that makes sparse tensors of batches of dense elements, which
// may have any shape within that of a row; -1 is as much as the largest of a batch needs.
func buildSparseBatch(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n, row := c.MustInt(1, "the batch size"), append([]int{}, c.IntsOf(0, c.In(2))...)
		if n < 1 {
			return nil, c.Invalid("a batch of %d elements", n)
		}
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &sparseBatchIterator{forwardingIterator{"sparse batch", in}, n, row}
		}), nil
	}
}

type sparseBatchIterator struct {
	forwardingIterator
	size int
	row  []int
}

func (s *sparseBatchIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	list, err := gatherBatch(p, s.in, s.size, false)
	if err != nil {
		return nil, err
	}
	shape, n := append([]int{len(list)}, s.row...), 0
	for _, el := range list {
		if len(el) != 1 || len(el[0].Shape) != len(s.row) {
			return nil, p.Invalid("an element is not one tensor of %d dimensions", len(s.row))
		}
		for i, d := range el[0].Shape {
			if s.row[i] >= 0 && d > s.row[i] {
				return nil, p.Invalid("an element, %s, is larger than a row, %s", el[0].Describe(), exec.ShapeString(s.row))
			}
			shape[i+1] = max(shape[i+1], d)
		}
		n += el[0].NumElements()
	}
	rank := len(shape)
	index, values := p.NewTensor(exec.Int64, []int{n, rank}), p.NewTensor(list[0][0].DType, []int{n})
	bounds := exec.NewTensor(exec.Int64, []int{rank})
	for i, d := range shape {
		exec.SetInt(bounds, i, d)
	}
	at := exec.Elems[int64](index)
	for k, el := range list {
		t := el[0]
		exec.CopyElems(values, (n*rank-len(at))/rank, t, 0, t.NumElements())
		for i := range t.NumElements() {
			at[0] = int64(k)
			for d, rest := rank-1, i; d > 0; d-- {
				at[d], rest = int64(rest%t.Shape[d-1]), rest/t.Shape[d-1]
			}
			at = at[rank:]
		}
	}
	return variant.Tuple{variant.Sparse(index, values, bounds)}, nil
}
