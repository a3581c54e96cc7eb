package sparse

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops on sparse tensors: a matrix with the index of each value in a row, the
// values, and the dense shape.
var sparseOps = exec.OpTable{
	"SparseReshape":           {Build: buildSparseReshape},
	"SparseReorder":           {Types: exec.ValueTypes, Build: buildSparseReorder},
	"SparseFillEmptyRows":     {Types: exec.ValueTypes, Build: buildFillEmptyRows},
	"SparseFillEmptyRowsGrad": {Types: exec.Floats, Build: buildFillEmptyRowsGrad},
}

// sparseInput checks the sparse tensor of inputs index, values and shape, the
// values left out when negative, and returns its dense shape in scratch memory 1.
func sparseInput(c *exec.KernelContext, index, values, shape int) ([]int, error) {
	x := c.In(index)
	dims := c.IntsOf(1, c.In(shape))
	if len(x.Shape) != 2 || len(c.In(shape).Shape) != 1 || x.Shape[1] != len(dims) || values >= 0 && c.In(values).NumElements() != x.Shape[0] {
		return nil, c.Invalid("the indices %s do not fit the shape %s", x.Describe(), exec.ShapeString(dims))
	}
	if _, ok := exec.CheckedNumElements(dims); !ok {
		return nil, c.Invalid("%s is not the shape of a tensor", exec.ShapeString(dims))
	}
	for i, v := range int64s(x) {
		if n := dims[i%len(dims)]; v < 0 || v >= int64(n) {
			return nil, c.Invalid("index %d is %d, outside [0, %d)", i/len(dims), v, n)
		}
	}
	return dims, nil
}

// int64s returns the elements of a tensor of indices: its own memory, if they
// are of that type.
func int64s(t *exec.Tensor) []int64 {
	if t.DType == exec.Int64 {
		return exec.Elems[int64](t)
	}
	list := make([]int64, t.NumElements())
	for i := range list {
		list[i] = int64(t.IntAt(i))
	}
	return list
}

func buildSparseReshape(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		dims, err := sparseInput(c, 0, -1, 1)
		if err != nil {
			return err
		}
		shape := c.IntsOf(2, c.In(2))
		total, open, n := exec.NumElements(dims), -1, 1
		for i, d := range shape {
			switch {
			case d == -1 && open < 0:
				open = i
			case d < 0:
				return c.Invalid("%s is not a shape to reshape to", exec.ShapeString(shape))
			default:
				n *= d
			}
		}
		if open >= 0 && n > 0 {
			shape[open] = total / n
			n *= shape[open]
		}
		if n != total || open >= 0 && shape[open] < 0 {
			return c.Invalid("%s cannot be reshaped to %s", exec.ShapeString(dims), exec.ShapeString(shape))
		}
		rows, from := c.In(0).Shape[0], exec.Elems[int64](c.In(0))
		to := exec.Elems[int64](c.Out(0, exec.Int64, rows, len(shape)))
		for i := range rows {
			elem.IndexAt(elem.FlatIndex(from[i*len(dims):], dims), shape, to[i*len(shape):])
		}
		d := c.Out(1, exec.Int64, len(shape))
		for i, v := range shape {
			exec.SetInt(d, i, v)
		}
		return nil
	}, nil
}

func buildSparseReorder(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		dims, err := sparseInput(c, 0, 1, 2)
		if err != nil {
			return err
		}
		x, values := c.In(0), c.In(1)
		from := exec.Elems[int64](x)
		order := c.ScratchInts(2, x.Shape[0])
		for i := range order {
			order[i] = i
		}
		r := len(dims)
		slices.SortStableFunc(order, func(i, j int) int { return slices.Compare(from[i*r:(i+1)*r], from[j*r:(j+1)*r]) })
		to, moved := c.OutLike(0, exec.Int64, x), c.OutLike(1, values.DType, values)
		for i, j := range order {
			exec.CopyElems(to, i*r, x, j*r, r)
			exec.CopyElems(moved, i, values, j, 1)
		}
		return nil
	}, nil
}

// buildFillEmptyRows builds the op that gives each row without values a
// default one. The rest keeps its order within the rows.
func buildFillEmptyRows(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		dims, err := sparseInput(c, 0, 1, 2)
		if err != nil {
			return err
		}
		x, values, def := c.In(0), c.In(1), c.In(3)
		if len(dims) == 0 || def.NumElements() != 1 {
			return c.Invalid("the shape %s has no rows, or the default %s is not a scalar", exec.ShapeString(dims), def.Describe())
		}
		empty := c.Out(2, exec.Bool, dims[0])
		at := rowStarts(c, dims, exec.Elems[bool](empty))
		r, total := len(dims), at[dims[0]]
		index, out := c.Out(0, exec.Int64, total, r), c.Out(1, values.DType, total)
		places, back := exec.Elems[int64](index), exec.Elems[int64](c.Out(3, exec.Int64, x.Shape[0]))
		clear(places)
		for row, none := range exec.Elems[bool](empty) {
			if none {
				places[at[row]*r] = int64(row)
				exec.CopyElems(out, at[row], def, 0, 1)
			}
		}
		for i := range x.Shape[0] {
			row := exec.Elems[int64](x)[i*r]
			to := at[row]
			at[row]++
			exec.CopyElems(index, to*r, x, i*r, r)
			exec.CopyElems(out, to, values, i, 1)
			back[i] = int64(to)
		}
		return nil
	}, nil
}

// rowStarts says which rows of the sparse input are empty, and returns where
// each row begins when empty ones get one value; the last entry is the total.
func rowStarts(c *exec.KernelContext, dims []int, empty []bool) []int {
	c.CheckSize([]int{dims[0], 1}, 16)
	counts := elem.Zeros(c, 2, dims[0]+1)
	from := exec.Elems[int64](c.In(0))
	for i := 0; i < len(from); i += len(dims) {
		counts[from[i]]++
	}
	total := 0
	for row := range empty {
		empty[row] = counts[row] == 0
		n := max(1, counts[row])
		counts[row] = total
		total += n
	}
	counts[dims[0]] = total
	return counts
}

func buildFillEmptyRowsGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByFloat(b.DType("T"), fillEmptyRowsGrad[float32], fillEmptyRowsGrad[float64])
}

func fillEmptyRowsGrad[T exec.Float](c *exec.KernelContext) error {
	back, grad := c.In(0), c.In(1)
	d, def := exec.Elems[T](c.OutLike(0, grad.DType, back)), exec.Elems[T](c.Out(1, grad.DType))
	gs := exec.Elems[T](grad)
	given := exec.Scratch[bool](c, exec.ScratchA, len(gs))
	clear(given)
	for i, at := range exec.Elems[int64](back) {
		if at < 0 || at >= int64(len(gs)) {
			return c.Invalid("entry %d is %d, outside [0, %d)", i, at, len(gs))
		}
		d[i], given[at] = gs[at], true
	}
	def[0] = 0
	for i, g := range gs {
		if !given[i] {
			def[0] += g
		}
	}
	return nil
}
