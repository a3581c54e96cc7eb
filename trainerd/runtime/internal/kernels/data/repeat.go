package data

import (
	"io"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

func buildRepeat(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		rounds := c.MustInt(1, "the number of rounds")
		in := &walked{Dataset: of}
		return variant.OpenFunc(func(*variant.IteratorContext) (variant.Iterator, error) {
			return &repeatIterator{walk: in.begin(), left: rounds}, nil
		}), nil
	}
}

// repeatIterator walks through a data set again and again; left is negative for
// ever.
type repeatIterator struct {
	walk lastWalk
	left int
	some bool
}

func (r *repeatIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for {
		if err := r.begin(p); err != nil {
			return nil, err
		}
		el, err := r.walk.in.Next(p)
		if err != io.EOF {
			r.some = true
			return el, err
		}
		r.end()
	}
}

// NextN implements [atOnce].
func (r *repeatIterator) NextN(p *variant.IteratorContext, n int) (list []variant.Tuple, err error) {
	for len(list) < n {
		if err := r.begin(p); err != nil {
			return list, err
		}
		more, err := nextN(p, r.walk.in, n-len(list))
		list = append(list, more...)
		r.some = r.some || len(more) > 0 || err != io.EOF
		if err == io.EOF {
			r.end()
		} else if err != nil {
			return list, err
		}
	}
	return list, nil
}

// begin opens the next walk, unless one is open. It returns io.EOF after the last.
func (r *repeatIterator) begin(p *variant.IteratorContext) error {
	if r.walk.in != nil {
		return nil
	}
	if r.left == 0 {
		return io.EOF
	}
	r.some = false
	return r.walk.open(p)
}

func (r *repeatIterator) end() {
	r.walk.end()
	if r.left > 0 {
		r.left--
	}
	if !r.some {
		r.left = 0 // nothing, forever, is nothing
	}
}

func (r *repeatIterator) Save(w *variant.StateWriter) {
	w.Kind("repeat")
	w.Int(r.left)
	w.Bool(r.some)
	r.walk.save(w)
}

func (r *repeatIterator) Load(p *variant.IteratorContext, sr *variant.StateReader) {
	sr.Kind("repeat")
	r.left, r.some = sr.Int(), sr.Bool()
	r.walk.load(p, sr)
}
