package data

import (
	"log/slog"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

var _ exec.InputObject = (*iteratorResource)(nil)

func (it *iteratorResource) SaveInput(limit int) ([]byte, error) {
	return variant.SavedState(limit, it.save)
}

func (it *iteratorResource) save(w *variant.StateWriter) {
	switch {
	case it.pending != nil:
		w.Buf = it.pending
		return
	case it.source == nil:
		return
	}
	w.Kind(exec.KindIterator)
	w.Int(it.saved())
	it.mu.Lock()
	w.Tuples(it.unread)
	it.mu.Unlock()
	if it.made != nil {
		it.made.save(w)
	}
	if it.streams.Len() > 0 {
		w.Int(it.streams.Len())
		it.streams.Each(func(path string, position []byte) {
			w.Bytes([]byte(path))
			w.Bytes(position)
		})
	}
	it.source.Save(w)
}

// What the first number of a state says, in its bits.
const (
	savedEnd     = 1 << iota // the walk has ended
	savedMade                // what was made ahead follows the elements that were given back
	savedStreams             // then the random streams that functions have drawn from
)

func (it *iteratorResource) saved() (bits int) {
	if it.ended {
		bits |= savedEnd
	}
	if it.made != nil {
		bits |= savedMade
	}
	if it.streams.Len() > 0 {
		bits |= savedStreams
	}
	return bits
}

func (it *iteratorResource) loadStreams(r *variant.StateReader) {
	for range r.Count() {
		path, position := string(r.Bytes()), r.Bytes()
		if r.Err == nil && !it.streams.Add(path, position) {
			r.Fail("a random stream has no position of %d bytes", len(position))
		}
	}
}

func (it *iteratorResource) LoadInput(state []byte, log *slog.Logger) {
	it.pending, it.log = state, log
	it.source = nil
	it.forget()
}

// resume begins a walk where the restored state was. What the graph draws from
// random streams to make the data sets again was drawn before.
func (it *iteratorResource) resume(c *exec.KernelContext, p *variant.IteratorContext) error {
	state := it.pending
	r := &variant.StateReader{Buf: state}
	it.pending = nil
	putBack := p.MarkStreams()
	err := it.begin(p)
	if err == nil {
		r.Kind(exec.KindIterator)
		saved := r.Int()
		it.ended, it.unread = saved&savedEnd != 0, r.Tuples()
		if saved&savedMade != 0 {
			it.made = loadMade(r)
		}
		if saved&savedStreams != 0 {
			it.loadStreams(r)
		}
		if r.Err == nil {
			it.source.Load(p, r)
		}
		if r.Err == nil && len(r.Buf) > 0 {
			r.Fail("%d bytes are left over", len(r.Buf))
		}
	}
	putBack()
	if err != nil || r.Err == nil {
		return err
	}
	if err := c.Context().Err(); err != nil {
		it.pending = state
		return c.CancelledError()
	}
	it.log.Warn(variant.StartsOver, "iterator", it.name, "why", r.Err)
	return it.begin(p)
}
