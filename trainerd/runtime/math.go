package runtime

import (
	"bytes"
	"fmt"
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
)

type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

type float interface{ ~float32 | ~float64 }

// dtypeOf returns the dtype of a Go type.
func dtypeOf[T any]() tfpb.DataType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return tFloat
	case float64:
		return tDouble
	case int32:
		return tInt32
	case int64:
		return tInt64
	case bool:
		return tBool
	case int8:
		return tfpb.DataType_DT_INT8
	case int16:
		return tfpb.DataType_DT_INT16
	case uint8:
		return tfpb.DataType_DT_UINT8
	case uint16:
		return tfpb.DataType_DT_UINT16
	case uint32:
		return tfpb.DataType_DT_UINT32
	case uint64:
		return tfpb.DataType_DT_UINT64
	case []byte:
		return tString
	case complex64:
		return tComplex64
	case complex128:
		return tComplex128
	}
	return tNone
}

var _ = register(opTable{
	"Add":               alsoComplex(opSpec{in: "T T", types: realTypes | setOf(tString), build: buildAdd}, combine(loopsOf(addOf[complex64])), combine(loopsOf(addOf[complex128]))),
	"AddV2":             alsoComplex(opSpec{in: "T T", types: realTypes | setOf(tString), build: buildAdd}, combine(loopsOf(addOf[complex64])), combine(loopsOf(addOf[complex128]))),
	"Sub":               alsoComplex(opSpec{in: "T T", types: realTypes, build: buildSub}, combine(loopsOf(subOf[complex64])), combine(loopsOf(subOf[complex128]))),
	"Mul":               alsoComplex(opSpec{in: "T T", types: realTypes, build: buildMul}, combine(loopsOf(mulOf[complex64])), combine(loopsOf(mulOf[complex128]))),
	"RealDiv":           alsoComplex(opSpec{in: "T T", types: floats, build: buildFloatDiv}, combine(loopsOf(divOf[complex64])), combine(loopsOf(divOf[complex128]))),
	"Div":               {in: "T T", types: numbers, build: buildDiv(truncDiv[int32], truncDiv[int64], nil)},
	"TruncateDiv":       {in: "T T", types: numbers, build: buildDiv(truncDiv[int32], truncDiv[int64], math.Trunc)},
	"FloorDiv":          {in: "T T", types: numbers, build: buildDiv(floorDiv[int32], floorDiv[int64], math.Floor)},
	"FloorMod":          {in: "T T", types: numbers, build: buildMod(floorMod[int32], floorMod[int64], floorModFloat)},
	"Mod":               {in: "T T", types: numbers, build: buildMod(truncMod[int32], truncMod[int64], math.Mod)},
	"TruncateMod":       {in: "T T", types: numbers, build: buildMod(truncMod[int32], truncMod[int64], math.Mod)},
	"Pow":               {in: "T T", types: numbers, build: buildPow},
	"Maximum":           {in: "T T", types: realTypes, build: buildMaximum},
	"Minimum":           {in: "T T", types: realTypes, build: buildMinimum},
	"SquaredDifference": {in: "T T", types: numbers, build: buildSquaredDifference},
	"Atan2":             floatBinary(math.Atan2),
	"DivNoNan":          alsoComplex(floatBinary(func(x, y float64) float64 { return unlessZero(y, x/y) }), combine(loopsOf(divNoNanOf[complex64])), combine(loopsOf(divNoNanOf[complex128]))),
	"MulNoNan":          floatBinary(func(x, y float64) float64 { return unlessZero(y, x*y) }),
	"Xlogy":             floatBinary(func(x, y float64) float64 { return unlessZero(x, x*math.Log(y)) }),
	"Xlog1py":           floatBinary(func(x, y float64) float64 { return unlessZero(x, x*math.Log1p(y)) }),
	"Xdivy":             floatBinary(func(x, y float64) float64 { return unlessZero(x, x/y) }),

	"Less":         {in: "T T", types: realTypes, build: buildLess},
	"LessEqual":    {in: "T T", types: realTypes, build: buildLessEqual},
	"Greater":      {in: "T T", types: realTypes, build: buildGreater},
	"GreaterEqual": {in: "T T", types: realTypes, build: buildGreaterEqual},
	"Equal":        {in: "T T", types: plainTypes | setOf(tString), build: buildEqual},
	"NotEqual":     {in: "T T", types: plainTypes | setOf(tString), build: buildNotEqual},
	"LogicalAnd":   {in: "bool bool", build: simple(combine(loopsOf(func(x, y bool) bool { return x && y })))},
	"LogicalOr":    {in: "bool bool", build: simple(combine(loopsOf(func(x, y bool) bool { return x || y })))},
	"LogicalNot":   {in: "bool", build: simple(unary(func(x bool) bool { return !x }))},
	"BitwiseAnd":   {in: "T T", types: indices, build: buildBits(and[int32], and[int64])},
	"BitwiseOr":    {in: "T T", types: indices, build: buildBits(or[int32], or[int64])},
	"BitwiseXor":   {in: "T T", types: indices, build: buildBits(xor[int32], xor[int64])},

	"ApproximateEqual": {in: "T T", types: floats, build: buildApproximateEqual},
	"AddN":             alsoComplex(opSpec{in: "T...", types: realTypes | setOf(tVariant), build: buildAddN}, addN[complex64], addN[complex128]),
	"AccumulateNV2":    {in: "T...", types: realTypes, build: buildAddN},
	"Cast":             {in: "SrcT", types: plainTypes | halves | complexTypes, typeAttr: "SrcT", build: buildCast},
	"ClipByValue":      {in: "T T T", types: numbers, build: buildClip},
	"Cross":            {in: "T T", types: floats, build: func(b *builder) (kernel, error) { return byFloat(b.dtype("T", tNone), cross[float32], cross[float64]) }},
})

func unlessZero(x, v float64) float64 {
	if x == 0 {
		return 0
	}
	return v
}

// floatBinary is an op on floats, computed in float64.
func floatBinary(f func(x, y float64) float64) opSpec {
	narrow := loopsOf(func(x, y float32) float32 { return float32(f(float64(x), float64(y))) })
	return opSpec{in: "T T", types: floats, build: func(b *builder) (kernel, error) {
		return byFloat(b.dtype("T", tNone), combine(narrow), combine(loopsOf(f)))
	}}
}

func addLoops[T number]() *loops[T, T] {
	return &loops[T, T]{
		vv: func(d, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = x[i] + y[i]
			}
		},
		vs: addScalar[T],
		sv: func(d []T, x T, y []T) { addScalar(d, y, x) },
	}
}

func addScalar[T number](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] + y
	}
}

func subLoops[T number]() *loops[T, T] {
	return &loops[T, T]{
		vv: func(d, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = x[i] - y[i]
			}
		},
		vs: func(d, x []T, y T) {
			x = x[:len(d)]
			for i := range d {
				d[i] = x[i] - y
			}
		},
		sv: func(d []T, x T, y []T) {
			y = y[:len(d)]
			for i := range d {
				d[i] = x - y[i]
			}
		},
	}
}

func mulLoops[T number]() *loops[T, T] {
	return &loops[T, T]{
		vv: func(d, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = x[i] * y[i]
			}
		},
		vs: mulScalar[T],
		sv: func(d []T, x T, y []T) { mulScalar(d, y, x) },
	}
}

func mulScalar[T number](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] * y
	}
}

func divLoops[T float]() *loops[T, T] {
	return &loops[T, T]{
		vv: func(d, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = x[i] / y[i]
			}
		},
		vs: func(d, x []T, y T) {
			x = x[:len(d)]
			for i := range d {
				d[i] = x[i] / y
			}
		},
		sv: func(d []T, x T, y []T) {
			y = y[:len(d)]
			for i := range d {
				d[i] = x / y[i]
			}
		},
	}
}

// byNumber picks among the kernels of all real types.
func byNumber(dt tfpb.DataType, f32, f64, i32, i64, i8, i16, u8, u16, u32, u64 kernel) (kernel, error) {
	switch dt {
	case tfpb.DataType_DT_INT8:
		return i8, nil
	case tfpb.DataType_DT_INT16:
		return i16, nil
	case tfpb.DataType_DT_UINT8:
		return u8, nil
	case tfpb.DataType_DT_UINT16:
		return u16, nil
	case tfpb.DataType_DT_UINT32:
		return u32, nil
	case tfpb.DataType_DT_UINT64:
		return u64, nil
	}
	return byType(dt, f32, f64, i32, i64)
}

func buildAdd(b *builder) (kernel, error) {
	dt := b.dtype("T", tNone)
	if dt == tString {
		return combine(loopsOf(func(x, y []byte) []byte { return append(append([]byte{}, x...), y...) })), nil
	}
	return byNumber(dt, addFloats[float32](), addFloats[float64](), combine(addLoops[int32]()), combine(addLoops[int64]()),
		combine(addLoops[int8]()), combine(addLoops[int16]()), combine(addLoops[uint8]()), combine(addLoops[uint16]()), combine(addLoops[uint32]()), combine(addLoops[uint64]()))
}

func buildSub(b *builder) (kernel, error) {
	return byNumber(b.dtype("T", tNone), subFloats[float32](), subFloats[float64](), combine(subLoops[int32]()), combine(subLoops[int64]()),
		combine(subLoops[int8]()), combine(subLoops[int16]()), combine(subLoops[uint8]()), combine(subLoops[uint16]()), combine(subLoops[uint32]()), combine(subLoops[uint64]()))
}

func buildMul(b *builder) (kernel, error) {
	return byNumber(b.dtype("T", tNone), mulFloats[float32](), mulFloats[float64](), combine(mulLoops[int32]()), combine(mulLoops[int64]()),
		combine(mulLoops[int8]()), combine(mulLoops[int16]()), combine(mulLoops[uint8]()), combine(mulLoops[uint16]()), combine(mulLoops[uint32]()), combine(mulLoops[uint64]()))
}

func buildFloatDiv(b *builder) (kernel, error) {
	return byFloat(b.dtype("T", tNone), divFloats[float32](), divFloats[float64]())
}

func truncDiv[T integer](x, y T) T { return x / y }

func floorDiv[T integer](x, y T) T {
	q := x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q
}

func truncMod[T integer](x, y T) T { return x % y }

func floorMod[T integer](x, y T) T {
	r := x % y
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

func floorModFloat(x, y float64) float64 {
	r := math.Mod(x, y)
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

// nonZero guards an integer division.
func nonZero[T integer](k kernel) kernel {
	return func(c *call) error {
		for _, v := range elems[T](c.in(1)) {
			if v == 0 {
				return c.invalid("integer division by zero")
			}
		}
		return k(c)
	}
}

// buildDiv builds a division; round, when not nil, is applied to quotients of
// floats.
func buildDiv(i32 func(x, y int32) int32, i64 func(x, y int64) int64, round func(float64) float64) func(*builder) (kernel, error) {
	return func(b *builder) (kernel, error) {
		f32, f64 := divFloats[float32](), divFloats[float64]()
		if round != nil {
			f32 = combine(loopsOf(func(x, y float32) float32 { return float32(round(float64(x / y))) }))
			f64 = combine(loopsOf(func(x, y float64) float64 { return round(x / y) }))
		}
		return byType(b.dtype("T", tNone), f32, f64, nonZero[int32](combine(loopsOf(i32))), nonZero[int64](combine(loopsOf(i64))))
	}
}

func buildMod(i32 func(x, y int32) int32, i64 func(x, y int64) int64, f func(x, y float64) float64) func(*builder) (kernel, error) {
	return func(b *builder) (kernel, error) {
		return byType(b.dtype("T", tNone), combine(loopsOf(func(x, y float32) float32 { return float32(f(float64(x), float64(y))) })), combine(loopsOf(f)),
			nonZero[int32](combine(loopsOf(i32))), nonZero[int64](combine(loopsOf(i64))))
	}
}

func buildPow(b *builder) (kernel, error) {
	return byType(b.dtype("T", tNone),
		combine(loopsOf(func(x, y float32) float32 { return float32(math.Pow(float64(x), float64(y))) })), combine(loopsOf(math.Pow)),
		intPow[int32](), intPow[int64]())
}

func intPow[T int32 | int64]() kernel {
	k := combine(loopsOf(func(x, y T) T {
		r := T(1)
		for ; y > 0; y >>= 1 {
			if y&1 != 0 {
				r *= x
			}
			x *= x
		}
		return r
	}))
	return func(c *call) error {
		for _, v := range elems[T](c.in(1)) {
			if v < 0 {
				return c.invalid("integers to negative integer powers are not allowed")
			}
		}
		return k(c)
	}
}

func larger[T number](x, y T) T {
	if x != x || x > y {
		return x
	}
	return y
}

func smaller[T number](x, y T) T {
	if x != x || x < y {
		return x
	}
	return y
}

func buildMaximum(b *builder) (kernel, error) {
	return byNumber(b.dtype("T", tNone), combine(loopsOf(larger[float32])), combine(loopsOf(larger[float64])), combine(loopsOf(larger[int32])), combine(loopsOf(larger[int64])),
		combine(loopsOf(larger[int8])), combine(loopsOf(larger[int16])), combine(loopsOf(larger[uint8])), combine(loopsOf(larger[uint16])), combine(loopsOf(larger[uint32])), combine(loopsOf(larger[uint64])))
}

func buildMinimum(b *builder) (kernel, error) {
	return byNumber(b.dtype("T", tNone), combine(loopsOf(smaller[float32])), combine(loopsOf(smaller[float64])), combine(loopsOf(smaller[int32])), combine(loopsOf(smaller[int64])),
		combine(loopsOf(smaller[int8])), combine(loopsOf(smaller[int16])), combine(loopsOf(smaller[uint8])), combine(loopsOf(smaller[uint16])), combine(loopsOf(smaller[uint32])), combine(loopsOf(smaller[uint64])))
}

func squaredDifference[T number](x, y T) T { return (x - y) * (x - y) }

func buildSquaredDifference(b *builder) (kernel, error) {
	return byType(b.dtype("T", tNone), combine(loopsOf(squaredDifference[float32])), combine(loopsOf(squaredDifference[float64])),
		combine(loopsOf(squaredDifference[int32])), combine(loopsOf(squaredDifference[int64])))
}

func less[T number](x, y T) bool         { return x < y }
func lessEqual[T number](x, y T) bool    { return x <= y }
func greater[T number](x, y T) bool      { return x > y }
func greaterEqual[T number](x, y T) bool { return x >= y }
func equal[T comparable](x, y T) bool    { return x == y }
func notEqual[T comparable](x, y T) bool { return x != y }

func buildLess(b *builder) (kernel, error) {
	return byNumber(b.dtype("T", tNone), combine(loopsOf(less[float32])), combine(loopsOf(less[float64])), combine(loopsOf(less[int32])), combine(loopsOf(less[int64])),
		combine(loopsOf(less[int8])), combine(loopsOf(less[int16])), combine(loopsOf(less[uint8])), combine(loopsOf(less[uint16])), combine(loopsOf(less[uint32])), combine(loopsOf(less[uint64])))
}

func buildLessEqual(b *builder) (kernel, error) {
	return byNumber(b.dtype("T", tNone), combine(loopsOf(lessEqual[float32])), combine(loopsOf(lessEqual[float64])), combine(loopsOf(lessEqual[int32])), combine(loopsOf(lessEqual[int64])),
		combine(loopsOf(lessEqual[int8])), combine(loopsOf(lessEqual[int16])), combine(loopsOf(lessEqual[uint8])), combine(loopsOf(lessEqual[uint16])), combine(loopsOf(lessEqual[uint32])), combine(loopsOf(lessEqual[uint64])))
}

func buildGreater(b *builder) (kernel, error) {
	return byNumber(b.dtype("T", tNone), combine(loopsOf(greater[float32])), combine(loopsOf(greater[float64])), combine(loopsOf(greater[int32])), combine(loopsOf(greater[int64])),
		combine(loopsOf(greater[int8])), combine(loopsOf(greater[int16])), combine(loopsOf(greater[uint8])), combine(loopsOf(greater[uint16])), combine(loopsOf(greater[uint32])), combine(loopsOf(greater[uint64])))
}

func buildGreaterEqual(b *builder) (kernel, error) {
	return byNumber(b.dtype("T", tNone), combine(loopsOf(greaterEqual[float32])), combine(loopsOf(greaterEqual[float64])), combine(loopsOf(greaterEqual[int32])), combine(loopsOf(greaterEqual[int64])),
		combine(loopsOf(greaterEqual[int8])), combine(loopsOf(greaterEqual[int16])), combine(loopsOf(greaterEqual[uint8])), combine(loopsOf(greaterEqual[uint16])), combine(loopsOf(greaterEqual[uint32])), combine(loopsOf(greaterEqual[uint64])))
}

// relaxed lets shapes that do not broadcast compare as different, which an
// attribute of the equality ops asks for.
func relaxed(b *builder, k kernel, unequal bool) kernel {
	if b.bool("incompatible_shape_error", true) {
		return k
	}
	return func(c *call) error {
		var bc broadcast
		if bc.init(c.in(0).shape, c.in(1).shape) == nil {
			return k(c)
		}
		elems[bool](c.out(0, tBool))[0] = unequal
		return nil
	}
}

func buildEqual(b *builder) (kernel, error) {
	dt := b.dtype("T", tNone)
	var k kernel
	var err error
	switch dt {
	case tString:
		k = combine(loopsOf(bytes.Equal))
	case tBool:
		k = combine(loopsOf(equal[bool]))
	default:
		k, err = byNumber(dt, combine(loopsOf(equal[float32])), combine(loopsOf(equal[float64])), combine(loopsOf(equal[int32])), combine(loopsOf(equal[int64])),
			combine(loopsOf(equal[int8])), combine(loopsOf(equal[int16])), combine(loopsOf(equal[uint8])), combine(loopsOf(equal[uint16])), combine(loopsOf(equal[uint32])), combine(loopsOf(equal[uint64])))
	}
	return relaxed(b, k, false), err
}

func buildNotEqual(b *builder) (kernel, error) {
	dt := b.dtype("T", tNone)
	var k kernel
	var err error
	switch dt {
	case tString:
		k = combine(loopsOf(func(x, y []byte) bool { return !bytes.Equal(x, y) }))
	case tBool:
		k = combine(loopsOf(notEqual[bool]))
	default:
		k, err = byNumber(dt, combine(loopsOf(notEqual[float32])), combine(loopsOf(notEqual[float64])), combine(loopsOf(notEqual[int32])), combine(loopsOf(notEqual[int64])),
			combine(loopsOf(notEqual[int8])), combine(loopsOf(notEqual[int16])), combine(loopsOf(notEqual[uint8])), combine(loopsOf(notEqual[uint16])), combine(loopsOf(notEqual[uint32])), combine(loopsOf(notEqual[uint64])))
	}
	return relaxed(b, k, true), err
}

func and[T integer](x, y T) T { return x & y }
func or[T integer](x, y T) T  { return x | y }
func xor[T integer](x, y T) T { return x ^ y }

func buildBits(i32 func(x, y int32) int32, i64 func(x, y int64) int64) func(*builder) (kernel, error) {
	return func(b *builder) (kernel, error) {
		return byIndex(b.dtype("T", tNone), combine(loopsOf(i32)), combine(loopsOf(i64)))
	}
}

func buildApproximateEqual(b *builder) (kernel, error) {
	tol := b.float("tolerance", 1e-5)
	return byFloat(b.dtype("T", tNone),
		combine(loopsOf(func(x, y float32) bool { return math.Abs(float64(x-y)) < tol })),
		combine(loopsOf(func(x, y float64) bool { return math.Abs(x-y) < tol })))
}

func buildAddN(b *builder) (kernel, error) {
	if b.dtype("T", tNone) == tVariant {
		return addLists, nil
	}
	return byNumber(b.dtype("T", tNone), addN[float32], addN[float64], addN[int32], addN[int64],
		addN[int8], addN[int16], addN[uint8], addN[uint16], addN[uint32], addN[uint64])
}

func addN[T arithmetic](c *call) error {
	if c.inputs() == 0 {
		return c.invalid("no inputs")
	}
	x := c.in(0)
	y := c.outLike(0, x.dtype, x)
	ys := elems[T](y)
	copy(ys, elems[T](x))
	for i := 1; i < c.inputs(); i++ {
		z := c.in(i)
		if !sameShape(z.shape, x.shape) {
			return c.invalid("input %d has the shape %s, input 0 %s", i, shapeString(z.shape), shapeString(x.shape))
		}
		for j, v := range elems[T](z) {
			ys[j] += v
		}
	}
	return nil
}

func buildClip(b *builder) (kernel, error) {
	return byType(b.dtype("T", tNone), clip[float32], clip[float64], clip[int32], clip[int64])
}

func clip[T number](c *call) error {
	x, lo, hi := c.in(0), c.in(1), c.in(2)
	for _, t := range []*tensor{lo, hi} {
		if t.count() != 1 && !sameShape(t.shape, x.shape) {
			return c.invalid("a bound has the shape %s, the values %s", shapeString(t.shape), shapeString(x.shape))
		}
	}
	y := elems[T](c.outLike(0, x.dtype, x))
	l, h := elems[T](lo), elems[T](hi)
	for i, v := range elems[T](x) {
		y[i] = smaller(larger(v, l[i%len(l)]), h[i%len(h)])
	}
	return nil
}

func cross[T float](c *call) error {
	x, y := c.in(0), c.in(1)
	if !sameShape(x.shape, y.shape) || len(x.shape) == 0 || x.dim(-1) != 3 {
		return c.invalid("cross products need two tensors of vectors of 3, not %s and %s", x.describe(), y.describe())
	}
	a, b, d := elems[T](x), elems[T](y), elems[T](c.outLike(0, x.dtype, x))
	for i := 0; i+2 < len(d); i += 3 {
		d[i] = a[i+1]*b[i+2] - a[i+2]*b[i+1]
		d[i+1] = a[i+2]*b[i] - a[i]*b[i+2]
		d[i+2] = a[i]*b[i+1] - a[i+1]*b[i]
	}
	return nil
}

func buildCast(b *builder) (kernel, error) {
	src, dst := b.dtype("SrcT", tNone), b.dtype("DstT", tNone)
	if src == dst {
		return func(c *call) error { c.alias(0, c.in(0), c.in(0).shape); return nil }, nil
	}
	cast := castFrom
	if complexTypes.has(src) || complexTypes.has(dst) {
		cast = castComplex
	} else if halves.has(src) || halves.has(dst) {
		cast = castHalf
	}
	if k := cast(src, dst); k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("no kernel casts %s to %s", typeName(src), typeName(dst))
}

func castFrom(src, dst tfpb.DataType) kernel {
	switch src {
	case tFloat:
		return castTo[float32](dst)
	case tDouble:
		return castTo[float64](dst)
	case tInt32:
		return castTo[int32](dst)
	case tInt64:
		return castTo[int64](dst)
	case tfpb.DataType_DT_INT8:
		return castTo[int8](dst)
	case tfpb.DataType_DT_INT16:
		return castTo[int16](dst)
	case tfpb.DataType_DT_UINT8:
		return castTo[uint8](dst)
	case tfpb.DataType_DT_UINT16:
		return castTo[uint16](dst)
	case tfpb.DataType_DT_UINT32:
		return castTo[uint32](dst)
	case tfpb.DataType_DT_UINT64:
		return castTo[uint64](dst)
	case tBool:
		return castBool(dst)
	}
	return nil
}

func castTo[S number](dst tfpb.DataType) kernel {
	switch dst {
	case tFloat:
		return cast[S, float32]
	case tDouble:
		return cast[S, float64]
	case tInt32:
		return cast[S, int32]
	case tInt64:
		return cast[S, int64]
	case tfpb.DataType_DT_INT8:
		return cast[S, int8]
	case tfpb.DataType_DT_INT16:
		return cast[S, int16]
	case tfpb.DataType_DT_UINT8:
		return cast[S, uint8]
	case tfpb.DataType_DT_UINT16:
		return cast[S, uint16]
	case tfpb.DataType_DT_UINT32:
		return cast[S, uint32]
	case tfpb.DataType_DT_UINT64:
		return cast[S, uint64]
	case tBool:
		return convert(func(v S) bool { return v != 0 })
	}
	return nil
}

func castBool(dst tfpb.DataType) kernel {
	switch dst {
	case tFloat:
		return convert(oneIf[float32])
	case tDouble:
		return convert(oneIf[float64])
	case tInt32:
		return convert(oneIf[int32])
	case tInt64:
		return convert(oneIf[int64])
	case tfpb.DataType_DT_INT8:
		return convert(oneIf[int8])
	case tfpb.DataType_DT_INT16:
		return convert(oneIf[int16])
	case tfpb.DataType_DT_UINT8:
		return convert(oneIf[uint8])
	case tfpb.DataType_DT_UINT16:
		return convert(oneIf[uint16])
	case tfpb.DataType_DT_UINT32:
		return convert(oneIf[uint32])
	case tfpb.DataType_DT_UINT64:
		return convert(oneIf[uint64])
	}
	return nil
}

func oneIf[T number](v bool) T {
	if v {
		return 1
	}
	return 0
}

func cast[S, D number](c *call) error {
	x := c.in(0)
	d := elems[D](c.outLike(0, dtypeOf[D](), x))
	for i, v := range elems[S](x) {
		d[i] = D(v)
	}
	return nil
}

// convert is the kernel of a function of one element that changes its type.
func convert[S, D element](f func(S) D) kernel {
	dt := dtypeOf[D]()
	return func(c *call) error {
		x := c.in(0)
		d := elems[D](c.outLike(0, dt, x))
		for i, v := range elems[S](x) {
			d[i] = f(v)
		}
		return nil
	}
}

// unary is the kernel of a function of one element.
func unary[T element](f func(T) T) kernel { return convert(f) }
