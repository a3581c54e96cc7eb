package data

import (
	"io"
	"sync"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// cache holds the elements of a data set after its first whole walk.
type cache struct {
	mu   sync.Mutex
	full bool
	list []variant.Tuple
}

func (c *cache) get() (list []variant.Tuple, full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list, c.full
}

func (c *cache) fill(list []variant.Tuple) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full, c.list = true, list
}

func buildMemoryCache(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		c.SetHandle(0, &cache{})
		c.SetVariant(1, nil)
		return nil
	}, nil
}

// buildCache keeps elements in memory; a file is what TensorFlow shares with
// other processes, which there are none of here.
func buildCache(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		kept := &cache{}
		if c.NumInputs() > 2 {
			if shared, ok := c.In(2).Value.(*cache); ok {
				kept = shared
			}
		}
		return variant.OpenFunc(func(p *variant.IteratorContext) (variant.Iterator, error) {
			if list, full := kept.get(); full {
				return &cacheIterator{kept: kept, list: list}, nil
			}
			in, err := of.MakeIterator(p)
			return &cacheIterator{kept: kept, in: in}, err
		}), nil
	}
}

// cacheIterator gives elements out of a cache, or fills one.
type cacheIterator struct {
	kept *cache
	in   variant.Iterator // nil: the cache was full
	list []variant.Tuple  // the cache, or what has come so far
	at   int              // in a full cache
}

func (w *cacheIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	if w.in == nil {
		if w.at == len(w.list) {
			return nil, io.EOF
		}
		w.at++
		return w.list[w.at-1], nil
	}
	el, err := w.in.Next(p)
	switch err {
	case nil:
		p.Hold(el.Bytes())
		w.list = append(w.list, el)
	case io.EOF:
		w.kept.fill(w.list)
	}
	return el, err
}

func (w *cacheIterator) Save(sw *variant.StateWriter) {
	sw.Kind("cache")
	list, full := w.kept.get()
	if sw.Bool(full) && sw.First(w.kept) {
		sw.Tuples(list)
	}
	if sw.Bool(w.in != nil) {
		sw.Tuples(w.list)
		w.in.Save(sw)
		return
	}
	sw.Int(w.at)
}

func (w *cacheIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Kind("cache")
	if r.Bool() && r.First(w.kept) {
		w.kept.fill(r.Tuples())
	}
	if r.Bool() {
		if w.list = r.Tuples(); w.in != nil {
			w.in.Load(p, r)
			return
		}
		r.Fail("the cache was being filled")
		return
	}
	w.in = nil
	w.list, _ = w.kept.get()
	if w.at = r.Int(); w.at < 0 || w.at > len(w.list) {
		r.Fail("element %d of a cache of %d was next", w.at, len(w.list))
		w.at = 0
	}
}
