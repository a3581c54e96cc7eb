// Package variant has the values of a graph that are not plain tensors - lists,
// optional values, rows of sparse tensors, data sets - and the encoding that
// elements of the input have in a checkpoint.
//
// Values are immutable, so copies share them. An iterator is not, and is used by one call at a
// time.
//
// # State in a checkpoint
//
// The state of an input object - iterator, queue, reader - in a checkpoint is
// one vector of bytes:
//
//	integers   signed varints; booleans are 0 and 1
//	bytes      their number, then they
//	kind       bytes that name the part of the pipeline whose state follows, so
//	           that the state of another pipeline is seen to be one
//	tensor     0, or 1 + the type, the rank, the dimensions and the elements:
//	           little-endian memory as one run of bytes, or each string
//	item       the number of tensors, then they
//	words      6 words of a random stream, how many of the last block are used,
//	           and its 4 words; 4 bytes each, little-endian
package variant

import (
	"cmp"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Tuple is one element of a queue: a tensor per component.
type Tuple []*exec.Tensor

// TensorList is a list of tensors; nil elements are unset. Appending to one
// list twice would let both results share an array, so items is clipped.
type TensorList struct {
	Shape []int // of an element, -1 for unknown dimensions; nil when not known
	Items []*exec.Tensor
}

// With returns a list of the given items with l's element shape.
func (l *TensorList) With(items []*exec.Tensor) *TensorList {
	return &TensorList{l.Shape, items[:len(items):len(items)]}
}

// Optional is some tensors, or nothing.
type Optional struct {
	Set    bool
	Values []*exec.Tensor
}

// SparseRows is a tensor of variants of shape [..., 3].
type SparseRows struct{ List []SparseTensor }

// SparseTensor is a sparse tensor.
type SparseTensor struct {
	Index  [][]int64
	Values *exec.Tensor
	Shape  []int
}

// Sparse returns three variants that stand for a sparse tensor of indices, values and
// shape.
func Sparse(index, values, shape *exec.Tensor) *exec.Tensor {
	v := SparseTensor{Values: values}
	for _, d := range exec.Elems[int64](shape) {
		v.Shape = append(v.Shape, int(d))
	}
	all, rank := exec.Elems[int64](index), len(v.Shape)
	for i := range values.NumElements() {
		v.Index = append(v.Index, all[i*rank:(i+1)*rank])
	}
	t := exec.NewTensor(exec.Variant, []int{3})
	t.Value = &SparseRows{List: []SparseTensor{v}}
	return t
}

// Stack stacks tensors of variants, as batches of elements do.
func Stack(list []*exec.Tensor) (*exec.Tensor, bool) {
	sparse, ragged := &SparseRows{}, &RaggedRows{}
	for _, t := range list {
		if !exec.SameShape(t.Shape, list[0].Shape) {
			return nil, false
		}
		switch r := t.Value.(type) {
		case *SparseRows:
			sparse.List = append(sparse.List, r.List...)
		case *RaggedRows:
			ragged.List = append(ragged.List, r.List...)
		default:
			return nil, false
		}
	}
	if len(sparse.List) > 0 && len(ragged.List) > 0 {
		return nil, false
	}
	d := exec.NewTensor(exec.Variant, append([]int{len(list)}, list[0].Shape...))
	if d.Value = sparse; len(ragged.List) > 0 {
		d.Value = ragged
	}
	return d, true
}

// StackOut makes output 0 the stack of tensors of variants.
func StackOut(c *exec.KernelContext, list []*exec.Tensor) error {
	shape, value := []int{0}, any(&RaggedRows{})
	if len(list) > 0 {
		d, ok := Stack(list)
		if !ok {
			return c.Invalid("%d values that are neither sparse nor ragged tensors cannot be stacked", len(list))
		}
		shape, value = d.Shape, d.Value
	}
	c.SetVariant(0, value)
	c.Slot(0).Shape = append(c.Slot(0).Shape[:0], shape...)
	return nil
}

// variantRows returns rows of a tensor of variants.
func variantRows(t *exec.Tensor, i, n int, shape []int) *exec.Tensor {
	e := exec.NewTensor(t.DType, shape)
	if r, ok := t.Value.(*SparseRows); ok && len(t.Shape) > 1 {
		size := exec.NumElements(t.Shape[1 : len(t.Shape)-1])
		e.Value = &SparseRows{r.List[i*size : (i+n)*size]}
	}
	if r, ok := t.Value.(*RaggedRows); ok && len(t.Shape) > 0 {
		size := exec.NumElements(t.Shape[1:])
		e.Value = &RaggedRows{r.List[i*size : (i+n)*size]}
	}
	return e
}

// Rows copies n rows of t, from row i on, into a new tensor.
func Rows(t *exec.Tensor, i, n int, shape []int) *exec.Tensor {
	if t.DType == exec.Variant {
		return variantRows(t, i, n, shape)
	}
	e := exec.NewTensor(t.DType, shape)
	size := exec.NumElements(t.Shape[1:])
	exec.CopyElems(e, 0, t, i*size, n*size)
	return e
}

// KeepRows is Rows for what outlives the kernel.
func KeepRows(c *exec.KernelContext, t *exec.Tensor, i, n int, shape []int) *exec.Tensor {
	if exec.ElemSize(t.DType) == 0 {
		c.Hold(t.Bytes() / max(1, t.Shape[0]) * n)
		return Rows(t, i, n, shape)
	}
	e := c.NewKept(t.DType, shape)
	size := exec.NumElements(t.Shape[1:])
	exec.CopyElems(e, 0, t, i*size, n*size)
	return e
}

// Bytes returns how much memory a tuple takes.
func (t Tuple) Bytes() int {
	n := 0
	for _, part := range t {
		n += part.Bytes()
	}
	return n
}

// ZerosLike makes all tensors in a list or an optional value zeros.
func ZerosLike(c *exec.KernelContext) error {
	switch v := c.In(0).Value.(type) {
	case *TensorList:
		c.SetVariant(0, zerosOf(c, v))
	case *Optional:
		zeros := &Optional{Set: v.Set}
		for _, t := range v.Values {
			u := c.Keep(t)
			elem.Zero(u)
			if l, ok := t.Value.(*TensorList); ok {
				u.Value = zerosOf(c, l)
			}
			zeros.Values = append(zeros.Values, u)
		}
		c.SetVariant(0, zeros)
	default:
		return c.Invalid("input 0 is neither a list nor an optional value")
	}
	return nil
}

func zerosOf(c *exec.KernelContext, l *TensorList) *TensorList {
	items := make([]*exec.Tensor, len(l.Items))
	for i, t := range l.Items {
		if t != nil {
			items[i] = c.NewTensor(t.DType, t.Shape)
			elem.Zero(items[i])
		}
	}
	return l.With(items)
}

// AddLists adds lists element by element. Unset elements are zeros.
func AddLists(c *exec.KernelContext) error {
	sum, err := List(c, 0)
	if err != nil {
		return err
	}
	items := append([]*exec.Tensor(nil), sum.Items...)
	for i := 1; i < c.NumInputs(); i++ {
		l, err := List(c, i)
		if err != nil {
			return err
		}
		if len(l.Items) != len(items) {
			return c.Invalid("a list of %d elements is added to one of %d", len(l.Items), len(items))
		}
		for k, t := range l.Items {
			if items[k], err = sumOf(c, items[k], t); err != nil {
				return err
			}
		}
	}
	c.SetVariant(0, sum.With(items))
	return nil
}

// sumOf returns the sum of two elements, either of which may be unset.
func sumOf(c *exec.KernelContext, a, b *exec.Tensor) (*exec.Tensor, error) {
	if a == nil || b == nil {
		return cmp.Or(a, b), nil
	}
	if a.DType != b.DType || !exec.SameShape(a.Shape, b.Shape) {
		return nil, c.Invalid("%s is added to %s", b.Describe(), a.Describe())
	}
	sum := c.Keep(a)
	return sum, elem.AddTensor(c, sum, b)
}

// Stack makes output 0 one tensor of all elements, which have the given shape
// unless they know better.
func (l *TensorList) Stack(c *exec.KernelContext, dt tfpb.DataType, shape []int) error {
	if dt == exec.Variant && !slices.Contains(l.Items, nil) {
		return StackOut(c, l.Items)
	}
	if exec.HasUnknownDim(shape) {
		shape = l.Shape
	}
	for _, t := range l.Items {
		if t != nil {
			shape = append([]int{}, t.Shape...) // that of a scalar is known, too
			break
		}
	}
	if exec.HasUnknownDim(shape) {
		return c.Invalid("the shape of the list's elements is not known")
	}
	d := c.Out(0, dt, append([]int{len(l.Items)}, shape...)...)
	elem.Zero(d)
	n := exec.NumElements(shape)
	for k, t := range l.Items {
		if t == nil {
			continue
		}
		if t.DType != dt || !exec.SameShape(t.Shape, shape) {
			return c.Invalid("element %d is %s in a list of %s%s", k, t.Describe(), exec.TypeName(dt), exec.ShapeString(shape))
		}
		exec.CopyElems(d, k*n, t, 0, n)
	}
	return nil
}

// List returns the list of tensors that input i holds.
func List(c *exec.KernelContext, i int) (*TensorList, error) {
	l, ok := c.In(i).Value.(*TensorList)
	if !ok {
		return nil, c.Invalid("input %d is not a list of tensors", i)
	}
	return l, nil
}
