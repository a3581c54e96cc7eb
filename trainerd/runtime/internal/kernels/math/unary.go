package math

import (
	"math"

	"github.com/trainerd/trainerd/internal/float16"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var unaryOps = exec.OpTable{
	"Exp":   alsoComplex(exec.OpSpec{Types: exec.Floats, Build: buildExp}, elem.Unary(expOf[complex64]), elem.Unary(expOf[complex128])),
	"Expm1": wideUnary(exps1m, math.Expm1), "Log": sliceUnary(vec.Log[float32], vec.Log[float64]), "Log1p": wideUnary(logs1p, math.Log1p),
	"Sqrt": sliceUnary(vec.Sqrt[float32], vec.Sqrt[float64]), "Rsqrt": sliceUnary(vec.Rsqrt[float32], vec.Rsqrt[float64]),
	"Sin": sliceUnary(vec.Sin[float32], vec.Sin[float64]), "Cos": sliceUnary(vec.Cos[float32], vec.Cos[float64]), "Tan": floatUnary(math.Tan),
	"Asin": floatUnary(math.Asin), "Acos": floatUnary(math.Acos), "Atan": floatUnary(math.Atan),
	"Sinh": floatUnary(math.Sinh), "Cosh": floatUnary(math.Cosh), "Tanh": sliceUnary(vec.Tanh[float32], vec.Tanh[float64]),
	"Asinh": floatUnary(math.Asinh), "Acosh": floatUnary(math.Acosh), "Atanh": floatUnary(math.Atanh),
	"Erf": sliceUnary(vec.Erf[float32], vec.Erf[float64]), "Erfc": sliceUnary(vec.Erfc[float32], vec.Erfc[float64]), "Erfinv": floatUnary(math.Erfinv),
	"Lgamma":  floatUnary(lgamma),
	"Sigmoid": sliceUnary(vec.Sigmoid[float32], vec.Sigmoid[float64]), "Softplus": wideUnary(softpluses, softplus),
	"Ceil": floatUnary(math.Ceil), "Floor": sliceUnary(vec.Floor[float32], vec.Floor[float64]), "Rint": floatUnary(math.RoundToEven),

	"Softsign":   {Types: exec.Floats, Build: buildUnary(softsign[float32], softsign[float64], nil, nil)},
	"Elu":        wideUnary(elus, elu),
	"Selu":       wideUnary(selus, selu),
	"Reciprocal": sliceUnary(reciprocal[float32], reciprocal[float64]),
	"Inv":        sliceUnary(reciprocal[float32], reciprocal[float64]),
	"Relu":       {Types: exec.Numbers, Build: buildRelu},
	"Relu6":      {Types: exec.Numbers, Build: slicesOrEach(relu6[float32], relu6[float64], relu6Of[int32], relu6Of[int64])},
	"LeakyRelu":  {Build: buildLeaky(buildLeakyRelu)},
	"Neg":        alsoComplex(exec.OpSpec{Types: exec.Numbers, Build: slicesOrEach(negate[float32], negate[float64], neg[int32], neg[int64])}, elem.Unary(negOf[complex64]), elem.Unary(negOf[complex128])),
	"Abs":        {Types: exec.Numbers, Build: slicesOrEach(vec.Abs[float32], vec.Abs[float64], elem.Absolute[int32], elem.Absolute[int64])},
	"Sign":       {Types: exec.Numbers, Build: slicesOrEach(vec.Sign[float32], vec.Sign[float64], elem.Sign[int32], elem.Sign[int64])},
	"Square":     alsoComplex(exec.OpSpec{Types: exec.Numbers, Build: slicesOrEach(vec.Square[float32], vec.Square[float64], square[int32], square[int64])}, elem.Unary(squareOf[complex64]), elem.Unary(squareOf[complex128])),
	"Round":      {Types: exec.Numbers, Build: buildUnary(round[float32], round[float64], none[int32], none[int64])},
	"Invert":     {Types: exec.Indices, Build: buildUnary(nil, nil, invert[int32], invert[int64])},

	"IsNan":    floatTest(nans[float32], nans[float64]),
	"IsInf":    floatTest(infinite, infinities),
	"IsFinite": floatTest(finite, finites),

	"ReluGrad":       {Types: exec.Numbers, Build: buildReluGrad},
	"Relu6Grad":      {Types: exec.Numbers, Build: buildRelu6Grad},
	"EluGrad":        wideGradient(eluGrads, eluGrad[float64]),
	"SeluGrad":       wideGradient(seluGrads, seluGrad[float64]),
	"SoftplusGrad":   wideGradient(softplusGrads, softplusGrad),
	"SoftsignGrad":   gradient(softsignGrad[float32], softsignGrad[float64]),
	"SigmoidGrad":    sliceGradient(vec.SigmoidGrad[float32], vec.SigmoidGrad[float64]),
	"TanhGrad":       sliceGradient(vec.TanhGrad[float32], vec.TanhGrad[float64]),
	"SqrtGrad":       sliceGradient(sqrtGrad[float32], sqrtGrad[float64]),
	"RsqrtGrad":      sliceGradient(rsqrtGrad[float32], rsqrtGrad[float64]),
	"InvGrad":        sliceGradient(reciprocalGrad[float32], reciprocalGrad[float64]),
	"ReciprocalGrad": sliceGradient(reciprocalGrad[float32], reciprocalGrad[float64]),
	"LeakyReluGrad":  {Build: buildLeaky(buildLeakyReluGrad)},
}

func floatUnary(f func(float64) float64) exec.OpSpec {
	narrow := elem.Unary(func(x float32) float32 { return float32(f(float64(x))) })
	return exec.OpSpec{Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), narrow, elem.Unary(f))
	}}
}

// sliceUnary is an op on floats that fills whole slices.
func sliceUnary(f32 func(d, x []float32), f64 func(d, x []float64)) exec.OpSpec {
	return exec.OpSpec{Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), chainedUnary(b, f32), elem.SliceUnary(f64))
	}}
}

// chainedUnary is the kernel of a function of float32s that may be part of a chain.
func chainedUnary(b *exec.OpConstruction, f func(d, x []float32)) exec.Kernel {
	b.Elementwise(&exec.Elements{V: f})
	return elem.SliceUnary(f)
}

// chainedPairwise is chainedUnary for two tensors of one shape.
func chainedPairwise(b *exec.OpConstruction, f func(d, x, y []float32)) exec.Kernel {
	b.Elementwise(&exec.Elements{Vv: f})
	return elem.SlicePairwise(f)
}

// sliceGradient is sliceUnary for two tensors of one shape.
func sliceGradient(f32 func(d, x, y []float32), f64 func(d, x, y []float64)) exec.OpSpec {
	return exec.OpSpec{Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), chainedPairwise(b, f32), elem.SlicePairwise(f64))
	}}
}

// slicesOrEach fills whole slices of floats, and computes integers one by one.
func slicesOrEach(f32 func(d, x []float32), f64 func(d, x []float64), i32 func(int32) int32, i64 func(int64) int64) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByType(b.DType("T"), chainedUnary(b, f32), elem.SliceUnary(f64), elem.Unary(i32), elem.Unary(i64))
	}
}

func buildExp(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByFloat(b.DType("T"), chainedUnary(b, vec.Exp[float32]), elem.SliceUnary(vec.Exp[float64]))
}

func buildUnary(f32 func(float32) float32, f64 func(float64) float64, i32 func(int32) int32, i64 func(int64) int64) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByType(b.DType("T"), elem.Unary(f32), elem.Unary(f64), elem.Unary(i32), elem.Unary(i64))
	}
}

// gradient is an op on two tensors of one shape.
func gradient(f32 func(x, y float32) float32, f64 func(x, y float64) float64) exec.OpSpec {
	return exec.OpSpec{Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), pairwise(f32), pairwise(f64))
	}}
}

func pairwise[T exec.Element](f func(x, y T) T) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, y := c.In(0), c.In(1)
		if !exec.SameShape(x.Shape, y.Shape) {
			return c.Invalid("the inputs have the shapes %s and %s", exec.ShapeString(x.Shape), exec.ShapeString(y.Shape))
		}
		xs, ys, d := exec.Elems[T](x), exec.Elems[T](y), exec.Elems[T](c.OutLike(0, x.DType, x))
		for i := range d {
			d[i] = f(xs[i], ys[i])
		}
		return nil
	}
}

// wideUnary is an op with a function over slices of float32.
func wideUnary(f32 func(d, x []float32), f64 func(float64) float64) exec.OpSpec {
	return exec.OpSpec{Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), chainedUnary(b, f32), elem.Unary(f64))
	}}
}

// wideGradient is wideUnary for two tensors of one shape.
func wideGradient(f32 elem.Slicewise[float32], f64 func(x, y float64) float64) exec.OpSpec {
	return exec.OpSpec{Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), chainedPairwise(b, f32), pairwise(f64))
	}}
}

func softplus(x float64) float64 {
	if x > 30 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

func softsign[T exec.Float](x T) T { return x / (1 + elem.Absolute(x)) }
func neg[T exec.Number](x T) T     { return -x }
func square[T exec.Number](x T) T  { return x * x }
func invert[T exec.Integer](x T) T { return ^x }
func round[T exec.Float](x T) T    { return T(math.RoundToEven(float64(x))) }

// none is what TensorFlow's kernel makes of an integer that is to be rounded. Its
// Python functions never ask for that.
func none[T exec.Integer](T) T { return 0 }

// lgamma grows to both sides.
func lgamma(x float64) float64 {
	if math.IsInf(x, -1) {
		return -x
	}
	v, _ := math.Lgamma(x)
	return v
}

func reciprocal[T exec.Float](d, x []T) { vec.ScalarDiv(d, x, 1) }

func negate[T exec.Float](d, x []T) { vec.MulScalar(d, x, -1) }

func elu(x float64) float64 {
	if x < 0 {
		return math.Expm1(x)
	}
	return x
}

// Constants of the self-normalising activation.
const seluScale, seluAlpha = 1.0507009873554804934193349852946, 1.7580993408473768599402175208123

func selu(x float64) float64 {
	if x < 0 {
		return seluAlpha * math.Expm1(x)
	}
	return seluScale * x
}

func relu[T exec.Number](x T) T {
	if x < 0 {
		return 0
	}
	return x
}

func buildRelu(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByType(b.DType("T"), chainedUnary(b, vec.Relu[float32]), elem.SliceUnary(vec.Relu[float64]), elem.Unary(relu[int32]), elem.Unary(relu[int64]))
}

func buildReluGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByType(b.DType("T"), chainedPairwise(b, vec.ReluGrad[float32]), elem.SlicePairwise(vec.ReluGrad[float64]), pairwise(reluGrad[int32]), pairwise(reluGrad[int64]))
}

func relu6[T exec.Float](d, x []T) { vec.ClippedRelu(d, x, 6) }

func relu6Of[T exec.Integer](x T) T { return min(relu(x), 6) }

func buildRelu6Grad(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByType(b.DType("T"), chainedPairwise(b, relu6Grad[float32]), elem.SlicePairwise(relu6Grad[float64]), pairwise(relu6GradOf[int32]), pairwise(relu6GradOf[int64]))
}

// buildLeaky builds an op whose slope has the type of its inputs.
func buildLeaky(build func(b *exec.OpConstruction, alpha float64) (exec.Kernel, error)) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		alpha := float32(b.Float("alpha"))
		switch b.DType("T") {
		case exec.Half:
			alpha = float16.FromHalf(float16.ToHalf(alpha))
		case exec.Bfloat16:
			alpha = float16.FromBfloat16(float16.ToBfloat16(alpha))
		}
		return exec.Widened("T", func(b *exec.OpConstruction) (exec.Kernel, error) { return build(b, float64(alpha)) })(b)
	}
}

func buildLeakyRelu(b *exec.OpConstruction, alpha float64) (exec.Kernel, error) {
	return exec.ByFloat(b.DType("T"), chainedUnary(b, leaky[float32](alpha)), elem.SliceUnary(leaky[float64](alpha)))
}

func leaky[T exec.Float](alpha float64) func(d, x []T) {
	return func(d, x []T) { vec.LeakyRelu(d, x, T(alpha)) }
}

func buildLeakyReluGrad(b *exec.OpConstruction, alpha float64) (exec.Kernel, error) {
	return exec.ByFloat(b.DType("T"), chainedPairwise(b, leakyGrad[float32](alpha)), elem.SlicePairwise(leakyGrad[float64](alpha)))
}

func leakyGrad[T exec.Float](alpha float64) elem.Slicewise[T] {
	return func(d, g, x []T) { vec.LeakyReluGrad(d, g, x, T(alpha)) }
}

func reluGrad[T exec.Integer](g, x T) T {
	if x > 0 {
		return g
	}
	return 0
}

func relu6Grad[T exec.Float](d, g, x []T) { vec.ClippedReluGrad(d, g, x, 6) }

func relu6GradOf[T exec.Integer](g, x T) T {
	if x > 0 && x < 6 {
		return g
	}
	return g * 0 // keeps NaN and the sign
}

func eluGrad[T exec.Float](g, y T) T {
	if y < 0 {
		return g * (y + 1)
	}
	return g
}

func seluGrad[T exec.Float](g, y T) T {
	if y < 0 {
		return g * (y + seluAlpha)
	}
	return g * seluScale
}

func softplusGrad(g, x float64) float64 { return g / (math.Exp(-x) + 1) }

func softsignGrad[T exec.Float](g, x T) T {
	d := 1 + elem.Absolute(x)
	return g / (d * d)
}

// The gradients of roots and inverses are 0 where the gradient that they get is, also
// where y is infinite or NaN.

func rsqrtGrad[T exec.Float](d, y, g []T) {
	y, g = y[:len(d)], g[:len(d)]
	for i := range d {
		d[i] = zeroOr(g[i], -0.5*(g[i]*y[i])*(y[i]*y[i]))
	}
}

func reciprocalGrad[T exec.Float](d, y, g []T) {
	y, g = y[:len(d)], g[:len(d)]
	for i := range d {
		d[i] = zeroOr(g[i], -g[i]*(y[i]*y[i]))
	}
}

func sqrtGrad[T exec.Float](d, y, g []T) {
	y, g = y[:len(d)], g[:len(d)]
	for i := range d {
		d[i] = zeroOr(g[i], g[i]*0.5/y[i])
	}
}

func zeroOr[T exec.Float](g, v T) T {
	if g == 0 {
		return 0
	}
	return v
}
