package lists

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// tensorArray is an array of tensors, each written and read once; or, when it
// gathers gradients, written often, which adds.
type tensorArray struct {
	dtype   tfpb.DataType
	shape   []int // of every element, -1 for unknown dimensions; nil when not known
	same    bool  // all elements have the shape of the first one
	grows   bool
	once    bool // an element is forgotten when it is read
	adds    bool
	closed  bool
	items   []arrayItem
	grads   map[string]*tensorArray
	leading []int // dimensions that gradients have more than what they are of
}

// arrayItem is an element: its value, or just its shape, which represents
// zeros.
type arrayItem struct {
	value *exec.Tensor
	shape []int
	known bool // has been written, or has a shape
	read  bool // is gone
}

// put stores a value, which the array owns from now on.
func (a *tensorArray) put(c *exec.KernelContext, i int, t *exec.Tensor) error {
	if i < 0 || i >= len(a.items) && !a.grows {
		return c.Invalid("index %d is outside an array of %d elements", i, len(a.items))
	}
	if i >= len(a.items) {
		c.CheckSize([]int{i + 1}, 64)
		a.items = append(a.items, make([]arrayItem, i+1-len(a.items))...)
	}
	if t.DType != a.dtype {
		return c.Invalid("%s written to an array of %s", t.Describe(), exec.TypeName(a.dtype))
	}
	if !exec.ShapeCompatible(a.shape, t.Shape) {
		return c.Invalid("an element of shape %s in an array of %s", exec.ShapeString(t.Shape), exec.ShapeString(a.shape))
	}
	if a.same && exec.HasUnknownDim(a.shape) {
		a.shape = append([]int{}, t.Shape...)
	}
	it := &a.items[i]
	switch {
	case it.read:
		return c.Invalid("element %d was read already, and is written again", i)
	case it.value != nil && !a.adds:
		return c.Invalid("element %d is written twice", i)
	case it.value != nil:
		if !exec.SameShape(it.value.Shape, t.Shape) {
			return c.Invalid("a gradient of shape %s is added to one of shape %s", exec.ShapeString(t.Shape), exec.ShapeString(it.value.Shape))
		}
		defer c.Free(t)
		return elem.AddTensor(c, it.value, t)
	}
	*it = arrayItem{value: t, shape: append([]int{}, t.Shape...), known: true}
	return nil
}

// get returns an element. One that was not written is zeros, if its shape is
// known.
func (a *tensorArray) get(c *exec.KernelContext, i int) (*exec.Tensor, error) {
	if i < 0 || i >= len(a.items) {
		return nil, c.Invalid("index %d is outside an array of %d elements", i, len(a.items))
	}
	it := &a.items[i]
	if it.read {
		return nil, c.Invalid("element %d was read already, and the array forgets what is read (clear_after_read)", i)
	}
	t := it.value
	if t == nil {
		shape := it.shape
		if !it.known {
			shape = a.shape
		}
		if exec.HasUnknownDim(shape) {
			return nil, c.Invalid("element %d was not written, and its shape is not known", i)
		}
		t = newZeros(c, a.dtype, shape)
	}
	if a.once {
		*it = arrayItem{shape: append([]int{}, t.Shape...), known: true, read: true}
	}
	return t, nil
}

// newZeros returns a new tensor of zeros.
func newZeros(c *exec.KernelContext, dt tfpb.DataType, shape []int) *exec.Tensor {
	t := c.NewTensor(dt, shape)
	elem.Zero(t)
	return t
}

// copied frees an element that the array forgot when it was read.
func (a *tensorArray) copied(c *exec.KernelContext, t *exec.Tensor) {
	if a.once {
		c.Free(t)
	}
}

// GiveUp implements [exec.TensorOwner].
func (a *tensorArray) GiveUp(free func(*exec.Tensor)) {
	for i := range a.items {
		if t := a.items[i].value; t != nil {
			free(t)
		}
	}
	a.items = nil
	for _, g := range a.grads {
		g.GiveUp(free)
	}
}

// gather stacks elements of a shape, which may be unknown.
func (a *tensorArray) gather(c *exec.KernelContext, index, shape []int) error {
	if a.dtype == exec.Variant {
		return a.gatherVariants(c, index)
	}
	var d *exec.Tensor
	n := 0
	for k, i := range index {
		t, err := a.get(c, i)
		if err != nil {
			return err
		}
		if !exec.ShapeCompatible(shape, t.Shape) {
			return c.Invalid("an element of shape %s is read as one of %s", exec.ShapeString(t.Shape), exec.ShapeString(shape))
		}
		if d == nil {
			d = c.Out(0, a.dtype, append([]int{len(index)}, t.Shape...)...)
			n = t.NumElements()
		}
		if !exec.SameShape(d.Shape[1:], t.Shape) {
			return c.Invalid("elements of the shapes %s and %s cannot be stacked", exec.ShapeString(d.Shape[1:]), exec.ShapeString(t.Shape))
		}
		exec.CopyElems(d, k*n, t, 0, n)
		a.copied(c, t)
	}
	return nil
}

func (a *tensorArray) gatherVariants(c *exec.KernelContext, index []int) error {
	list := make([]*exec.Tensor, len(index))
	for k, i := range index {
		var err error
		if list[k], err = a.get(c, i); err != nil {
			return err
		}
	}
	return variant.StackOut(c, list)
}

// scatter writes the rows of t to elements.
func (a *tensorArray) scatter(c *exec.KernelContext, t *exec.Tensor, index []int) error {
	if len(t.Shape) == 0 || t.Shape[0] != len(index) {
		return c.Invalid("%s cannot be cut into %d elements", t.Describe(), len(index))
	}
	for k, i := range index {
		if err := a.put(c, i, variant.KeepRows(c, t, k, 1, t.Shape[1:])); err != nil {
			return err
		}
	}
	flow(c, 0)
	return nil
}

// concat joins all elements along their first dimension; the others must fit
// want.
func (a *tensorArray) concat(c *exec.KernelContext, want []int) error {
	items := make([]*exec.Tensor, len(a.items))
	lengths := exec.Elems[int64](c.Out(1, exec.Int64, len(items)))
	total := 0
	var rest []int
	for i := range items {
		t, err := a.get(c, i)
		if err != nil {
			return err
		}
		if len(t.Shape) == 0 || i > 0 && !exec.SameShape(t.Shape[1:], rest) || !exec.ShapeCompatible(want, t.Shape[1:]) {
			return c.Invalid("element %d, %s, cannot be joined to the others", i, t.Describe())
		}
		items[i], rest, lengths[i] = t, t.Shape[1:], int64(t.Shape[0])
		total += t.Shape[0]
	}
	if len(items) == 0 && len(a.shape) > 0 && !exec.HasUnknownDim(a.shape[1:]) {
		rest = a.shape[1:]
	}
	d := c.Out(0, a.dtype, append([]int{total}, rest...)...)
	at := 0
	for _, t := range items {
		exec.CopyElems(d, at, t, 0, t.NumElements())
		at += t.NumElements()
		a.copied(c, t)
	}
	return nil
}
