package exec

import "slices"

// WidenedImages is [Widened] for an op whose outputs have an image for each of the given inputs:
// it is computed for a few at a time, so that their float32s stay in the second cache.
func WidenedImages(attr string, build func(*OpConstruction) (Kernel, error), images ...int) func(*OpConstruction) (Kernel, error) {
	return func(b *OpConstruction) (Kernel, error) {
		dt := b.DType(attr)
		if !Halves.Has(dt) {
			return build(b)
		}
		return b.buildAs(attr, build, &widening{narrow: dt, wide: Float32, outputs: true, images: images})
	}
}

// pieceElements is about how many elements the largest input has of the images at a time.
const pieceElements = 1 << 17

// pieces returns how many images there are, and how many to compute at a time.
func (w *widening) pieces(c *KernelContext) (n, piece int) {
	largest := 0
	for k, i := range w.images {
		t := c.In(i)
		if len(t.Shape) == 0 || k > 0 && t.Shape[0] != n {
			return 0, 0
		}
		n, largest = t.Shape[0], max(largest, t.NumElements())
	}
	if largest == 0 {
		return 0, 0
	}
	return n, max(1, pieceElements*n/largest)
}

// inPieces computes some of the images at a time. It gives up where the first ones are refused,
// for the message should tell of all.
func (w *widening) inPieces(c *KernelContext, f *wideFrame, n, piece int) (done bool, err error) {
	for i := range c.NumInputs() {
		if !slices.Contains(w.images, i) {
			w.load(c, f, i, c.In(i))
		}
	}
	for at := 0; at < n; at += piece {
		m := min(piece, n-at)
		inner := f.context(c)
		for _, i := range w.images {
			w.load(c, f, i, f.images(c.In(i), at, m))
		}
		if err := w.kernel(inner); err != nil {
			return at > 0, err
		}
		for i := range c.step.out {
			t := &f.frame.slots[len(c.step.in)+i]
			if at == 0 {
				shape := c.ScratchInts(0, len(t.Shape))
				copy(shape, t.Shape)
				shape[0] = n
				c.Out(i, w.narrow, shape...)
			}
			convertElems(c, f.images(c.Slot(i), at, m), t)
		}
	}
	return true, nil
}

// images returns m images of a tensor, until the next call.
func (f *wideFrame) images(t *Tensor, at, m int) *Tensor {
	size := len(t.Data) / t.Shape[0]
	f.some.DType, f.some.Data = t.DType, t.Data[at*size:(at+m)*size]
	f.some.Shape = append(append(f.some.Shape[:0], m), t.Shape[1:]...)
	return &f.some
}
