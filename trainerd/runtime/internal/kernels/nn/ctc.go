package nn

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Connectionist temporal classification: sequences of labels of unknown
// alignment, with a blank between them.
var ctcOps = exec.OpTable{
	"CTCLoss":          {Types: exec.Floats, Build: buildCTC},
	"CTCGreedyDecoder": {Types: exec.Floats, Build: buildCTCGreedy},
}

// ctc is the loss op: what it makes of labels that repeat.
type ctc struct{ collapse, merge, ignoreLonger bool }

func buildCTC(b *exec.OpConstruction) (exec.Kernel, error) {
	a := ctc{b.Bool("preprocess_collapse_repeated"), b.Bool("ctc_merge_repeated"), b.Bool("ignore_longer_outputs_than_inputs")}
	return exec.ByFloat(b.DType("T"), func(c *exec.KernelContext) error { return ctcLoss[float32](c, &a) }, func(c *exec.KernelContext) error { return ctcLoss[float64](c, &a) })
}

// frames checks the activations [time, batch, classes] and the lengths.
func frames(c *exec.KernelContext, lengths *exec.Tensor) error {
	x := c.In(0)
	if len(x.Shape) != 3 || x.Shape[2] == 0 || len(lengths.Shape) != 1 || lengths.Shape[0] != x.Shape[1] {
		return c.Invalid("%s are not the lengths of %s", lengths.Describe(), x.Describe())
	}
	for i, n := range exec.Elems[int32](lengths) {
		if n < 0 || int(n) > x.Shape[0] {
			return c.Errorf(tfpb.Code_FAILED_PRECONDITION, "sequence %d has the length %d, of %d", i, n, x.Shape[0])
		}
	}
	return nil
}

// labelsOf returns the labels of each sequence, in the order they come in.
func labelsOf(c *exec.KernelContext, batch int) ([][]int, error) {
	index, values := c.In(1), c.In(2)
	if len(index.Shape) != 2 || index.Shape[1] != 2 || len(values.Shape) != 1 || values.Shape[0] != index.Shape[0] {
		return nil, c.Invalid("%s are not indices of the labels %s", index.Describe(), values.Describe())
	}
	labels := make([][]int, batch)
	at := exec.Elems[int64](index)
	for i, v := range exec.Elems[int32](values) {
		b := at[2*i]
		if b < 0 || b >= int64(batch) {
			return nil, c.Invalid("label %d is in sequence %d of %d", i, b, batch)
		}
		labels[b] = append(labels[b], int(v))
	}
	return labels, nil
}

// targets returns a sequence's labels with blanks around them, nil when it is
// to be left out.
func (a *ctc) targets(c *exec.KernelContext, labels []int, length, blank int) ([]int, error) {
	out := []int{blank}
	ended := false
	for i, v := range labels {
		switch {
		case a.collapse && i > 0 && v == labels[i-1]:
		case v < 0 || v > blank:
			return nil, c.Invalid("label %d is outside [0, %d]", v, blank)
		case v == blank:
			ended = true
		case ended:
			return nil, c.Invalid("label %d comes after a blank", v)
		default:
			out = append(out, v, blank)
		}
	}
	if need := len(out) / 2; need > length {
		if !a.ignoreLonger {
			return nil, c.Invalid("%d labels do not fit into %d steps; ignore_longer_outputs_than_inputs leaves such sequences out", need, length)
		}
		return nil, nil
	}
	return out, nil
}

// buildCTCGreedy builds the op that takes the likeliest class of each step.
func buildCTCGreedy(b *exec.OpConstruction) (exec.Kernel, error) {
	merge, blank := b.Bool("merge_repeated"), b.Int("blank_index")
	return func(c *exec.KernelContext) error {
		x, lengths := c.In(0), c.In(1)
		if err := frames(c, lengths); err != nil {
			return err
		}
		batch, classes := x.Shape[1], x.Shape[2]
		blank := blank
		if blank < 0 {
			blank += classes
		}
		if blank < 0 || blank >= classes {
			return c.Invalid("the blank is class %d of %d", blank, classes)
		}
		score := c.Out(3, x.DType, batch, 1)
		var found [][]int
		total, longest := 0, 0
		for b, n := range exec.Elems[int32](lengths) {
			labels, sum := greedy(x, b, int(n), blank, merge)
			elem.SetNumber(score, b, sum)
			found = append(found, labels)
			total += len(labels)
			longest = max(longest, len(labels))
		}
		index, values := exec.Elems[int64](c.Out(0, exec.Int64, total, 2)), exec.Elems[int64](c.Out(1, exec.Int64, total))
		for b, labels := range found {
			for i, v := range labels {
				index[0], index[1], values[0] = int64(b), int64(i), int64(v)
				index, values = index[2:], values[1:]
			}
		}
		shape := exec.Elems[int64](c.Out(2, exec.Int64, 2))
		shape[0], shape[1] = int64(batch), int64(longest)
		return nil
	}, nil
}

// greedy returns the labels of sequence b, and the sum of -x of their steps.
func greedy(x *exec.Tensor, b, steps, blank int, merge bool) (labels []int, sum float64) {
	batch, classes := x.Shape[1], x.Shape[2]
	last := -1
	for t := range steps {
		row, best := (t*batch+b)*classes, 0
		for k := range classes {
			if x.FloatAt(row+k) > x.FloatAt(row+best) {
				best = k
			}
		}
		sum -= x.FloatAt(row + best)
		if best != blank && !(merge && best == last) {
			labels = append(labels, best)
		}
		last = best
	}
	return labels, sum
}
