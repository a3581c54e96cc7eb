package random

import (
	"fmt"
	"math"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// The gamma distribution and that of Poisson, and the derivatives of the former
// by its shape.
var gammaPoissonOps = exec.OpTable{
	"RandomGamma":     {Types: exec.Floats, Flags: exec.Stateful | exec.WritesState, Build: buildRandomGamma},
	"RandomPoissonV2": {Types: exec.Numbers, TypeAttr: "dtype", Flags: exec.Stateful | exec.WritesState, Build: buildRandomPoisson},
}

// samplesAtOnce is how many results are drawn between two looks at the context.
const samplesAtOnce = 1 << 16

// perParameter draws results for each element of input 1, the parameters of a
// distribution: the output has the wanted shape, then that of the parameters,
// and each result its own part of the stream, parameter by parameter.
func perParameter(c *exec.KernelContext, st *exec.RandomStream, dt tfpb.DataType, draw func(g *philox.Generator, parameter float64) float64) error {
	s, parameters := c.In(0), c.In(1)
	if !exec.Indices.Has(s.DType) || len(s.Shape) > 1 {
		return c.Invalid("the shape must be a vector of integers, not %s", s.Describe())
	}
	t := c.Out(0, dt, slices.Concat(c.IntsOf(0, s), parameters.Shape)...)
	if t.NumElements() == 0 {
		return nil
	}
	return drawEach(c, t, parameters, c.Draw(st).Reserve(t.NumElements()), draw)
}

// drawEach fills t, which is not empty and whose last dimensions are those of the parameters.
func drawEach(c *exec.KernelContext, t, parameters *exec.Tensor, all philox.Generator, draw func(g *philox.Generator, parameter float64) float64) error {
	n := parameters.NumElements()
	samples := t.NumElements() / n
	for p := range n {
		parameter := elem.RealAt(parameters, p)
		for i := range samples {
			if i%samplesAtOnce == samplesAtOnce-1 {
				if err := c.Interrupted(); err != nil {
					return err
				}
			}
			g := all.At(p*samples + i)
			setReal(t, i*n+p, draw(&g, parameter))
		}
	}
	return nil
}

// The least normal numbers.
const (
	minFloat  = 0x1p-126
	minDouble = 0x1p-1022
)

// setReal stores a number of 0 or more. Like TensorFlow's threads it knows no
// subnormal ones.
func setReal(t *exec.Tensor, i int, v float64) {
	if t.DType == exec.Float32 && v < minFloat || v < minDouble {
		v = 0
	}
	elem.SetNumber(t, i, v)
}

func buildRandomGamma(b *exec.OpConstruction) (exec.Kernel, error) {
	dt, st := b.DType("T"), b.RandomStream()
	return func(c *exec.KernelContext) error {
		return perParameter(c, st, dt, (*philox.Generator).Gamma)
	}, nil
}

func buildRandomPoisson(b *exec.OpConstruction) (exec.Kernel, error) {
	dt, st := b.DType("dtype"), b.RandomStream()
	if rate := b.DType("R"); !exec.Numbers.Has(rate) {
		return nil, fmt.Errorf("no kernel for R=%s", exec.TypeName(rate))
	}
	return func(c *exec.KernelContext) error {
		if err := checkRates(c, c.In(1), dt); err != nil {
			return err
		}
		return perParameter(c, st, dt, poisson(dt))
	}, nil
}

// highest are the largest results of the types.
var highest = map[tfpb.DataType]float64{exec.Float32: math.MaxFloat32, exec.Float64: math.MaxFloat64, exec.Int32: math.MaxInt32, exec.Int64: math.MaxInt64 - 511}

// checkRates refuses rates with which TensorFlow would never come to an end.
func checkRates(c *exec.KernelContext, rates *exec.Tensor, dt tfpb.DataType) error {
	for i := range rates.NumElements() {
		rate := elem.RealAt(rates, i)
		if endless := exec.Floats.Has(dt) && math.IsInf(rate, 1); math.IsNaN(rate) || rate > highest[dt] && !endless {
			return c.Invalid("the rate %v has no results of type %s", rate, exec.TypeName(dt))
		}
	}
	return nil
}

// poisson draws a result of a type.
func poisson(dt tfpb.DataType) func(g *philox.Generator, rate float64) float64 {
	most := highest[dt]
	return func(g *philox.Generator, rate float64) float64 {
		if math.IsInf(rate, 1) {
			return rate
		}
		return g.Poisson(rate, most)
	}
}
