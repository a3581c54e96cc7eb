package linalg_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/gemm"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// sums is a random graph of sums whose terms are products, most of them taken by
// nothing else.
type sums[T ckptfmt.Element] struct {
	*kerneltest.Graph
	r     *rand.Rand
	value func() T
	terms []string
}

const rows, columns = 5, 7

// matrix feeds a matrix, or its transpose.
func (s *sums[T]) matrix(m, n int, transposed bool) string {
	if transposed {
		m, n = n, m
	}
	values := make([]T, m*n)
	for i := range values {
		values[i] = s.value()
	}
	return kerneltest.Tensor(s.Graph, []int64{int64(m), int64(n)}, values...)
}

// product adds a product whose inner dimension may be zero, or longer than
// products can add at once.
func (s *sums[T]) product() string {
	k := []int{0, 1, 3, 20, 400}[s.r.IntN(5)]
	ta, tb := s.r.IntN(2) == 0, s.r.IntN(2) == 0
	n := s.Node("MatMul", []string{s.matrix(rows, k, ta), s.matrix(k, columns, tb)}, "transpose_a", ta, "transpose_b", tb)
	for s.r.IntN(2) == 0 {
		n = s.Node("Identity", []string{n})
	}
	return n
}

func (s *sums[T]) term() string {
	n := s.product()
	switch s.r.IntN(8) {
	case 0:
		n = s.matrix(rows, columns, false)
	case 1:
		n = s.Node("AddV2", []string{n, s.terms[s.r.IntN(len(s.terms))]})
	case 2:
		n = s.terms[s.r.IntN(len(s.terms))]
	}
	s.terms = append(s.terms, n)
	return n
}

// sum adds a sum of terms, which may be in another order than they are computed.
func (s *sums[T]) sum() string {
	list := make([]string, 1+s.r.IntN(6))
	for i := range list {
		list[i] = s.term()
	}
	if s.r.IntN(4) == 0 {
		s.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return s.Node("AddN", list, "N", len(list))
}

// TestSumsOfProducts compares runs that fetch the sums with one that fetches all
// terms as well, where none is added to another.
func TestSumsOfProducts(t *testing.T) {
	t.Run("float", func(t *testing.T) {
		testSums(t, func(r *rand.Rand) float32 { return float32(r.NormFloat64()) })
	})
	t.Run("double", func(t *testing.T) { testSums(t, (*rand.Rand).NormFloat64) })
	t.Run("integers", func(t *testing.T) { testSums(t, func(r *rand.Rand) int32 { return int32(r.Uint32()) }) })
}

func testSums[T ckptfmt.Element](t *testing.T, value func(r *rand.Rand) T) {
	r := rand.New(rand.NewPCG(21, 22))
	for n := range 40 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := &sums[T]{Graph: kerneltest.New(t), r: r, value: func() T { return value(r) }}
			s.terms = append(s.terms, s.product())
			list := []string{s.sum(), s.sum(), s.sum()}
			all := s.Run(slices.Concat(list, s.terms))
			for range 3 {
				for i, got := range s.Run(list) {
					if !slices.Equal(got.Data, all[i].Data) {
						t.Fatalf("sum %d has other bits where products are added to each other", i)
					}
				}
			}
		})
	}
}

// TestSumOfForms sums products of square matrices, whose shapes do not say which of the
// factors are transposed.
func TestSumOfForms(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 21))
	for range 20 {
		s := &sums[float32]{Graph: kerneltest.New(t), r: r, value: func() float32 { return float32(r.NormFloat64()) }}
		x, y := s.matrix(columns, columns, false), s.matrix(columns, columns, false)
		for range 4 {
			ta, tb := r.IntN(2) == 0, r.IntN(2) == 0
			s.terms = append(s.terms, s.Node("MatMul", []string{x, y}, "transpose_a", ta, "transpose_b", tb))
		}
		list := []string{s.Node("AddN", s.terms, "N", len(s.terms))}
		all, sum := s.Run(slices.Concat(list, s.terms)), s.Run(list)
		if !slices.Equal(sum[0].Data, all[0].Data) {
			t.Fatal("the sum has other bits where its products are not fetched")
		}
	}
}

// TestSumOfProductsMemory sums products that take much more memory than their sum.
func TestSumOfProductsMemory(t *testing.T) {
	if !gemm.Float32sAdd(1) {
		t.Skip("gonum's products are added in another order")
	}
	const size, terms = 512, 16
	g := kerneltest.New(t)
	ones := slices.Repeat([]float32{1}, size)
	a, b := kerneltest.Tensor(g, []int64{size, 1}, ones...), kerneltest.Tensor(g, []int64{1, size}, ones...)
	list := make([]string, terms)
	for i := range list {
		list[i] = g.Node("Identity", []string{g.Node("MatMul", []string{a, b})})
	}
	top := g.Node("Max", []string{g.Node("AddN", list, "N", terms), kerneltest.Vector[int32](g, 0, 1)})
	kerneltest.Want[float32](t, g.Run([]string{a})[0], ones...) // makes the session
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := g.Run([]string{top})[0]
	runtime.ReadMemStats(&after)
	kerneltest.Want[float32](t, got, terms)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > terms/2*4*size*size {
		t.Errorf("the first run allocates %d bytes, the products alone have %d", grown, terms*4*size*size)
	}
}

// TestTurnedFactor compares products with a factor that is transposed once for all of
// them with runs of one product, which transposes it itself.
func TestTurnedFactor(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 21))
	for _, dims := range [][3]int{{20, 80, 33}, {5, 400, 48}, {1, 1, 1}, {30, 7, 0}} {
		m, k, n := dims[0], dims[1], dims[2]
		s := &sums[float32]{Graph: kerneltest.New(t), r: r, value: func() float32 { return float32(r.NormFloat64()) }}
		factor := s.matrix(k, n, true)
		var list []string
		for i := range 4 {
			list = append(list, s.Node("MatMul", []string{s.matrix(m, k, i == 2), factor}, "transpose_a", i == 2, "transpose_b", true))
		}
		for i, got := range s.Run(list) {
			if alone := s.Run(list[i : i+1])[0]; !slices.Equal(got.Data, alone.Data) || !slices.Equal(got.Shape, alone.Shape) {
				t.Errorf("%v: product %d has other bits with the others than alone", dims, i)
			}
		}
	}
}

// TestMatrixPairs multiplies many small matrices by one processor and by several.
func TestMatrixPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 21))
	s := &sums[float32]{Graph: kerneltest.New(t), r: r}
	values := func(shape ...int64) string {
		v := make([]float32, shape[0]*shape[1]*shape[2]*shape[3])
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return kerneltest.Tensor(s.Graph, shape, v...)
	}
	list := []string{
		s.Node("BatchMatMulV2", []string{values(5, 3, 48, 40), values(5, 3, 40, 48)}),
		s.Node("BatchMatMulV2", []string{values(1, 7, 40, 64), values(4, 1, 40, 33)}, "adj_x", true),
	}
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	want := s.Run(list)
	runtime.GOMAXPROCS(4)
	for i, got := range s.Run(list) {
		if !slices.Equal(got.Data, want[i].Data) {
			t.Errorf("products %d have other bits with four processors", i)
		}
	}
}
