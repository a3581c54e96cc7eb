package data

import (
	"io"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

func buildFlatMap(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	fn := elementFunction(b, "f")
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		return interleaved(of, capture(c, fn, 1, c.NumInputs()), 1, 1), nil
	}
}

// buildInterleave builds the op that takes elements from several data sets in
// turn; the last inputs begin with how many, and how many from each at a time.
func buildInterleave(last int) func(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		fn := elementFunction(b, "f")
		return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
			n := c.NumInputs() - last
			cycle, block := c.MustInt(n, "the cycle's length"), c.MustInt(n+1, "the block's length")
			if cycle < 1 {
				cycle = 1 // automatic: as many as suits
			}
			if block < 1 {
				return nil, c.Invalid("blocks of %d elements", block)
			}
			c.CheckSize([]int{cycle}, 16)
			return interleaved(of, capture(c, fn, 1, n), cycle, block), nil
		}
	}
}

func interleaved(of variant.Dataset, f *capturedFunction, cycle, block int) variant.Dataset {
	return overInput(of, func(in variant.Iterator) variant.Iterator {
		return &interleaveIterator{in: in, f: f, block: block, open: make([]made, cycle)}
	})
}

// interleaveIterator goes round its open sources, taking a block from each. An ended
// one is replaced when its turn comes again.
type interleaveIterator struct {
	in    variant.Iterator
	f     *capturedFunction
	block int
	open  []made
	at    int
	taken int // of the block
	ended bool
}

// made is a walk through the data set that a function made of an element.
type made struct {
	source variant.Iterator // nil: none
	of     variant.Tuple
}

// begin calls the function.
func (m *made) begin(p *variant.IteratorContext, f *capturedFunction, of variant.Tuple) error {
	d, err := f.datasetOf(p, of)
	if err != nil {
		return err
	}
	m.of = of
	m.source, err = d.MakeIterator(p)
	return err
}

func (m *made) save(w *variant.StateWriter, f *capturedFunction) {
	if !w.Bool(m.source != nil) {
		return
	}
	if f.plan.ChangesState() {
		w.Fail("a function that draws random numbers or changes variables makes its data sets")
		return
	}
	w.Tuple(m.of)
	m.source.Save(w)
}

func (m *made) load(p *variant.IteratorContext, r *variant.StateReader, f *capturedFunction) {
	*m = made{}
	if !r.Bool() {
		return
	}
	of := r.Tuple()
	if r.Err != nil {
		return
	}
	if err := m.begin(p, f, of); err != nil {
		r.Failed(err)
		return
	}
	m.source.Load(p, r)
}

func (s *interleaveIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for idle := 0; idle < len(s.open); {
		if s.open[s.at].source == nil {
			if err := s.begin(p); err != nil {
				return nil, err
			}
			if s.open[s.at].source == nil {
				s.advance()
				idle++
				continue
			}
		}
		idle = 0
		el, err := s.open[s.at].source.Next(p)
		if err == io.EOF {
			s.open[s.at] = made{}
			s.advance()
			continue
		}
		if err != nil {
			return nil, err
		}
		if s.taken++; s.taken == s.block {
			s.advance()
		}
		return el, nil
	}
	return nil, io.EOF
}

func (s *interleaveIterator) advance() { s.at, s.taken = (s.at+1)%len(s.open), 0 }

// begin opens the data set of the next element, if there is one.
func (s *interleaveIterator) begin(p *variant.IteratorContext) error {
	if s.ended {
		return nil
	}
	el, err := s.in.Next(p)
	if err == io.EOF {
		s.ended = true
		return nil
	}
	if err != nil {
		return err
	}
	return s.open[s.at].begin(p, s.f, el)
}

func (s *interleaveIterator) Save(w *variant.StateWriter) {
	w.Walk("interleave", s.in)
	w.Int(s.at)
	w.Int(s.taken)
	w.Bool(s.ended)
	w.Int(len(s.open))
	for i := range s.open {
		s.open[i].save(w, s.f)
	}
}

func (s *interleaveIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Walk(p, "interleave", s.in)
	s.at, s.taken, s.ended = r.Int(), r.Int(), r.Bool()
	r.Same("data sets in turn", len(s.open))
	if s.at < 0 || s.at >= len(s.open) || s.taken < 0 || s.taken >= s.block {
		r.Fail("element %d of a block of %d was next", s.taken, s.block)
		s.at, s.taken = 0, 0
	}
	for i := range s.open {
		s.open[i].load(p, r, s.f)
	}
}
