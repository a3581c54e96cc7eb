package data

import (
	"io"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Data sets that pick, order and batch the elements of others.
var transformOps = exec.OpTable{
	"RepeatDataset":            transform(buildRepeat),
	"TakeDataset":              transform(buildTake),
	"SkipDataset":              transform(buildSkip),
	"ShardDataset":             transform(buildShard),
	"ZipDataset":               datasetOp(buildZip),
	"ConcatenateDataset":       transform(buildConcatenate),
	"CacheDataset":             transform(buildCache),
	"CacheDatasetV2":           transform(buildCache),
	"UnbatchDataset":           transform(buildUnbatch),
	"WindowDataset":            transform(buildWindow),
	"BatchDataset":             transform(buildBatch(-1)),
	"BatchDatasetV2":           transform(buildBatch(2)),
	"ParallelBatchDataset":     transform(buildBatch(3)),
	"PaddedBatchDataset":       transform(buildPaddedBatch(false)),
	"PaddedBatchDatasetV2":     transform(buildPaddedBatch(true)),
	"AssertCardinalityDataset": transform(buildAssertCardinality),
	"RebatchDataset":           transform(buildRebatch),
	"RebatchDatasetV2":         transform(buildRebatchV2),
	"ParseExampleDataset":      transform(buildParseExample),
	"ParseExampleDatasetV2":    transform(buildParseExample),

	// What changes how fast elements come, but not which.
	"PrefetchDataset":                 transform(sameElements),
	"OptionsDataset":                  transform(sameElements),
	"ModelDataset":                    transform(sameElements),
	"RewriteDataset":                  transform(sameElements),
	"OptimizeDataset":                 transform(sameElements),
	"OptimizeDatasetV2":               transform(sameElements),
	"FinalizeDataset":                 transform(sameElements),
	"AssertNextDataset":               transform(sameElements),
	"MaxIntraOpParallelismDataset":    transform(sameElements),
	"PrivateThreadPoolDataset":        transform(sameElements),
	"NonSerializableDataset":          transform(sameElements),
	"ExperimentalIgnoreErrorsDataset": transform(buildIgnoreErrors),
	"IgnoreErrorsDataset":             transform(buildIgnoreErrors),
}

func sameElements(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(_ *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) { return of, nil }
}

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

func buildTake(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n := c.MustInt(1, "the number of elements")
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &takeIterator{countingIterator{forwardingIterator{"take", in}, n}}
		}), nil
	}
}

// takeIterator counts what it may still take.
type takeIterator struct{ countingIterator }

func (t *takeIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	if t.n == 0 {
		return nil, io.EOF
	}
	t.n--
	return t.in.Next(p)
}

// NextN implements [atOnce].
func (t *takeIterator) NextN(p *variant.IteratorContext, n int) (list []variant.Tuple, err error) {
	want := n
	if t.n >= 0 {
		want = min(n, t.n)
	}
	list, err = nextN(p, t.in, want)
	t.n -= len(list)
	if err != nil {
		t.n--
	} else if want < n {
		err = io.EOF
	}
	return list, err
}

func buildAssertCardinality(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n := c.MustInt(1, "the number of elements")
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &cardinalityIterator{countingIterator{forwardingIterator{"assert cardinality", in}, 0}, n}
		}), nil
	}
}

// infinite is the number of elements of a data set without end.
const infinite = -1

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

func buildSkip(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n := c.MustInt(1, "the number of elements")
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &skipIterator{countingIterator{forwardingIterator{"skip", in}, n}}
		}), nil
	}
}

// skipIterator counts what it has still to skip.
type skipIterator struct{ countingIterator }

func (s *skipIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for ; s.n != 0; s.n-- {
		if _, err := s.in.Next(p); err != nil {
			return nil, err
		}
	}
	return s.in.Next(p)
}

func buildShard(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n, index := c.MustInt(1, "the number of shards"), c.MustInt(2, "the shard")
		if n < 1 || index < 0 || index >= n {
			return nil, c.Invalid("shard %d of %d", index, n)
		}
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &shardIterator{countingIterator{forwardingIterator{"shard", in}, 0}, n, index}
		}), nil
	}
}

// shardIterator counts all elements.
type shardIterator struct {
	countingIterator
	shards, index int
}

func (s *shardIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for {
		el, err := s.in.Next(p)
		if err != nil {
			return nil, err
		}
		if s.n++; (s.n-1)%s.shards == s.index {
			return el, nil
		}
	}
}

func buildZip(*exec.OpConstruction) func(c *exec.KernelContext) (variant.Dataset, error) {
	return func(c *exec.KernelContext) (variant.Dataset, error) {
		var all []variant.Dataset
		for i := range c.NumInputs() {
			d, err := dataset(c, i)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		return variant.OpenFunc(func(p *variant.IteratorContext) (variant.Iterator, error) {
			ins := make([]variant.Iterator, len(all))
			for i, d := range all {
				var err error
				if ins[i], err = d.MakeIterator(p); err != nil {
					return nil, err
				}
			}
			return &zipIterator{ins}, nil
		}), nil
	}
}

type zipIterator struct{ ins []variant.Iterator }

func (z *zipIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	var el variant.Tuple
	for _, in := range z.ins {
		part, err := in.Next(p)
		if err != nil {
			return nil, err
		}
		el = append(el, part...)
	}
	return el, nil
}

func (z *zipIterator) Save(w *variant.StateWriter) {
	w.Kind("zip")
	w.Int(len(z.ins))
	for _, in := range z.ins {
		in.Save(w)
	}
}

func (z *zipIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Kind("zip")
	r.Same("zipped data sets", len(z.ins))
	for _, in := range z.ins {
		in.Load(p, r)
	}
}

func buildConcatenate(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		second, err := dataset(c, 1)
		if err != nil {
			return nil, err
		}
		rest := &walked{Dataset: second}
		return variant.OpenFunc(func(p *variant.IteratorContext) (variant.Iterator, error) {
			in, err := of.MakeIterator(p)
			return &concatenateIterator{in: in, second: rest.begin(), first: true}, err
		}), nil
	}
}

type concatenateIterator struct {
	in     variant.Iterator
	second lastWalk
	first  bool             // in is of the first data set
	ended  variant.Iterator // the walk through that, kept for its state; see lastWalk
}

func (c *concatenateIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	el, err := c.in.Next(p)
	if err != io.EOF || !c.first {
		return el, err
	}
	if err := c.second.open(p); err != nil {
		return nil, err
	}
	c.in, c.ended, c.first = c.second.in, c.in, false
	return c.in.Next(p)
}

func (c *concatenateIterator) Save(w *variant.StateWriter) {
	w.Kind("concatenate")
	switch {
	case c.first && c.second.ended != nil:
		w.Int(walkAgain)
		c.second.save(w)
	case c.first:
		w.Int(walkOpen)
	case c.ended == nil: // restored from a state that lacked it
		w.Int(walkNone)
	default:
		w.Int(walkEnded)
		c.ended.Save(w)
	}
	c.in.Save(w)
}

func (c *concatenateIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Kind("concatenate")
	of := r.Int()
	if c.first = of == walkOpen || of == walkAgain; c.first {
		if of == walkAgain {
			c.second.load(p, r)
		}
		c.in.Load(p, r)
		return
	}
	if of == walkEnded {
		c.ended = c.in
		c.ended.Load(p, r)
	}
	c.in = r.Open(p, c.second.of)
	c.second.of.setLast(c.in)
}

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
