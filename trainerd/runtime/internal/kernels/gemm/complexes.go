package gemm

import (
	"sync"
	"unsafe"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// A product of complex matrices is one of real matrices: in memory a row of complex numbers
// is a row of twice as many real ones, and a number a+bi of the second factor becomes
//
//	 a b
//	-b a
//
// so that the product, too, lies in memory as complex numbers do.

// The products of complex matrices. With ta or tb those of the first two transpose a factor,
// and those of the others conjugate it as well.
var (
	Complex64s   = complexes[complex64](Float32s, &rooms32, 1)
	Complex128s  = complexes[complex128](Float64s, &rooms64, 1)
	Adjoints64s  = complexes[complex64](Float32s, &rooms32, -1)
	Adjoints128s = complexes[complex128](Float64s, &rooms64, -1)
)

// rooms keep the memory for factors that are laid out again.
var (
	rooms32 = sync.Pool{New: func() any { return new([]float32) }}
	rooms64 = sync.Pool{New: func() any { return new([]float64) }}
)

// complexes makes a product of that of real matrices. sign is what the imaginary part of a
// transposed factor is multiplied by.
func complexes[C exec.ComplexNumber, F float32 | float64](mul Func[F], rooms *sync.Pool, sign F) Func[C] {
	return func(ta, tb bool, m, n, k int, a, b []C, beta C, c []C) {
		room := rooms.Get().(*[]F)
		defer rooms.Put(room)
		size := 4 * k * n
		if ta {
			size += 2 * m * k
		}
		if cap(*room) < size {
			*room = make([]F, size)
		}
		x, y := reals[C, F](a), (*room)[:4*k*n]
		if ta {
			x = (*room)[4*k*n : size]
			turnPairs(x, reals[C, F](a), k, m, sign)
		}
		if tb {
			pairsTurned(y, reals[C, F](b), k, n, sign)
		} else {
			pairs(y, reals[C, F](b), k, n)
		}
		mul(false, false, m, 2*n, 2*k, x, y, oneOr0[C, F](beta), reals[C, F](c))
	}
}

// reals returns complex numbers as their parts.
func reals[C exec.ComplexNumber, F float32 | float64](x []C) []F {
	return unsafe.Slice((*F)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
}

func oneOr0[C exec.ComplexNumber, F float32 | float64](beta C) F {
	if beta == 0 {
		return 0
	}
	return 1
}

// turnPairs transposes a matrix of rows by cols numbers.
func turnPairs[F float32 | float64](d, x []F, rows, cols int, sign F) {
	for l := range rows {
		for i := range cols {
			from, to := 2*(l*cols+i), 2*(i*rows+l)
			d[to], d[to+1] = x[from], sign*x[from+1]
		}
	}
}

// pairs lays out a second factor of k rows.
func pairs[F float32 | float64](d, y []F, k, n int) {
	for l := range k {
		row, upper, lower := y[2*l*n:2*(l+1)*n], d[4*l*n:(4*l+2)*n], d[(4*l+2)*n:(4*l+4)*n]
		copy(upper, row)
		for j := 0; j < len(row); j += 2 {
			lower[j], lower[j+1] = -row[j+1], row[j]
		}
	}
}

// pairsTurned is pairs of what is stored transposed.
func pairsTurned[F float32 | float64](d, y []F, k, n int, sign F) {
	for j := range n {
		for l := range k {
			from, to := 2*(j*k+l), 4*l*n+2*j
			re, im := y[from], sign*y[from+1]
			d[to], d[to+1] = re, im
			d[to+2*n], d[to+2*n+1] = -im, re
		}
	}
}
