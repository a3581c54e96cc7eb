package exec

import (
	"unsafe"

	tfpb "github.com/trainerd/trainerd/proto"
)

// kept is the memory of the tensors that resources of a run keep: stacks and
// arrays of tensors, which loops fill in each iteration. What they give back
// serves the same run and the next runs of the frame, so that a warm step
// allocates none of it.
type kept struct {
	free   map[int]*spares // by words
	owners []TensorOwner
}

// spares are tensors of one size.
type spares struct {
	list   []*Tensor
	unused int // the fewest that the list had in this run
}

// A TensorOwner is a resource that has tensors of [KernelContext.Keep].
type TensorOwner interface {
	// GiveUp calls free for each tensor that the resource has.
	GiveUp(free func(*Tensor))
}

func words(t *Tensor) int { return (len(t.Data) + 7) / 8 }

// take returns a tensor of n words, or nil if there is none to be had.
func (k *kept) take(n int) *Tensor {
	s := k.free[n]
	if s == nil || len(s.list) == 0 {
		return nil
	}
	last := len(s.list) - 1
	t := s.list[last]
	s.list[last] = nil
	s.list = s.list[:last]
	s.unused = min(s.unused, last)
	return t
}

func (k *kept) put(t *Tensor) {
	if ElemSize(t.DType) == 0 || t.Value != nil {
		return
	}
	n := words(t)
	s := k.free[n]
	if s == nil {
		if k.free == nil {
			k.free = map[int]*spares{}
		}
		s = &spares{}
		k.free[n] = s
	}
	s.list = append(s.list, t)
}

// end takes back what the resources of a run have, and drops what the run had no
// use for: the shapes of the next one may be others. After a failed run nothing is
// taken back.
func (k *kept) end(ok bool) {
	for i, o := range k.owners {
		if ok {
			o.GiveUp(k.put)
		}
		k.owners[i] = nil
	}
	k.owners = k.owners[:0]
	for n, s := range k.free {
		left := len(s.list) - s.unused
		clear(s.list[left:])
		s.list, s.unused = s.list[:left], left
		if left == 0 {
			delete(k.free, n)
		}
	}
}

// NewKept returns a tensor with unspecified contents that outlives the kernel, such
// as one that a resource keeps.
func (c *KernelContext) NewKept(dt tfpb.DataType, shape []int) *Tensor {
	size := ElemSize(dt)
	if c.run.top == nil || size == 0 {
		return c.NewTensor(dt, shape)
	}
	n := c.CheckSize(shape, size) * size
	t := c.run.top.kept.take((n + 7) / 8)
	if t == nil {
		return c.NewTensor(dt, shape)
	}
	t.DType, t.Shape = dt, append(t.Shape[:0], shape...)
	t.Data = unsafe.Slice(unsafe.SliceData(t.Data), n)
	return t
}

// Keep returns a copy of t that outlives the kernel.
func (c *KernelContext) Keep(t *Tensor) *Tensor {
	u := c.NewKept(t.DType, t.Shape)
	copy(u.Data, t.Data)
	copy(u.Strings, t.Strings)
	u.Value = t.Value
	return u
}

// Free gives up a tensor that was kept. Nothing may refer to its memory.
func (c *KernelContext) Free(t *Tensor) {
	if c.run.top != nil {
		c.run.top.kept.put(t)
	}
}

// HandOut makes output i a tensor that was kept and is not any more. Its memory is
// free when the steps of this call's frame start again.
func (c *KernelContext) HandOut(i int, t *Tensor) {
	c.Alias(i, t, t.Shape)
	if c.run.top != nil {
		c.f.handed = append(c.f.handed, t)
	}
}

// FreeAtEnd has a new resource give up its tensors when the run ends. One of an
// inner frame is left to the garbage collector: there may be any number of them.
func (c *KernelContext) FreeAtEnd(o TensorOwner) {
	if c.f == c.run.top {
		c.f.kept.owners = append(c.f.kept.owners, o)
	}
}

// takeBack frees what steps of f have handed out before.
func (r *run) takeBack(f *frame) {
	if r.top != nil {
		for _, t := range f.handed {
			r.top.kept.put(t)
		}
	}
	clear(f.handed)
	f.handed = f.handed[:0]
}
