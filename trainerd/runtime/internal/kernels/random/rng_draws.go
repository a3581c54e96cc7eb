package random

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// Numbers drawn from a generator whose state is a variable, and that this moves on, as the
// first releases of tf.random.Generator do.
var rngDrawsOps = exec.OpTable{
	"StatefulUniform":          drawsFrom(exec.Floats|exec.Halves, buildRngDraws(uniform)),
	"StatefulStandardNormalV2": drawsFrom(exec.Floats|exec.Halves, exec.Widened("dtype", buildRngDraws(normal))),
	"StatefulTruncatedNormal":  drawsFrom(exec.Floats|exec.Halves, exec.Widened("dtype", buildRngDraws(truncatedNormal))),
	"StatefulUniformInt":       drawsFrom(exec.Indices, buildRngInts),
	"StatefulUniformFullInt":   drawsFrom(integers, buildRngDraws(fullInts)),
}

func drawsFrom(types exec.TypeSet, build func(*exec.OpConstruction) (exec.Kernel, error)) exec.OpSpec {
	return exec.OpSpec{Types: types, TypeAttr: "dtype", Flags: exec.Stateful | exec.WritesState, Build: build}
}

func buildRngDraws(fill distribution) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt := b.DType("dtype")
		return func(c *exec.KernelContext) error {
			t, g, err := reserved(c, dt)
			if err != nil {
				return err
			}
			return fillBy(c, g, t, fill)
		}, nil
	}
}

// reserved returns the output, and the generator for it.
func reserved(c *exec.KernelContext, dt tfpb.DataType) (*exec.Tensor, philox.Generator, error) {
	t, err := elem.OutShaped(c, 2, dt)
	if err != nil {
		return nil, philox.Generator{}, err
	}
	v, err := rngState(c)
	if err != nil {
		return nil, philox.Generator{}, err
	}
	return t, reserve(v, uint64(t.NumElements())), nil
}

func buildRngInts(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	return func(c *exec.KernelContext) error {
		lo, err := c.IntScalar(3, "minval")
		if err != nil {
			return err
		}
		hi, err := c.IntScalar(4, "maxval")
		if err != nil {
			return err
		}
		if lo >= hi {
			return c.Invalid("Need minval < maxval, got %d >= %d", lo, hi)
		}
		t, g, err := reserved(c, dt)
		if err != nil {
			return err
		}
		return drawInts(c, &g, t, lo, hi)
	}, nil
}
