package nn

import (
	"math"
	"runtime"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

func ctcLoss[T exec.Float](c *exec.KernelContext, a *ctc) error {
	x, lengths := c.In(0), c.In(3)
	if err := frames(c, lengths); err != nil {
		return err
	}
	w := ctcWork[T]{ctc: a, steps: x.Shape[0], batch: x.Shape[1], classes: x.Shape[2], lengths: exec.Elems[int32](lengths), x: exec.Elems[T](x)}
	if err := w.target(c); err != nil {
		return err
	}
	w.loss = exec.Elems[T](c.Out(0, x.DType, w.batch))
	gradient := c.OutLike(1, x.DType, x)
	elem.Zero(gradient)
	clear(w.loss)
	w.gradient = exec.Elems[T](gradient)
	parts := max(1, min(w.batch, runtime.GOMAXPROCS(0), exec.MaxParts))
	c.CheckSize([]int{w.steps, w.longest}, 8)
	w.memory = exec.Scratch[float64](c, exec.ScratchA, parts*w.size())
	parallel.Run(parts, &w)
	return nil
}

// ctcWork is the losses of the sequences of a batch, which processors share.
type ctcWork[T exec.Float] struct {
	*ctc
	steps, batch, classes int
	lengths               []int32
	targets               [][]int // of each sequence, nil where it is left out
	longest               int     // of them
	x, loss, gradient     []T
	memory                []float64 // of each part
}

// target finds the targets of all sequences.
func (w *ctcWork[T]) target(c *exec.KernelContext) error {
	labels, err := labelsOf(c, w.batch)
	if err != nil {
		return err
	}
	w.targets = make([][]int, w.batch)
	for b, n := range w.lengths {
		if n == 0 {
			continue
		}
		if w.targets[b], err = w.ctc.targets(c, labels[b], int(n), w.classes-1); err != nil {
			return err
		}
		w.longest = max(w.longest, len(w.targets[b]))
	}
	return nil
}

// size is how many numbers a part needs.
func (w *ctcWork[T]) size() int { return w.steps*(w.classes+w.longest) + 2*w.longest + w.classes }

// Part implements [parallel.Job].
func (w *ctcWork[T]) Part(i, n int) {
	memory := w.memory[i*w.size():][:w.size()]
	take := func(n int) []float64 {
		s := memory[:n]
		memory = memory[n:]
		return s
	}
	p := &alignments{ctc: w.ctc, classes: w.classes, logits: take(w.steps * w.classes), through: take(w.steps * w.longest),
		now: take(w.longest), next: take(w.longest), sums: take(w.classes)}
	from, to := parallel.Span(w.batch, 1, i, n)
	for b := from; b < to; b++ {
		if w.targets[b] != nil {
			w.sequence(p, b)
		}
	}
}

// sequence computes the loss of one, and its gradient.
func (w *ctcWork[T]) sequence(p *alignments, b int) {
	length := int(w.lengths[b])
	row := func(all []T, t int) []T { return all[(t*w.batch+b)*w.classes:][:w.classes] }
	for t := range length {
		logLikelihoods(p.logits[t*w.classes:(t+1)*w.classes], row(w.x, t))
	}
	p.sum(w.targets[b], length)
	w.loss[b] = T(-p.total)
	for t := range length {
		ctcGradient(p, t, row(w.gradient, t))
	}
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
	log := math.Log(sum)
	for i := range to {
		to[i] = float64(x[i]) - high - log
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
	*ctc
	target    []int
	classes   int
	logits    []float64
	through   []float64 // [step, place in target]
	total     float64
	now, next []float64 // working memory of the length of a target
	sums      []float64 // and for each class
}

// sum sums the ways forward and backward.
func (p *alignments) sum(target []int, steps int) {
	p.target = target
	m := len(target)
	row := func(t int) []float64 { return p.through[t*m : (t+1)*m] }
	at := func(t, u int) float64 { return p.logits[t*p.classes+target[u]] }
	for t := range steps {
		for u := range m {
			v := math.Inf(-1)
			switch {
			case t == 0 && u < 2:
				v = 0
			case t > 0:
				v = p.entering(row(t-1), target, u)
			}
			row(t)[u] = v + at(t, u)
		}
	}
	p.total = row(steps - 1)[m-1]
	if m > 1 {
		p.total = logAdd(p.total, row(steps - 1)[m-2])
	}
	next, now := p.next[:m], p.now[:m]
	for t := steps - 1; t >= 0; t-- {
		for u := range m {
			now[u] = math.Inf(-1)
			switch {
			case t == steps-1 && u >= m-2:
				now[u] = 0
			case t < steps-1:
				now[u] = p.leaving(next, target, u)
			}
			row(t)[u] += now[u]
		}
		for u := range m {
			next[u] = now[u] + at(t, u)
		}
	}
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
	for k := range p.sums {
		p.sums[k] = math.Inf(-1)
	}
	for u, v := range p.target {
		p.sums[v] = logAdd(p.sums[v], p.through[t*m+u])
	}
	for k := range to {
		has := math.Exp(p.logits[t*p.classes+k])
		if !math.IsInf(p.total, -1) {
			has -= math.Exp(p.sums[k] - p.total)
		}
		to[k] = T(has)
	}
}
