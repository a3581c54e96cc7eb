package random

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// The stateless random ops whose seed was made a key and a counter before.
var statelessV2Ops = exec.OpTable{
	"StatelessRandomGetKeyCounter": {Build: buildKeyCounter},
	"StatelessRandomGetAlg":        {Build: exec.WithoutAttrs(philoxNumber)},
	"StatelessRandomUniformV2":     {Types: exec.Floats | exec.Halves, TypeAttr: "dtype", Build: buildKeyed(uniform)},
	"StatelessRandomNormalV2":      {Types: exec.Floats | exec.Halves, TypeAttr: "dtype", Build: exec.Widened("dtype", buildKeyed(normal))},
	"StatelessTruncatedNormalV2":   {Types: exec.Floats | exec.Halves, TypeAttr: "dtype", Build: exec.Widened("dtype", buildKeyed(truncatedNormal))},
	"StatelessRandomUniformIntV2":  {Types: exec.Indices, TypeAttr: "dtype", Build: buildKeyedInt},
}

// TensorFlow's numbers of the generators.
const (
	algPhilox   = 1
	algThreeFry = 2
	algAuto     = 3
)

func philoxNumber(c *exec.KernelContext) error {
	exec.Elems[int32](c.Out(0, exec.Int32))[0] = algPhilox
	return nil
}

func buildKeyCounter(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		seed := c.In(0)
		if seed.NumElements() != 2 || !exec.Indices.Has(seed.DType) {
			return c.Invalid("the seed must be two integers, not %s", seed.Describe())
		}
		g := philox.Stateless(uint64(seed.IntAt(0)), uint64(seed.IntAt(1)))
		key, counter := c.Out(0, exec.Uint64, 1), c.Out(1, exec.Uint64, 2)
		exec.Elems[uint64](key)[0] = uint64(g.Key[0]) | uint64(g.Key[1])<<32
		for i := range 2 {
			exec.Elems[uint64](counter)[i] = uint64(g.Counter[2*i]) | uint64(g.Counter[2*i+1])<<32
		}
		return nil
	}, nil
}

// keyed returns the generator of key, counter and algorithm in inputs 1 to 3.
func keyed(c *exec.KernelContext) (philox.Generator, error) {
	key, counter := c.In(1), c.In(2)
	alg, err := c.IntScalar(3, "the algorithm")
	if err != nil {
		return philox.Generator{}, err
	}
	if alg != algPhilox && alg != algAuto {
		return philox.Generator{}, c.Errorf(tfpb.Code_UNIMPLEMENTED, "the embedded runtime lacks the random algorithm %d", alg)
	}
	const words = exec.Uint64
	if key.DType != words || counter.DType != words || key.NumElements() != 1 || counter.NumElements() < 2 {
		return philox.Generator{}, c.Invalid("%s is not a key, or %s not a counter", key.Describe(), counter.Describe())
	}
	k, n := exec.Elems[uint64](key)[0], exec.Elems[uint64](counter)
	return philox.Generator{Key: [2]uint32{uint32(k), uint32(k >> 32)},
		Counter: [4]uint32{uint32(n[0]), uint32(n[0] >> 32), uint32(n[1]), uint32(n[1] >> 32)}}, nil
}

func buildKeyed(fill distribution) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt := b.DType("dtype")
		return func(c *exec.KernelContext) error {
			g, err := keyed(c)
			if err != nil {
				return err
			}
			t, err := elem.OutShaped(c, 0, dt)
			if err != nil {
				return err
			}
			return fillBy(c, g, t, fill)
		}, nil
	}
}

func buildKeyedInt(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	return func(c *exec.KernelContext) error {
		g, err := keyed(c)
		if err != nil {
			return err
		}
		lo, err := c.IntScalar(4, "the lower bound")
		if err != nil {
			return err
		}
		hi, err := c.IntScalar(5, "the upper bound")
		if err != nil {
			return err
		}
		if lo >= hi {
			return c.Invalid("the lower bound %d is not below the upper bound %d", lo, hi)
		}
		t, err := elem.OutShaped(c, 0, dt)
		if err != nil {
			return err
		}
		return drawInts(c, &g, t, lo, hi)
	}, nil
}
