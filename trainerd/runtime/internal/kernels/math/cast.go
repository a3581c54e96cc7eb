package math

import (
	"fmt"

	"github.com/trainerd/trainerd/internal/float16"
	"github.com/trainerd/trainerd/internal/vec"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Conversions between types.
var castOps = exec.OpTable{
	"Cast": {Types: exec.PlainTypes | exec.Halves | exec.ComplexTypes, TypeAttr: "SrcT", Build: buildCast},
}

func buildCast(b *exec.OpConstruction) (exec.Kernel, error) {
	src, dst := b.DType("SrcT"), b.DType("DstT")
	if src == dst {
		return b.PassOn()
	}
	cast := castFrom
	if k := castWide(src, dst); k != nil {
		return k, nil
	}
	if exec.ComplexTypes.Has(src) || exec.ComplexTypes.Has(dst) {
		cast = castComplex
	} else if exec.Halves.Has(src) || exec.Halves.Has(dst) {
		cast = castHalf
	}
	if k := cast(src, dst); k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("no kernel casts %s to %s", exec.TypeName(src), exec.TypeName(dst))
}

// castWide returns the kernel of a cast by vectors: of pictures, masks and counts.
func castWide(src, dst tfpb.DataType) exec.Kernel {
	if dst != exec.Float32 {
		return nil
	}
	switch src {
	case exec.Uint8:
		return elem.ConvertSlices(dst, vec.FromBytes)
	case exec.Int32:
		return elem.ConvertSlices(dst, vec.FromInt32s)
	case exec.Bool:
		return castMask
	}
	return nil
}

// castMask casts booleans, which are bytes of 0 and 1.
func castMask(c *exec.KernelContext) error {
	x := c.In(0)
	d := exec.Elems[float32](c.OutLike(0, exec.Float32, x))
	exec.ConvertSlices(c, vec.FromBytes, d, x.Data[:len(d)])
	return nil
}

func castFrom(src, dst tfpb.DataType) exec.Kernel {
	switch src {
	case exec.Float32:
		return castTo[float32](dst)
	case exec.Float64:
		return castTo[float64](dst)
	case exec.Int32:
		return castTo[int32](dst)
	case exec.Int64:
		return castTo[int64](dst)
	case exec.Int8:
		return castTo[int8](dst)
	case exec.Int16:
		return castTo[int16](dst)
	case exec.Uint8:
		return castTo[uint8](dst)
	case exec.Uint16:
		return castTo[uint16](dst)
	case exec.Uint32:
		return castTo[uint32](dst)
	case exec.Uint64:
		return castTo[uint64](dst)
	case exec.Bool:
		return castBool(dst)
	}
	return nil
}

func castTo[S exec.Number](dst tfpb.DataType) exec.Kernel {
	switch dst {
	case exec.Float32:
		return cast[S, float32]
	case exec.Float64:
		return cast[S, float64]
	case exec.Int32:
		return cast[S, int32]
	case exec.Int64:
		return cast[S, int64]
	case exec.Int8:
		return cast[S, int8]
	case exec.Int16:
		return cast[S, int16]
	case exec.Uint8:
		return cast[S, uint8]
	case exec.Uint16:
		return cast[S, uint16]
	case exec.Uint32:
		return cast[S, uint32]
	case exec.Uint64:
		return cast[S, uint64]
	case exec.Bool:
		return isNotZero[S]
	}
	return nil
}

func castBool(dst tfpb.DataType) exec.Kernel {
	switch dst {
	case exec.Float32:
		return elem.ConvertBool[float32]
	case exec.Float64:
		return elem.ConvertBool[float64]
	case exec.Int32:
		return elem.ConvertBool[int32]
	case exec.Int64:
		return elem.ConvertBool[int64]
	case exec.Int8:
		return elem.ConvertBool[int8]
	case exec.Int16:
		return elem.ConvertBool[int16]
	case exec.Uint8:
		return elem.ConvertBool[uint8]
	case exec.Uint16:
		return elem.ConvertBool[uint16]
	case exec.Uint32:
		return elem.ConvertBool[uint32]
	case exec.Uint64:
		return elem.ConvertBool[uint64]
	}
	return nil
}

func cast[S, D exec.Number](c *exec.KernelContext) error {
	x := c.In(0)
	xs := exec.Elems[S](x)
	d := exec.Elems[D](c.OutLike(0, exec.DTypeOf[D](), x))[:len(xs)]
	for i, v := range xs {
		d[i] = D(v)
	}
	return nil
}

// isNotZero casts to bool.
func isNotZero[S exec.Number](c *exec.KernelContext) error {
	x := c.In(0)
	xs := exec.Elems[S](x)
	d := exec.Elems[bool](c.OutLike(0, exec.Bool, x))[:len(xs)]
	for i, v := range xs {
		d[i] = v != 0
	}
	return nil
}

// castHalf returns the kernel of a cast in which src or dst is a 16-bit
// floating-point type, nil where there is none.
func castHalf(src, dst tfpb.DataType) exec.Kernel {
	switch {
	case exec.Halves.Has(src) && dst == exec.Float32:
		return elem.ConvertSlices(dst, exec.WidenerOfSlices(src))
	case src == exec.Float32 && exec.Halves.Has(dst):
		return elem.ConvertSlices(dst, exec.NarrowerOfSlices(dst))
	}
	get := func(x *exec.Tensor, i int) float64 { return elem.RealAt(x, i) }
	switch {
	case exec.Halves.Has(src):
		widen := exec.Widener(src)
		get = func(x *exec.Tensor, i int) float64 { return float64(widen(exec.Elems[uint16](x)[i])) }
	case src == exec.Bool:
		get = func(x *exec.Tensor, i int) float64 { return float64(elem.OneIf[uint8](exec.Elems[bool](x)[i])) }
	case !exec.RealTypes.Has(src):
		return nil
	}
	switch dst {
	case exec.Half:
		return castEach(dst, get, func(v float64) uint16 { return float16.ToHalf(float32(v)) })
	case exec.Bfloat16:
		return castEach(dst, get, func(v float64) uint16 { return float16.ToBfloat16(float32(v)) })
	case exec.Float32:
		return castEach(dst, get, func(v float64) float32 { return float32(v) })
	case exec.Float64:
		return castEach(dst, get, func(v float64) float64 { return v })
	case exec.Int32:
		return castEach(dst, get, func(v float64) int32 { return int32(v) })
	case exec.Int64:
		return castEach(dst, get, func(v float64) int64 { return int64(v) })
	case exec.Uint8:
		return castEach(dst, get, func(v float64) uint8 { return uint8(int64(v)) })
	case exec.Bool:
		return castEach(dst, get, func(v float64) bool { return v != 0 })
	}
	return nil
}

func castEach[D exec.Element](dt tfpb.DataType, get func(x *exec.Tensor, i int) float64, f func(float64) D) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		d := exec.Elems[D](c.OutLike(0, dt, x))
		for i := range d {
			d[i] = f(get(x, i))
		}
		return nil
	}
}

// castComplex returns the kernel of a cast to or from complex numbers, nil
// where there is none.
func castComplex(src, dst tfpb.DataType) exec.Kernel {
	if !(exec.RealTypes | exec.ComplexTypes | exec.SetOf(exec.Bool)).Has(src) {
		return nil
	}
	if exec.ComplexTypes.Has(dst) {
		return func(c *exec.KernelContext) error {
			storeLattice(c, latticeOf(c, c.In(0)), dst)
			return nil
		}
	}
	parts := map[tfpb.DataType]exec.Kernel{
		exec.Float32: castReal[float32](src),
		exec.Float64: castReal[float64](src),
		exec.Int32:   castReal[int32](src),
		exec.Int64:   castReal[int64](src),
	}
	return parts[dst]
}

// castReal casts complex numbers to their real part.
func castReal[D exec.Number](src tfpb.DataType) exec.Kernel {
	if src == exec.Complex64 {
		return elem.Convert(func(z complex64) D { return D(real(z)) })
	}
	return elem.Convert(func(z complex128) D { return D(real(z)) })
}
