package exec

import (
	"slices"
	"unsafe"
)

// OutOver returns output i with the type and the shape of input k, or of the
// next of the list that may be overwritten: its memory is the input's where no
// later step needs that, which spares the caches. It is for kernels that need
// element n of the inputs last when they set element n of the output. The inputs
// that are listed have the same type and shape.
func (c *KernelContext) OutOver(i int, list ...int) *Tensor {
	for _, k := range list {
		if c.mayTake(k) {
			c.f.swap(c.f.bufOf[c.step.in[k]], c.f.bufOf[c.step.out[i]])
			break
		}
	}
	x := c.In(list[0])
	return c.OutLike(i, x.DType, x)
}

// mayTake reports whether the memory of input k is to be had: it belongs to the
// input, and other inputs have no part of it. The other one of two may be all of
// it; kernels read more than two one after the other.
func (c *KernelContext) mayTake(k int) bool {
	if c.step.takes&(1<<k) == 0 {
		return false
	}
	slot := c.step.in[k]
	x := c.f.slots[slot].Data
	if !c.f.bufs[c.f.bufOf[slot]].holds(x) {
		return false
	}
	for i, in := range c.step.in {
		y := c.f.slots[in].Data
		if i != k && overlap(x, y) && (len(c.step.in) > 2 || &x[0] != &y[0] || len(x) != len(y)) {
			return false
		}
	}
	return true
}

func overlap(x, y []byte) bool {
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	a, b := uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&y[0]))
	return a < b+uintptr(len(y)) && b < a+uintptr(len(x))
}

// swap lets two buffers change places until the first step runs again.
func (f *frame) swap(a, b int32) {
	f.swapping.Lock()
	defer f.swapping.Unlock()
	f.bufs[a], f.bufs[b] = f.bufs[b], f.bufs[a]
	f.swaps = append(f.swaps, [2]int32{a, b})
}

// settle puts the buffers back, so that each step finds in every run the memory
// that it found, and grew, in the first one.
func (f *frame) settle() {
	for _, s := range slices.Backward(f.swaps) {
		f.bufs[s[0]], f.bufs[s[1]] = f.bufs[s[1]], f.bufs[s[0]]
	}
	f.swaps = f.swaps[:0]
}
