package nn

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var softmaxOps = exec.OpTable{
	"Softmax": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), onRows(false, softmaxRow[float32]), onRows(false, softmaxRow[float64]))
	}},
	"LogSoftmax": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), onRows(true, logSoftmaxRow[float32]), onRows(true, logSoftmaxRow[float64]))
	}},
	"SparseSoftmaxCrossEntropyWithLogits": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), sparseCrossEntropy(sparseCrossEntropyRow[float32]), sparseCrossEntropy(sparseCrossEntropyRow[float64]))
	}},
	"SoftmaxCrossEntropyWithLogits": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), crossEntropy(crossEntropyRow[float32]), crossEntropy(crossEntropyRow[float64]))
	}},
}

// rowWork is an op on the rows of a matrix, shared between processors. It goes
// through the rows in blocks that stay in the first cache: short rows would
// spend their time in calls.
type rowWork[T exec.Float] struct {
	finish rowFinish[T]
	logs   bool // whether finish needs the logarithms
	x, d   []T
	n      int
	labels *exec.Tensor
	dense  []T // the labels, if they are distributions
	perRow []T // one number of each row
}

// rowFinish makes row i of d, which holds exponentials, the result.
type rowFinish[T exec.Float] func(w *rowWork[T], i int, s rowSums[T])

// rowSums are a row's largest element, the sum of the exponentials of what the
// elements are less that, and its logarithm.
type rowSums[T exec.Float] struct{ largest, sum, log T }

// Part implements [parallel.Job].
func (w *rowWork[T]) Part(i, n int) {
	from, to := parallel.Span(len(w.d)/w.n, 1, i, n)
	rows := min(blockRows, max(1, blockElements/w.n))
	for r := from; r < to; r += rows {
		w.block(r, min(rows, to-r))
	}
}

const (
	blockRows     = 64
	blockElements = 2048
	shortRow      = 16 // elements
)

// block does rows from r on. It makes the rows of d exponentials, which finish
// turns into the result.
func (w *rowWork[T]) block(r, rows int) {
	var largest, sums, logs [blockRows]T
	x, d := w.x[r*w.n:(r+rows)*w.n], w.d[r*w.n:(r+rows)*w.n]
	for k := range rows {
		largest[k] = lessLargest(d[k*w.n:(k+1)*w.n], x[k*w.n:(k+1)*w.n])
	}
	vec.Exp(d, d)
	for k := range rows {
		sums[k] = T(vec.Sum(d[k*w.n : (k+1)*w.n]))
	}
	if w.logs {
		vec.Log(logs[:rows], sums[:rows])
	}
	for k := range rows {
		w.finish(w, r+k, rowSums[T]{largest[k], sums[k], logs[k]})
	}
}

// lessLargest sets d to x less its largest element, which it returns.
func lessLargest[T exec.Float](d, x []T) T {
	if len(x) >= shortRow {
		largest := vec.Max(x)
		vec.AddScalar(d, x, -largest)
		return largest
	}
	largest, d := x[0], d[:len(x)]
	for _, v := range x {
		if v > largest || v != v {
			largest = v
		}
	}
	for i, v := range x {
		d[i] = v - largest
	}
	return largest
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

// row returns row i of logits and of the output.
func (w *rowWork[T]) row(i int) (x, d []T) { return w.x[i*w.n : (i+1)*w.n], w.d[i*w.n : (i+1)*w.n] }

func softmaxRow[T exec.Float](w *rowWork[T], i int, s rowSums[T]) {
	_, d := w.row(i)
	vec.DivScalar(d, d, s.sum)
}

func logSoftmaxRow[T exec.Float](w *rowWork[T], i int, s rowSums[T]) {
	x, d := w.row(i)
	vec.AddScalar(d, x, -s.largest)
	vec.AddScalar(d, d, -s.log)
}

// onRows is the kernel of an op on each row of logits.
func onRows[T exec.Float](logs bool, finish rowFinish[T]) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		if len(x.Shape) == 0 {
			return c.Invalid("logits must have at least one dimension, not %s", x.Describe())
		}
		rowWork[T]{finish: finish, logs: logs, x: exec.Elems[T](x), d: exec.Elems[T](c.OutLike(0, x.DType, x)), n: x.Dim(-1)}.do(c)
		return nil
	}
}

// sparseCrossEntropy returns the loss of each row and its gradient with
// respect to the logits.
func sparseCrossEntropy[T exec.Float](finish rowFinish[T]) exec.Kernel {
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
		rowWork[T]{finish: finish, logs: true, x: exec.Elems[T](x), d: grad, n: n, labels: labels, perRow: loss}.do(c)
		return nil
	}
}

func sparseCrossEntropyRow[T exec.Float](w *rowWork[T], i int, s rowSums[T]) {
	label := w.labels.IntAt(i)
	x, d := w.row(i)
	w.perRow[i] = s.log - (x[label] - s.largest)
	vec.DivScalar(d, d, s.sum)
	d[label]--
}

// crossEntropy is sparseCrossEntropy for labels that are distributions. Logits
// and labels may have one row, or one column, for all.
func crossEntropy[T exec.Float](finish rowFinish[T]) exec.Kernel {
	return func(c *exec.KernelContext) error {
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
		logits, labels := broadcastRows[T](c, exec.ScratchA, x, rows, n), broadcastRows[T](c, exec.ScratchB, y, rows, n)
		if n == 0 {
			clear(loss)
		}
		rowWork[T]{finish: finish, logs: true, x: logits, d: grad, n: n, dense: labels, perRow: loss}.do(c)
		return nil
	}
}

func crossEntropyRow[T exec.Float](w *rowWork[T], i int, s rowSums[T]) {
	x, d := w.row(i)
	labels, loss := w.dense[i*w.n:(i+1)*w.n], 0.0
	x, d = x[:len(labels)], d[:len(labels)]
	for j, label := range labels {
		// A label of zero contributes nothing even where the log is infinite.
		if label != 0 {
			loss += float64(label * (s.log - (x[j] - s.largest)))
		}
		d[j] = d[j]/s.sum - label
	}
	w.perRow[i] = T(loss)
}

// broadcastRows returns the elements of a matrix, or a copy of rows by n if a
// dimension is one and is to be another.
func broadcastRows[T exec.Float](c *exec.KernelContext, scratch int, x *exec.Tensor, rows, n int) []T {
	xs := exec.Elems[T](x)
	if len(xs) == rows*n {
		return xs
	}
	d := exec.Scratch[T](c, scratch, rows*n)
	for i := range rows {
		broadcastRow(d[i*n:(i+1)*n], x, i)
	}
	return d
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
