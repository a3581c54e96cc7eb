package lists

import (
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// What makes lists of tensors out of parts of a tensor, and back.
var tensorListSplitOps = exec.OpTable{
	"TensorListSplit":                   {Flags: exec.Stateful, Build: exec.WithoutAttrs(listSplit)},
	"TensorListConcat":                  {Flags: exec.Stateful, Build: buildListConcat(-1, -1)},
	"TensorListConcatV2":                {Flags: exec.Stateful, Build: buildListConcat(1, 2)},
	"TensorListConcatLists":             {Flags: exec.Stateful, Build: exec.WithoutAttrs(concatLists)},
	"TensorListGather":                  {Flags: exec.Stateful, Build: buildListGather},
	"TensorListScatter":                 {Flags: exec.Stateful, Build: exec.WithoutAttrs(listScatter)},
	"TensorListScatterV2":               {Flags: exec.Stateful, Build: exec.WithoutAttrs(listScatter)},
	"TensorListScatterIntoExistingList": {Flags: exec.Stateful, Build: exec.WithoutAttrs(scatterIntoList)},
	"TensorListResize":                  {Flags: exec.Stateful, Build: exec.WithoutAttrs(listResize)},
}

func listSplit(c *exec.KernelContext) error {
	t, lengths := c.In(0), append([]int(nil), c.IntsOf(0, c.In(2))...)
	if len(t.Shape) == 0 {
		return c.Invalid("a scalar cannot be split")
	}
	l := &variant.TensorList{Shape: elementShape(c, 1)}
	at := 0
	for _, n := range lengths {
		if n < 0 || n > t.Shape[0]-at {
			return c.Invalid("%s cannot be split into the lengths %v", t.Describe(), lengths)
		}
		l.Items = append(l.Items, variant.KeepRows(c, t, at, n, append([]int{n}, t.Shape[1:]...)))
		at += n
	}
	if at != t.Shape[0] {
		return c.Invalid("the lengths %v leave rows of %s over", lengths, t.Describe())
	}
	c.SetVariant(0, l)
	return nil
}

// buildListConcat builds the op that joins elements along their first
// dimension. Inputs shape and leading hold the shape of unset ones: one for
// all, to which that of the list adds what it knows, and the first dimension of
// each. An op without them needs all elements, or what they lack in an
// attribute if there are none.
func buildListConcat(shape, leading int) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt := b.DType("element_dtype")
		attr := elementShapeAttr(b, "element_shape")
		return func(c *exec.KernelContext) error {
			l, err := list(c)
			if err != nil {
				return err
			}
			if shape < 0 {
				return (&joiner{list: l, dtype: dt, shape: attr}).join(c)
			}
			merged, err := mergedShape(c, elementShape(c, shape), l.Shape)
			if err != nil {
				return err
			}
			lengths := append([]int(nil), c.IntsOf(0, c.In(leading))...)
			if len(lengths) == 0 && len(merged) > 0 && merged[0] >= 0 {
				lengths = slices.Repeat(merged[:1], len(l.Items))
			}
			return (&joiner{list: l, dtype: dt, shape: merged, leading: lengths}).join(c)
		}, nil
	}
}

// mergedShape returns what two shapes with unknown dimensions say together.
func mergedShape(c *exec.KernelContext, a, b []int) ([]int, error) {
	if a == nil || b == nil {
		return append(a, b...), nil
	}
	if len(a) != len(b) {
		return nil, c.Invalid("elements of shape %s in a list of %s", exec.ShapeString(a), exec.ShapeString(b))
	}
	merged := slices.Clone(a)
	for i, d := range b {
		if merged[i] < 0 {
			merged[i] = d
		}
		if d >= 0 && d != merged[i] {
			return nil, c.Invalid("elements of shape %s in a list of %s", exec.ShapeString(a), exec.ShapeString(b))
		}
	}
	return merged, nil
}

// joiner joins the elements of a list.
type joiner struct {
	list    *variant.TensorList
	dtype   tfpb.DataType
	shape   []int
	leading []int
}

func (p *joiner) join(c *exec.KernelContext) error {
	items, rest, err := p.items(c)
	if err != nil {
		return err
	}
	total := 0
	lengths := exec.Elems[int64](c.Out(1, exec.Int64, len(items)))
	for i, t := range items {
		lengths[i] = int64(t.Shape[0])
		total += t.Shape[0]
	}
	d := c.Out(0, p.dtype, append([]int{total}, rest...)...)
	at := 0
	for _, t := range items {
		exec.CopyElems(d, at, t, 0, t.NumElements())
		at += t.NumElements()
	}
	return nil
}

// items returns the elements, with zeros for unset ones, and the shape of
// their rows.
func (p *joiner) items(c *exec.KernelContext) ([]*exec.Tensor, []int, error) {
	var rest []int
	if len(p.shape) > 0 {
		rest = p.shape[1:]
	}
	for _, t := range p.list.Items {
		if t != nil && len(t.Shape) > 0 {
			rest = append([]int{}, t.Shape[1:]...)
		}
	}
	if exec.HasUnknownDim(rest) {
		return nil, nil, c.Invalid("the shape of the list's elements is not known")
	}
	items := append([]*exec.Tensor(nil), p.list.Items...)
	for i, t := range items {
		if t == nil {
			if i >= len(p.leading) {
				return nil, nil, c.Invalid("element %d is not set, and its shape is not known", i)
			}
			t = newZeros(c, p.dtype, append([]int{p.leading[i]}, rest...))
			items[i] = t
		}
		if t.DType != p.dtype || len(t.Shape) == 0 || !exec.SameShape(t.Shape[1:], rest) {
			return nil, nil, c.Invalid("element %d, %s, cannot be joined to rows of %s%s", i, t.Describe(), exec.TypeName(p.dtype), exec.ShapeString(rest))
		}
	}
	return items, rest, nil
}

func concatLists(c *exec.KernelContext) error {
	a, err := variant.List(c, 0)
	if err != nil {
		return err
	}
	b, err := variant.List(c, 1)
	if err != nil {
		return err
	}
	if !slices.Equal(a.Shape, b.Shape) || (a.Shape == nil) != (b.Shape == nil) {
		return c.Invalid("a list of %s and one of %s", exec.ShapeString(a.Shape), exec.ShapeString(b.Shape))
	}
	c.SetVariant(0, a.With(append(append([]*exec.Tensor(nil), a.Items...), b.Items...)))
	return nil
}

func buildListGather(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("element_dtype")
	return func(c *exec.KernelContext) error {
		l, err := list(c)
		if err != nil {
			return err
		}
		var items []*exec.Tensor
		for _, i := range c.IntsOf(1, c.In(1)) {
			if i < 0 || i >= len(l.Items) {
				return c.Invalid("element %d of a list of %d", i, len(l.Items))
			}
			items = append(items, l.Items[i])
		}
		return l.With(items).Stack(c, dt, elementShape(c, 2))
	}, nil
}

// listScatter makes a list with given elements at given places.
func listScatter(c *exec.KernelContext) error {
	index := append([]int(nil), c.IntsOf(1, c.In(1))...)
	given := -1
	if c.NumInputs() > 3 {
		var err error
		if given, err = c.IntScalar(3, "the number of elements"); err != nil {
			return err
		}
	}
	n := max(given, 0)
	for _, i := range index {
		n = max(n, i+1)
	}
	if given >= 0 && n > given {
		return c.Invalid("element %d of a list of %d", n-1, given)
	}
	c.CheckSize([]int{n}, 8)
	l := &variant.TensorList{Shape: elementShape(c, 2), Items: make([]*exec.Tensor, n)}
	return scatterList(c, l, c.In(0), index)
}

func scatterIntoList(c *exec.KernelContext) error {
	l, err := list(c)
	if err != nil {
		return err
	}
	index := append([]int(nil), c.IntsOf(1, c.In(2))...)
	return scatterList(c, l.With(append([]*exec.Tensor(nil), l.Items...)), c.In(1), index)
}

// scatterList puts the rows of t into a list that no one else has yet.
func scatterList(c *exec.KernelContext, l *variant.TensorList, t *exec.Tensor, index []int) error {
	if len(t.Shape) == 0 || t.Shape[0] != len(index) {
		return c.Invalid("%s cannot be cut into %d elements", t.Describe(), len(index))
	}
	for k, i := range index {
		if i < 0 {
			return c.Invalid("element %d of a list", i)
		}
		for i >= len(l.Items) {
			l.Items = append(l.Items, nil)
		}
		l.Items[i] = variant.KeepRows(c, t, k, 1, t.Shape[1:])
	}
	c.SetVariant(0, l.With(l.Items))
	return nil
}

func listResize(c *exec.KernelContext) error {
	l, err := list(c)
	if err != nil {
		return err
	}
	n, err := c.IntScalar(1, "the number of elements")
	if err != nil {
		return err
	}
	if n < 0 {
		return c.Invalid("a list of %d elements", n)
	}
	c.CheckSize([]int{n}, 8)
	items := make([]*exec.Tensor, n)
	copy(items, l.Items)
	c.SetVariant(0, l.With(items))
	return nil
}
