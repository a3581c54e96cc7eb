package random

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// Random integers of any size, from seeds or keys, and the generators whose
// state is a variable: two words of a counter, one of a key.
var rngStateOps = exec.OpTable{
	"StatelessRandomUniformInt":       {Types: exec.Indices, TypeAttr: "dtype", Build: buildSeededInt},
	"StatelessRandomUniformFullInt":   {Types: integers, TypeAttr: "dtype", Build: buildFullInt(false)},
	"StatelessRandomUniformFullIntV2": {Types: integers, TypeAttr: "dtype", Build: buildFullInt(true)},
	"RngReadAndSkip":                  {Flags: exec.Stateful | exec.WritesState, Build: buildRngSkip},
	"RngSkip":                         {Flags: exec.Stateful | exec.WritesState, Build: buildRngSkip},
}

var integers = exec.Indices | exec.SetOf(exec.Uint32, exec.Uint64)

// seeded returns the stream of the two integers in input 1.
func seeded(c *exec.KernelContext) (philox.Generator, error) { return seededBy(c, c.In(1)) }

func seededBy(c *exec.KernelContext, seed *exec.Tensor) (philox.Generator, error) {
	if seed.NumElements() != 2 || !exec.Indices.Has(seed.DType) {
		return philox.Generator{}, c.Invalid("the seed must be two integers, not %s", seed.Describe())
	}
	return philox.Stateless(uint64(seed.IntAt(0)), uint64(seed.IntAt(1))), nil
}

func buildSeededInt(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	return func(c *exec.KernelContext) error {
		g, err := seeded(c)
		if err != nil {
			return err
		}
		lo, hi := c.In(2), c.In(3)
		if lo.NumElements() != 1 || hi.NumElements() != 1 || lo.IntAt(0) >= hi.IntAt(0) {
			return c.Invalid("Need minval < maxval, got %s and %s", lo.Describe(), hi.Describe())
		}
		t, err := elem.OutShaped(c, 0, dt)
		if err != nil {
			return err
		}
		return drawInts(c, &g, t, lo.IntAt(0), hi.IntAt(0))
	}, nil
}

func buildFullInt(hasKey bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt := b.DType("dtype")
		return func(c *exec.KernelContext) error {
			var g philox.Generator
			var err error
			if hasKey {
				g, err = keyed(c)
			} else {
				g, err = seeded(c)
			}
			if err != nil {
				return err
			}
			t, err := elem.OutShaped(c, 0, dt)
			if err != nil {
				return err
			}
			if isLarge(t) {
				return draw(c, g, t, fullInts)
			}
			fullInts(&g, t)
			return nil
		}, nil
	}
}

// fullInts fills a tensor with any integers of its type.
func fullInts(g *philox.Generator, t *exec.Tensor) {
	words := philox.NewWords(g)
	if exec.ElemSize(t.DType) == 4 {
		for i := range t.NumElements() {
			exec.Elems[uint32](t)[i] = words.Next()
		}
		return
	}
	for i := range t.NumElements() {
		exec.Elems[uint64](t)[i] = words.Uint64()
	}
}

// blocksOfSample is how many blocks of its stream a generator leaves for each
// number that is drawn.
const blocksOfSample = 256

// buildRngSkip builds the ops that move a generator on, and tell where it was
// if there is an output.
func buildRngSkip(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		v, err := c.TypedVariable(0, exec.Int64)
		if err != nil {
			return err
		}
		alg, delta := c.In(1), c.In(2)
		if alg.NumElements() != 1 || delta.NumElements() != 1 || exec.ElemSize(delta.DType) != 8 {
			return c.Invalid("the algorithm %s and the step %s must be integers", alg.Describe(), delta.Describe())
		}
		switch alg.IntAt(0) {
		case algPhilox:
		case algThreeFry:
			return c.Errorf(tfpb.Code_UNIMPLEMENTED, "the embedded runtime lacks the random algorithm %d", alg.IntAt(0))
		default:
			return c.Invalid("no random algorithm has the number %d", alg.IntAt(0))
		}
		if len(v.Value.Shape) != 1 || v.Value.Shape[0] < 3 {
			return c.Invalid("For the Philox algorithm, the size of state must be at least 3; got %s", v.Value.Describe())
		}
		if c.NumOutputs() > 0 {
			exec.CopyElems(c.OutLike(0, exec.Int64, &v.Value), 0, &v.Value, 0, v.Value.NumElements())
		}
		state := exec.Elems[uint64](&v.Value)
		g := philox.Generator{Counter: [4]uint32{uint32(state[0]), uint32(state[0] >> 32), uint32(state[1]), uint32(state[1] >> 32)}}
		g.Skip(exec.Elems[uint64](delta)[0] * blocksOfSample)
		for i := range 2 {
			state[i] = uint64(g.Counter[2*i]) | uint64(g.Counter[2*i+1])<<32
		}
		return nil
	}, nil
}
