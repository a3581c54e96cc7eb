package math

import (
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/dsp/fourier"
)

// TestPowersOfTwo compares the transforms of powers of two with those for any length.
func TestPowersOfTwo(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := 1; n <= 4096; n *= 2 {
		x, z, far := make([]float64, n), make([]complex128, n), 1e-14*float64(n)
		for i := range x {
			x[i], z[i] = r.NormFloat64(), complex(r.NormFloat64(), r.NormFloat64())
		}
		for _, inverse := range []bool{false, true} {
			fft, got := fourier.NewCmplxFFT(n), append([]complex128(nil), z...)
			want := fft.Coefficients(nil, z)
			if inverse {
				want = fft.Sequence(nil, z)
			}
			transformOf(n, inverse)(got)
			for i := range want {
				if cmplx.Abs(got[i]-want[i]) > far {
					t.Fatalf("transform of %d (inverse: %v): element %d is %v, want %v", n, inverse, i, got[i], want[i])
				}
			}
		}
		if n == 1 {
			continue
		}
		want, got := fourier.NewFFT(n).Coefficients(nil, x), make([]complex128, n/2+1)
		newRealFFT(n).coefficients(got, x)
		for i := range want {
			if cmplx.Abs(got[i]-want[i]) > far {
				t.Fatalf("real transform of %d: element %d is %v, want %v", n, i, got[i], want[i])
			}
		}
	}
	if newPowerFFT(0) != nil || newPowerFFT(12) != nil || newRealFFT(1) != nil {
		t.Error("a transform of a length that is no power of two")
	}
}
