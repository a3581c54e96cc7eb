package sparse

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Sparse tensors as elements of data sets and queues: three variants each, of
// which the graph sees nothing but the shape, or three strings, in which they are
// encoded.
var serializeOps = exec.OpTable{
	"SerializeSparse":     {Types: exec.ValueTypes, Build: buildSerializeSparse(serializeSparse, encodeSparse)},
	"SerializeManySparse": {Types: exec.ValueTypes, Build: buildSerializeSparse(serializeManySparse, encodeManySparse)},
	"DeserializeSparse":   {Build: buildDeserializeSparse},
}

func buildSerializeSparse(variants, strings exec.Kernel) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		if b.DType("out_type") == exec.String {
			return strings, nil
		}
		return variants, nil
	}
}

// sparseArg returns the sparse tensor of the first three inputs.
func sparseArg(c *exec.KernelContext) (variant.SparseTensor, error) {
	dims, err := sparseInput(c, 0, 1, 2)
	if err != nil {
		return variant.SparseTensor{}, err
	}
	v := variant.SparseTensor{Values: c.Keep(c.In(1)), Shape: append([]int{}, dims...)}
	all := append([]int64(nil), exec.Elems[int64](c.In(0))...)
	for i := range v.Values.NumElements() {
		v.Index = append(v.Index, all[i*len(dims):(i+1)*len(dims)])
	}
	return v, nil
}

func sparseOut(c *exec.KernelContext, rows *variant.SparseRows, shape ...int) {
	c.SetVariant(0, rows)
	c.Slot(0).Shape = append(c.Slot(0).Shape[:0], append(shape, 3)...)
}

func serializeSparse(c *exec.KernelContext) error {
	v, err := sparseArg(c)
	if err != nil {
		return err
	}
	sparseOut(c, &variant.SparseRows{List: []variant.SparseTensor{v}})
	return nil
}

func serializeManySparse(c *exec.KernelContext) error {
	v, err := sparseArg(c)
	if err != nil {
		return err
	}
	rows, err := sparseRows(c, v)
	if err != nil {
		return err
	}
	sparseOut(c, rows, v.Shape[0])
	return nil
}

// sparseRows cuts a sparse tensor along its first dimension.
func sparseRows(c *exec.KernelContext, v variant.SparseTensor) (*variant.SparseRows, error) {
	if len(v.Shape) < 2 {
		return nil, c.Invalid("a sparse tensor of shape %s has no rows", exec.ShapeString(v.Shape))
	}
	c.CheckSize([]int{v.Shape[0]}, 64)
	rows := &variant.SparseRows{List: make([]variant.SparseTensor, v.Shape[0])}
	picked := make([][]int, v.Shape[0])
	for i, at := range v.Index {
		picked[at[0]] = append(picked[at[0]], i)
	}
	for r, list := range picked {
		row := variant.SparseTensor{Values: exec.NewTensor(v.Values.DType, []int{len(list)}), Shape: v.Shape[1:]}
		for k, i := range list {
			exec.CopyElems(row.Values, k, v.Values, i, 1)
			row.Index = append(row.Index, v.Index[i][1:])
		}
		rows.List[r] = row
	}
	return rows, nil
}

func buildDeserializeSparse(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		if x.DType == exec.String {
			return decodeSparse(c, dt)
		}
		rows, ok := x.Value.(*variant.SparseRows)
		if !ok || len(x.Shape) == 0 || exec.NumElements(x.Shape[:len(x.Shape)-1]) != len(rows.List) || len(rows.List) == 0 {
			return c.Invalid("input 0 does not hold sparse tensors")
		}
		return join(rows, c, x.Shape[:len(x.Shape)-1], dt)
	}, nil
}

// join makes the outputs one sparse tensor with the given dimensions before
// those of the parts, which are as large as the largest part needs.
func join(r *variant.SparseRows, c *exec.KernelContext, lead []int, dt tfpb.DataType) error {
	rank, n := len(r.List[0].Shape), 0
	shape := make([]int, rank)
	for _, v := range r.List {
		if len(v.Shape) != rank || v.Values.DType != dt {
			return c.Invalid("sparse tensors of %s%s cannot be read as %s of rank %d", exec.TypeName(v.Values.DType), exec.ShapeString(v.Shape), exec.TypeName(dt), rank)
		}
		for i, d := range v.Shape {
			shape[i] = max(shape[i], d)
		}
		n += len(v.Index)
	}
	wide := len(lead) + rank
	index, values := exec.Elems[int64](c.Out(0, exec.Int64, n, wide)), c.Out(1, dt, n)
	at := 0
	for k, v := range r.List {
		for i, from := range v.Index {
			elem.IndexAt(k, lead, index[at*wide:])
			copy(index[at*wide+len(lead):], from)
			exec.CopyElems(values, at, v.Values, i, 1)
			at++
		}
	}
	d := c.Out(2, exec.Int64, wide)
	for i, v := range append(append([]int{}, lead...), shape...) {
		exec.SetInt(d, i, v)
	}
	return nil
}
