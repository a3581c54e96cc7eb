package nn

import (
	"runtime"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var softmaxOps = exec.OpTable{
	"Softmax": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), onRows(overLogits, softmaxRow[float32]), onRows(overLogits, softmaxRow[float64]))
	}},
	"LogSoftmax": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), onRows(overLogits|withLogs|expsApart, logSoftmaxRow[float32]), onRows(overLogits|withLogs|expsApart, logSoftmaxRow[float64]))
	}},
	"SparseSoftmaxCrossEntropyWithLogits": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), sparseCrossEntropy(overLogits, sparseCrossEntropyRow[float32]), sparseCrossEntropy(overLogits, sparseCrossEntropyRow[float64]))
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
	needs  rowNeeds
	x, d   []T
	n      int
	labels *exec.Tensor
	dense  []T // the labels, if they are distributions
	perRow []T // one number of each row
	memory []T // of the exponentials of a block, by part, where they are apart
}

// rowNeeds is what the finish of an op on rows needs, and does not.
type rowNeeds uint8

const (
	withLogs   rowNeeds = 1 << iota // the logarithms of the sums
	overLogits                      // not the logits once there are exponentials: the output may have their memory
	expsApart                       // not the exponentials, which have memory of their own
)

// rowFinish makes row i of d, which holds exponentials or nothing yet, the result.
type rowFinish[T exec.Float] func(w *rowWork[T], i int, s rowSums[T])

// rowSums are a row's largest element, the sum of the exponentials of what the
// elements are less that, and its logarithm.
type rowSums[T exec.Float] struct{ largest, sum, log T }

// Part implements [parallel.Job].
func (w *rowWork[T]) Part(i, n int) {
	from, to := parallel.Span(len(w.d)/w.n, 1, i, n)
	rows, own := w.blockRows(), w.memory[i*w.blockSize():]
	for r := from; r < to; r += rows {
		w.block(own, r, min(rows, to-r))
	}
}

// blockRows is how many rows are done at once.
func (w *rowWork[T]) blockRows() int { return min(blockRows, max(1, blockElements/w.n)) }

// blockSize is the memory that a part has for exponentials.
func (w *rowWork[T]) blockSize() int {
	if w.needs&expsApart == 0 {
		return 0
	}
	return w.blockRows() * w.n
}

const (
	blockRows     = 64
	blockElements = 2048
	shortRow      = 16 // elements
)

// block does rows from r on. It makes exponentials, in d or apart, from which finish
// makes the result.
func (w *rowWork[T]) block(own []T, r, rows int) {
	var largest, sums, logs [blockRows]T
	x, exps := w.x[r*w.n:(r+rows)*w.n], w.d[r*w.n:(r+rows)*w.n]
	if w.needs&expsApart != 0 {
		exps = own[:rows*w.n]
	}
	for k := range rows {
		largest[k] = lessLargest(exps[k*w.n:(k+1)*w.n], x[k*w.n:(k+1)*w.n])
	}
	vec.Exp(exps, exps)
	for k := range rows {
		sums[k] = T(vec.Sum(exps[k*w.n : (k+1)*w.n]))
	}
	if w.needs&withLogs != 0 {
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
	parts := 1
	if len(w.d) >= elem.ParallelElements/4 {
		parts = min(exec.MaxParts, runtime.GOMAXPROCS(0))
	}
	kept.memory = exec.Scratch[T](c, exec.ScratchC, parts*w.blockSize())
	parallel.Run(parts, kept)
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

// outOver returns output i with the type and the shape of the logits, in their memory if
// that may be.
func (n rowNeeds) outOver(c *exec.KernelContext, i int) *exec.Tensor {
	if n&overLogits != 0 {
		return c.OutOver(i, 0)
	}
	return c.OutLike(i, c.In(0).DType, c.In(0))
}

// onRows is the kernel of an op on each row of logits.
func onRows[T exec.Float](needs rowNeeds, finish rowFinish[T]) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		if len(x.Shape) == 0 {
			return c.Invalid("logits must have at least one dimension, not %s", x.Describe())
		}
		rowWork[T]{finish: finish, needs: needs, x: exec.Elems[T](x), d: exec.Elems[T](needs.outOver(c, 0)), n: x.Dim(-1)}.do(c)
		return nil
	}
}

// sparseCrossEntropy returns the loss of each row, for which finish has the logit
// of its label, and its gradient with respect to the logits.
func sparseCrossEntropy[T exec.Float](needs rowNeeds, finish rowFinish[T]) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, labels := c.In(0), c.In(1)
		if len(x.Shape) != 2 || len(labels.Shape) != 1 || labels.Shape[0] != x.Shape[0] {
			return c.Invalid("logits %s and labels %s do not fit", x.Describe(), labels.Describe())
		}
		rows, n := x.Shape[0], x.Shape[1]
		if n == 0 && rows > 0 {
			return c.Invalid("logits %s have no classes", x.Describe())
		}
		xs, loss := exec.Elems[T](x), exec.Elems[T](c.Out(0, x.DType, rows))
		for i := range rows {
			label := labels.IntAt(i)
			if label < 0 || label >= n {
				return c.Invalid("label %d of row %d is outside [0, %d)", label, i, n)
			}
			loss[i] = xs[i*n+label]
		}
		rowWork[T]{finish: finish, needs: needs | withLogs, x: xs, d: exec.Elems[T](needs.outOver(c, 1)), n: n, labels: labels, perRow: loss}.do(c)
		return nil
	}
}

func sparseCrossEntropyRow[T exec.Float](w *rowWork[T], i int, s rowSums[T]) {
	_, d := w.row(i)
	w.perRow[i] = s.log - (w.perRow[i] - s.largest)
	vec.DivScalar(d, d, s.sum)
	d[w.labels.IntAt(i)]--
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
		rowWork[T]{finish: finish, needs: withLogs, x: logits, d: grad, n: n, dense: labels, perRow: loss}.do(c)
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
