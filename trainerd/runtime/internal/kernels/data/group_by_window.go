package data

import (
	"io"
	"maps"
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// buildGroupByWindow builds the op that collects elements of one key, and
// reduces each group to a data set when it has its size.
func buildGroupByWindow(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	key, reduce, size := elementFunction(b, "key_func"), elementFunction(b, "reduce_func"), elementFunction(b, "window_size_func")
	n, m := len(b.Types("Tkey_func_other_arguments")), len(b.Types("Treduce_func_other_arguments"))
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		if c.NumInputs() < 1+n+m {
			return nil, c.Invalid("%d inputs where the functions take %d", c.NumInputs()-1, n+m)
		}
		g := groupIterator{key: capture(c, key, 1, 1+n), reduce: capture(c, reduce, 1+n, 1+n+m), size: capture(c, size, 1+n+m, c.NumInputs())}
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			w := g
			w.in, w.groups = in, map[int]*group{}
			return &w
		}), nil
	}
}

type groupIterator struct {
	key, reduce, size *capturedFunction
	in                variant.Iterator
	groups            map[int]*group
	out               made
}

type group struct {
	size int
	list []variant.Tuple
}

func (g *groupIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for {
		if g.out.source != nil {
			el, err := g.out.source.Next(p)
			if err != io.EOF {
				return el, err
			}
			g.out = made{}
		}
		el, err := g.in.Next(p)
		switch {
		case err == io.EOF:
			err = g.flush(p)
		case err == nil:
			err = g.add(p, el)
		}
		if err != nil {
			return nil, err
		}
	}
}

// add puts an element in its group, and reduces that when it is full.
func (g *groupIterator) add(p *variant.IteratorContext, el variant.Tuple) error {
	out, err := g.key.apply(p, el)
	if err != nil {
		return err
	}
	if len(out) != 1 || out[0].DType != exec.Int64 || out[0].NumElements() != 1 {
		return p.Invalid("the key of an element must be one int64")
	}
	k := out[0].IntAt(0)
	w := g.groups[k]
	if w == nil {
		if out, err = g.size.apply(p, out); err != nil {
			return err
		}
		if len(out) != 1 || out[0].DType != exec.Int64 || out[0].NumElements() != 1 || out[0].IntAt(0) < 1 {
			return p.Invalid("the size of a window must be one positive int64")
		}
		w = &group{size: out[0].IntAt(0)}
		g.groups[k] = w
	}
	w.list = append(w.list, el)
	if len(w.list) < w.size {
		return nil
	}
	return g.close(p, k)
}

// close reduces a group.
func (g *groupIterator) close(p *variant.IteratorContext, k int) error {
	list := g.groups[k].list
	delete(g.groups, k)
	key, set := exec.NewTensor(exec.Int64, nil), exec.NewTensor(exec.Variant, nil)
	exec.SetInt(key, 0, k)
	set.Value = variant.NewTupleList(len(list), func(i int) variant.Tuple { return list[i] })
	return g.out.begin(p, g.reduce, variant.Tuple{key, set})
}

func (g *groupIterator) Save(w *variant.StateWriter) {
	w.Walk("group", g.in)
	w.Int(len(g.groups))
	for _, k := range slices.Sorted(maps.Keys(g.groups)) {
		w.Int(k)
		w.Int(g.groups[k].size)
		w.Tuples(g.groups[k].list)
	}
	g.out.save(w, g.reduce)
}

func (g *groupIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Walk(p, "group", g.in)
	for range r.Count() {
		k, size := r.Int(), r.Int()
		g.groups[k] = &group{size, r.Tuples()}
	}
	g.out.load(p, r, g.reduce)
}

// flush reduces what is left when there are no more elements, by key.
func (g *groupIterator) flush(p *variant.IteratorContext) error {
	if len(g.groups) == 0 {
		return io.EOF
	}
	least, found := 0, false
	for k := range g.groups {
		if !found || k < least {
			least, found = k, true
		}
	}
	return g.close(p, least)
}
