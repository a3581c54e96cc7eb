package data

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// buildScan builds the op whose function takes a state along.
func buildScan(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	fn, n := elementFunction(b, "f"), len(b.Types("Tstate"))
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		if n > c.NumInputs()-1 {
			return nil, c.Invalid("%d states in %d inputs", n, c.NumInputs()-1)
		}
		first, f := copies(c, 1, 1+n), capture(c, fn, 1+n, c.NumInputs())
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &scanIterator{forwardingIterator{"scan", in}, f, first}
		}), nil
	}
}

type scanIterator struct {
	forwardingIterator
	f     *capturedFunction
	state variant.Tuple
}

func (s *scanIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	el, err := s.in.Next(p)
	if err != nil {
		return nil, err
	}
	out, err := s.f.apply(p, append(append(variant.Tuple{}, s.state...), el...))
	if err != nil {
		return nil, err
	}
	n := len(s.state)
	if len(out) < n {
		return nil, p.Invalid("the function has %d results for %d states", len(out), n)
	}
	s.state = out[:n]
	return out[n:], nil
}

func (s *scanIterator) Save(w *variant.StateWriter) {
	s.forwardingIterator.Save(w)
	w.Tuple(s.state)
}

func (s *scanIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	s.forwardingIterator.Load(p, r)
	state := r.Tuple()
	if len(state) != len(s.state) {
		r.Fail("the function had %d states, and has %d now", len(state), len(s.state))
		return
	}
	s.state = state
}
