package data

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/parsing"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// buildParseExample builds the op that parses the examples of each element.
func buildParseExample(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	parser := parsing.NewExampleParser(b)
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		defaults := copies(c, c.NumInputs()-parser.NumDefaults(), c.NumInputs())
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &parseExampleIterator{forwardingIterator{"parse example", in}, parser, defaults}
		}), nil
	}
}

type parseExampleIterator struct {
	forwardingIterator
	parser   *parsing.ExampleParser
	defaults variant.Tuple
}

func (e *parseExampleIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	el, err := e.in.Next(p)
	if err != nil {
		return nil, err
	}
	if len(el) != 1 {
		return nil, p.Invalid("an element has %d components; want a vector of serialized examples", len(el))
	}
	return e.parser.Parse(p.KernelContext, el[0], e.defaults)
}
