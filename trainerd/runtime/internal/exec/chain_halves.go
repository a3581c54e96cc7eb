package exec

import (
	"github.com/trainerd/trainerd/internal/vec"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Chains of the types of 16 bits: a block is widened when it comes from memory, rounded by
// each step and narrowed when it goes to memory, so that float32s are in the first cache alone.
// That pays for a single step, too.

// The spare places of a block: those of the operands from memory come first.
const (
	spareResult = 2
	sparePlaces = 3
)

// temporaries returns how many places a block has that no value has.
func (ch *chain) temporaries() int {
	if ch.dtype == Float32 {
		return 0
	}
	return sparePlaces
}

// chains reports whether values of a type can be in chains.
func chains(dt tfpb.DataType) bool { return dt == Float32 || Halves.Has(dt) }

// bindShort finds the memory of an input of a type of 16 bits, or copies it.
func (o *operand) bindShort(t *Tensor, dt tfpb.DataType) {
	x := Elems[uint16](t)
	if o.form == whole {
		o.short = x
		return
	}
	if cap(o.data) < len(x) {
		o.data = make([]float32, len(x), max(len(x), rowElements))
	}
	o.data = o.data[:len(x)]
	WidenerOfSlices(dt)(o.data, x)
}

// runWhole is run of the one of two operands that has an element for each of the result.
func (b *chainPart) runWhole(x, y *operand) []float32 {
	if x.form == whole {
		return b.run(x, 0)
	}
	return b.run(y, 0)
}

// finish rounds a result, and stores it if it belongs into memory.
func (b *chainPart) finish(l *link, d []float32) {
	if l.reg < 0 {
		NarrowerOfSlices(b.dtype)(l.short[b.from:b.to], d)
		return
	}
	if b.dtype == Bfloat16 {
		vec.RoundBfloat16s(d, d)
	} else {
		vec.RoundHalves(d, d)
	}
}
