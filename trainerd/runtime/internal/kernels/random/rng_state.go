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
		v, err := rngState(c)
		if err != nil {
			return err
		}
		delta := c.In(2)
		if delta.NumElements() != 1 || exec.ElemSize(delta.DType) != 8 {
			return c.Invalid("the step must be an integer, not %s", delta.Describe())
		}
		if c.NumOutputs() > 0 {
			exec.CopyElems(c.OutLike(0, exec.Int64, v), 0, v, 0, v.NumElements())
		}
		reserve(v, exec.Elems[uint64](delta)[0])
		return nil
	}, nil
}

// rngState returns the state of the generator in input 0, whose algorithm is input 1.
func rngState(c *exec.KernelContext) (*exec.Tensor, error) {
	if v, err := c.Variable(0); err == nil && !v.Initialized {
		return nil, c.Errorf(tfpb.Code_NOT_FOUND, "the generator's variable %q does not exist: assign its state first", v.Name)
	}
	v, err := c.TypedVariable(0, exec.Int64)
	if err != nil {
		return nil, err
	}
	alg, err := c.IntScalar(1, "the algorithm")
	if err != nil {
		return nil, err
	}
	switch alg {
	case algPhilox, algAuto:
	case algThreeFry:
		return nil, c.Errorf(tfpb.Code_UNIMPLEMENTED, "the embedded runtime lacks the random algorithm %d", alg)
	default:
		return nil, c.Invalid("no random algorithm has the number %d", alg)
	}
	if len(v.Value.Shape) != 1 || v.Value.Shape[0] < 3 {
		return nil, c.Invalid("For the Philox algorithm, the size of state must be at least 3; got %s", v.Value.Describe())
	}
	return &v.Value, nil
}

// reserve returns the generator of a state, and moves the state on by what n numbers need.
func reserve(v *exec.Tensor, n uint64) philox.Generator {
	state := exec.Elems[uint64](v)
	g := philox.Generator{Key: [2]uint32{uint32(state[2]), uint32(state[2] >> 32)},
		Counter: [4]uint32{uint32(state[0]), uint32(state[0] >> 32), uint32(state[1]), uint32(state[1] >> 32)}}
	next := g
	next.Skip(n * blocksOfSample)
	for i := range 2 {
		state[i] = uint64(next.Counter[2*i]) | uint64(next.Counter[2*i+1])<<32
	}
	return g
}
