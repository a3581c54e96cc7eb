package data

import (
	"io"
	"maps"
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Data sets that functions of the graph make out of the elements of others.
var mapOps = exec.OpTable{
	"MapDataset":                        transform(buildMap(0)),
	"ParallelMapDataset":                transform(buildMap(1)),
	"ParallelMapDatasetV2":              transform(buildMap(1)),
	"MapAndBatchDataset":                transform(buildMapAndBatch),
	"FilterDataset":                     transform(buildFilter),
	"ParallelFilterDataset":             transform(buildFilter),
	"FlatMapDataset":                    transform(buildFlatMap),
	"InterleaveDataset":                 transform(buildInterleave(2)),
	"ParallelInterleaveDatasetV2":       transform(buildInterleave(3)),
	"ParallelInterleaveDatasetV3":       transform(buildInterleave(3)),
	"ParallelInterleaveDatasetV4":       transform(buildInterleave(5)),
	"ParallelInterleaveDataset":         transform(buildInterleave(5)),
	"LegacyParallelInterleaveDatasetV2": transform(buildInterleave(4)),
	"ScanDataset":                       transform(buildScan),
	"TakeWhileDataset":                  transform(buildTakeWhile),
	"GroupByWindowDataset":              transform(buildGroupByWindow),
}

// buildMap builds the op that applies a function to each element. The last
// inputs say how many calls to make at a time.
func buildMap(last int) func(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		p := elementFunction(b, "f")
		return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
			return mapped(of, capture(c, p, 1, c.NumInputs()-last)), nil
		}
	}
}

func mapped(of variant.Dataset, f *capturedFunction) variant.Dataset {
	return overInput(of, func(in variant.Iterator) variant.Iterator {
		return &mapIterator{forwardingIterator: forwardingIterator{"map", in}, f: f}
	})
}

type mapIterator struct {
	forwardingIterator
	f *capturedFunction
	// made are elements after one that could not be made, if several were made at once.
	made []outcome
}

func (m *mapIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	if len(m.made) > 0 {
		first := m.made[0]
		m.made = m.made[1:]
		return first.element, first.err
	}
	el, err := m.in.Next(p)
	if err != nil {
		return nil, err
	}
	return m.f.apply(p, el)
}

func buildMapAndBatch(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	fn := elementFunction(b, "f")
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n := c.NumInputs()
		size, whole := c.MustInt(n-3, "the batch size"), c.MustBool(n-1, "drop_remainder")
		if size < 1 {
			return nil, c.Invalid("a batch of %d elements", size)
		}
		return overInput(mapped(of, capture(c, fn, 1, n-3)), func(in variant.Iterator) variant.Iterator {
			return &batchIterator{forwardingIterator: forwardingIterator{"batch", in}, size: size, whole: whole}
		}), nil
	}
}

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

func buildFlatMap(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	fn := elementFunction(b, "f")
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		return interleaved(of, capture(c, fn, 1, c.NumInputs()), 1, 1), nil
	}
}

// buildInterleave builds the op that takes elements from several data sets in
// turn; the last inputs begin with how many, and how many from each at a time.
func buildInterleave(last int) func(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		fn := elementFunction(b, "f")
		return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
			n := c.NumInputs() - last
			cycle, block := c.MustInt(n, "the cycle's length"), c.MustInt(n+1, "the block's length")
			if cycle < 1 {
				cycle = 1 // automatic: as many as suits
			}
			if block < 1 {
				return nil, c.Invalid("blocks of %d elements", block)
			}
			c.CheckSize([]int{cycle}, 16)
			return interleaved(of, capture(c, fn, 1, n), cycle, block), nil
		}
	}
}

func interleaved(of variant.Dataset, f *capturedFunction, cycle, block int) variant.Dataset {
	return overInput(of, func(in variant.Iterator) variant.Iterator {
		return &interleaveIterator{in: in, f: f, block: block, open: make([]made, cycle)}
	})
}

// interleaveIterator goes round its open sources, taking a block from each. An ended
// one is replaced when its turn comes again.
type interleaveIterator struct {
	in    variant.Iterator
	f     *capturedFunction
	block int
	open  []made
	at    int
	taken int // of the block
	ended bool
}

// made is a walk through the data set that a function made of an element.
type made struct {
	source variant.Iterator // nil: none
	of     variant.Tuple
}

// begin calls the function.
func (m *made) begin(p *variant.IteratorContext, f *capturedFunction, of variant.Tuple) error {
	d, err := f.datasetOf(p, of)
	if err != nil {
		return err
	}
	m.of = of
	m.source, err = d.MakeIterator(p)
	return err
}

func (m *made) save(w *variant.StateWriter, f *capturedFunction) {
	if !w.Bool(m.source != nil) {
		return
	}
	if f.plan.ChangesState() {
		w.Fail("a function that draws random numbers or changes variables makes its data sets")
		return
	}
	w.Tuple(m.of)
	m.source.Save(w)
}

func (m *made) load(p *variant.IteratorContext, r *variant.StateReader, f *capturedFunction) {
	*m = made{}
	if !r.Bool() {
		return
	}
	of := r.Tuple()
	if r.Err != nil {
		return
	}
	if err := m.begin(p, f, of); err != nil {
		r.Failed(err)
		return
	}
	m.source.Load(p, r)
}

func (s *interleaveIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for idle := 0; idle < len(s.open); {
		if s.open[s.at].source == nil {
			if err := s.begin(p); err != nil {
				return nil, err
			}
			if s.open[s.at].source == nil {
				s.advance()
				idle++
				continue
			}
		}
		idle = 0
		el, err := s.open[s.at].source.Next(p)
		if err == io.EOF {
			s.open[s.at] = made{}
			s.advance()
			continue
		}
		if err != nil {
			return nil, err
		}
		if s.taken++; s.taken == s.block {
			s.advance()
		}
		return el, nil
	}
	return nil, io.EOF
}

func (s *interleaveIterator) advance() { s.at, s.taken = (s.at+1)%len(s.open), 0 }

// begin opens the data set of the next element, if there is one.
func (s *interleaveIterator) begin(p *variant.IteratorContext) error {
	if s.ended {
		return nil
	}
	el, err := s.in.Next(p)
	if err == io.EOF {
		s.ended = true
		return nil
	}
	if err != nil {
		return err
	}
	return s.open[s.at].begin(p, s.f, el)
}

func (s *interleaveIterator) Save(w *variant.StateWriter) {
	w.Walk("interleave", s.in)
	w.Int(s.at)
	w.Int(s.taken)
	w.Bool(s.ended)
	w.Int(len(s.open))
	for i := range s.open {
		s.open[i].save(w, s.f)
	}
}

func (s *interleaveIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Walk(p, "interleave", s.in)
	s.at, s.taken, s.ended = r.Int(), r.Int(), r.Bool()
	r.Same("data sets in turn", len(s.open))
	if s.at < 0 || s.at >= len(s.open) || s.taken < 0 || s.taken >= s.block {
		r.Fail("element %d of a block of %d was next", s.taken, s.block)
		s.at, s.taken = 0, 0
	}
	for i := range s.open {
		s.open[i].load(p, r, s.f)
	}
}

// buildScan builds the op whose function takes a state along.
func buildScan(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	fn, n := elementFunction(b, "f"), len(b.Types("Tstate"))
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		if n > c.NumInputs()-1 {
			return nil, c.Invalid("%d states in %d inputs", n, c.NumInputs()-1)
		}
		first, f := copies(c, 1, 1+n), capture(c, fn, 1+n, c.NumInputs())
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &scanIterator{forwardingIterator{"scan", in}, f, first}
		}), nil
	}
}

type scanIterator struct {
	forwardingIterator
	f     *capturedFunction
	state variant.Tuple
}

func (s *scanIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	el, err := s.in.Next(p)
	if err != nil {
		return nil, err
	}
	out, err := s.f.apply(p, append(append(variant.Tuple{}, s.state...), el...))
	if err != nil {
		return nil, err
	}
	n := len(s.state)
	if len(out) < n {
		return nil, p.Invalid("the function has %d results for %d states", len(out), n)
	}
	s.state = out[:n]
	return out[n:], nil
}

func (s *scanIterator) Save(w *variant.StateWriter) {
	s.forwardingIterator.Save(w)
	w.Tuple(s.state)
}

func (s *scanIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	s.forwardingIterator.Load(p, r)
	state := r.Tuple()
	if len(state) != len(s.state) {
		r.Fail("the function had %d states, and has %d now", len(state), len(s.state))
		return
	}
	s.state = state
}

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
