package nn

import (
	"math"

	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// The ops on rows as TensorFlow composes them for types of 16 bits: each step rounds.
// Only the sums are more exact here, as TensorFlow's depend on the processor.
var softmaxSteps = map[string]exec.Steps{
	"Softmax": func(_ *exec.OpConstruction, r exec.Rounding) exec.Kernel {
		return onRows(0, rounded(r, false, softmaxRow16))
	},
	"LogSoftmax": func(_ *exec.OpConstruction, r exec.Rounding) exec.Kernel {
		return onRows(0, rounded(r, true, logSoftmaxRow16))
	},
	"SparseSoftmaxCrossEntropyWithLogits": func(_ *exec.OpConstruction, r exec.Rounding) exec.Kernel {
		return sparseCrossEntropy(0, rounded(r, true, sparseCrossEntropyRow16))
	},
	"SoftmaxCrossEntropyWithLogits": func(_ *exec.OpConstruction, r exec.Rounding) exec.Kernel {
		return crossEntropy(rounded(r, true, crossEntropyRow16))
	},
}

// row16 is a row of logits, and the output, which has the exponentials of what they are
// less the largest.
type row16 struct {
	x, d     []float32
	largest  float32
	sum, log float32 // of the exponentials, and its logarithm
	round    exec.Rounding
	rounds   func(d, x []float32) // whole slices
}

// less returns logit j less the largest.
func (x *row16) less(j int) float32 { return x.round(x.x[j] - x.largest) }

// lessAll makes the output all of them.
func (x *row16) lessAll() {
	vec.AddScalar(x.d, x.x, -x.largest)
	x.rounds(x.d, x.d)
}

// rounded makes a rowFinish that computes a row once more, step by step.
func rounded(r exec.Rounding, logs bool, finish func(w *rowWork[float32], i int, x *row16)) rowFinish[float32] {
	rounds := r.OfSlices()
	return func(w *rowWork[float32], i int, s rowSums[float32]) {
		xs, d := w.row(i)
		row := row16{x: xs, d: d, largest: s.largest, round: r, rounds: rounds}
		row.lessAll()
		vec.Exp(d, d)
		rounds(d, d)
		if row.sum = r(float32(vec.Sum(d))); logs {
			row.log = r(float32(math.Log(float64(row.sum))))
		}
		finish(w, i, &row)
	}
}

func softmaxRow16(_ *rowWork[float32], _ int, x *row16) {
	vec.MulScalar(x.d, x.d, x.round(1/x.sum))
	x.rounds(x.d, x.d)
}

func logSoftmaxRow16(_ *rowWork[float32], _ int, x *row16) {
	x.lessAll()
	vec.AddScalar(x.d, x.d, -x.log)
	x.rounds(x.d, x.d)
}

func sparseCrossEntropyRow16(w *rowWork[float32], i int, x *row16) {
	label := w.labels.IntAt(i)
	w.perRow[i] = x.round(x.log - x.less(label))
	x.shares()
	x.d[label] = x.round(x.d[label] - 1)
}

// shares divides the exponentials by their sum.
func (x *row16) shares() {
	vec.DivScalar(x.d, x.d, x.sum)
	x.rounds(x.d, x.d)
}

func crossEntropyRow16(w *rowWork[float32], i int, x *row16) {
	loss, labels := 0.0, w.dense[i*w.n:(i+1)*w.n]
	for j, label := range labels {
		if label != 0 { // else it contributes nothing, even where the log is infinite
			loss += float64(x.round(label * x.round(x.log-x.less(j))))
		}
	}
	x.shares()
	vec.Sub(x.d, x.d, labels)
	x.rounds(x.d, x.d)
	w.perRow[i] = float32(loss)
}
