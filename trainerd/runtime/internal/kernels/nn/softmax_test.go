package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// lossesOf returns the cross entropy of each row of logits and its gradient,
// computed in float64.
func lossesOf(logits, labels []float32, n int) (losses, grads []float64) {
	for at := 0; at < len(logits); at += n {
		sum, loss := 0.0, 0.0
		for _, v := range logits[at : at+n] {
			sum += math.Exp(float64(v))
		}
		for j, v := range logits[at : at+n] {
			label := float64(labels[at+j])
			loss += label * (math.Log(sum) - float64(v))
			grads = append(grads, math.Exp(float64(v))/sum-label)
		}
		losses = append(losses, loss)
	}
	return losses, grads
}

// TestCrossEntropies holds the losses of few and of many rows, short and long
// ones, against the definition.
func TestCrossEntropies(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, size := range [][2]int{{1, 1}, {1, 3000}, {3, 7}, {70, 10}, {200, 15}, {130, 16}, {65, 31}, {9, 200}, {300, 300}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			rows, n := size[0], size[1]
			logits, hot, classes := random32(r, rows*n), make([]float32, rows*n), make([]int64, rows)
			for i := range classes {
				classes[i] = int64(r.IntN(n))
				hot[i*n+int(classes[i])] = 1
			}
			shape := []int64{int64(rows), int64(n)}
			g := kerneltest.New(t)
			x := kerneltest.Tensor(g, shape, logits...)
			dense := g.Node("SoftmaxCrossEntropyWithLogits", []string{x, kerneltest.Tensor(g, shape, hot...)})
			sparse := g.Node("SparseSoftmaxCrossEntropyWithLogits", []string{x, kerneltest.Vector(g, classes...)})
			out := g.Run([]string{dense, dense + ":1", sparse, sparse + ":1", g.Node("Softmax", []string{x}), g.Node("LogSoftmax", []string{x})})
			losses, grads := lossesOf(logits, hot, n)
			for k := 0; k < 4; k += 2 {
				near(t, "losses", kerneltest.Values[float32](t, out[k]), losses)
				near(t, "gradient", kerneltest.Values[float32](t, out[k+1]), grads)
			}
			soft, log := kerneltest.Values[float32](t, out[4]), kerneltest.Values[float32](t, out[5])
			for i, v := range soft {
				if math.Abs(math.Log(float64(v))-float64(log[i])) > 1e-4 || math.Abs(float64(v-hot[i])-grads[i]) > 1e-5 {
					t.Fatalf("element %d: softmax %v, its logarithm %v, gradient %v", i, v, log[i], grads[i])
				}
			}
		})
	}
}

// TestCrossEntropyBroadcast has one row of labels, then one of logits, for all
// rows of the other.
func TestCrossEntropyBroadcast(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 8))
	const rows, n = 5, 4
	many, one := random32(r, rows*n), []float32{.1, .2, .3, .4}
	all := make([]float32, 0, rows*n)
	for range rows {
		all = append(all, one...)
	}
	g := kerneltest.New(t)
	x, y := kerneltest.Tensor(g, []int64{rows, n}, many...), kerneltest.Tensor(g, []int64{1, n}, one...)
	labels, logits := g.Node("SoftmaxCrossEntropyWithLogits", []string{x, y}), g.Node("SoftmaxCrossEntropyWithLogits", []string{y, x})
	out := g.Run([]string{labels, labels + ":1", logits, logits + ":1"})
	losses, grads := lossesOf(many, all, n)
	near(t, "losses", kerneltest.Values[float32](t, out[0]), losses)
	near(t, "gradient", kerneltest.Values[float32](t, out[1]), grads)
	losses, grads = lossesOf(all, many, n)
	near(t, "losses", kerneltest.Values[float32](t, out[2]), losses)
	near(t, "gradient", kerneltest.Values[float32](t, out[3]), grads)
}
