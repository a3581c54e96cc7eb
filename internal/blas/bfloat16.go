package blas

import (
	"math"
	"sync"
	"unsafe"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
)

// A product of bfloat16s is one of float32s whose elements are pairs of bfloat16s, which
// are next to each other in the inner dimension: the processor multiplies both elements of
// a pair and adds the two products to a float32. The rest is done as for float32.
//
// A factor whose inner dimension runs along its rows has its pairs in memory. Where it runs
// across the rows, pairs are made of two rows.

// HasBfloat16s reports whether the processor has what [Bfloat16s] needs, which is
// AVX512_BF16.
func HasBfloat16s() bool { return paired != nil }

// Bfloat16s computes C = op(A) * op(B), with add C += op(A) * op(B), for matrices of
// bfloat16s whose rows follow each other. Sums are float32s and are rounded once. Numbers
// below the normal ones count as zero, as the processor has it.
func Bfloat16s(ta, tb bool, m, n, k int, a, b []uint16, add bool, c []uint16) {
	if m == 0 || n == 0 || k == 0 {
		if !add {
			clear(c)
		}
		return
	}
	w := pairRooms.Get().(*pairRoom)
	p := product[float32]{ta: ta, tb: tb, m: m, n: n, k: (k + 1) / 2, alpha: 1, c: sized(&w.c, m*n), ldc: n}
	if ta {
		p.a, p.lda = w.across(&w.a, a, k, m), m
	} else {
		p.a, p.lda = along(&w.a, a, m, k), p.k
	}
	if tb {
		p.b, p.ldb = along(&w.b, b, n, k), p.k
	} else {
		p.b, p.ldb = w.across(&w.b, b, k, n), n
	}
	if add {
		p.beta = 1
		vec.FromBfloat16s(p.c, c)
	}
	paired.multiply(&p)
	w.round(c, p.c)
	pairRooms.Put(w)
}

// pairRoom is the memory of a product.
type pairRoom struct {
	a, b, c []float32 // as much as products needed so far

	pairing  pairing
	rounding rounding
}

var pairRooms = sync.Pool{New: func() any { return new(pairRoom) }}

// sharedPairs is the number of elements whose conversion is worth a second processor.
const sharedPairs = 1 << 16

// along returns the pairs of a matrix along its rows of k elements.
func along(room *[]float32, x []uint16, rows, k int) []float32 {
	if start := unsafe.Pointer(unsafe.SliceData(x)); k%2 == 0 && uintptr(start)%4 == 0 {
		return unsafe.Slice((*float32)(start), rows*k/2)
	}
	d := sized(room, rows*((k+1)/2))
	to := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(d))), 2*len(d))
	step := k + k%2
	for i := range rows {
		copy(to[i*step:], x[i*k:][:k])
		if k < step {
			to[i*step+k] = 0
		}
	}
	return d
}

// across returns the pairs of a matrix across its k rows.
func (w *pairRoom) across(room *[]float32, x []uint16, k, cols int) []float32 {
	w.pairing = pairing{d: sized(room, (k+1)/2*cols), x: x, k: k, cols: cols}
	if k*cols < sharedPairs {
		w.pairing.Part(0, 1)
	} else {
		parallel.Run(maxParts, &w.pairing)
	}
	d := w.pairing.d
	w.pairing.d, w.pairing.x = nil, nil
	return d
}

// pairing makes pairs across the rows of x. The last one has none if there is an odd
// number of them.
type pairing struct {
	d       []float32
	x       []uint16
	k, cols int
}

// Part implements [parallel.Job].
func (p *pairing) Part(i, n int) {
	from, to := parallel.Span((p.k+1)/2, 1, i, n)
	for q := from; q < to; q++ {
		d, x := p.d[q*p.cols:][:p.cols], p.x[2*q*p.cols:]
		if 2*q+1 < p.k {
			pairRows(d, x, x[p.cols:])
			continue
		}
		for j := range d {
			d[j] = pair(x[j], 0)
		}
	}
}

// pair returns two elements as one.
func pair(x, y uint16) float32 { return math.Float32frombits(uint32(x) | uint32(y)<<16) }

// pairRows sets d to the pairs of elements of x and y.
func pairRows(d []float32, x, y []uint16) {
	x, y = x[:len(d)], y[:len(d)]
	for i := pairRowsWide(d, x, y); i < len(d); i++ {
		d[i] = pair(x[i], y[i])
	}
}

// round rounds sums.
func (w *pairRoom) round(d []uint16, x []float32) {
	if len(x) < sharedPairs {
		vec.ToBfloat16s(d[:len(x)], x)
		return
	}
	w.rounding = rounding{d[:len(x)], x}
	parallel.Run(maxParts, &w.rounding)
	w.rounding = rounding{}
}

// rounding rounds x.
type rounding struct {
	d []uint16
	x []float32
}

// Part implements [parallel.Job].
func (r *rounding) Part(i, n int) {
	from, to := parallel.Span(len(r.d), 64, i, n)
	vec.ToBfloat16s(r.d[from:to], r.x[from:to])
}
