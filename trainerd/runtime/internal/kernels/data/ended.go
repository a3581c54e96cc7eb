package data

import (
	"sync"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// lastWalk is the walk that an iterator makes through another data set, or the
// last one it made. A walk that has ended is kept, because its state has what
// the data sets beneath keep from walk to walk, such as the seeds of shuffles:
// without it the walk after a restart would begin with those of the first.
type lastWalk struct {
	of    *walked
	in    variant.Iterator // nil: none is open
	ended variant.Iterator // nil: there was none, or it is of no use any more
}

// walked is a data set that others walk through, and the last walk: one that
// has not opened its own yet goes by that of the one before.
type walked struct {
	variant.Dataset
	mu   sync.Mutex
	last variant.Iterator
}

func (w *walked) begin() lastWalk {
	w.mu.Lock()
	defer w.mu.Unlock()
	return lastWalk{of: w, ended: w.last}
}

func (w *walked) setLast(in variant.Iterator) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = in
}

// States of a walk, as they are saved.
const (
	walkNone = iota
	walkOpen
	walkEnded
	walkAgain // of the first of two data sets, after one of the second
)

func (l *lastWalk) open(p *variant.IteratorContext) error {
	in, err := l.of.MakeIterator(p)
	if err == nil {
		l.in, l.ended = in, nil
		l.of.setLast(in)
	}
	return err
}

func (l *lastWalk) end() { l.in, l.ended = nil, l.in }

func (l *lastWalk) save(w *variant.StateWriter) {
	switch {
	case l.in != nil:
		w.Int(walkOpen)
		l.in.Save(w)
	case l.ended != nil:
		w.Int(walkEnded)
		l.ended.Save(w)
	default:
		w.Int(walkNone)
	}
}

func (l *lastWalk) load(p *variant.IteratorContext, r *variant.StateReader) {
	switch r.Int() {
	case walkOpen:
		l.in = r.Open(p, l.of)
		l.of.setLast(l.in)
	case walkEnded:
		l.ended = r.Open(p, l.of)
		l.of.setLast(l.ended)
	}
}

// reload is load for a walk that is open.
func (l *lastWalk) reload(p *variant.IteratorContext, r *variant.StateReader) {
	switch r.Int() {
	case walkOpen:
		l.in.Load(p, r)
	case walkEnded:
		l.in.Load(p, r)
		l.end()
	default:
		l.in = nil
	}
}
