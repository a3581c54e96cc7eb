package data

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// mostStacked and mostStackedBytes bound the batches whose memory is allocated with
// their first element, before it is known how many there are.
const (
	mostStacked      = 1024
	mostStackedBytes = 64 << 20
)

// canStack reports whether a batch of results can be made by nextStacked.
func (m *mapIterator) canStack(size int) bool {
	return size <= mostStacked && len(m.made) == 0 && !m.f.plan.Ordered()
}

// nextStacked returns a batch of results, which go to their places in it as they are
// made. It is what gathering and stacking them would return.
func (m *mapIterator) nextStacked(p *variant.IteratorContext, size int, whole bool) (variant.Tuple, error) {
	s := &stacker{rows: size, parts: make(variant.Tuple, m.f.plan.NumResults())}
	var list []variant.Tuple
	for ended := false; len(list) < size && !ended; {
		first := len(list)
		in, err := nextN(p, m.in, min(size-first, mostAtOnce))
		made := m.f.applyAll(p, in, func(c *exec.KernelContext, i, k int, t *exec.Tensor) *exec.Tensor { return s.place(c, first+i, k, t) })
		if ended = err == io.EOF; err != nil && !ended {
			made = append(made, outcome{err: err})
		}
		for i, one := range made {
			if one.err != nil {
				m.made = made[i+1:]
				return nil, one.err
			}
			list = append(list, one.element)
		}
	}
	if len(list) == 0 || whole && len(list) < size {
		return nil, io.EOF
	}
	if s.mixed.Load() {
		return stackAll(p, list)
	}
	return s.first(len(list)), nil
}

// stacker is the memory of a batch.
type stacker struct {
	rows  int
	mu    sync.Mutex // while memory is allocated
	parts variant.Tuple
	mixed atomic.Bool // some element does not fit
}

// place stores component k of an element, and returns it as a tensor: a part of the
// batch, unless it does not fit.
func (s *stacker) place(c *exec.KernelContext, row, k int, t *exec.Tensor) *exec.Tensor {
	part := s.part(c, k, t)
	if part == nil || part.DType != t.DType || !exec.SameShape(part.Shape[1:], t.Shape) {
		s.mixed.Store(true)
		return c.Keep(t)
	}
	n := t.NumElements()
	exec.CopyElems(part, row*n, t, 0, n)
	return rowsOf(part, row, t.Shape)
}

// part returns component k of the batch, nil if elements like this one are not to be
// part of it.
func (s *stacker) part(c *exec.KernelContext, k int, like *exec.Tensor) *exec.Tensor {
	isPlain := like.DType == exec.String || exec.ElemSize(like.DType) > 0
	if !isPlain || len(like.Data) > mostStackedBytes/s.rows {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts[k] == nil {
		s.parts[k] = c.NewTensor(like.DType, append([]int{s.rows}, like.Shape...))
	}
	return s.parts[k]
}

// first returns a batch of the first rows.
func (s *stacker) first(rows int) variant.Tuple {
	for _, t := range s.parts {
		n := t.NumElements() / s.rows * rows
		t.Shape[0] = rows
		t.Data, t.Strings = t.Data[:n*exec.ElemSize(t.DType)], t.Strings[:min(n, len(t.Strings))]
	}
	return s.parts
}

// rowsOf returns a view of one row.
func rowsOf(t *exec.Tensor, row int, shape []int) *exec.Tensor {
	v := &exec.Tensor{DType: t.DType, Shape: append([]int(nil), shape...)}
	v.Data, v.Strings = viewOf(t, row*exec.NumElements(shape), exec.NumElements(shape))
	return v
}

func viewOf(t *exec.Tensor, at, n int) ([]byte, [][]byte) {
	if t.DType == exec.String {
		return nil, t.Strings[at : at+n]
	}
	size := exec.ElemSize(t.DType)
	return t.Data[at*size : (at+n)*size], nil
}
