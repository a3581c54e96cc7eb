package data

import (
	"io"
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// buildGroupByReducer builds the op that folds all elements of a key into a state, and has an
// element for each key: what is made of its state, by key.
func buildGroupByReducer(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	var fns [4]*exec.Plan
	var from [5]int
	from[0] = 1
	for i, name := range []string{"key", "init", "reduce", "finalize"} {
		fns[i] = elementFunction(b, name+"_func")
		from[i+1] = from[i] + len(b.Types("T"+name+"_func_other_arguments"))
	}
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		if c.NumInputs() != from[4] {
			return nil, c.Invalid("%d inputs where the functions take %d", c.NumInputs()-1, from[4]-1)
		}
		var g reducerIterator
		for i, fn := range fns {
			g.fns[i] = capture(c, fn, from[i], from[i+1])
		}
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			w := g
			w.in = in
			return &w
		}), nil
	}
}

// reducerIterator reads its whole input for its first element.
type reducerIterator struct {
	in     variant.Iterator
	fns    [4]*capturedFunction // of keys, first states, states, elements
	read   bool
	keys   []int // in ascending order, of the states that are left
	states []variant.Tuple
}

func (g *reducerIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for !g.read {
		el, err := g.in.Next(p)
		if g.read = err == io.EOF; g.read {
			break
		}
		if err == nil {
			err = g.add(p, el)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(g.keys) == 0 {
		return nil, io.EOF
	}
	state := g.states[0]
	g.keys, g.states = g.keys[1:], g.states[1:]
	return g.fns[3].apply(p, state)
}

func (g *reducerIterator) add(p *variant.IteratorContext, el variant.Tuple) error {
	key, err := g.fns[0].apply(p, el)
	if err != nil {
		return err
	}
	if len(key) != 1 || key[0].DType != exec.Int64 || key[0].NumElements() != 1 {
		return p.Invalid("the key of an element must be one int64")
	}
	i, found := slices.BinarySearch(g.keys, key[0].IntAt(0))
	if !found {
		first, err := g.fns[1].apply(p, key)
		if err != nil {
			return err
		}
		g.keys, g.states = slices.Insert(g.keys, i, key[0].IntAt(0)), slices.Insert(g.states, i, first)
	}
	g.states[i], err = g.fns[2].apply(p, append(append(variant.Tuple{}, g.states[i]...), el...))
	return err
}

func (g *reducerIterator) Save(w *variant.StateWriter) {
	w.Walk("reduced groups", g.in)
	w.Bool(g.read)
	w.Int(len(g.keys))
	for i, k := range g.keys {
		w.Int(k)
		w.Tuple(g.states[i])
	}
}

func (g *reducerIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Walk(p, "reduced groups", g.in)
	g.read, g.keys, g.states = r.Bool(), nil, nil
	for range r.Count() {
		g.keys, g.states = append(g.keys, r.Int()), append(g.states, r.Tuple())
	}
}
