package data

import (
	"io"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// buildIgnoreErrors leaves out the elements that cannot be made.
func buildIgnoreErrors(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(_ *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &ignoreErrorsIterator{forwardingIterator{"ignore errors", in}}
		}), nil
	}
}

type ignoreErrorsIterator struct{ forwardingIterator }

func (f *ignoreErrorsIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for {
		el, err := f.in.Next(p)
		if err == nil || err == io.EOF || !skippable(err) || p.Context().Err() != nil {
			return el, err
		}
	}
}

// NextN implements [atOnce].
func (f *ignoreErrorsIterator) NextN(p *variant.IteratorContext, n int) (list []variant.Tuple, err error) {
	for len(list) < n {
		more, err := nextN(p, f.in, n-len(list))
		list = append(list, more...)
		if err == io.EOF || err != nil && (!skippable(err) || p.Context().Err() != nil) {
			return list, err
		}
	}
	return list, nil
}

// skippable reports whether an error is about one element, and not that a run
// was cancelled or that the walk itself failed.
func skippable(err error) bool {
	code := exec.AsOpError(err).Code
	return code == tfpb.Code_INVALID_ARGUMENT || code == tfpb.Code_DATA_LOSS
}
