package audio

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// mfccFloor is the least of what a filter lets through.
const mfccFloor = 1e-12

// mfccOptions are the op's attributes.
type mfccOptions struct {
	lower, upper     float64 // frequencies
	filters, results int
}

func buildMfcc(b *exec.OpConstruction) (exec.Kernel, error) {
	o := mfccOptions{b.Float("lower_frequency_limit"), b.Float("upper_frequency_limit"), b.Int("filterbank_channel_count"), b.Int("dct_coefficient_count")}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		if len(x.Shape) != 3 {
			return c.Invalid("the spectrogram has shape %s; want [channels, slices, frequencies]", exec.ShapeString(x.Shape))
		}
		rate, err := sampleRate(c)
		if err != nil {
			return err
		}
		n := x.Shape[2]
		switch {
		case o.lower < 0 || o.upper <= o.lower:
			return c.Invalid("frequencies from %v to %v; want 0 or more, and a larger one", o.lower, o.upper)
		case o.results < 1 || o.filters < o.results:
			return c.Invalid("%d coefficients of %d filters; want at least 1, and as many filters", o.results, o.filters)
		case rate < 1 || n < 2:
			return c.Invalid("a spectrogram of %d frequencies at rate %d; want at least 2 and 1", n, rate)
		}
		c.CheckSize([]int{o.filters, o.results + 4}, 8)
		c.CheckSize([]int{n}, 24)
		m := newMfcc(o, rate, n)
		d := exec.Elems[float32](c.Out(0, exec.Float32, x.Shape[0], x.Shape[1], o.results))
		values := exec.Elems[float32](x)
		for i := range x.Shape[0] * x.Shape[1] {
			m.slice(d[i*o.results:(i+1)*o.results], values[i*n:(i+1)*n])
		}
		return nil
	}, nil
}

// mfcc makes the coefficients of slices.
type mfcc struct {
	mfccOptions
	first, last int       // frequencies that are used
	filter      []int     // by frequency: the filter whose falling side it is on, -1 before the first one
	weight      []float64 // by frequency: the part that this filter takes; the next one takes the rest
	cosines     [][]float64
	energy      []float64 // by filter
}

func mel(frequency float64) float64 { return 1127 * math.Log1p(frequency/700) }

// newMfcc plans for slices of n frequencies up to half the rate.
func newMfcc(o mfccOptions, rate, n int) *mfcc {
	step := 0.5 * float64(rate) / float64(n-1)
	m := &mfcc{mfccOptions: o, first: int(1.5 + o.lower/step), filter: make([]int, n), weight: make([]float64, n), energy: make([]float64, o.filters)}
	m.last = int(min(o.upper/step, math.MaxInt32))
	low := mel(o.lower)
	spacing := (mel(o.upper) - low) / float64(o.filters+1)
	center := func(i int) float64 { return low + spacing*float64(i+1) }
	at := 0
	for i := m.first; i < n && i <= m.last; i++ {
		v := mel(float64(i) * step)
		for at < o.filters && center(at) < v {
			at++
		}
		m.filter[i] = at - 1
		if at > 0 {
			m.weight[i] = (center(at) - v) / (center(at) - center(at-1))
		} else {
			m.weight[i] = (center(0) - v) / (center(0) - low)
		}
	}
	factor, arg := math.Sqrt(2/float64(o.filters)), math.Pi/float64(o.filters)
	for i := range o.results {
		row := make([]float64, o.filters)
		for k := range row {
			row[k] = factor * math.Cos(float64(i)*arg*(float64(k)+0.5))
		}
		m.cosines = append(m.cosines, row)
	}
	return m
}

// slice makes the coefficients of squares of Fourier coefficients. Where these do not
// reach to the upper limit TensorFlow gives zeros.
func (m *mfcc) slice(d, x []float32) {
	if m.last >= len(x) {
		clear(d)
		return
	}
	clear(m.energy)
	for i := m.first; i <= m.last; i++ {
		v, f := math.Sqrt(float64(x[i])), m.filter[i]
		part := v * m.weight[i]
		if f >= 0 {
			m.energy[f] += part
		}
		if f+1 < m.filters {
			m.energy[f+1] += v - part
		}
	}
	for i, v := range m.energy {
		if v < mfccFloor {
			v = mfccFloor
		}
		m.energy[i] = math.Log(v)
	}
	for i, row := range m.cosines {
		sum := 0.0
		for k, v := range m.energy {
			sum += row[k] * v
		}
		d[i] = float32(sum)
	}
}
