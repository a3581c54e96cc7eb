package data

import (
	"io"
	"maps"
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Data sets that choose among elements.
var chooseOps = exec.OpTable{
	"DirectedInterleaveDataset":             transform(buildDirected),
	"ExperimentalDirectedInterleaveDataset": transform(buildDirected),
	"UniqueDataset":                         transform(buildUniqueDataset),
	"ExperimentalUniqueDataset":             transform(buildUniqueDataset),
}

// buildDirected builds the data set whose elements come from the one of several
// that the next element of input 0 names.
func buildDirected(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	stop := b.Bool("stop_on_empty_dataset")
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		var from []variant.Dataset
		for i := 1; i < c.NumInputs(); i++ {
			d, err := dataset(c, i)
			if err != nil {
				return nil, err
			}
			from = append(from, d)
		}
		return variant.OpenFunc(func(p *variant.IteratorContext) (variant.Iterator, error) {
			choice, err := of.MakeIterator(p)
			if err != nil {
				return nil, err
			}
			w := &directedIterator{choice: choice, left: len(from), stop: stop}
			for _, d := range from {
				in, err := d.MakeIterator(p)
				if err != nil {
					return nil, err
				}
				w.from = append(w.from, lastWalk{in: in})
			}
			return w, nil
		}), nil
	}
}

// directedIterator is a walk through such a data set.
type directedIterator struct {
	choice variant.Iterator
	from   []lastWalk
	left   int
	stop   bool // at the end of the first one that ends
}

func (w *directedIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for w.left > 0 {
		el, err := w.choice.Next(p)
		if err != nil {
			return nil, err
		}
		if len(el) != 1 || el[0].DType != exec.Int64 || el[0].NumElements() != 1 {
			return nil, p.Invalid("the selector has no elements of one int64")
		}
		i := el[0].IntAt(0)
		if i < 0 || i >= len(w.from) {
			return nil, p.Invalid("Selector index out of range: %d >= %d", i, len(w.from))
		}
		if w.from[i].in == nil {
			continue
		}
		got, err := w.from[i].in.Next(p)
		if err != io.EOF {
			return got, err
		}
		if w.stop {
			break
		}
		w.from[i].end()
		w.left--
	}
	w.left = 0
	return nil, io.EOF
}

func (w *directedIterator) Save(sw *variant.StateWriter) {
	sw.Walk("directed", w.choice)
	sw.Int(w.left)
	sw.Int(len(w.from))
	for i := range w.from {
		w.from[i].save(sw)
	}
}

func (w *directedIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Walk(p, "directed", w.choice)
	w.left = r.Int()
	r.Same("data sets to choose from", len(w.from))
	for i := range w.from {
		w.from[i].reload(p, r)
	}
}

// buildUniqueDataset builds the data set without the elements that have come
// before.
func buildUniqueDataset(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &uniqueIterator{forwardingIterator{"unique", in}, map[string]bool{}}
		}), nil
	}
}

type uniqueIterator struct {
	forwardingIterator
	seen map[string]bool
}

func (u *uniqueIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for {
		el, err := u.in.Next(p)
		if err != nil {
			return nil, err
		}
		if len(el) != 1 || el[0].NumElements() != 1 || el[0].DType != exec.String && exec.ElemSize(el[0].DType) == 0 {
			return nil, p.Invalid("unique elements must be single scalars")
		}
		if k := elem.KeyOf(el[0], 0); !u.seen[k] {
			u.seen[k] = true
			return el, nil
		}
	}
}

func (u *uniqueIterator) Save(w *variant.StateWriter) {
	u.forwardingIterator.Save(w)
	w.Int(len(u.seen))
	for _, k := range slices.Sorted(maps.Keys(u.seen)) {
		w.Bytes([]byte(k))
	}
}

func (u *uniqueIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	u.forwardingIterator.Load(p, r)
	for range r.Count() {
		u.seen[string(r.Bytes())] = true
	}
}
