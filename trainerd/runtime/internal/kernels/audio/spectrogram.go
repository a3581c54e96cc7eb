package audio

import (
	"math"
	"math/bits"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

func buildSpectrogram(b *exec.OpConstruction) (exec.Kernel, error) {
	window, stride, squared := b.Int("window_size"), b.Int("stride"), b.Bool("magnitude_squared")
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		if len(x.Shape) != 2 {
			return c.Invalid("the sound has shape %s; want [samples, channels]", exec.ShapeString(x.Shape))
		}
		samples, channels := x.Shape[0], x.Shape[1]
		if window < 2 || window > math.MaxInt32 || stride < 1 {
			return c.Invalid("window_size is %d and stride %d; want 2 to %d, and at least 1", window, stride, math.MaxInt32)
		}
		length := 1 << bits.Len(uint(window-1))
		slices := 0
		if samples >= window {
			slices = 1 + (samples-window)/stride
		}
		d := exec.Elems[float32](c.Out(0, exec.Float32, channels, slices, length/2+1))
		if len(d) == 0 {
			return nil
		}
		c.CheckSize([]int{length}, 64) // window, line, coefficients and what the transform keeps
		s := newSpectrum(window, length, squared)
		for k := range channels {
			for i := range slices {
				at := (k*slices + i) * (length/2 + 1)
				s.slice(d[at:at+length/2+1], exec.Elems[float32](x)[i*stride*channels+k:], channels)
			}
		}
		return nil
	}, nil
}

// spectrum makes slices of a spectrogram.
type spectrum struct {
	hann    []float64
	line    []float64 // of a power of two values
	out     []complex128
	fft     *fourier.FFT
	squared bool
}

func newSpectrum(window, length int, squared bool) *spectrum {
	s := &spectrum{hann: make([]float64, window), line: make([]float64, length), out: make([]complex128, length/2+1), fft: fourier.NewFFT(length), squared: squared}
	for i := range s.hann {
		s.hann[i] = 0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/float64(window))
	}
	return s
}

// slice transforms a window of samples that are step apart.
func (s *spectrum) slice(d, x []float32, step int) {
	for i, w := range s.hann {
		s.line[i] = float64(x[i*step]) * w
	}
	for i, v := range s.fft.Coefficients(s.out, s.line) {
		power := float32(real(v)*real(v) + imag(v)*imag(v))
		if !s.squared {
			power = float32(math.Sqrt(float64(power)))
		}
		d[i] = power
	}
}
