package random

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

var randomOps = exec.OpTable{
	"RandomUniform":        {Types: exec.Floats | exec.Halves, TypeAttr: "dtype", Flags: exec.Stateful | exec.WritesState, Build: buildUniform},
	"RandomStandardNormal": {Types: exec.Floats | exec.Halves, TypeAttr: "dtype", Flags: exec.Stateful | exec.WritesState, Build: exec.Widened("dtype", buildRandom(normal))},
	"TruncatedNormal":      {Types: exec.Floats | exec.Halves, TypeAttr: "dtype", Flags: exec.Stateful | exec.WritesState, Build: exec.Widened("dtype", buildRandom(truncatedNormal))},
	"RandomUniformInt":     {Types: exec.Indices, TypeAttr: "Tout", Flags: exec.Stateful | exec.WritesState, Build: buildRandomInt},
	"RandomShuffle":        {Types: exec.ValueTypes, Flags: exec.Stateful | exec.WritesState, Build: buildRandomShuffle},
}

// distribution fills one output from a generator.
type distribution func(g *philox.Generator, t *exec.Tensor)

func uniform(g *philox.Generator, t *exec.Tensor) {
	switch t.DType {
	case exec.Float32:
		g.Uniform32(exec.Elems[float32](t))
	case exec.Float64:
		g.Uniform64(exec.Elems[float64](t))
	case exec.Half:
		uniformHalves(g, t, 10)
	case exec.Bfloat16:
		uniformHalves(g, t, 7)
	}
}

// uniformHalves fills a tensor of a 16-bit type, whose last bits are
// the fraction, with numbers in [0, 1).
func uniformHalves(g *philox.Generator, t *exec.Tensor, fraction int) {
	round, scale := exec.Narrower(t.DType), float32(int(1)<<fraction)
	d := exec.Elems[uint16](t)
	for i := 0; i < len(d); i += 4 {
		for j, word := range g.Next() {
			if i+j < len(d) {
				d[i+j] = round(float32(word&(1<<fraction-1)) / scale)
			}
		}
	}
}

func normal(g *philox.Generator, t *exec.Tensor) {
	if t.DType == exec.Float32 {
		g.Normal32(exec.Elems[float32](t))
		return
	}
	g.Normal64(exec.Elems[float64](t))
}

func truncatedNormal(g *philox.Generator, t *exec.Tensor) {
	if t.DType == exec.Float32 {
		g.TruncatedNormal32(exec.Elems[float32](t))
		return
	}
	g.TruncatedNormal64(exec.Elems[float64](t))
}

// uniforms fills d with numbers in [0, 1), on several processors. It is kept in the
// frame, so that a step does not allocate it.
type uniforms struct {
	g philox.Generator
	d []float32
}

// Part implements [parallel.Job].
func (w *uniforms) Part(i, n int) {
	from, to := parallel.Span(len(w.d), elem.SpreadStep, i, n) // whole blocks of the generator
	g := w.g
	g.Skip(uint64(from / 4))
	g.Uniform32(w.d[from:to])
}

// buildUniform is buildRandom for the op that dropout draws large tensors with.
func buildUniform(b *exec.OpConstruction) (exec.Kernel, error) {
	if b.DType("dtype") != exec.Float32 {
		return buildRandom(uniform)(b)
	}
	st := b.RandomStream()
	return func(c *exec.KernelContext) error {
		t, err := elem.OutShaped(c, 0, exec.Float32)
		if err != nil {
			return err
		}
		g := c.Draw(st).Reserve(t.NumElements())
		switch {
		case isLarge(t):
			return draw(c, g, t, uniform)
		case t.NumElements() < elem.ParallelElements:
			uniform(&g, t)
			return nil
		}
		w := exec.InFrame[uniforms](c)
		w.g, w.d = g, exec.Elems[float32](t)
		parallel.Run(exec.MaxParts, w)
		w.d = nil
		return nil
	}, nil
}

func buildRandom(fill distribution) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt := b.DType("dtype")
		st := b.RandomStream()
		return func(c *exec.KernelContext) error {
			t, err := elem.OutShaped(c, 0, dt)
			if err != nil {
				return err
			}
			g := c.Draw(st).Reserve(t.NumElements())
			return fillBy(c, g, t, fill)
		}, nil
	}
}

// fillBy fills t by any distribution.
func fillBy(c *exec.KernelContext, g philox.Generator, t *exec.Tensor, fill distribution) error {
	if isLarge(t) {
		return draw(c, g, t, fill)
	}
	fill(&g, t)
	return nil
}

// isLarge reports whether a tensor is to be filled by draw. Kernels of one distribution fill
// the others themselves, so that no generator is allocated for them.
func isLarge(t *exec.Tensor) bool { return len(t.Data) > exec.PieceBytes }

// draw fills t piece by piece, and stops where the run is cancelled.
func draw(c *exec.KernelContext, g philox.Generator, t *exec.Tensor, fill distribution) error {
	return c.InPieces(t, func(part *exec.Tensor) { fill(&g, part) })
}

// drawInts fills t with integers in [lo, hi).
func drawInts(c *exec.KernelContext, g *philox.Generator, t *exec.Tensor, lo, hi int) error {
	if isLarge(t) {
		return draw(c, *g, t, func(g *philox.Generator, part *exec.Tensor) { fillInts(g, part, lo, hi) })
	}
	fillInts(g, t, lo, hi)
	return nil
}

func fillInts(g *philox.Generator, t *exec.Tensor, lo, hi int) {
	if t.DType == exec.Int32 {
		g.Int32(exec.Elems[int32](t), int32(lo), int32(hi))
		return
	}
	g.Int64(exec.Elems[int64](t), int64(lo), int64(hi))
}

func buildRandomInt(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("Tout")
	st := b.RandomStream()
	return func(c *exec.KernelContext) error {
		lo, hi := c.In(1), c.In(2)
		if lo.NumElements() != 1 || hi.NumElements() != 1 {
			return c.Invalid("the bounds must be scalars, not %s and %s", lo.Describe(), hi.Describe())
		}
		if lo.IntAt(0) >= hi.IntAt(0) {
			return c.Invalid("the lower bound %d is not below the upper bound %d", lo.IntAt(0), hi.IntAt(0))
		}
		t, err := elem.OutShaped(c, 0, dt)
		if err != nil {
			return err
		}
		g := c.Draw(st).Reserve(t.NumElements())
		return drawInts(c, &g, t, lo.IntAt(0), hi.IntAt(0))
	}, nil
}

// permutation returns a random order of n rows, drawn as TensorFlow's shuffle
// draws it.
func permutation(c *exec.KernelContext, st *exec.RandomStream, n int) []int {
	perm := c.ScratchInts(0, n)
	for i := range perm {
		perm[i] = i
	}
	if n < 2 {
		return perm
	}
	g := c.Draw(st).ReserveWords(n - 1)
	words := philox.NewWords(&g)
	for i := range n - 1 {
		j := i + int(words.Next()%uint32(n-i))
		perm[i], perm[j] = perm[j], perm[i]
	}
	return perm
}

func buildRandomShuffle(b *exec.OpConstruction) (exec.Kernel, error) {
	st := b.RandomStream()
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		y := c.OutLike(0, x.DType, x)
		if len(x.Shape) == 0 || x.NumElements() == 0 {
			copy(y.Data, x.Data)
			copy(y.Strings, x.Strings)
			return nil
		}
		n := x.Shape[0]
		row := x.NumElements() / n
		for i, from := range permutation(c, st, n) {
			exec.CopyElems(y, i*row, x, from*row, row)
		}
		return nil
	}, nil
}
