package sparse

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// raggedPartition is how the rows of one dimension are encoded.
type raggedPartition int

const (
	rowSplitsPartition raggedPartition = iota
	valueRowids
	firstDim // the number of rows alone, for valueRowids to come
)

// buildRaggedToTensor builds the op that pads rows to one length: the shape, the
// values, the default and the partitions, from the outermost on.
func buildRaggedToTensor(b *exec.OpConstruction) (exec.Kernel, error) {
	var kinds []raggedPartition
	for _, name := range b.Strings("row_partition_types") {
		kind, ok := map[string]raggedPartition{"ROW_SPLITS": rowSplitsPartition, "VALUE_ROWIDS": valueRowids, "FIRST_DIM_SIZE": firstDim}[name]
		if !ok {
			b.Fail("row_partition_types holds %q", name)
		}
		kinds = append(kinds, kind)
	}
	if len(kinds) == 0 || b.NumInputs() != 3+len(kinds) {
		b.Fail("%d inputs for %d row partitions", b.NumInputs(), len(kinds))
		return nil, b.Err()
	}
	if rest := kinds[1:]; kinds[0] == valueRowids || kinds[0] == firstDim && (len(rest) == 0 || rest[0] != valueRowids) {
		b.Fail("row_partition_types %v begin with neither ROW_SPLITS nor FIRST_DIM_SIZE and VALUE_ROWIDS", b.Strings("row_partition_types"))
	}
	return func(c *exec.KernelContext) error {
		splits, err := raggedRows(c, kinds)
		if err != nil {
			return err
		}
		return padRagged(c, splits)
	}, nil
}

// raggedRows returns the ends of the rows of each dimension.
func raggedRows(c *exec.KernelContext, kinds []raggedPartition) ([][]int, error) {
	var splits [][]int
	rows := -1 // in the next dimension, negative if it says so itself
	for i, kind := range kinds {
		if t := c.In(3 + i); !exec.Indices.Has(t.DType) {
			return nil, c.Invalid("row partition %d is %s", i, t.Describe())
		}
		if kind == firstDim {
			n, err := c.IntScalar(3+i, "the number of rows")
			if err != nil {
				return nil, err
			}
			if n < 0 || i > 0 {
				return nil, c.Invalid("partition %d says that there are %d rows", i, n)
			}
			rows = n
			continue
		}
		ends, err := partitionEnds(c, i, kind, rows)
		if err != nil {
			return nil, err
		}
		splits, rows = append(splits, ends), ends[len(ends)-1]
	}
	return splits, nil
}

// partitionEnds returns the ends of so many rows that partition i gives; a
// negative number of them may be any if it gives those too.
func partitionEnds(c *exec.KernelContext, i int, kind raggedPartition, rows int) ([]int, error) {
	if kind == valueRowids {
		return rowidEnds(c, i, rows)
	}
	ends, err := elem.RowSplits(c, 3+i, -1)
	if err == nil && rows >= 0 && len(ends)-1 != rows {
		err = c.Invalid("partition %d splits %d rows, of %d", i, len(ends)-1, rows)
	}
	return ends, err
}

// rowidEnds returns the ends of the rows, where partition i has the row number of
// each value.
func rowidEnds(c *exec.KernelContext, i, rows int) ([]int, error) {
	if rows < 0 {
		return nil, c.Invalid("partition %d has no number of rows", i)
	}
	c.CheckSize([]int{rows, 1}, 8)
	t, last := c.In(3+i), 0
	ends := make([]int, rows+1)
	for k := range t.NumElements() {
		id := t.IntAt(k)
		if id < last || id >= rows {
			return nil, c.Invalid("Row partition %d, value %d, is in row %d of %d, or not sorted", i, k, id, rows)
		}
		ends[id+1]++
		last = id
	}
	for k := range rows {
		ends[k+1] += ends[k]
	}
	return ends, nil
}

// padRagged writes the values as a tensor.
func padRagged(c *exec.KernelContext, splits [][]int) error {
	values, fill := c.In(1), c.In(2)
	last := splits[len(splits)-1]
	if end := last[len(last)-1]; len(values.Shape) == 0 || values.DType != fill.DType || values.Shape[0] < end {
		return c.Invalid("values %s, padded with %s, in rows that end at %d", values.Describe(), fill.Describe(), end)
	}
	inner := values.Shape[1:]
	shape, err := paddedShape(c, splits, inner)
	if err != nil {
		return err
	}
	d := c.Out(0, values.DType, shape...)
	if d.NumElements() == 0 {
		return nil
	}
	row := exec.NumElements(inner)
	switch {
	case fill.NumElements() == 1:
		elem.Fill(d, fill)
	case exec.SameShape(fill.Shape, inner):
		for at := 0; at < d.NumElements(); at += row {
			exec.CopyElems(d, at, fill, 0, row)
		}
	default:
		return c.Errorf(tfpb.Code_UNIMPLEMENTED, "the embedded runtime does not spread the default %s to %s", fill.Describe(), exec.ShapeString(inner))
	}
	var put func(depth, index, at int)
	put = func(depth, index, at int) {
		if depth == len(splits) {
			exec.CopyElems(d, at*row, values, index*row, row)
			return
		}
		ends := splits[depth]
		for k := range min(ends[index+1]-ends[index], shape[depth+1]) {
			put(depth+1, ends[index]+k, at*shape[depth+1]+k)
		}
	}
	for i := range min(len(splits[0])-1, shape[0]) {
		put(0, i, i)
	}
	return nil
}

// paddedShape returns the shape that holds the longest rows, or what is asked
// for in its place.
func paddedShape(c *exec.KernelContext, splits [][]int, inner []int) ([]int, error) {
	shape := raggedShape(splits, inner)
	want := c.In(0)
	if len(want.Shape) != 1 || !exec.Indices.Has(want.DType) {
		return shape, nil
	}
	if want.Shape[0] != len(shape) {
		return nil, c.Invalid("a shape of %d dimensions for a ragged tensor of %d", want.Shape[0], len(shape))
	}
	for i := range shape {
		n := want.IntAt(i)
		if n < 0 {
			continue
		}
		if i > len(splits) && n != shape[i] {
			return nil, c.Invalid("dimension %d of the shape is %d, that of the values %d", i, n, shape[i])
		}
		shape[i] = n
	}
	return shape, nil
}

// raggedShape returns the shape that holds the longest rows of each dimension.
func raggedShape(splits [][]int, inner []int) []int {
	shape := []int{len(splits[0]) - 1}
	for _, ends := range splits {
		widest := 0
		for k := 1; k < len(ends); k++ {
			widest = max(widest, ends[k]-ends[k-1])
		}
		shape = append(shape, widest)
	}
	return append(shape, inner...)
}
