package data

import "github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"

// lastWalk is the walk that an iterator makes through another data set, or the
// last one it made. A walk that has ended is kept, because its state has what
// the data sets beneath keep from walk to walk, such as the seeds of shuffles:
// without it the walk after a restart would begin with those of the first.
type lastWalk struct {
	in    variant.Iterator // nil: none is open
	ended variant.Iterator // nil: there was none, or it is of no use any more
}

// States of a walk, as they are saved.
const (
	walkNone = iota
	walkOpen
	walkEnded
)

func (l *lastWalk) open(p *variant.IteratorContext, of variant.Dataset) error {
	in, err := of.MakeIterator(p)
	if err == nil {
		l.in, l.ended = in, nil
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

func (l *lastWalk) load(p *variant.IteratorContext, r *variant.StateReader, of variant.Dataset) {
	switch r.Int() {
	case walkOpen:
		l.in = r.Open(p, of)
	case walkEnded:
		l.ended = r.Open(p, of)
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
