package sparse

import (
	"math"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Arithmetic with sparse tensors: indices, values and the dense shape.
var sparseMathOps = exec.OpTable{
	"SparseAdd":            {Types: exec.Numbers, Build: buildSparseAdd},
	"SparseAddGrad":        {Types: exec.Numbers, Build: buildSparseAddGrad},
	"SparseConcat":         {Types: exec.ValueTypes, Build: buildSparseConcat},
	"SparseDenseCwiseAdd":  {Types: exec.Numbers, Build: buildSparseDense('+')},
	"SparseDenseCwiseDiv":  {Types: exec.Floats, Build: buildSparseDense('/')},
	"SparseDenseCwiseMul":  {Types: exec.Numbers, Build: buildSparseDense('*')},
	"SparseTensorDenseAdd": {Types: exec.Numbers, Build: buildSparseTensorDenseAdd},
	"SparseSoftmax":        {Types: exec.Floats, Build: buildSparseSoftmax},

	"SparseTensorDenseMatMul": {Types: exec.Floats, Build: buildSparseMatMul},
}

// buildSparseDense computes with each value and the element of a dense tensor,
// spread to the sparse one's shape, at its place.
func buildSparseDense(op byte) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByType(b.DType("T"), sparseDense[float32](op), sparseDense[float64](op), sparseDense[int32](op), sparseDense[int64](op))
	}
}

func sparseDense[T exec.Number](op byte) exec.Kernel {
	return func(c *exec.KernelContext) error {
		dims, err := sparseInput(c, 0, 1, 2)
		if err != nil {
			return err
		}
		index, values, dense := int64s(c.In(0)), c.In(1), c.In(3)
		skip := len(dims) - len(dense.Shape)
		if skip < 0 {
			return c.Invalid("%s has more dimensions than the sparse tensor of shape %s", dense.Describe(), exec.ShapeString(dims))
		}
		for i, n := range dense.Shape {
			if n != 1 && n != dims[skip+i] {
				return c.Invalid("%s cannot be spread to the shape %s", dense.Describe(), exec.ShapeString(dims))
			}
		}
		ys, out := exec.Elems[T](dense), exec.Elems[T](c.OutLike(0, values.DType, values))
		for i, x := range exec.Elems[T](values) {
			at := 0
			for k, n := range dense.Shape {
				at *= n
				if n > 1 {
					at += int(index[i*len(dims)+skip+k])
				}
			}
			switch op {
			case '+':
				out[i] = x + ys[at]
			case '*':
				out[i] = x * ys[at]
			case '/':
				out[i] = x / ys[at]
			}
		}
		return nil
	}
}

func buildSparseTensorDenseAdd(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByType(b.DType("T"), sparseTensorDenseAdd[float32], sparseTensorDenseAdd[float64], sparseTensorDenseAdd[int32], sparseTensorDenseAdd[int64])
}

// sparseTensorDenseAdd adds the values to the elements at their places.
func sparseTensorDenseAdd[T exec.Number](c *exec.KernelContext) error {
	dims, err := sparseInput(c, 0, 1, 2)
	if err != nil {
		return err
	}
	index, values, dense := int64s(c.In(0)), c.In(1), c.In(3)
	if !slices.Equal(dims, dense.Shape) {
		return c.Invalid("%s has not the shape %s of the sparse tensor", dense.Describe(), exec.ShapeString(dims))
	}
	out := c.OutLike(0, dense.DType, dense)
	exec.CopyElems(out, 0, dense, 0, dense.NumElements())
	ds := exec.Elems[T](out)
	for i, v := range exec.Elems[T](values) {
		ds[elem.FlatIndex(index[i*len(dims):], dims)] += v
	}
	return nil
}

// buildSparseSoftmax is the softmax of the values of each row.
func buildSparseSoftmax(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		dims, err := sparseInput(c, 0, 1, 2)
		if err != nil {
			return err
		}
		r := len(dims)
		if r < 2 {
			return c.Invalid("a shape of two dimensions or more is wanted, not %s", exec.ShapeString(dims))
		}
		index, values := exec.Elems[int64](c.In(0)), c.In(1)
		out := c.OutLike(0, values.DType, values)
		row := func(i int) []int64 { return index[i*r : i*r+r-1] }
		for from, n := 0, values.NumElements(); from < n; {
			to := from + 1
			for to < n && slices.Equal(row(from), row(to)) {
				to++
			}
			high, sum := math.Inf(-1), 0.0
			for i := from; i < to; i++ {
				high = max(high, values.FloatAt(i))
			}
			for i := from; i < to; i++ {
				sum += math.Exp(values.FloatAt(i) - high)
			}
			for i := from; i < to; i++ {
				elem.SetNumber(out, i, math.Exp(values.FloatAt(i)-high)/sum)
			}
			from = to
		}
		return nil
	}, nil
}

// buildSparseConcat joins sparse tensors along a dimension: N inputs of indices,
// then the values, then the shapes.
func buildSparseConcat(b *exec.OpConstruction) (exec.Kernel, error) {
	n, axis := b.Int("N"), b.Int("concat_dim")
	if n < 1 || b.NumInputs() != 3*n {
		b.Fail("%d inputs where the op takes %d", b.NumInputs(), 3*n)
	}
	dt := b.DType("T")
	return func(c *exec.KernelContext) error {
		var whole []int
		total := 0
		for k := range n {
			if c.In(k).DType != exec.Int64 || c.In(n+k).DType != dt {
				return c.Invalid("%s and %s are not indices and values of type %s", c.In(k).Describe(), c.In(n+k).Describe(), exec.TypeName(dt))
			}
			dims, err := sparseInput(c, k, n+k, 2*n+k)
			if err != nil {
				return err
			}
			total += c.In(n + k).NumElements()
			if k == 0 {
				whole = slices.Clone(dims)
				continue
			}
			at := sparseAxis(axis, len(whole))
			if at < 0 || len(dims) != len(whole) {
				return c.Invalid("there is no dimension %d in %s", axis, exec.ShapeString(dims))
			}
			whole[at] += dims[at]
			dims[at] = whole[at]
			if !slices.Equal(dims, whole) {
				return c.Invalid("the shapes differ in more than dimension %d", axis)
			}
		}
		at := sparseAxis(axis, len(whole))
		if at < 0 {
			return c.Invalid("there is no dimension %d in %s", axis, exec.ShapeString(whole))
		}
		return joinSparse(c, n, at, total, dt, whole)
	}, nil
}

// sparseAxis returns the dimension that an attribute names, negative for none.
func sparseAxis(axis, rank int) int {
	if axis < 0 {
		axis += rank
	}
	if axis >= rank {
		return -1
	}
	return axis
}

// joinSparse writes what the inputs of a SparseConcat have, in the order of the
// indices.
func joinSparse(c *exec.KernelContext, n, axis, total int, dt tfpb.DataType, whole []int) error {
	r := len(whole)
	type place struct{ input, at int }
	var places []place
	all := make([]int64, 0, total*r)
	shift := int64(0)
	for k := range n {
		from := len(all)
		all = append(all, exec.Elems[int64](c.In(k))...)
		for i := from + axis; i < len(all); i += r {
			all[i] += shift
		}
		for i := range c.In(n + k).NumElements() {
			places = append(places, place{k, i})
		}
		shift += int64(c.In(2*n + k).IntAt(axis))
	}
	order := make([]int, total)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return slices.Compare(all[i*r:(i+1)*r], all[j*r:(j+1)*r]) })
	index, values, shape := exec.Elems[int64](c.Out(0, exec.Int64, total, r)), c.Out(1, dt, total), exec.Elems[int64](c.Out(2, exec.Int64, r))
	for to, from := range order {
		copy(index[to*r:], all[from*r:(from+1)*r])
		p := places[from]
		exec.CopyElems(values, to, c.In(n+p.input), p.at, 1)
	}
	for i, d := range whole {
		shape[i] = int64(d)
	}
	return nil
}

// buildSparseAdd adds two sparse tensors whose indices are in order. A sum of two
// values that is below a threshold is left out.
func buildSparseAdd(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByType(b.DType("T"), sparseAdd[float32], sparseAdd[float64], sparseAdd[int32], sparseAdd[int64])
}

func sparseAdd[T exec.Number](c *exec.KernelContext) error {
	first, err := sparseInput(c, 0, 1, 2)
	if err != nil {
		return err
	}
	dims := slices.Clone(first)
	second, err := sparseInput(c, 3, 4, 5)
	if err != nil {
		return err
	}
	if len(dims) == 0 || !slices.Equal(dims, second) || c.In(6).NumElements() != 1 {
		return c.Invalid("the shapes %s and %s are none or differ, or the threshold is not a scalar", exec.ShapeString(dims), exec.ShapeString(second))
	}
	r, threshold := len(dims), elem.RealAt(c.In(6), 0)
	a, z := exec.Elems[int64](c.In(0)), exec.Elems[int64](c.In(3))
	xs, ys := exec.Elems[T](c.In(1)), exec.Elems[T](c.In(4))
	var at [][]int64
	var sums []T
	for i, j := 0, 0; i < len(xs) || j < len(ys); {
		var sum T
		var index []int64
		order := compareEntries(a, i, z, j, r)
		if order <= 0 {
			index, sum = a[i*r:(i+1)*r], xs[i]
			i++
		}
		if order >= 0 {
			index, sum = z[j*r:(j+1)*r], sum+ys[j]
			j++
		}
		if order != 0 || math.Abs(float64(sum)) >= threshold {
			at, sums = append(at, index), append(sums, sum)
		}
	}
	index, values, shape := exec.Elems[int64](c.Out(0, exec.Int64, len(sums), r)), exec.Elems[T](c.Out(1, exec.DTypeOf[T](), len(sums))), exec.Elems[int64](c.Out(2, exec.Int64, r))
	copy(values, sums)
	for i, s := range at {
		copy(index[i*r:], s)
	}
	for i, d := range dims {
		shape[i] = int64(d)
	}
	return nil
}

// compareEntries compares entry i of one list of indices with entry j of
// another. An entry after the end of its list comes last.
func compareEntries(a []int64, i int, z []int64, j, r int) int {
	switch {
	case (i+1)*r > len(a):
		return 1
	case (j+1)*r > len(z):
		return -1
	}
	return slices.Compare(a[i*r:(i+1)*r], z[j*r:(j+1)*r])
}

// buildSparseAddGrad hands the gradient of each value of a sum on to what was
// added; what was left out gets none.
func buildSparseAddGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	return func(c *exec.KernelContext) error {
		grad, sums := c.In(0), c.In(3)
		for _, i := range []int{1, 2, 3} {
			if x := c.In(i); len(sums.Shape) != 2 || len(x.Shape) != 2 || x.Shape[1] != sums.Shape[1] || x.Shape[1] == 0 {
				return c.Invalid("%s are not indices of the sum", x.Describe())
			}
		}
		if grad.NumElements() != sums.Shape[0] {
			return c.Invalid("%s is not the gradient of %d values", grad.Describe(), sums.Shape[0])
		}
		r, s := sums.Shape[1], exec.Elems[int64](sums)
		for out := range 2 {
			x := c.In(1 + out)
			index, d := exec.Elems[int64](x), c.Out(out, dt, x.Shape[0])
			elem.Zero(d)
			k := 0
			for i := range x.Shape[0] {
				for k < sums.Shape[0] && compareEntries(s, k, index, i, r) < 0 {
					k++
				}
				if k < sums.Shape[0] && compareEntries(s, k, index, i, r) == 0 {
					exec.CopyElems(d, i, grad, k, 1)
				}
			}
		}
		return nil
	}, nil
}
