package math

import (
	"math"

	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Whether numbers are finite: what a training with a scaled loss asks of every gradient.

func floatTest(f32 func(d []bool, x []float32), f64 func(d []bool, x []float64)) exec.OpSpec {
	return exec.OpSpec{Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), elem.ConvertSlices(exec.Bool, f32), elem.ConvertSlices(exec.Bool, f64))
	}}
}

// finite compares magnitudes, some at a time.
func finite(d []bool, x []float32) {
	var magnitudes [256]float32
	for len(d) > 0 {
		n := min(len(d), len(magnitudes))
		vec.Abs(magnitudes[:n], x[:n])
		vec.LessEqualScalar(d[:n], magnitudes[:n], math.MaxFloat32)
		d, x = d[n:], x[n:]
	}
}

func infinite(d []bool, x []float32) {
	for i, v := range x[:len(d)] {
		d[i] = v > math.MaxFloat32 || v < -math.MaxFloat32
	}
}

func finites(d []bool, x []float64) {
	for i, v := range x[:len(d)] {
		d[i] = math.Abs(v) <= math.MaxFloat64
	}
}

func infinities(d []bool, x []float64) {
	for i, v := range x[:len(d)] {
		d[i] = math.IsInf(v, 0)
	}
}

func nans[T exec.Float](d []bool, x []T) {
	for i, v := range x[:len(d)] {
		d[i] = v != v
	}
}
