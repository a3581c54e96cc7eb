package linalg_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// einsumTerms are the labels of two operands and of the result.
type einsumTerms [3]string

// sum computes an equation as its definition says, on small integers.
func (e einsumTerms) sum(size map[byte]int, x, y []float32) []float32 {
	var all []byte
	for _, l := range []byte(e[0] + e[1]) {
		if !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	at := map[byte]int{}
	place := func(labels string) int {
		n := 0
		for _, l := range []byte(labels) {
			n = n*size[l] + at[l]
		}
		return n
	}
	d := make([]float32, elements(e[2], size))
	var walk func(left []byte)
	walk = func(left []byte) {
		if len(left) == 0 {
			d[place(e[2])] += x[place(e[0])] * y[place(e[1])]
			return
		}
		for i := range size[left[0]] {
			at[left[0]] = i
			walk(left[1:])
		}
	}
	walk(all)
	return d
}

func elements(labels string, size map[byte]int) int {
	n := 1
	for _, l := range []byte(labels) {
		n *= size[l]
	}
	return n
}

// TestEinsum compares equations with their definition: those of known programs, and
// random ones. Sums of small integers are exact.
func TestEinsum(t *testing.T) {
	list := []einsumTerms{{"bhd", "bmd", "bhmd"}, {"bhmd", "bmd", "bhd"}, {"ibnd", "jbnd", "ijbn"}, {"ijbn", "jbnd", "ibnd"}, {"ij", "kj", "ki"},
		{"aab", "b", "ab"}, {"ab", "ab", "aab"}, {"ab", "bc", ""}, {"abd", "cd", "bd"}}
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		var e einsumTerms
		for i := range e {
			for _, k := range r.Perm(5)[:r.IntN(5)] {
				e[i] += string("abcde"[k])
			}
		}
		e[2] = string(slices.DeleteFunc([]byte(e[2]), func(l byte) bool { return !slices.Contains([]byte(e[0]+e[1]), l) }))
		list = append(list, e)
	}
	for _, e := range list {
		t.Run(fmt.Sprintf("%s,%s->%s", e[0], e[1], e[2]), func(t *testing.T) {
			size := map[byte]int{}
			for _, l := range []byte("abcdefghijklmn") {
				size[l] = 1 + r.IntN(5)
			}
			g := kerneltest.New(t)
			var in [2]string
			var values [2][]float32
			for i := range in {
				var shape []int64
				for _, l := range []byte(e[i]) {
					shape = append(shape, int64(size[l]))
				}
				for range elements(e[i], size) {
					values[i] = append(values[i], float32(r.IntN(7)-3))
				}
				in[i] = kerneltest.Tensor(g, shape, values[i]...)
			}
			out := g.Run([]string{g.Node("Einsum", in[:], "N", 2, "equation", e[0]+","+e[1]+"->"+e[2])})
			got, err := ckptfmt.Values[float32](out[0])
			if want := e.sum(size, values[0], values[1]); err != nil || !slices.Equal(got, want) {
				t.Errorf("got %v (%v), want %v", got, err, want)
			}
		})
	}
}
