package nn

import (
	"math"

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

func ctcLoss[T exec.Float](c *exec.KernelContext, a *ctc) error {
	x, lengths := c.In(0), c.In(3)
	if err := frames(c, lengths); err != nil {
		return err
	}
	steps, batch, classes := x.Shape[0], x.Shape[1], x.Shape[2]
	labels, err := labelsOf(c, batch)
	if err != nil {
		return err
	}
	loss := exec.Elems[T](c.Out(0, x.DType, batch))
	gradient := c.OutLike(1, x.DType, x)
	elem.Zero(gradient)
	clear(loss)
	xs, gs := exec.Elems[T](x), exec.Elems[T](gradient)
	logits := exec.Scratch[float64](c, exec.ScratchA, steps*classes)
	for b, n := range exec.Elems[int32](lengths) {
		if n == 0 {
			continue
		}
		length := int(n)
		target, err := a.targets(c, labels[b], length, classes-1)
		if err != nil {
			return err
		}
		if target == nil {
			continue
		}
		for t := range length {
			logLikelihoods(logits[t*classes:(t+1)*classes], xs[(t*batch+b)*classes:])
		}
		p := a.alignments(c, target, logits, length, classes)
		loss[b] = T(-p.total)
		for t := range length {
			ctcGradient(p, t, gs[(t*batch+b)*classes:(t*batch+b+1)*classes])
		}
	}
	return nil
}

// logLikelihoods stores the logarithms of the probabilities of the first classes.
func logLikelihoods[T exec.Float](to []float64, x []T) {
	high, sum := math.Inf(-1), 0.0
	for _, v := range x[:len(to)] {
		high = max(high, float64(v))
	}
	for _, v := range x[:len(to)] {
		sum += math.Exp(float64(v) - high)
	}
	for i := range to {
		to[i] = float64(x[i]) - high - math.Log(sum)
	}
}

// logAdd returns the logarithm of a sum from those of its terms.
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// alignments are all the ways of one sequence's labels through its steps: the
// logarithm of their probability, in total and through each label at each step.
type alignments struct {
	target  []int
	classes int
	logits  []float64
	through []float64 // [step, place in target]
	total   float64
}

// alignments sums the ways forward and backward.
func (a *ctc) alignments(c *exec.KernelContext, target []int, logits []float64, steps, classes int) *alignments {
	m := len(target)
	c.CheckSize([]int{steps, m}, 8)
	p := &alignments{target: target, classes: classes, logits: logits, through: exec.Scratch[float64](c, exec.ScratchB, steps*m)}
	row := func(t int) []float64 { return p.through[t*m : (t+1)*m] }
	at := func(t, u int) float64 { return logits[t*classes+target[u]] }
	for t := range steps {
		for u := range m {
			v := math.Inf(-1)
			switch {
			case t == 0 && u < 2:
				v = 0
			case t > 0:
				v = a.entering(row(t-1), target, u)
			}
			row(t)[u] = v + at(t, u)
		}
	}
	p.total = row(steps - 1)[m-1]
	if m > 1 {
		p.total = logAdd(p.total, row(steps - 1)[m-2])
	}
	next, now := backwardRows(c, m)
	for t := steps - 1; t >= 0; t-- {
		for u := range m {
			now[u] = math.Inf(-1)
			switch {
			case t == steps-1 && u >= m-2:
				now[u] = 0
			case t < steps-1:
				now[u] = a.leaving(next, target, u)
			}
			row(t)[u] += now[u]
		}
		for u := range m {
			next[u] = now[u] + at(t, u)
		}
	}
	return p
}

// backwardRows returns two rows of working memory.
func backwardRows(c *exec.KernelContext, m int) (a, b []float64) {
	rows := exec.Scratch[float64](c, exec.ScratchC, 2*m)
	return rows[:m], rows[m:]
}

// skips reports whether label u may follow the one two places before, without
// a blank in between; stays, whether it may last two steps.
func (a *ctc) skips(target []int, u int) bool {
	return u%2 == 1 && u > 1 && (!a.merge || target[u] != target[u-2])
}

func (a *ctc) stays(u int) bool { return u%2 == 0 || a.merge }

// entering sums the ways that reach place u from the step before.
func (a *ctc) entering(before []float64, target []int, u int) float64 {
	v := math.Inf(-1)
	if a.stays(u) {
		v = before[u]
	}
	if u > 0 {
		v = logAdd(v, before[u-1])
	}
	if a.skips(target, u) {
		v = logAdd(v, before[u-2])
	}
	return v
}

// leaving sums the ways that continue from place u.
func (a *ctc) leaving(next []float64, target []int, u int) float64 {
	v := math.Inf(-1)
	if a.stays(u) {
		v = next[u]
	}
	if u+1 < len(next) {
		v = logAdd(v, next[u+1])
	}
	if u+2 < len(next) && a.skips(target, u+2) {
		v = logAdd(v, next[u+2])
	}
	return v
}

// ctcGradient stores that of step t: what the classes have, less what they
// should. Where there is no way at all, nothing is taken off.
func ctcGradient[T exec.Float](p *alignments, t int, to []T) {
	m := len(p.target)
	for k := range to {
		sum := math.Inf(-1)
		for u, v := range p.target {
			if v == k {
				sum = logAdd(sum, p.through[t*m+u])
			}
		}
		has := math.Exp(p.logits[t*p.classes+k])
		if !math.IsInf(p.total, -1) {
			has -= math.Exp(sum - p.total)
		}
		to[k] = T(has)
	}
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
