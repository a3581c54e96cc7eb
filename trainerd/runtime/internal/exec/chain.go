package exec

import (
	"github.com/trainerd/trainerd/internal/parallel"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Elements is how an op computes runs of float32s, element by element, from inputs
// that may be the output's memory. Types of 16 bits are widened to float32, and rounded.
// Steps of such ops that follow each other make a chain. A form that an op does not have
// is nil.
type Elements struct {
	V  func(d, x []float32)
	Vv func(d, x, y []float32)
	Vs func(d, x []float32, y float32)
	Sv func(d []float32, x float32, y []float32)

	Sums   bool // any number of inputs, which Vv takes one after the other
	Stores bool // input 1, or what Vv makes of the old value and it, becomes the variable's value
	reads  bool // the output is the variable's memory
}

// readElements are those of [ReadVariable].
var readElements = &Elements{reads: true}

// Elementwise says what the kernel that is built computes for float32s.
func (b *OpConstruction) Elementwise(e *Elements) { b.elements = e }

// Reads is [OpConstruction.Elementwise] for the kernel [ReadVariable].
func (b *OpConstruction) Reads() { b.elements = readElements }

// chain is steps, one after the other, that work on tensors of one shape element by
// element. It is computed block by block: a block goes through all steps while
// it is in the first cache, and values that only the chain needs have no other
// memory. The bits are those of the steps one by one.
//
// A plan does not know shapes. So the first run of a frame finds the chains, and
// a later one does the steps one by one where a shape is another one.
//
// A result may get the memory of an input, of the chain or of one of its steps:
// both begin where that memory does, so an element is read before its place is
// written to. Views of tensors begin where the tensor does; rows, columns and
// scalars are copied before.
type chain struct {
	end    int           // the step after it
	dtype  tfpb.DataType // of all values: float32 or, computed as that, one of 16 bits
	shape  []int
	size   int // elements of the shape
	row    int // elements of its last dimension if an input is a row or a column, else 0
	links  []link
	regs   int // values of a block at a time
	access OpFlags
	memory [MaxParts][]float32 // of the values, by part
}

// link is a step of a chain.
type link struct {
	step     *step
	elements *Elements
	in       []operand
	shape    []int     // of the result
	reg      int       // of it; -1 for memory
	data     []float32 // that memory in this run
	short    []uint16  // it, for a type of 16 bits
}

// operand is an input of a link.
type operand struct {
	index int // among the step's inputs
	form  form
	inner bool // made, or read, by the chain
	reg   int  // of a value that is made; -1 for memory
	shape []int
	data  []float32 // the memory in this run; a copy, but of a whole tensor
	short []uint16  // the memory of a whole tensor of a type of 16 bits
}

// form is what an element of the result needs of an input.
type form uint8

const (
	whole  form = iota // an element for each
	inRow              // one row for all
	column             // a number for each row
	scalar             // a number for all
	absent             // nothing: it was added to another input
)

// The fewest elements that are worth a chain, those of a block, those up to which
// rows are repeated, and those worth a second processor.
const (
	chainElements = 2048
	chainBlock    = 1024
	rowElements   = 256
	splitElements = 1 << 16
)

// runChain runs a chain, if everything is as it was when it was found.
func (r *run) runChain(l *lane, f *frame, ch *chain) (done bool, err error) {
	if r.trace != nil || r.sess.observes {
		return false, nil
	}
	if ch.access != 0 {
		r.acquire()
	}
	if !ch.fits(f) {
		return false, nil
	}
	c := &l.call
	c.ctx, c.run, c.f, c.step, c.lane = r.ctx, r, f, ch.links[0].step, l
	defer func() {
		if p := recover(); p != nil {
			err = recovered(c.step, p)
		}
	}()
	if ch.access&WritesState != 0 && !r.pass.wrote {
		r.pass.wrote = true
	}
	// What may fail for want of memory comes before what changes variables.
	for i := range ch.links {
		c.step = ch.links[i].step
		ch.links[i].makeRoom(c, ch.dtype)
	}
	for i := range ch.links {
		c.step = ch.links[i].step
		if err := ch.links[i].bind(c, ch.dtype); err != nil {
			return false, err
		}
	}
	if ch.size < splitElements {
		ch.Part(0, 1)
	} else {
		parallel.Run(MaxParts, ch)
	}
	return true, nil
}

// fits reports whether the inputs have the shapes that the chain was made for.
func (ch *chain) fits(f *frame) bool {
	for i := range ch.links {
		l := &ch.links[i]
		if l.step.mayDie && f.killed(l.step) {
			return false
		}
		if (l.elements.reads || l.elements.Stores) && !l.fitsVariable(f, ch.dtype) {
			return false
		}
		for k := range l.in {
			o := &l.in[k]
			t := &f.slots[l.step.in[o.index]]
			if !o.inner && (t.DType != ch.dtype || isAdded(t) != (o.form == absent) || !SameShape(t.Shape, o.shape)) {
				return false
			}
		}
	}
	return true
}

// fitsVariable reports whether the variable of a link has a value as before.
func (l *link) fitsVariable(f *frame, dt tfpb.DataType) bool {
	v, ok := f.slots[l.step.in[0]].Value.(*Variable)
	return ok && v.Initialized && v.DType == dt && SameShape(v.Value.Shape, l.shape) && !(l.elements.Stores && v.kept)
}

// makeRoom makes the memory of a link's result, if it has any of its own.
func (l *link) makeRoom(c *KernelContext, dt tfpb.DataType) {
	if l.reg >= 0 || l.elements.reads || l.elements.Stores {
		return
	}
	for k := range l.in {
		if o := &l.in[k]; o.form == whole && o.reg < 0 && c.mayTake(o.index) {
			c.f.swap(c.f.bufOf[l.step.in[o.index]], c.f.bufOf[l.step.out[0]])
			break
		}
	}
	if d := c.Out(0, dt, l.shape...); dt == Float32 {
		l.data = Elems[float32](d)
	} else {
		l.short = Elems[uint16](d)
	}
}

// bind finds the memory of a link's inputs, and that of a variable. Short rows
// are repeated.
func (l *link) bind(c *KernelContext, dt tfpb.DataType) error {
	for k := range l.in {
		o := &l.in[k]
		if o.reg >= 0 || o.form == absent {
			continue
		}
		if dt != Float32 {
			o.bindShort(c.In(o.index), dt)
		} else if x := Elems[float32](c.In(o.index)); o.form == whole {
			o.data = x
		} else {
			o.data = append(o.data[:0], x...)
		}
		x := o.data
		for n := rowElements - len(x); o.form == inRow && n >= len(x); n -= len(x) {
			o.data = append(o.data, x...)
		}
	}
	switch {
	case l.elements.reads:
		return l.step.kernel(c)
	case l.elements.Stores:
		l.data = c.changed(l.elements.Vv == nil)
	}
	return nil
}

// changed returns the memory of the variable of input 0, which has a value, for a
// step to change; all of it, if whole is set, and then the contents are unspecified.
func (c *KernelContext) changed(whole bool) []float32 {
	c.f.willChange(c.step, c.run.frozen)
	v := c.In(0).Value.(*Variable)
	if whole {
		v.leave()
		v.resize(v.Value.Shape, false)
	}
	return Elems[float32](&v.Value)
}

// Part implements [parallel.Job].
func (ch *chain) Part(i, n int) {
	unit, block := 64, chainBlock
	if 0 < ch.row && ch.row <= chainBlock {
		unit, block = ch.row, max(1, chainBlock/ch.row)*ch.row
	}
	if ch.memory[i] == nil {
		ch.memory[i] = make([]float32, (ch.regs+ch.temporaries())*block)
	}
	from, to := parallel.Span(ch.size, unit, i, n)
	for at := from; at < to; at += block {
		b := chainPart{values: ch.memory[i], size: block, row: ch.row, from: at, to: min(at+block, to), dtype: ch.dtype, spare: ch.regs}
		for k := range ch.links {
			if l := &ch.links[k]; !l.elements.reads {
				b.compute(l)
			}
		}
	}
}

// chainPart is a block of elements on the way through a chain.
type chainPart struct {
	values    []float32
	size, row int
	from, to  int

	dtype tfpb.DataType
	spare int // the first place that no value has
}

// at returns a place for the block.
func (b *chainPart) at(reg int) []float32 { return b.values[reg*b.size:][:b.to-b.from] }

// run returns the elements of an operand. Those of a type of 16 bits are widened in a spare
// place.
func (b *chainPart) run(o *operand, spare int) []float32 {
	switch {
	case o.reg >= 0:
		return b.at(o.reg)
	case b.dtype == Float32:
		return o.data[b.from:b.to]
	}
	d := b.at(b.spare + spare)
	WidenerOfSlices(b.dtype)(d, o.short[b.from:b.to])
	return d
}

// result returns where the result of a link is computed.
func (b *chainPart) result(l *link) []float32 {
	switch {
	case l.reg >= 0:
		return b.at(l.reg)
	case b.dtype == Float32:
		return l.data[b.from:b.to]
	}
	return b.at(b.spare + spareResult)
}

func (b *chainPart) compute(l *link) {
	e, d := l.elements, b.result(l)
	switch {
	case e.Stores && e.Vv != nil:
		e.Vv(d, d, b.run(&l.in[0], 0))
	case e.Stores:
		copy(d, b.run(&l.in[0], 0))
	case e.Sums:
		b.sum(l, d)
	case len(l.in) == 1:
		e.V(d, b.run(&l.in[0], 0))
	default:
		b.pair(e, d, &l.in[0], &l.in[1])
	}
	if b.dtype != Float32 {
		b.finish(l, d)
	}
}

func (b *chainPart) sum(l *link, d []float32) {
	var sum []float32
	for k := range l.in {
		o := &l.in[k]
		if o.form == absent {
			continue
		}
		if sum == nil {
			sum = b.run(o, 0)
			continue
		}
		l.elements.Vv(d, sum, b.run(o, 1))
		sum = d
	}
	if &sum[0] != &d[0] {
		copy(d, sum)
	}
}

func (b *chainPart) pair(e *Elements, d []float32, x, y *operand) {
	switch {
	case x.form == whole && y.form == whole:
		e.Vv(d, b.run(x, 0), b.run(y, 1))
	case y.form == scalar:
		e.Vs(d, b.run(x, 0), y.data[0])
	case x.form == scalar:
		e.Sv(d, x.data[0], b.run(y, 0))
	case x.form == inRow || y.form == inRow:
		b.rows(e, d, x, y)
	default:
		b.columns(e, d, x, y)
	}
}

// rows computes as far as the copies of the row reach that one of x and y repeats.
func (b *chainPart) rows(e *Elements, d []float32, x, y *operand) {
	all := b.runWhole(x, y)
	for at := 0; at < len(d); {
		row := y.data
		if x.form == inRow {
			row = x.data
		}
		row = row[(b.from+at)%b.row:]
		n := min(len(row), len(d)-at)
		if x.form == inRow {
			e.Vv(d[at:at+n], row[:n], all[at:at+n])
		} else {
			e.Vv(d[at:at+n], all[at:at+n], row[:n])
		}
		at += n
	}
}

// columns computes row by row, or what the block has of one: one of x and y is a column.
func (b *chainPart) columns(e *Elements, d []float32, x, y *operand) {
	all := b.runWhole(x, y)
	for at := 0; at < len(d); {
		r, from := (b.from+at)/b.row, (b.from+at)%b.row
		end := min(at+b.row-from, len(d))
		if x.form == column {
			e.Sv(d[at:end], x.data[r], all[at:end])
		} else {
			e.Vs(d[at:end], all[at:end], y.data[r])
		}
		at = end
	}
}
