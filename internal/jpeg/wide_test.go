//go:build amd64 && !noasm

package jpeg

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// withoutAssembly runs f with the loops in Go alone.
func withoutAssembly(t *testing.T, f func()) {
	t.Helper()
	if !assembly {
		t.Skip("the processor has no AVX2")
	}
	assembly = false
	defer func() { assembly = true }()
	f()
}

// TestWideTransforms compares the assembly of the transforms with the loops in Go, also
// for coefficients that no picture has.
func TestWideTransforms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		var b [64]int16
		var table [64]int32
		for k := range b {
			b[k] = int16(r.Int() >> (i % 16))
			table[k] = int32(r.IntN(1 << (1 + i%16)))
		}
		for _, isFast := range []bool{false, true} {
			const stride = 11
			got, want := make([]byte, 8*stride), make([]byte, 8*stride)
			if !transformWide(isFast, &b, &table, got, stride) {
				t.Skip("the processor has no AVX2")
			}
			var w block8
			for k, q := range table {
				w[k] = int32(b[k]) * q
			}
			if isFast {
				fast(&w, want, stride)
			} else {
				accurate(&w, want, stride)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("fast %v, block %d:\n%v\nwant\n%v", isFast, i, got, want)
			}
		}
	}
}

// TestWideLines compares the pixels of lines of all lengths.
func TestWideLines(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Int())
		}
		return b
	}
	for n := 1; n < 140; n++ {
		planes := [][]byte{random(n), random(n), random(n)}
		var d decoder
		d.space, d.channels = ycc, 3
		both := func(f func(out []byte)) (got, want []byte) {
			got, want = make([]byte, 3*n+4), make([]byte, 3*n+4)
			f(got)
			withoutAssembly(t, func() { f(want) })
			return got, want
		}
		if got, want := both(func(out []byte) { d.convert(out[:3*n], planes) }); !bytes.Equal(got, want) {
			t.Fatalf("%d pixels:\n%v\nwant\n%v", n, got, want)
		}
		got, want := both(func(out []byte) {
			u := upsampler{out: make([]byte, 2*(n+1))}
			u.wideHigh(planes[0], planes[1])
			copy(out, u.out[:2*n])
		})
		if !bytes.Equal(got, want) {
			t.Fatalf("%d samples:\n%v\nwant\n%v", n, got, want)
		}
	}
}
