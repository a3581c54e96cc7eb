package nn

import (
	"math"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var softmaxOps = exec.OpTable{
	"Softmax": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), onRows(softmaxRow[float32]), onRows(softmaxRow[float64]))
	}},
	"LogSoftmax": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), onRows(logSoftmaxRow[float32]), onRows(logSoftmaxRow[float64]))
	}},
	"SparseSoftmaxCrossEntropyWithLogits": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), sparseCrossEntropy(sparseCrossEntropyRow[float32]), sparseCrossEntropy(sparseCrossEntropyRow[float64]))
	}},
	"SoftmaxCrossEntropyWithLogits": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), crossEntropy[float32], crossEntropy[float64])
	}},
}

// rowWork is an op on the rows of a matrix, shared between processors.
type rowWork[T exec.Float] struct {
	row    func(w *rowWork[T], i int)
	x, d   []T
	n      int
	labels *exec.Tensor
	perRow []T // one number of each row
}

// Part implements [parallel.Job].
func (w *rowWork[T]) Part(i, n int) {
	from, to := parallel.Span(len(w.d)/w.n, 1, i, n)
	for r := from; r < to; r++ {
		w.row(w, r)
	}
}

// do runs the op on all rows.
func (w rowWork[T]) do(c *exec.KernelContext) {
	if w.n == 0 || len(w.d) == 0 {
		return
	}
	kept := exec.InFrame[rowWork[T]](c)
	*kept = w
	if len(w.d) < elem.ParallelElements/4 {
		kept.Part(0, 1)
	} else {
		parallel.Run(exec.MaxParts, kept)
	}
	*kept = rowWork[T]{}
}

// exps sets row i of d to the exponentials of the row of x, less its largest
// element, and returns that and their sum.
func (w *rowWork[T]) exps(i int) (x, d []T, largest, sum T) {
	x, d = w.x[i*w.n:(i+1)*w.n], w.d[i*w.n:(i+1)*w.n]
	largest = vec.Max(x)
	expsOf(d, x, largest)
	return x, d, largest, T(vec.Sum(d))
}

// expsOf sets d to the exponentials of x less the largest element.
func expsOf[T exec.Float](d, x []T, largest T) {
	vec.AddScalar(d, x, -largest)
	vec.Exp(d, d)
}

func softmaxRow[T exec.Float](w *rowWork[T], i int) {
	_, d, _, sum := w.exps(i)
	vec.DivScalar(d, d, sum)
}

func logSoftmaxRow[T exec.Float](w *rowWork[T], i int) {
	x, d, largest, sum := w.exps(i)
	vec.AddScalar(d, x, -largest)
	vec.AddScalar(d, d, -T(math.Log(float64(sum))))
}

// onRows is the kernel of an op on each row of logits.
func onRows[T exec.Float](row func(w *rowWork[T], i int)) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		if len(x.Shape) == 0 {
			return c.Invalid("logits must have at least one dimension, not %s", x.Describe())
		}
		rowWork[T]{row: row, x: exec.Elems[T](x), d: exec.Elems[T](c.OutLike(0, x.DType, x)), n: x.Dim(-1)}.do(c)
		return nil
	}
}

// sparseCrossEntropy returns the loss of each row and its gradient with
// respect to the logits.
func sparseCrossEntropy[T exec.Float](row func(w *rowWork[T], i int)) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, labels := c.In(0), c.In(1)
		if len(x.Shape) != 2 || len(labels.Shape) != 1 || labels.Shape[0] != x.Shape[0] {
			return c.Invalid("logits %s and labels %s do not fit", x.Describe(), labels.Describe())
		}
		rows, n := x.Shape[0], x.Shape[1]
		if n == 0 && rows > 0 {
			return c.Invalid("logits %s have no classes", x.Describe())
		}
		for i := range rows {
			if label := labels.IntAt(i); label < 0 || label >= n {
				return c.Invalid("label %d of row %d is outside [0, %d)", label, i, n)
			}
		}
		loss, grad := exec.Elems[T](c.Out(0, x.DType, rows)), exec.Elems[T](c.OutLike(1, x.DType, x))
		rowWork[T]{row: row, x: exec.Elems[T](x), d: grad, n: n, labels: labels, perRow: loss}.do(c)
		return nil
	}
}

func sparseCrossEntropyRow[T exec.Float](w *rowWork[T], i int) {
	label := w.labels.IntAt(i)
	x, d, largest, sum := w.exps(i)
	w.perRow[i] = T(math.Log(float64(sum))) - (x[label] - largest)
	vec.DivScalar(d, d, sum)
	d[label]--
}

func crossEntropy[T exec.Float](c *exec.KernelContext) error {
	var b elem.Broadcast
	x, y := c.In(0), c.In(1)
	if err := b.Init(x.Shape, y.Shape); err != nil {
		return c.Invalid("logits and labels: %v", err)
	}
	if b.Rank != 2 {
		return c.Invalid("logits and labels must be matrices, not %s and %s", x.Describe(), y.Describe())
	}
	rows, n := b.Out[0], b.Out[1]
	loss, grad := exec.Elems[T](c.Out(0, x.DType, rows)), exec.Elems[T](c.Out(1, x.DType, rows, n))
	row, label := exec.Scratch[T](c, exec.ScratchA, n), exec.Scratch[T](c, exec.ScratchB, n)
	for i := range rows {
		broadcastRow(row, x, i)
		broadcastRow(label, y, i)
		g := grad[i*n : (i+1)*n]
		m := vec.Max(row)
		expsOf(g, row, m)
		s := T(vec.Sum(g))
		log := T(math.Log(float64(s)))
		l := 0.0
		for j, v := range row {
			// A label of zero contributes nothing even where the log is infinite.
			if label[j] != 0 {
				l += float64(label[j] * (log - (v - m)))
			}
			g[j] = g[j]/s - label[j]
		}
		loss[i] = T(l)
	}
	return nil
}

// broadcastRow copies row i of a tensor of rank at most 2 whose dimensions may
// be one.
func broadcastRow[T exec.Float](d []T, x *exec.Tensor, i int) {
	xs := exec.Elems[T](x)
	n := elem.DimFrom(x.Shape, 2, 1)
	if elem.DimFrom(x.Shape, 2, 0) == 1 {
		i = 0
	}
	for j := range d {
		d[j] = xs[i*n+j%n]
	}
}
