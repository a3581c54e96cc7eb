package data

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// dataset returns the data set that input i holds.
func dataset(c *exec.KernelContext, i int) (variant.Dataset, error) {
	d, ok := c.In(i).Value.(variant.Dataset)
	if !ok {
		return nil, c.Invalid("input %d is not a data set", i)
	}
	return d, nil
}

// datasetOp is an op that makes a data set: make reads the inputs, which do not
// outlive the call.
func datasetOp(build func(b *exec.OpConstruction) func(c *exec.KernelContext) (variant.Dataset, error)) exec.OpSpec {
	return exec.OpSpec{Flags: exec.Stateful, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		make, later := build(b), b.Later()
		var shared []string
		if keepers[b.Op()] {
			shared = []string{b.MainNode()}
		}
		return func(c *exec.KernelContext) error {
			d, err := make(c)
			if err != nil {
				return err
			}
			c.SetVariant(0, described(c, d, later, shared))
			return nil
		}, nil
	}}
}

// keepers are the ops whose data sets keep something from walk to walk.
var keepers = map[string]bool{
	"CacheDataset": true, "CacheDatasetV2": true, "ShuffleAndRepeatDataset": true, "ShuffleAndRepeatDatasetV2": true,
	"ShuffleDataset": true, "ShuffleDatasetV2": true, "ShuffleDatasetV3": true,
}

// described returns d with how many elements it has and what its functions access, and
// those of the data sets that it is made of.
func described(c *exec.KernelContext, d variant.Dataset, later exec.OpFlags, shared []string) variant.Dataset {
	all := variant.Described{Dataset: d, Count: countMade(c, d), Later: later, Shared: slices.Clip(shared)}
	for i := range c.NumInputs() {
		if of, ok := c.In(i).Value.(*variant.Described); ok {
			all.Later |= of.Later
			all.Shared = append(all.Shared, of.Shared...)
		}
	}
	if _, list := d.(*variant.TupleList); list && all.Later == 0 && all.Shared == nil && all.Count == countOf(d) {
		return d
	}
	return &all
}

// transform is an op whose data set walks through another one.
func transform(build func(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error)) exec.OpSpec {
	return datasetOp(func(b *exec.OpConstruction) func(c *exec.KernelContext) (variant.Dataset, error) {
		make := build(b)
		return func(c *exec.KernelContext) (variant.Dataset, error) {
			of, err := dataset(c, 0)
			if err != nil {
				return nil, err
			}
			return make(c, of)
		}
	})
}

// overInput is a data set that turns each walk through another one into its own.
func overInput(of variant.Dataset, walk func(in variant.Iterator) variant.Iterator) variant.Dataset {
	return variant.OpenFunc(func(p *variant.IteratorContext) (variant.Iterator, error) {
		in, err := of.MakeIterator(p)
		if err != nil {
			return nil, err
		}
		return walk(in), nil
	})
}

// forwardingIterator is a source that has no state but that of the one it reads.
type forwardingIterator struct {
	op string
	in variant.Iterator
}

func (d *forwardingIterator) Save(w *variant.StateWriter) { w.Walk(d.op, d.in) }
func (d *forwardingIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Walk(p, d.op, d.in)
}

// countingIterator is a source that counts, too.
type countingIterator struct {
	forwardingIterator
	n int
}

func (c *countingIterator) Save(w *variant.StateWriter) {
	c.forwardingIterator.Save(w)
	w.Int(c.n)
}

func (c *countingIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	c.forwardingIterator.Load(p, r)
	c.n = r.Int()
}

// capturedFunction is a function of the graph with the values that it captured.
type capturedFunction struct {
	plan     *exec.Plan
	captured variant.Tuple
}

// elementFunction compiles the function in an attribute. It runs when elements are
// asked for, so the node itself needs no access to state for it.
func elementFunction(b *exec.OpConstruction, attr string) *exec.Plan {
	return b.DetachedFunction(attr)
}

// capture returns the function with the inputs from one to before another.
func capture(c *exec.KernelContext, p *exec.Plan, from, to int) *capturedFunction {
	return &capturedFunction{p, copies(c, from, to)}
}

// copies returns copies of some inputs.
func copies(c *exec.KernelContext, from, to int) variant.Tuple {
	it := make(variant.Tuple, 0, max(0, to-from))
	for i := from; i < to; i++ {
		it = append(it, c.Keep(c.In(i)))
	}
	return it
}

// apply calls the function on an element.
func (f *capturedFunction) apply(p *variant.IteratorContext, args variant.Tuple) (variant.Tuple, error) {
	out := make(variant.Tuple, f.plan.NumResults())
	err := p.Invoke(f.plan, func(i int) *exec.Tensor { return f.arg(args, i) }, len(args)+len(f.captured), func(i int, t *exec.Tensor) { out[i] = p.Keep(t) })
	p.ReleaseStateLock()
	return out, err
}

// arg returns argument i of a call on an element.
func (f *capturedFunction) arg(element variant.Tuple, i int) *exec.Tensor {
	if i < len(element) {
		return element[i]
	}
	return f.captured[i-len(element)]
}

// test calls a function that is a condition.
func (f *capturedFunction) test(p *variant.IteratorContext, args variant.Tuple) (bool, error) {
	out, err := f.apply(p, args)
	if err != nil {
		return false, err
	}
	if len(out) != 1 {
		return false, p.Invalid("the predicate has %d results", len(out))
	}
	return elem.Truth(p.KernelContext, out[0])
}

// datasetOf calls a function that makes a data set of an element.
func (f *capturedFunction) datasetOf(p *variant.IteratorContext, args variant.Tuple) (variant.Dataset, error) {
	out, err := f.apply(p, args)
	if err != nil {
		return nil, err
	}
	if len(out) == 1 {
		if d, ok := out[0].Value.(variant.Dataset); ok {
			return d, nil
		}
	}
	return nil, p.Invalid("the function does not return a data set")
}
