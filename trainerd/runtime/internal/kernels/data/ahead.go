package data

import (
	"io"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
	"github.com/trainerd/trainerd/trainerd/session"
)

// When a run has taken an element, the next one is made at once, in the background,
// so that it is there when the next run asks for it. That changes nothing but the time:
// it is not done where the functions that make elements could see the difference, and
// the end, or an error, comes when the element is asked for. A checkpoint has what was
// made and not taken.

// madeElement is an element that was made ahead, or why there is none.
type madeElement struct {
	element variant.Tuple
	err     error
	lost    bool // the session was closed meanwhile
}

// dear is how long an element takes that is worth a goroutine. Others are made ahead
// by the run that takes the one before: what checkpoints hold must not depend on time.
const dear = 50 * time.Microsecond

// makeNext makes the next element. It reports whether it has taken over the iterator's
// turn, which back gives back.
func (it *iteratorResource) makeNext(c *exec.KernelContext, back func()) bool {
	it.mu.Lock()
	given := len(it.unread) > 0
	it.mu.Unlock()
	if given || !it.early || it.made != nil || it.ended || it.files.MayWait() || !c.MayRunAhead() {
		return false
	}
	made := &madeElement{}
	return c.RunAhead(it.took > 0 && it.took < dear, func(sub *exec.KernelContext) (err error) {
		p := &variant.IteratorContext{KernelContext: sub, Files: it.files, Help: it.help}
		made.element, err = it.next(p)
		return err
	}, func(err error, lost bool) {
		made.err, made.lost = err, lost
		it.made = made
		back()
	})
}

// next makes the next element. The caller has the iterator's turn.
func (it *iteratorResource) next(p *variant.IteratorContext) (variant.Tuple, error) {
	begin := time.Now()
	p.DrawFrom(it.streams)
	el, err := it.source.Next(p)
	it.took = time.Since(begin)
	return el, err
}

// takeMade returns the element that was made ahead. The caller has the iterator's turn.
func (it *iteratorResource) takeMade() (variant.Tuple, error) {
	made := it.made
	it.made = nil
	return made.element, made.err
}

// mayBeEarly reports whether nobody can see that elements of d are made early.
func (it *iteratorResource) mayBeEarly(p *variant.IteratorContext, d variant.Dataset) bool {
	of, ok := d.(*variant.Described)
	if !ok {
		return true
	}
	if of.Later&exec.Ordered != 0 || of.Later&exec.ReadsTable != 0 && p.HasMutableTables() {
		return false
	}
	if it.first != nil {
		return true // the data sets are those of this iterator alone
	}
	for _, name := range of.Shared {
		if !p.HasOneUser(name) {
			return false
		}
	}
	return true
}

// Kinds of what was made ahead, as they are saved.
const (
	madeTuple = iota
	madeEnd
	madeError
)

func (m *madeElement) save(w *variant.StateWriter) {
	switch {
	case m.lost:
		w.Fail("an element was lost when the session was closed")
	case m.err == nil:
		w.Int(madeTuple)
		w.Tuple(m.element)
	case m.err == io.EOF:
		w.Int(madeEnd)
	default:
		op := exec.AsOpError(m.err)
		w.Int(madeError)
		w.Int(int(op.Code))
		for _, s := range []string{op.Node, op.Op, op.Message} {
			w.Bytes([]byte(s))
		}
	}
}

func loadMade(r *variant.StateReader) *madeElement {
	m := &madeElement{}
	switch kind := r.Int(); kind {
	case madeTuple:
		m.element = r.Tuple()
	case madeEnd:
		m.err = io.EOF
	case madeError:
		code := tfpb.Code(r.Int())
		m.err = &session.OpError{Code: code, Node: string(r.Bytes()), Op: string(r.Bytes()), Message: string(r.Bytes())}
	default:
		r.Fail("there is no outcome of kind %d", kind)
	}
	return m
}
