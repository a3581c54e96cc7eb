package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// special are the values around which float arithmetic has its corners.
var special = []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, -1e-40, 3e38, -3e38, 1e-20,
	1.1754944e-38, -1.1754943e-38, math.MaxFloat32, math.MaxFloat64, 5e-324, -1e-310, math.Copysign(math.NaN(), -1)}

// operands returns n slices of some length, with special values among random
// ones.
func operands[T Float](r *rand.Rand, n, length int) [][]T {
	out := make([][]T, n)
	for i := range out {
		out[i] = make([]T, length)
		for j := range out[i] {
			out[i][j] = T(r.NormFloat64())
			if r.IntN(8) == 0 {
				out[i][j] = T(special[r.IntN(len(special))])
			}
		}
	}
	return out
}

// portable holds, for each function, what it must do to one element: a gets
// the elements of the slices, s the scalars.
type operation[T Float] struct {
	name            string
	slices, scalars int
	run             func(v [][]T, s []T)
}

func operations[T Float]() []operation[T] {
	return []operation[T]{
		{"Add", 3, 0, func(v [][]T, s []T) { Add(v[0], v[1], v[2]) }},
		{"Sub", 3, 0, func(v [][]T, s []T) { Sub(v[0], v[1], v[2]) }},
		{"Mul", 3, 0, func(v [][]T, s []T) { Mul(v[0], v[1], v[2]) }},
		{"Div", 3, 0, func(v [][]T, s []T) { Div(v[0], v[1], v[2]) }},
		{"AddScalar", 2, 1, func(v [][]T, s []T) { AddScalar(v[0], v[1], s[0]) }},
		{"MulScalar", 2, 1, func(v [][]T, s []T) { MulScalar(v[0], v[1], s[0]) }},
		{"DivScalar", 2, 1, func(v [][]T, s []T) { DivScalar(v[0], v[1], s[0]) }},
		{"Relu", 2, 0, func(v [][]T, s []T) { Relu(v[0], v[1]) }},
		{"ReluGrad", 3, 0, func(v [][]T, s []T) { ReluGrad(v[0], v[1], v[2]) }},
		{"Quantize", 2, 5, func(v [][]T, s []T) { Quantize(v[0], v[1], &Quantizer[T]{s[0], s[1], s[2], s[3], s[4]}) }},
		{"Raise", 2, 0, func(v [][]T, _ []T) { Raise(v[0], v[1]) }},
		{"Lower", 2, 0, func(v [][]T, _ []T) { Lower(v[0], v[1]) }},
		{"QuantizeGrad", 5, 2, func(v [][]T, s []T) { QuantizeGrad(v[0], v[1], v[2], v[3], v[4], &Quantizer[T]{Low: s[0], High: s[1]}) }},
		{"Larger", 3, 1, func(v [][]T, s []T) { Larger(v[0], v[1], v[2], s[0]) }},
		{"Largest", 2, 0, func(v [][]T, s []T) { Largest(v[0], v[1]) }},
		{"AddEqual", 3, 1, func(v [][]T, s []T) { AddEqual(v[0], v[1], v[2], s[0]) }},
		{"Maximum", 3, 0, func(v [][]T, s []T) { Maximum(v[0], v[1], v[2]) }},
		{"Minimum", 3, 0, func(v [][]T, s []T) { Minimum(v[0], v[1], v[2]) }},
		{"Expm1", 4, 0, func(v [][]T, s []T) { Expm1(v[0], v[1], v[2], v[3]) }},
		{"Log1p", 4, 0, func(v [][]T, s []T) { Log1p(v[0], v[1], v[2], v[3]) }},
		{"Elu", 3, 2, func(v [][]T, s []T) { Elu(v[0], v[1], v[2], s[0], s[1]) }},
		{"EluGrad", 3, 2, func(v [][]T, s []T) { EluGrad(v[0], v[1], v[2], s[0], s[1]) }},
		{"Exp", 2, 0, func(v [][]T, s []T) { Exp(v[0], v[1]) }},
		{"Log", 2, 0, func(v [][]T, s []T) { Log(v[0], v[1]) }},
		{"Tanh", 2, 0, func(v [][]T, s []T) { Tanh(v[0], v[1]) }},
		{"Erf", 2, 0, func(v [][]T, s []T) { Erf(v[0], v[1]) }},
		{"Erfc", 2, 0, func(v [][]T, s []T) { Erfc(v[0], v[1]) }},
		{"Sigmoid", 2, 0, func(v [][]T, s []T) { Sigmoid(v[0], v[1]) }},
		{"Abs", 2, 0, func(v [][]T, s []T) { Abs(v[0], v[1]) }},
		{"Square", 2, 0, func(v [][]T, s []T) { Square(v[0], v[1]) }},
		{"Sqrt", 2, 0, func(v [][]T, s []T) { Sqrt(v[0], v[1]) }},
		{"Floor", 2, 0, func(v [][]T, s []T) { Floor(v[0], v[1]) }},
		{"AddProduct", 3, 0, func(v [][]T, s []T) { AddProduct(v[0], v[1], v[2]) }},
		{"AddScaled", 2, 1, func(v [][]T, s []T) { AddScaled(v[0], v[1], s[0]) }},
		{"ClippedRelu", 2, 1, func(v [][]T, s []T) { ClippedRelu(v[0], v[1], s[0]) }},
		{"ClippedReluGrad", 3, 1, func(v [][]T, s []T) { ClippedReluGrad(v[0], v[1], v[2], s[0]) }},
		{"Rsqrt", 2, 0, func(v [][]T, s []T) { Rsqrt(v[0], v[1]) }},
		{"ScalarSub", 2, 1, func(v [][]T, s []T) { ScalarSub(v[0], v[1], s[0]) }},
		{"ScalarDiv", 2, 1, func(v [][]T, s []T) { ScalarDiv(v[0], v[1], s[0]) }},
		{"SquaredDifference", 3, 0, func(v [][]T, s []T) { SquaredDifference(v[0], v[1], v[2]) }},
		{"TanhGrad", 3, 0, func(v [][]T, s []T) { TanhGrad(v[0], v[1], v[2]) }},
		{"SigmoidGrad", 3, 0, func(v [][]T, s []T) { SigmoidGrad(v[0], v[1], v[2]) }},
		{"Rotate", 2, 2, func(v [][]T, s []T) { Rotate(v[0], v[1], s[0], s[1]) }},
		{"SubScaled", 3, 2, func(v [][]T, s []T) { SubScaled(v[0], v[1], v[2], s[0], s[1]) }},
		{"Sign", 2, 0, func(v [][]T, _ []T) { Sign(v[0], v[1]) }},
		{"LeakyRelu", 2, 1, func(v [][]T, s []T) { LeakyRelu(v[0], v[1], s[0]) }},
		{"LeakyReluGrad", 3, 1, func(v [][]T, s []T) { LeakyReluGrad(v[0], v[1], v[2], s[0]) }},
		{"Normalize", 5, 0, func(v [][]T, s []T) { Normalize(v[0], v[1], v[2], v[3], v[4]) }},
		{"NormalizeGrad", 7, 0, func(v [][]T, s []T) { NormalizeGrad(v[0], v[1], v[2], v[3], v[4], v[5], v[6]) }},
		{"Moments", 4, 0, func(v [][]T, s []T) { Moments(v[0], v[1], v[2], v[3]) }},
		{"GradMoments", 5, 0, func(v [][]T, s []T) { GradMoments(v[0], v[1], v[2], v[3], v[4]) }},
		{"Descend", 2, 1, func(v [][]T, s []T) { Descend(v[0], v[1], s[0]) }},
		{"Momentum", 3, 2, func(v [][]T, s []T) { Momentum(v[0], v[1], v[2], s[0], s[1]) }},
		{"Nesterov", 3, 2, func(v [][]T, s []T) { Nesterov(v[0], v[1], v[2], s[0], s[1]) }},
		{"Adagrad", 3, 2, func(v [][]T, s []T) { Adagrad(v[0], v[1], v[2], s[0], s[1]) }},
		{"Adam", 4, 4, func(v [][]T, s []T) { Adam(v[0], v[1], v[2], v[3], s[0], s[1], s[2], s[3]) }},
		{"CenteredRMSProp", 5, 4, func(v [][]T, s []T) { CenteredRMSProp(v[0], v[1], v[2], v[3], v[4], s[0], s[1], s[2], s[3]) }},
		{"Adadelta", 4, 4, func(v [][]T, s []T) { Adadelta(v[0], v[1], v[2], v[3], s[0], s[1], s[2], s[3]) }},
		{"Ftrl", 4, 4, func(v [][]T, s []T) { Ftrl(v[0], v[1], v[2], v[3], s[0], s[1], s[2], s[3]) }},
		{"Butterfly", 8, 2, func(v [][]T, s []T) {
			Butterfly(Complex[T]{v[0], v[1]}, Complex[T]{v[2], v[3]}, Complex[T]{v[4], v[5]}, Complex[T]{v[6], v[7]}, s[0], s[1])
		}},
		{"Mirror", 8, 2, func(v [][]T, s []T) {
			Mirror(Complex[T]{v[0], v[1]}, Complex[T]{v[2], v[3]}, Complex[T]{v[4], v[5]}, Complex[T]{v[6], v[7]}, s[0], s[1])
		}},
		{"RMSProp", 4, 4, func(v [][]T, s []T) { RMSProp(v[0], v[1], v[2], v[3], s[0], s[1], s[2], s[3]) }},
	}
}

// severalOutputs are the functions whose slices must not be the same.
var severalOutputs = map[string]bool{"Larger": true, "Moments": true, "GradMoments": true, "Momentum": true, "Nesterov": true, "Adagrad": true, "Adam": true, "RMSProp": true,
	"CenteredRMSProp": true, "Adadelta": true, "Ftrl": true, "Butterfly": true, "Mirror": true}

// guard is the elements on both sides of an operand that must not change.
const guard = 5

// place puts copies of operands into larger slices, at places that fit no
// register. With shared set, an operand has the memory of the one that it names.
func place[T Float](in [][]T, at []int, shared []int) (whole, operands [][]T) {
	whole, operands = make([][]T, len(in)), make([][]T, len(in))
	for i, x := range in {
		if shared[i] < i {
			operands[i] = operands[shared[i]]
			continue
		}
		whole[i] = make([]T, at[i]+len(x)+guard)
		for j := range whole[i] {
			whole[i][j] = -77
		}
		operands[i] = whole[i][at[i]:][:len(x)]
		copy(operands[i], x)
	}
	return whole, operands
}

func same[T Float](x, y T) bool {
	return x != x && y != y || x == y && math.Signbit(float64(x)) == math.Signbit(float64(y))
}

// check holds a run on whole slices against one on single elements, which are
// too few for a register and so take the portable loop.
func check[T Float](t *testing.T, f operation[T], r *rand.Rand, length int) {
	t.Helper()
	in, scalars := operands[T](r, f.slices, length), operands[T](r, 1, f.scalars)[0]
	at, shared := make([]int, f.slices), make([]int, f.slices)
	for i := range at {
		at[i], shared[i] = guard+r.IntN(4), i
		if r.IntN(4) == 0 && !severalOutputs[f.name] {
			shared[i] = r.IntN(i + 1)
		}
	}
	gotWhole, got := place(in, at, shared)
	wantWhole, want := place(in, at, shared)
	f.run(got, scalars)
	for i := range length {
		one := make([][]T, f.slices)
		for k := range one {
			one[k] = want[k][i : i+1]
		}
		f.run(one, scalars)
	}
	for k := range gotWhole {
		for i := range gotWhole[k] {
			if !same(gotWhole[k][i], wantWhole[k][i]) {
				t.Fatalf("length %d, slice %d, element %d: got %v, want %v; scalars %v, memory shared as %v",
					length, k, i-at[k], gotWhole[k][i], wantWhole[k][i], scalars, shared)
			}
		}
	}
}

func TestBitsOfPortable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range operations[float32]() {
		t.Run(f.name+"/float32", func(t *testing.T) {
			for length := range 140 {
				check(t, f, r, length)
			}
		})
	}
	for _, f := range operations[float64]() {
		t.Run(f.name+"/float64", func(t *testing.T) {
			for length := range 140 {
				check(t, f, r, length)
			}
		})
	}
}

func FuzzBitsOfPortable(f *testing.F) {
	for i := range len(operations[float32]()) {
		f.Add(uint64(i), byte(i), byte(3*i))
	}
	single, double := operations[float32](), operations[float64]()
	f.Fuzz(func(t *testing.T, seed uint64, which, length byte) {
		r := rand.New(rand.NewPCG(seed, 0))
		check(t, single[int(which)%len(single)], r, int(length))
		check(t, double[int(which)%len(double)], r, int(length))
	})
}

func TestShortOperandPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a slice that is too short was read past its end")
		}
	}()
	Add(make([]float32, 16), make([]float32, 15), make([]float32, 16))
}

func BenchmarkVec(b *testing.B) {
	for _, f := range operations[float32]() {
		for _, n := range []int{1000, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%d", f.name, n), func(b *testing.B) {
				v, s := make([][]float32, f.slices), []float32{1e-3, 1e-3, 1e-3, 1e-3}
				for i := range v {
					v[i] = make([]float32, n)
				}
				b.SetBytes(int64(4 * n))
				for b.Loop() {
					f.run(v, s)
				}
			})
		}
	}
}
