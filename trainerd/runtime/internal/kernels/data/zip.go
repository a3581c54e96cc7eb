package data

import (
	"io"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

func buildZip(*exec.OpConstruction) func(c *exec.KernelContext) (variant.Dataset, error) {
	return func(c *exec.KernelContext) (variant.Dataset, error) {
		var all []variant.Dataset
		for i := range c.NumInputs() {
			d, err := dataset(c, i)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		return variant.OpenFunc(func(p *variant.IteratorContext) (variant.Iterator, error) {
			ins := make([]variant.Iterator, len(all))
			for i, d := range all {
				var err error
				if ins[i], err = d.MakeIterator(p); err != nil {
					return nil, err
				}
			}
			return &zipIterator{ins}, nil
		}), nil
	}
}

type zipIterator struct{ ins []variant.Iterator }

func (z *zipIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	var el variant.Tuple
	for _, in := range z.ins {
		part, err := in.Next(p)
		if err != nil {
			return nil, err
		}
		el = append(el, part...)
	}
	return el, nil
}

func (z *zipIterator) Save(w *variant.StateWriter) {
	w.Kind("zip")
	w.Int(len(z.ins))
	for _, in := range z.ins {
		in.Save(w)
	}
}

func (z *zipIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Kind("zip")
	r.Same("zipped data sets", len(z.ins))
	for _, in := range z.ins {
		in.Load(p, r)
	}
}

func buildConcatenate(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		second, err := dataset(c, 1)
		if err != nil {
			return nil, err
		}
		rest := &walked{Dataset: second}
		return variant.OpenFunc(func(p *variant.IteratorContext) (variant.Iterator, error) {
			in, err := of.MakeIterator(p)
			return &concatenateIterator{in: in, second: rest.begin(), first: true}, err
		}), nil
	}
}

type concatenateIterator struct {
	in     variant.Iterator
	second lastWalk
	first  bool             // in is of the first data set
	ended  variant.Iterator // the walk through that, kept for its state; see lastWalk
}

func (c *concatenateIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	el, err := c.in.Next(p)
	if err != io.EOF || !c.first {
		return el, err
	}
	if err := c.second.open(p); err != nil {
		return nil, err
	}
	c.in, c.ended, c.first = c.second.in, c.in, false
	return c.in.Next(p)
}

func (c *concatenateIterator) Save(w *variant.StateWriter) {
	w.Kind("concatenate")
	switch {
	case c.first && c.second.ended != nil:
		w.Int(walkAgain)
		c.second.save(w)
	case c.first:
		w.Int(walkOpen)
	case c.ended == nil: // restored from a state that lacked it
		w.Int(walkNone)
	default:
		w.Int(walkEnded)
		c.ended.Save(w)
	}
	c.in.Save(w)
}

func (c *concatenateIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Kind("concatenate")
	of := r.Int()
	if c.first = of == walkOpen || of == walkAgain; c.first {
		if of == walkAgain {
			c.second.load(p, r)
		}
		c.in.Load(p, r)
		return
	}
	if of == walkEnded {
		c.ended = c.in
		c.ended.Load(p, r)
	}
	c.in = r.Open(p, c.second.of)
	c.second.of.setLast(c.in)
}
