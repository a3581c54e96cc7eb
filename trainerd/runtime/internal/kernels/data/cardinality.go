package data

import (
	"io"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

func buildAssertCardinality(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n := c.MustInt(1, "the number of elements")
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &cardinalityIterator{countingIterator{forwardingIterator{"assert cardinality", in}, 0}, n}
		}), nil
	}
}

// cardinalityIterator counts elements; there must be want of them.
type cardinalityIterator struct {
	countingIterator
	want int
}

func (w *cardinalityIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	el, err := w.in.Next(p)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if err == nil {
		w.n++
	}
	if err == io.EOF && w.n != w.want || w.want != infinite && w.n > w.want {
		return nil, p.Errorf(tfpb.Code_FAILED_PRECONDITION, "the data set has %d elements so far; want %d in all", w.n, w.want)
	}
	return el, err
}

// cardinality is what a graph asks for: the number of elements, as far as TensorFlow knows it.
func cardinality(c *exec.KernelContext) error {
	d, err := dataset(c, 0)
	if err != nil {
		return err
	}
	exec.SetInt(c.Out(0, exec.Int64), 0, countOf(d))
	return nil
}
