package array

import (
	"fmt"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Ops that make tensors.
var createOps = exec.OpTable{
	"Fill":      {Types: exec.ValueTypes, Build: exec.WithoutAttrs(fill)},
	"ZerosLike": {Types: exec.ValueTypes | exec.SetOf(exec.Variant), Build: exec.WithoutAttrs(zerosLike)},
	"OnesLike":  {Types: exec.PlainTypes | exec.Halves | exec.ComplexTypes, Build: exec.WithoutAttrs(onesLike)},
	"Range":     {Types: exec.Numbers, TypeAttr: "Tidx", Build: buildRange},
	"LinSpace":  {Types: exec.Floats, Build: buildLinSpace},
	"Empty":     {Types: exec.ValueTypes, TypeAttr: "dtype", Flags: exec.Stateful, Build: buildEmpty},
}

func fill(c *exec.KernelContext) error {
	v := c.In(1)
	if len(v.Shape) > 1 || v.NumElements() != 1 {
		return c.Invalid("the value must be a scalar, not %s", v.Describe())
	}
	d, err := elem.OutShaped(c, 0, v.DType)
	if err != nil {
		return err
	}
	return elem.FillAll(c, d, v)
}

func zerosLike(c *exec.KernelContext) error {
	if c.In(0).DType == exec.Variant {
		return variant.ZerosLike(c)
	}
	elem.Zero(c.OutLike(0, c.In(0).DType, c.In(0)))
	return nil
}

func onesLike(c *exec.KernelContext) error {
	x := c.In(0)
	d := c.OutLike(0, x.DType, x)
	one, err := oneOf(x.DType)
	if err != nil {
		return c.Invalid("%v", err)
	}
	elem.Fill(d, one)
	return nil
}

// oneOf returns the scalar one of a type of numbers or of bool.
func oneOf(dt tfpb.DataType) (*exec.Tensor, error) {
	one := exec.NewTensor(exec.Int32, nil)
	exec.Elems[int32](one)[0] = 1
	if dt == exec.Int32 {
		return one, nil
	}
	out := exec.NewTensor(dt, nil)
	switch dt {
	case exec.Float32:
		exec.Elems[float32](out)[0] = 1
	case exec.Float64:
		exec.Elems[float64](out)[0] = 1
	case exec.Int64, exec.Uint64:
		exec.Elems[int64](out)[0] = 1
	case exec.Int16, exec.Uint16:
		exec.Elems[int16](out)[0] = 1
	case exec.Bool, exec.Int8, exec.Uint8:
		exec.Elems[int8](out)[0] = 1
	case exec.Uint32:
		exec.Elems[int32](out)[0] = 1
	case exec.Half, exec.Bfloat16:
		exec.Elems[uint16](out)[0] = exec.Narrower(dt)(1)
	case exec.Complex64:
		exec.Elems[complex64](out)[0] = 1
	case exec.Complex128:
		exec.Elems[complex128](out)[0] = 1
	default:
		return nil, fmt.Errorf("no kernel makes a one of type %s", exec.TypeName(dt))
	}
	return out, nil
}

func buildRange(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByType(b.DType("Tidx"), rangeFloat[float32], rangeFloat[float64], rangeInt[int32], rangeInt[int64])
}

// scalars insists on inputs of at most maxRank dimensions that have one element: of 1
// where vectors are taken too, as the first graphs have them.
func scalars(c *exec.KernelContext, maxRank int) error {
	for i := range c.NumInputs() {
		if x := c.In(i); len(x.Shape) > maxRank || x.NumElements() != 1 {
			return c.Invalid("input %d must be a scalar, not %s", i, x.Describe())
		}
	}
	return nil
}

func rangeInt[T int32 | int64](c *exec.KernelContext) error {
	if err := scalars(c, 1); err != nil {
		return err
	}
	start, limit, delta := exec.Elems[T](c.In(0))[0], exec.Elems[T](c.In(1))[0], exec.Elems[T](c.In(2))[0]
	if delta == 0 {
		return c.Invalid("the step is zero")
	}
	n := 0
	switch {
	case delta > 0 && limit > start:
		n = int((uint64(limit)-uint64(start)-1)/uint64(delta)) + 1
	case delta < 0 && limit < start:
		n = int((uint64(start)-uint64(limit)-1)/-uint64(delta)) + 1
	}
	return count(c, exec.Elems[T](c.Out(0, exec.DTypeOf[T](), n)), start, delta)
}

// count fills d with start and what follows it in steps. Between pieces it looks at
// the context.
func count[T exec.Number](c *exec.KernelContext, d []T, start, delta T) error {
	const piece = exec.PieceBytes / 8
	for from := 0; from < len(d); from += piece {
		if err := c.Interrupted(); err != nil {
			return err
		}
		for i := from; i < min(from+piece, len(d)); i++ {
			d[i] = start + T(i)*delta
		}
	}
	return nil
}

func rangeFloat[T exec.Float](c *exec.KernelContext) error {
	if err := scalars(c, 1); err != nil {
		return err
	}
	start, limit, delta := exec.Elems[T](c.In(0))[0], exec.Elems[T](c.In(1))[0], exec.Elems[T](c.In(2))[0]
	if delta == 0 || delta != delta {
		return c.Invalid("the step is %v", delta)
	}
	n := 0
	if size := float64((limit - start) / delta); size > 0 {
		if size > float64(c.MaxTensorBytes()) {
			return c.Invalid("a range from %v to %v by %v has too many elements", start, limit, delta)
		}
		n = int(size)
		if float64(n) < size {
			n++
		}
	}
	return count(c, exec.Elems[T](c.Out(0, exec.DTypeOf[T](), n)), start, delta)
}

func buildLinSpace(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByFloat(b.DType("T"), linSpace[float32], linSpace[float64])
}

func linSpace[T exec.Float](c *exec.KernelContext) error {
	if err := scalars(c, 0); err != nil {
		return err
	}
	start, stop := exec.Elems[T](c.In(0))[0], exec.Elems[T](c.In(1))[0]
	n := c.In(2).IntAt(0)
	if n < 1 {
		return c.Invalid("%d points asked for", n)
	}
	d := exec.Elems[T](c.Out(0, exec.DTypeOf[T](), n))
	d[0] = start
	if n == 1 {
		return nil
	}
	step := (stop - start) / T(n-1)
	for i := 1; i < n-1; i++ {
		d[i] = start + step*T(i)
	}
	d[n-1] = stop
	return nil
}

// buildEmpty builds the op whose result may be anything; zeros are repeatable.
func buildEmpty(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	return func(c *exec.KernelContext) error {
		t, err := elem.OutShaped(c, 0, dt)
		if err == nil {
			elem.Zero(t)
		}
		return err
	}, nil
}
