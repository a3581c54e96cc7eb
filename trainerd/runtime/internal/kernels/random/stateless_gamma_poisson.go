package random

import (
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// The gamma distribution and that of Poisson by a seed that the graph gives.
var statelessGammaPoissonOps = exec.OpTable{
	"StatelessRandomGammaV2": {Types: exec.Floats, TypeAttr: "dtype", Build: buildStatelessGamma(seeded, 2)},
	"StatelessRandomGammaV3": {Types: exec.Floats, TypeAttr: "dtype", Build: buildStatelessGamma(keyed, 4)},
	"StatelessRandomPoisson": {Types: exec.Numbers, TypeAttr: "dtype", Build: buildStatelessPoisson},
}

func buildStatelessGamma(generator func(*exec.KernelContext) (philox.Generator, error), alpha int) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt := b.DType("dtype")
		return func(c *exec.KernelContext) error {
			g, err := generator(c)
			if err != nil {
				return err
			}
			return perElement(c, dt, c.In(alpha), g, (*philox.Generator).Gamma)
		}, nil
	}
}

func buildStatelessPoisson(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	return func(c *exec.KernelContext) error {
		g, err := seeded(c)
		if err != nil {
			return err
		}
		if err := checkRates(c, c.In(2), dt); err != nil {
			return err
		}
		return perElement(c, dt, c.In(2), g, poisson(dt))
	}, nil
}

// perElement is perParameter where the wanted shape, in input 0, ends with that of the
// parameters.
func perElement(c *exec.KernelContext, dt tfpb.DataType, parameters *exec.Tensor, all philox.Generator, draw func(g *philox.Generator, parameter float64) float64) error {
	t, err := elem.OutShaped(c, 0, dt)
	if err != nil {
		return err
	}
	before := len(t.Shape) - len(parameters.Shape)
	if before < 0 || !slices.Equal(t.Shape[before:], parameters.Shape) {
		return c.Invalid("the shape %s does not end with that of the parameters, %s", exec.ShapeString(t.Shape), exec.ShapeString(parameters.Shape))
	}
	if t.NumElements() == 0 {
		return nil
	}
	return drawEach(c, t, parameters, all, draw)
}
