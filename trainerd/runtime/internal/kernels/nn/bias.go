package nn

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops that add a value to each channel.
var biasOps = exec.OpTable{
	"BiasAdd":     {Types: exec.Numbers, Build: buildBiasAdd},
	"BiasAddV1":   {Types: exec.Numbers, Build: buildBiasAdd},
	"BiasAddGrad": {Types: exec.Numbers, Build: buildBiasAddGrad},
}

// biasLayout returns how often a bias of n elements repeats over x: x is seen
// as [outer, n, inner]. inner is 1 unless the channels come first.
func biasLayout(c *exec.KernelContext, x *exec.Tensor, channelsFirst bool) (outer, n, inner int, err error) {
	if len(x.Shape) < 2 {
		return 0, 0, 0, c.Invalid("the values must have at least two dimensions, not %s", x.Describe())
	}
	if channelsFirst {
		return x.Shape[0], x.Shape[1], exec.NumElements(x.Shape[2:]), nil
	}
	n = x.Dim(-1)
	return exec.NumElements(x.Shape[:len(x.Shape)-1]), n, 1, nil
}

func buildBiasAdd(b *exec.OpConstruction) (exec.Kernel, error) {
	first := b.StringOr("data_format", "NHWC") == "NCHW"
	if !first {
		b.Elementwise(&exec.Elements{Vv: vec.Add[float32]})
	}
	return exec.ByType(b.DType("T"), biasAdd(first, elem.Slicewise[float32](vec.Add[float32]).ApplyRows), biasAdd(first, elem.Slicewise[float64](vec.Add[float64]).ApplyRows),
		biasAdd(first, addRow[int32]), biasAdd(first, addRow[int64]))
}

// biasAdd adds a bias; add is what adds a row to all rows.
func biasAdd[T exec.Number](channelsFirst bool, add func(c *exec.KernelContext, d, x, row []T)) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, bias := c.In(0), c.In(1)
		outer, n, inner, err := biasLayout(c, x, channelsFirst)
		if err != nil {
			return err
		}
		if len(bias.Shape) != 1 || bias.Shape[0] != n {
			return c.Invalid("a bias of shape %s does not fit values of shape %s", exec.ShapeString(bias.Shape), exec.ShapeString(x.Shape))
		}
		xs, bs, d := exec.Elems[T](x), exec.Elems[T](bias), exec.Elems[T](c.OutOver(0, 0))
		if inner == 1 {
			add(c, d, xs, bs)
			return nil
		}
		for i := range outer * n {
			elem.AddScalar(d[i*inner:(i+1)*inner], xs[i*inner:(i+1)*inner], bs[i%n])
		}
		return nil
	}
}

func addRow[T exec.Integer](_ *exec.KernelContext, d, x, row []T) {
	for i := range d {
		d[i] = x[i] + row[i%len(row)]
	}
}

func buildBiasAddGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	first := b.String("data_format") == "NCHW"
	return exec.ByType(b.DType("T"), biasAddGrad[float32](first), biasAddGrad[float64](first), biasAddGrad[int32](first), biasAddGrad[int64](first))
}

func biasAddGrad[T exec.Number](channelsFirst bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		g := c.In(0)
		outer, n, inner, err := biasLayout(c, g, channelsFirst)
		if err != nil {
			return err
		}
		gs, d := exec.Elems[T](g), exec.Elems[T](c.Out(0, g.DType, n))
		clear(d)
		if inner == 1 {
			sumRows(c, d, gs)
			return nil
		}
		for i := range outer * n {
			d[i%n] = elem.Sum(d[i%n], gs[i*inner:(i+1)*inner])
		}
		return nil
	}
}

// rowsWork adds up rows, many as one so that they are long vectors, in blocks with a
// sum each, whatever the number of processors.
type rowsWork[T exec.Number] struct {
	x, sums             []T
	wide, total, blocks int // elements of a sum, whole sums that x has, blocks
}

// sumRows adds all rows of x to d, which is zero.
func sumRows[T exec.Number](c *exec.KernelContext, d, x []T) {
	const elements, shared = 512, 8 // of a sum, and blocks of what processors share
	n := len(d)
	if n == 0 {
		return
	}
	w := exec.InFrame[rowsWork[T]](c)
	*w = rowsWork[T]{x: x, wide: n * max(1, min(elements/n, len(x)/n)), blocks: 1}
	w.total = len(x) / w.wide
	if len(x) >= elem.ParallelElements {
		w.blocks = min(shared, w.total)
	}
	w.sums = exec.Scratch[T](c, exec.ScratchA, w.blocks*w.wide)
	clear(w.sums)
	parallel.Run(min(w.blocks, exec.MaxParts), w)
	rest := x[w.total*w.wide:]
	elem.AddTo(w.sums[:len(rest)], rest)
	for at := 0; at < len(w.sums); at += n {
		elem.AddTo(d, w.sums[at:at+n])
	}
	*w = rowsWork[T]{}
}

// Part implements [parallel.Job].
func (w *rowsWork[T]) Part(i, n int) {
	from, to := parallel.Span(w.blocks, 1, i, n)
	for b := from; b < to; b++ {
		first, last := parallel.Span(w.total, 1, b, w.blocks)
		sum := w.sums[b*w.wide : (b+1)*w.wide]
		for k := first; k < last; k++ {
			elem.AddTo(sum, w.x[k*w.wide:])
		}
	}
}
