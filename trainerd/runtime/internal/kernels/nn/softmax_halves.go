package nn

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// The ops on rows as TensorFlow composes them for types of 16 bits: each step rounds.
// Only the sums are more exact here, as TensorFlow's depend on the processor.
var softmaxSteps = map[string]func(exec.Rounding) exec.Kernel{
	"Softmax":    func(r exec.Rounding) exec.Kernel { return onRows(0, rounded(r, false, softmaxRow16)) },
	"LogSoftmax": func(r exec.Rounding) exec.Kernel { return onRows(0, rounded(r, true, logSoftmaxRow16)) },
	"SparseSoftmaxCrossEntropyWithLogits": func(r exec.Rounding) exec.Kernel {
		return sparseCrossEntropy(0, rounded(r, true, sparseCrossEntropyRow16))
	},
	"SoftmaxCrossEntropyWithLogits": func(r exec.Rounding) exec.Kernel {
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
}

// less returns logit j less the largest.
func (x *row16) less(j int) float32 { return x.round(x.x[j] - x.largest) }

// rounded makes a rowFinish that computes a row once more, step by step.
func rounded(r exec.Rounding, logs bool, finish func(w *rowWork[float32], i int, x *row16)) rowFinish[float32] {
	return func(w *rowWork[float32], i int, s rowSums[float32]) {
		xs, d := w.row(i)
		row := row16{x: xs, d: d, largest: s.largest, round: r}
		sum := 0.0
		for j := range d {
			d[j] = r(float32(math.Exp(float64(row.less(j)))))
			sum += float64(d[j])
		}
		if row.sum = r(float32(sum)); logs {
			row.log = r(float32(math.Log(float64(row.sum))))
		}
		finish(w, i, &row)
	}
}

func softmaxRow16(_ *rowWork[float32], _ int, x *row16) {
	part := x.round(1 / x.sum)
	for j, e := range x.d {
		x.d[j] = x.round(e * part)
	}
}

func logSoftmaxRow16(_ *rowWork[float32], _ int, x *row16) {
	for j := range x.d {
		x.d[j] = x.round(x.less(j) - x.log)
	}
}

func sparseCrossEntropyRow16(w *rowWork[float32], i int, x *row16) {
	label := w.labels.IntAt(i)
	w.perRow[i] = x.round(x.log - x.less(label))
	for j, e := range x.d {
		x.d[j] = x.round(e / x.sum)
	}
	x.d[label] = x.round(x.d[label] - 1)
}

func crossEntropyRow16(w *rowWork[float32], i int, x *row16) {
	loss := 0.0
	for j, label := range w.dense[i*w.n : (i+1)*w.n] {
		if label != 0 { // else it contributes nothing, even where the log is infinite
			loss += float64(x.round(label * x.round(x.log-x.less(j))))
		}
		x.d[j] = x.round(x.round(x.d[j]/x.sum) - label)
	}
	w.perRow[i] = float32(loss)
}
