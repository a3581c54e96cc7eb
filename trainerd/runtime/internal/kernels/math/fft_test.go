package math_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	goruntime "runtime"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// textbook is the Fourier transform by its definition, along dimension axis.
func textbook(z []complex128, shape []int, axis int, inverse bool) []complex128 {
	n, inner, sign := shape[axis], 1, -1.0
	for _, d := range shape[axis+1:] {
		inner *= d
	}
	if inverse {
		sign = 1
	}
	out := make([]complex128, len(z))
	for at := range out {
		k, first := at/inner%n, at/(n*inner)*n*inner+at%inner
		for m := range n {
			out[at] += z[first+m*inner] * cmplx.Rect(1, sign*2*math.Pi*float64(k*m%n)/float64(n))
		}
		if inverse {
			out[at] /= complex(float64(n), 0)
		}
	}
	return out
}

// near compares the numbers of a transform of n numbers of about one.
func near(t *testing.T, what string, got, want []complex128, n int, eps float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if cmplx.Abs(got[i]-want[i]) > 8*eps*(1+math.Sqrt(float64(n)))*math.Log2(float64(2*n)) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// doubles returns the numbers of a tensor, and the rounding error of its type.
func doubles(t *testing.T, x *ckptfmt.Tensor) (z []complex128, eps float64) {
	t.Helper()
	add := func(v complex128) { z = append(z, v) }
	switch x.DType {
	case tfpb.DataType_DT_COMPLEX64:
		for _, v := range kerneltest.Values[complex64](t, x) {
			add(complex128(v))
		}
		return z, 0x1p-23
	case tfpb.DataType_DT_FLOAT:
		for _, v := range kerneltest.Values[float32](t, x) {
			add(complex(float64(v), 0))
		}
		return z, 0x1p-23
	case tfpb.DataType_DT_DOUBLE:
		for _, v := range kerneltest.Values[float64](t, x) {
			add(complex(v, 0))
		}
		return z, 0x1p-52
	}
	return kerneltest.Values[complex128](t, x), 0x1p-52
}

// TestTransforms holds the transforms of lines of many lengths against the definition:
// one line, fewer than a block has, several blocks.
func TestTransforms(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 16, 30, 64, 100, 256, 2048} {
		for _, lines := range []int{1, 2, 31, 70} {
			if n*lines > 1<<14 {
				continue
			}
			single, double := make([]complex64, n*lines), make([]complex128, n*lines)
			for i := range single {
				single[i] = complex(float32(r.NormFloat64()), float32(r.NormFloat64()))
				double[i] = complex128(single[i])
			}
			transformLines(t, n, lines, single, double)
		}
	}
}

func transformLines(t *testing.T, n, lines int, single []complex64, double []complex128) {
	t.Helper()
	shape := []int64{int64(lines), int64(n)}
	flat, flat64 := make([]float32, len(single)), make([]float64, len(single))
	real := make([]complex128, len(single))
	for i, z := range double {
		v := realOf(z)
		flat[i], flat64[i], real[i] = float32(v), v, complex(v, 0)
	}
	b := kerneltest.New(t)
	length := kerneltest.Vector(b, int32(n))
	var nodes []string
	for _, in := range []struct {
		complex, real string
		types         []any
	}{
		{kerneltest.Tensor(b, shape, single...), kerneltest.Tensor(b, shape, flat...), []any{"Tcomplex", tfpb.DataType_DT_COMPLEX64, "Treal", tfpb.DataType_DT_FLOAT}},
		{kerneltest.Tensor(b, shape, double...), kerneltest.Tensor(b, shape, flat64...), []any{"Tcomplex", tfpb.DataType_DT_COMPLEX128, "Treal", tfpb.DataType_DT_DOUBLE}},
	} {
		spectrum := b.Node("RFFT", []string{in.real, length}, in.types...)
		nodes = append(nodes, b.Node("FFT", []string{in.complex}), b.Node("IFFT", []string{in.complex}), spectrum, b.Node("IRFFT", []string{spectrum, length}, in.types...))
	}
	half, whole := make([]complex128, 0, lines*(n/2+1)), textbook(real, []int{lines, n}, 1, false)
	for l := range lines {
		half = append(half, whole[l*n:][:n/2+1]...)
	}
	want := [][]complex128{textbook(double, []int{lines, n}, 1, false), textbook(double, []int{lines, n}, 1, true), half, real}
	for i, x := range b.Run(nodes) {
		got, eps := doubles(t, x)
		near(t, fmt.Sprintf("%d lines of %d, %s", lines, n, nodes[i]), got, want[i%len(want)], n, eps)
	}
}

func realOf(z complex128) float64 { return real(z) }

// TestTransformsOfBoxes transforms in two and three dimensions, some of them cut and some
// filled up with zeros.
func TestTransformsOfBoxes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, v := range []struct{ in, n []int }{
		{[]int{3, 8, 20}, []int{8, 20}}, {[]int{3, 5, 7}, []int{4, 6}}, {[]int{2, 4, 6}, []int{7, 9}}, {[]int{6, 4, 5}, []int{4, 8, 6}}, {[]int{2, 40, 3}, []int{40, 3}},
	} {
		x, shape := make([]float32, v.in[0]*v.in[1]*v.in[2]), []int64{int64(v.in[0]), int64(v.in[1]), int64(v.in[2])}
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		b := kerneltest.New(t)
		rank, lengths := len(v.n), make([]int32, len(v.n))
		box := append(append([]int{}, v.in[:3-rank]...), v.n...)
		whole := make([]complex128, box[0]*box[1]*box[2])
		for i := range whole {
			at := [3]int{i / (box[1] * box[2]), i / box[2] % box[1], i % box[2]}
			if at[0] < v.in[0] && at[1] < v.in[1] && at[2] < v.in[2] {
				whole[i] = complex(float64(x[(at[0]*v.in[1]+at[1])*v.in[2]+at[2]]), 0)
			}
		}
		padded := append([]complex128(nil), whole...)
		for k := range rank {
			lengths[k] = int32(v.n[k])
			whole = textbook(whole, box, 2-k, false)
		}
		var half []complex128
		for i, z := range whole {
			if i%box[2] <= box[2]/2 {
				half = append(half, z)
			}
		}
		name := fmt.Sprintf("FFT%dD", rank)
		n := kerneltest.Vector(b, lengths...)
		spectrum := b.Node("R"+name, []string{kerneltest.Tensor(b, shape, x...), n}, "Tcomplex", tfpb.DataType_DT_COMPLEX64)
		got := b.Run([]string{spectrum, b.Node("IR"+name, []string{spectrum, n}, "Treal", tfpb.DataType_DT_FLOAT)})
		for i, want := range [][]complex128{half, padded} {
			z, eps := doubles(t, got[i])
			near(t, fmt.Sprint(v), z, want, len(padded), eps)
		}
	}
}

// TestTransformsApart transforms silence next to a loud line, and the same line at another
// place: a line has the bits that it has alone, with any number of processors.
func TestTransformsApart(t *testing.T) {
	const lines, n = 75, 512
	r := rand.New(rand.NewPCG(9, 10))
	x := make([]float32, lines*n)
	for i := range x {
		x[i] = float32(1e6 * r.NormFloat64())
	}
	clear(x[5*n : 6*n])
	alone := make([][]complex64, lines)
	for l := range alone {
		alone[l] = spectra(t, 1, x[l*n:(l+1)*n], n)
	}
	for _, processors := range []int{1, 2, 3} {
		got := func() []complex64 {
			defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(processors))
			return spectra(t, lines, x, n)
		}()
		for l, want := range alone {
			kerneltest.WantValues(t, got[l*(n/2+1):(l+1)*(n/2+1)], want)
		}
	}
	kerneltest.WantValues(t, alone[5], make([]complex64, n/2+1))
}

func spectra(t *testing.T, lines int, x []float32, n int) []complex64 {
	t.Helper()
	b := kerneltest.New(t)
	in := kerneltest.Tensor(b, []int64{int64(lines), int64(n)}, x...)
	got := b.Run([]string{b.Node("RFFT", []string{in, kerneltest.Vector(b, int32(n))}, "Tcomplex", tfpb.DataType_DT_COMPLEX64)})
	return kerneltest.Values[complex64](t, got[0])
}

// BenchmarkRFFT transforms as the spectrogram of 16 sounds of a second does.
func BenchmarkRFFT(b *testing.B) {
	const lines, n = 16 * 61, 512
	g := kerneltest.New(b)
	in := kerneltest.Tensor(g, []int64{lines, n}, make([]float32, lines*n)...)
	node := g.Node("RFFT", []string{in, kerneltest.Vector(g, int32(n))}, "Tcomplex", tfpb.DataType_DT_COMPLEX64)
	b.ReportAllocs()
	for b.Loop() {
		g.Run(nil, node)
	}
}
