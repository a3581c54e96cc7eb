package data

import (
	"io"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

func buildFilter(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	fn := elementFunction(b, "predicate")
	last := 0
	if b.Op() == "ParallelFilterDataset" {
		last = 1
	}
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		f := capture(c, fn, 1, c.NumInputs()-last)
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &filterIterator{forwardingIterator{"filter", in}, f}
		}), nil
	}
}

type filterIterator struct {
	forwardingIterator
	f *capturedFunction
}

func (w *filterIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for {
		el, err := w.in.Next(p)
		if err != nil {
			return nil, err
		}
		if ok, err := w.f.test(p, el); ok || err != nil {
			return el, err
		}
	}
}

func buildTakeWhile(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	fn := elementFunction(b, "predicate")
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		f := capture(c, fn, 1, c.NumInputs())
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &takeWhileIterator{forwardingIterator{"take while", in}, f}
		}), nil
	}
}

type takeWhileIterator struct {
	forwardingIterator
	f *capturedFunction
}

func (w *takeWhileIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	el, err := w.in.Next(p)
	if err != nil {
		return nil, err
	}
	ok, err := w.f.test(p, el)
	if err == nil && !ok {
		err = io.EOF
	}
	return el, err
}
