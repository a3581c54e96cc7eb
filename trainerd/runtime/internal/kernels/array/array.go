package array

import (
	"fmt"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

var arrayOps = exec.OpTable{
	"Const":                  {Build: buildConst},
	"Placeholder":            {Flags: exec.Stateful, Build: buildPlaceholder},
	"PlaceholderV2":          {Flags: exec.Stateful, Build: buildPlaceholder},
	"PlaceholderWithDefault": {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"Identity":               {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"Snapshot":               {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"StopGradient":           {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"PreventGradient":        {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"DebugGradientIdentity":  {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"IdentityN":              {Flags: exec.AliasesAny, Build: buildIdentityN},
	"Shape":                  {Build: buildShape},
	"ShapeN":                 {Build: buildShapeN},
	"Size":                   {Build: buildSize},
	"Rank":                   {Build: exec.WithoutAttrs(rankOf)},
	"Reshape":                {Flags: exec.AliasesFirst, Build: exec.WithoutAttrs(reshape)},
	"ExpandDims":             {Flags: exec.AliasesFirst, Build: exec.WithoutAttrs(expandDims)},
	"Squeeze":                {Flags: exec.AliasesFirst, Build: buildSqueeze},
	"EnsureShape":            {Flags: exec.AliasesFirst, Build: buildEnsureShape},
	"InvertPermutation":      {Types: exec.Indices, Build: exec.WithoutAttrs(invertPermutation)},
	"CheckNumericsV2":        {Types: exec.Floats | exec.Halves, Flags: exec.AliasesFirst, Build: buildCheckNumerics},
	"CheckNumerics":          {Types: exec.Floats | exec.Halves, Flags: exec.AliasesFirst, Build: buildCheckNumerics},

	"RefIdentity":    {Flags: exec.Stateful | exec.ForwardsRef, Build: exec.WithoutAttrs(func(c *exec.KernelContext) error { c.Alias(0, c.In(0), nil); return nil })},
	"GuaranteeConst": {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"ToBool":         {Build: exec.WithoutAttrs(toBool)},
	"FakeParam":      {Flags: exec.Stateful, Build: buildFakeParam},
	"UnravelIndex":   {Types: exec.Indices, TypeAttr: "Tidx", Build: exec.WithoutAttrs(unravelIndex)},
	"Bitcast":        {Types: exec.PlainTypes | exec.Halves | exec.ComplexTypes, Flags: exec.AliasesFirst, Build: buildBitcast},
}

// buildMove builds a kernel that moves elements of any type.
func buildMove(k8, k16, k32, k64, k128, str exec.Kernel) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.BySize(b.DType("T"), k8, k16, k32, k64, k128, str)
	}
}

func buildConst(b *exec.OpConstruction) (exec.Kernel, error) {
	v, ok := b.Attr("value").GetValue().(*tfpb.AttrValue_Tensor)
	if !ok {
		return nil, fmt.Errorf("attribute value (a tensor) is missing")
	}
	t, err := exec.TensorFromProto(v.Tensor, b.MaxTensorBytes())
	if err != nil {
		return nil, err
	}
	if dt := b.DType("dtype"); dt != t.DType {
		return nil, fmt.Errorf("the value is %s, attribute dtype %s", exec.TypeName(t.DType), exec.TypeName(dt))
	}
	return func(c *exec.KernelContext) error { c.Alias(0, t, t.Shape); return nil }, nil
}

func buildPlaceholder(*exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error { return c.Invalid("the placeholder must be fed a value") }, nil
}

func buildIdentityN(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		for i := range c.NumInputs() {
			c.Alias(i, c.In(i), c.In(i).Shape)
		}
		return nil
	}, nil
}

func buildShape(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.IndexType("out_type")
	return func(c *exec.KernelContext) error { elem.SetShape(c, 0, dt, c.In(0)); return nil }, nil
}

func buildShapeN(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.IndexType("out_type")
	return func(c *exec.KernelContext) error {
		for i := range c.NumInputs() {
			elem.SetShape(c, i, dt, c.In(i))
		}
		return nil
	}, nil
}

func buildSize(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.IndexType("out_type")
	return func(c *exec.KernelContext) error { exec.SetInt(c.Out(0, dt), 0, c.In(0).NumElements()); return nil }, nil
}

func rankOf(c *exec.KernelContext) error {
	exec.Elems[int32](c.Out(0, exec.Int32))[0] = int32(len(c.In(0).Shape))
	return nil
}

func reshape(c *exec.KernelContext) error {
	x, s := c.In(0), c.In(1)
	if len(s.Shape) > 1 || !exec.Indices.Has(s.DType) {
		return c.Invalid("the shape must be a vector of integers, not %s", s.Describe())
	}
	shape := c.IntsOf(0, s)
	open, n := -1, 1
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
	total := x.NumElements()
	if open >= 0 {
		if n == 0 || total%n != 0 {
			return c.Invalid("%s cannot be reshaped to %s", x.Describe(), exec.ShapeString(shape))
		}
		shape[open] = total / n
		n *= shape[open]
	}
	if n != total {
		return c.Invalid("%s has %d elements, the shape %s asks for %d", x.Describe(), total, exec.ShapeString(shape), n)
	}
	c.Alias(0, x, shape)
	return nil
}

func expandDims(c *exec.KernelContext) error {
	x := c.In(0)
	a, err := c.Axis(1, len(x.Shape)+1)
	if err != nil {
		return err
	}
	shape := append(append(append(c.ScratchInts(0, 0), x.Shape[:a]...), 1), x.Shape[a:]...)
	c.Alias(0, x, shape)
	return nil
}

func buildSqueeze(b *exec.OpConstruction) (exec.Kernel, error) {
	axes := b.Ints("squeeze_dims")
	if axes == nil {
		axes = b.Ints("axis")
	}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		var drop [64]bool
		if len(x.Shape) > len(drop) {
			return c.Invalid("a tensor of rank %d is beyond what can be squeezed", len(x.Shape))
		}
		for _, a := range axes {
			if a < -len(x.Shape) || a >= len(x.Shape) {
				return c.Invalid("axis %d is outside %s", a, x.Describe())
			}
			if a < 0 {
				a += len(x.Shape)
			}
			if x.Shape[a] != 1 {
				return c.Invalid("axis %d of %s is not 1", a, x.Describe())
			}
			drop[a] = true
		}
		shape := c.ScratchInts(0, 0)
		for i, d := range x.Shape {
			if !drop[i] && (d != 1 || len(axes) > 0) {
				shape = append(shape, d)
			}
		}
		c.Alias(0, x, shape)
		return nil
	}, nil
}

func buildEnsureShape(b *exec.OpConstruction) (exec.Kernel, error) {
	want, known := b.Shape("shape")
	v := &exec.Variable{Shape: want}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		if known && !v.Accepts(x.Shape) {
			return c.Invalid("the shape is %s, not %s", exec.ShapeString(x.Shape), exec.ShapeString(want))
		}
		c.Alias(0, x, x.Shape)
		return nil
	}, nil
}

func invertPermutation(c *exec.KernelContext) error {
	x := c.In(0)
	if len(x.Shape) != 1 {
		return c.Invalid("a permutation is a vector, not %s", x.Describe())
	}
	n := x.NumElements()
	d := c.OutLike(0, x.DType, x)
	for i := range n {
		exec.SetInt(d, i, -1)
	}
	for i := range n {
		v := x.IntAt(i)
		if v < 0 || v >= n || d.IntAt(v) >= 0 {
			return c.Invalid("element %d is %d, which makes this no permutation of %d", i, v, n)
		}
		exec.SetInt(d, v, i)
	}
	return nil
}

func buildCheckNumerics(b *exec.OpConstruction) (exec.Kernel, error) {
	message, at := b.String("message"), (*exec.Tensor).FloatAt
	if exec.Halves.Has(b.DType("T")) {
		at = elem.RealAt
	}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		for i := range x.NumElements() {
			if v := at(x, i); v-v != 0 {
				return c.Invalid("%s: element %d is %v", message, i, v)
			}
		}
		c.Alias(0, x, x.Shape)
		return nil
	}, nil
}

func toBool(c *exec.KernelContext) error {
	ok, err := elem.Truth(c, c.In(0))
	if err != nil {
		return err
	}
	exec.Elems[bool](c.Out(0, exec.Bool))[0] = ok
	return nil
}

// buildFakeParam builds the op in place of a value that the branch not
// taken would have had; nobody reads it.
func buildFakeParam(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	shape, known := b.Shape("shape")
	return func(c *exec.KernelContext) error {
		switch {
		case dt == exec.Variant:
			c.SetVariant(0, &variant.Optional{})
		case dt == exec.Resource:
			c.SetHandle(0, nil)
		case !known || exec.HasUnknownDim(append([]int{}, shape...)):
			c.Out(0, dt, 0)
		default:
			elem.Zero(c.Out(0, dt, shape...))
		}
		return nil
	}, nil
}

func unravelIndex(c *exec.KernelContext) error {
	x, dims := c.In(0), append([]int{}, c.IntsOf(0, c.In(1))...)
	n, ok := exec.CheckedNumElements(dims)
	if !ok || len(x.Shape) > 1 {
		return c.Invalid("%s cannot be indices into a tensor of shape %s", x.Describe(), exec.ShapeString(dims))
	}
	count := x.NumElements()
	if count == 0 {
		return c.Invalid("there are no indices in %s", x.Describe())
	}
	d := c.Out(0, x.DType, append([]int{len(dims)}, x.Shape...)...)
	index := make([]int64, len(dims))
	for i := range count {
		v := x.IntAt(i)
		if v < 0 || v >= n {
			return c.Invalid("index %d is outside a tensor of shape %s", v, exec.ShapeString(dims))
		}
		elem.IndexAt(v, dims, index)
		for k, at := range index {
			exec.SetInt(d, k*count+i, int(at))
		}
	}
	return nil
}

// buildBitcast builds the op that reads memory as another type. A dimension
// comes or goes when that has another size.
func buildBitcast(b *exec.OpConstruction) (exec.Kernel, error) {
	from, to := b.DType("T"), b.DType("type")
	small, large := exec.ElemSize(from), exec.ElemSize(to)
	if large == 0 || small == 0 || small%large != 0 && large%small != 0 {
		b.Fail("no kernel makes %s out of %s", exec.TypeName(to), exec.TypeName(from))
		return nil, nil
	}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		shape := append([]int{}, x.Shape...)
		switch {
		case small > large:
			shape = append(shape, small/large)
		case small < large:
			if len(shape) == 0 || shape[len(shape)-1] != large/small {
				return c.Invalid("the last dimension of %s is not %d", x.Describe(), large/small)
			}
			shape = shape[:len(shape)-1]
		}
		c.Alias(0, x, shape)
		c.Slot(0).DType = to
		return nil
	}, nil
}
