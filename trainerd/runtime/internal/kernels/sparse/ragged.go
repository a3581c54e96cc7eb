package sparse

import (
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ragged tensors: values in a row, and where each row of them ends.
var raggedOps = exec.OpTable{
	"RaggedRange":          {Types: exec.Numbers, Build: buildRaggedRange},
	"RaggedGather":         {Build: buildRaggedGather},
	"RaggedTensorToSparse": {Build: buildRaggedToSparse},
	"RaggedTensorToTensor": {Build: buildRaggedToTensor},
}

// nestedSplits checks the first n inputs, the splits of each dimension from the
// outermost on, for so many values.
func nestedSplits(c *exec.KernelContext, n, values int) (splits [][]int, err error) {
	splits = make([][]int, n)
	for i := n - 1; i >= 0; i-- {
		if splits[i], err = elem.RowSplits(c, i, values); err != nil {
			return nil, err
		}
		values = len(splits[i]) - 1
	}
	return splits, nil
}

func buildRaggedRange(b *exec.OpConstruction) (exec.Kernel, error) {
	splits := b.IndexType("Tsplits")
	return exec.ByType(b.DType("T"), raggedRange[float32](splits), raggedRange[float64](splits), raggedRange[int32](splits), raggedRange[int64](splits))
}

// raggedRange counts from a start to a limit in each row; a scalar holds for all.
func raggedRange[T exec.Number](splitType tfpb.DataType) exec.Kernel {
	return func(c *exec.KernelContext) error {
		rows, scalar := 1, true
		for i := range 3 {
			t := c.In(i)
			if len(t.Shape) > 1 || len(t.Shape) == 1 && !scalar && t.Shape[0] != rows {
				return c.Invalid("starts, limits, and deltas must be scalars or vectors of one length, not %s", t.Describe())
			}
			if len(t.Shape) == 1 {
				rows, scalar = t.Shape[0], false
			}
		}
		at := func(i, row int) T {
			v := exec.Elems[T](c.In(i))
			if len(c.In(i).Shape) == 0 {
				return v[0]
			}
			return v[row]
		}
		splits := c.Out(0, splitType, rows+1)
		exec.SetInt(splits, 0, 0)
		total := 0
		for row := range rows {
			start, limit, delta := float64(at(0, row)), float64(at(1, row)), float64(at(2, row))
			if delta == 0 {
				return c.Invalid("Requires delta != 0")
			}
			n := max(0, math.Ceil((limit-start)/delta))
			if !(n <= float64(c.MaxTensorBytes())) {
				c.CheckSize([]int{math.MaxInt64 / 2}, 2)
			}
			total += int(n)
			c.CheckSize([]int{total}, 8)
			exec.SetInt(splits, row+1, total)
		}
		d := exec.Elems[T](c.Out(1, exec.DTypeOf[T](), total))
		for row, k := 0, 0; row < rows; row++ {
			v := at(0, row)
			for ; k < splits.IntAt(row+1); k++ {
				d[k] = v
				v += at(2, row)
			}
		}
		return nil
	}
}

// buildRaggedGather builds the op that picks rows of a ragged tensor of several
// dimensions: their splits, from the outermost on, the values, and the numbers of
// the rows.
func buildRaggedGather(b *exec.OpConstruction) (exec.Kernel, error) {
	inner, outer := b.Int("PARAMS_RAGGED_RANK"), b.Int("OUTPUT_RAGGED_RANK")
	if inner < 1 || inner+2 != b.NumInputs() || outer < inner-1 || outer > inner+exec.MaxRank {
		b.Fail("%d inputs for a ragged rank of %d, and one of %d of the result", b.NumInputs(), inner, outer)
		return nil, b.Err()
	}
	return func(c *exec.KernelContext) error {
		values, index := c.In(inner), c.In(inner+1)
		if len(values.Shape) == 0 || !exec.Indices.Has(index.DType) || len(index.Shape) == 0 || len(index.Shape)-1+inner != outer {
			return c.Invalid("rows %s of values %s with a ragged rank of %d", index.Describe(), values.Describe(), outer)
		}
		splits, err := nestedSplits(c, inner, values.Shape[0])
		if err != nil {
			return err
		}
		dt := c.In(0).DType
		// The dimensions of the numbers but the last are regular rows.
		for i := range len(index.Shape) - 1 {
			rows, width := exec.NumElements(index.Shape[:i+1]), index.Shape[i+1]
			d := c.Out(i, dt, rows+1)
			for k := range rows + 1 {
				exec.SetInt(d, k, k*width)
			}
		}
		return gatherRagged(c, index, splits, values, dt)
	}, nil
}

// gatherRagged writes the splits of the picked rows and their values.
func gatherRagged(c *exec.KernelContext, index *exec.Tensor, splits [][]int, values *exec.Tensor, dt tfpb.DataType) error {
	type span struct{ from, to int }
	var picked []span
	for k := range index.NumElements() {
		i := index.IntAt(k)
		if i < 0 || i >= len(splits[0])-1 {
			return c.Invalid("indices[%d] = %d is not in [0, %d)", k, i, len(splits[0])-1)
		}
		picked = append(picked, span{i, i + 1})
	}
	first := len(index.Shape) - 1
	for depth, ends := range splits {
		rows := []int{0}
		var next []span
		for _, s := range picked {
			for row := s.from; row < s.to; row++ {
				rows = append(rows, rows[len(rows)-1]+ends[row+1]-ends[row])
			}
			next = append(next, span{ends[s.from], ends[s.to]})
			c.CheckSize([]int{len(rows)}, 8)
		}
		d := c.Out(first+depth, dt, len(rows))
		for i, v := range rows {
			exec.SetInt(d, i, v)
		}
		picked = next
	}
	total, row := 0, exec.NumElements(values.Shape[1:])
	for _, s := range picked {
		total += s.to - s.from
	}
	d := c.Out(first+len(splits), values.DType, append([]int{total}, values.Shape[1:]...)...)
	at := 0
	for _, s := range picked {
		exec.CopyElems(d, at*row, values, s.from*row, (s.to-s.from)*row)
		at += s.to - s.from
	}
	return nil
}

// buildRaggedToSparse builds the op whose inputs are the splits, from the
// outermost on, and the values.
func buildRaggedToSparse(b *exec.OpConstruction) (exec.Kernel, error) {
	n := b.NumInputs() - 1
	if n < 1 {
		b.Fail("a ragged tensor without splits")
		return nil, b.Err()
	}
	return func(c *exec.KernelContext) error {
		values := c.In(n)
		if len(values.Shape) == 0 {
			return c.Invalid("the values are a scalar")
		}
		splits, err := nestedSplits(c, n, values.Shape[0])
		if err != nil {
			return err
		}
		shape := raggedShape(splits, values.Shape[1:])
		index := exec.Elems[int64](c.Out(0, exec.Int64, values.NumElements(), len(shape)))
		placeRagged(index, splits, values)
		exec.CopyElems(c.Out(1, values.DType, values.NumElements()), 0, values, 0, values.NumElements())
		d := c.Out(2, exec.Int64, len(shape))
		for i, v := range shape {
			exec.SetInt(d, i, v)
		}
		return nil
	}, nil
}

// placeRagged writes the place of each element, one number for each dimension.
func placeRagged(index []int64, splits [][]int, values *exec.Tensor) {
	n, inner := len(splits), exec.NumElements(values.Shape[1:])
	rank := n + len(values.Shape)
	at := make([]int, n) // the row that each dimension is in
	place := make([]int64, rank)
	for v := range values.Shape[0] {
		row := v
		for i := n - 1; i >= 0; i-- {
			for splits[i][at[i]+1] <= row {
				at[i]++
			}
			place[i+1] = int64(row - splits[i][at[i]])
			row = at[i]
		}
		place[0] = int64(row)
		for k := range inner {
			elem.IndexAt(k, values.Shape[1:], place[n+1:])
			copy(index[(v*inner+k)*rank:], place)
		}
	}
}
