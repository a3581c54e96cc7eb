package data

import (
	"sync"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Several elements are made at once where a batch asks for them and a function makes
// each: the elements, and what random numbers they draw, are those of one call after
// the other.

// atOnce is an iterator that can make several elements faster than one after the
// other. NextN is Next n times, up to the first error.
type atOnce interface {
	NextN(p *variant.IteratorContext, n int) ([]variant.Tuple, error)
}

// mostAtOnce bounds how many elements are made at once, and what those take in memory
// that further functions are called with.
const mostAtOnce = 16

// nextN calls Next n times. The error is the one after the elements, if there are
// fewer.
func nextN(p *variant.IteratorContext, in variant.Iterator, n int) (list []variant.Tuple, err error) {
	several, ok := in.(atOnce)
	if !ok {
		return oneByOne(p, in, n)
	}
	for len(list) < n {
		more, err := several.NextN(p, min(n-len(list), mostAtOnce))
		if list == nil {
			list = more
		} else {
			list = append(list, more...)
		}
		if err != nil {
			return list, err
		}
	}
	return list, nil
}

func oneByOne(p *variant.IteratorContext, in variant.Iterator, n int) (list []variant.Tuple, err error) {
	list = make([]variant.Tuple, 0, min(n, mostAtOnce))
	for len(list) < n {
		el, err := in.Next(p)
		if err != nil {
			return list, err
		}
		list = append(list, el)
	}
	return list, nil
}

// outcome is an element, or why there is none.
type outcome struct {
	element variant.Tuple
	err     error
}

// NextN calls the function for several elements at once, unless the order of the calls
// matters.
func (m *mapIterator) NextN(p *variant.IteratorContext, n int) (list []variant.Tuple, err error) {
	if m.f.plan.Ordered() {
		return oneByOne(p, m, n)
	}
	if len(m.made) == 0 {
		in, err := nextN(p, m.in, n)
		m.made = m.f.applyAll(p, in, func(c *exec.KernelContext, _, _ int, t *exec.Tensor) *exec.Tensor { return c.Keep(t) })
		if err != nil {
			m.made = append(m.made, outcome{err: err})
		}
	}
	for len(list) < n && len(m.made) > 0 {
		first := m.made[0]
		m.made = m.made[1:]
		if first.err != nil {
			return list, first.err
		}
		list = append(list, first.element)
	}
	return list, nil
}

func (m *mapIterator) Save(w *variant.StateWriter) {
	if len(m.made) > 0 {
		w.Fail("an element could not be made, and %d after it were", len(m.made))
	}
	m.forwardingIterator.Save(w)
}

// applyAll calls the function on several elements at once. keep keeps result k of call
// i; it may be called for several calls at the same time.
func (f *capturedFunction) applyAll(p *variant.IteratorContext, in []variant.Tuple, keep func(c *exec.KernelContext, i, k int, t *exec.Tensor) *exec.Tensor) []outcome {
	j := &applyJob{f: f, p: p, in: in, keep: keep, out: make([]outcome, len(in))}
	p.Run(min(len(in), exec.MaxParts), j)
	return j.out
}

// applyJob is calls of a function. Each part makes one after the other of those that
// no other part has begun.
type applyJob struct {
	f    *capturedFunction
	p    *variant.IteratorContext
	in   []variant.Tuple
	keep func(c *exec.KernelContext, i, k int, t *exec.Tensor) *exec.Tensor
	out  []outcome

	mu   sync.Mutex // while a call begins
	next int
}

// Part implements [parallel.Job].
func (j *applyJob) Part(_, _ int) {
	for {
		i, call := j.begin()
		if i < 0 {
			return
		}
		if call == nil {
			continue
		}
		j.out[i].err = call.Finish(func(c *exec.KernelContext, k int, t *exec.Tensor) { j.out[i].element[k] = j.keep(c, i, k, t) })
		if j.out[i].err != nil {
			j.out[i].element = nil
		}
	}
}

// begin begins the next call. It returns -1 when there is none, and no call if it
// failed.
func (j *applyJob) begin() (int, *exec.Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := j.next
	if i >= len(j.in) {
		return -1, nil
	}
	j.next++
	call, err := j.p.BeginCall(j.f.plan, len(j.in[i])+len(j.f.captured), func(k int) *exec.Tensor { return j.f.arg(j.in[i], k) })
	j.out[i] = outcome{make(variant.Tuple, j.f.plan.NumResults()), err}
	if err != nil {
		j.out[i].element = nil
	}
	return i, call
}
