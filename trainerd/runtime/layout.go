package runtime

import (
	"fmt"
	"math/bits"
)

// Ops that move elements without looking at them.
var _ = register(opTable{
	"Concat":           {in: "int32 T...", types: valueTypes, build: buildConcat(0, 1)},
	"ConcatV2":         {in: "T... Tidx=int32", types: valueTypes, build: buildConcat(-1, 0)},
	"ConcatOffset":     {in: "int32 shape_type=int32...", build: buildConcatOffset},
	"Split":            {in: "int32 T", types: valueTypes, build: buildSplit},
	"SplitV":           {in: "T Tlen=int64 int32", types: valueTypes, build: buildSplitV},
	"Pack":             {in: "T...", types: valueTypes, build: buildPack},
	"Unpack":           {in: "T", types: valueTypes, build: buildUnpack},
	"Slice":            {in: "T Index Index", types: valueTypes, build: simple(slice)},
	"StridedSlice":     {in: "T Index Index Index", types: valueTypes, build: buildStridedSlice},
	"StridedSliceGrad": {in: "Index Index Index Index T", types: valueTypes, build: buildStridedSliceGrad},
	"Tile":             {in: "T Tmultiples=int32", types: valueTypes, build: simple(tile)},
	"Pad":              {in: "T Tpaddings=int32", types: valueTypes, build: simple(pad)},
	"PadV2":            {in: "T Tpaddings=int32 T", types: valueTypes, build: simple(pad)},
	"MirrorPad":        {in: "T Tpaddings=int32", types: valueTypes, build: buildMirrorPad},
	"MirrorPadGrad":    {in: "T Tpaddings=int32", types: floats, build: buildMirrorPadGrad},
	"Reverse":          {in: "T bool", types: valueTypes, build: simple(reverseMask)},
	"ReverseV2":        {in: "T Tidx=int32", types: valueTypes, build: simple(reverse)},
	"ReverseSequence":  {in: "T Tlen=int64", types: valueTypes, build: buildReverseSequence},
	"Transpose":        {in: "T Tperm=int32", types: valueTypes, build: simple(transposed)},
	"SpaceToDepth":     {in: "T", types: valueTypes, build: buildSpaceDepth(true)},
	"DepthToSpace":     {in: "T", types: valueTypes, build: buildSpaceDepth(false)},
})

// buildConcat builds a concatenation whose axis is input axisAt (-1: the last)
// and whose values begin at input first.
func buildConcat(axisAt, first int) func(*builder) (kernel, error) {
	return func(b *builder) (kernel, error) {
		n := len(b.node.inputs) - 1
		if n < 1 {
			b.fail("nothing to concatenate")
		}
		at := axisAt
		if at < 0 {
			at = n
		}
		return func(c *call) error { return c.concat(at, first, n) }, nil
	}
}

func (c *call) concat(axisAt, first, n int) error {
	x := c.in(first)
	a, err := c.axis(axisAt, len(x.shape))
	if err != nil {
		return err
	}
	shape := append(c.dims(0, 0), x.shape...)
	shape[a] = 0
	for i := range n {
		y := c.in(first + i)
		if len(y.shape) != len(shape) || !sameShape(y.shape[:a], x.shape[:a]) || !sameShape(y.shape[a+1:], x.shape[a+1:]) {
			return c.invalid("%s and %s cannot be concatenated along axis %d", x.describe(), y.describe(), a)
		}
		shape[a] += y.shape[a]
	}
	d := c.out(0, x.dtype, shape...)
	outer, row := product(shape[:a]), product(shape[a:])
	at := 0
	for i := range n {
		y := c.in(first + i)
		w := product(y.shape[a:])
		for o := range outer {
			copyElems(d, o*row+at, y, o*w, w)
		}
		at += w
	}
	return nil
}

func buildConcatOffset(b *builder) (kernel, error) {
	n := len(b.node.inputs) - 1
	b.outputs = max(n, 0)
	return func(c *call) error {
		x := c.in(1)
		a, err := c.axis(0, x.count())
		if err != nil {
			return err
		}
		at := 0
		for i := range n {
			s := c.in(i + 1)
			if !sameShape(s.shape, x.shape) {
				return c.invalid("the shapes have the ranks %d and %d", x.count(), s.count())
			}
			d := c.outLike(i, s.dtype, s)
			zero(d)
			setInt(d, a, at)
			at += s.intAt(a)
		}
		return nil
	}, nil
}

func buildSplit(b *builder) (kernel, error) {
	n := b.outputsFrom("num_split")
	b.outputs = n
	return func(c *call) error {
		x := c.in(1)
		a, err := c.axis(0, len(x.shape))
		if err != nil {
			return err
		}
		if n == 0 || x.shape[a]%n != 0 {
			return c.invalid("axis %d of %s cannot be split into %d", a, x.describe(), n)
		}
		sizes := c.dims(1, n)
		for i := range sizes {
			sizes[i] = x.shape[a] / n
		}
		return c.split(x, a, sizes)
	}, nil
}

func buildSplitV(b *builder) (kernel, error) {
	b.outputs = b.outputsFrom("num_split")
	n := b.outputs
	return func(c *call) error {
		x := c.in(0)
		a, err := c.axis(2, len(x.shape))
		if err != nil {
			return err
		}
		sizes := c.intsOf(1, c.in(1))
		open, total := -1, 0
		for i, s := range sizes {
			if s == -1 && open < 0 {
				open = i
				continue
			}
			if s < 0 {
				return c.invalid("piece %d has size %d", i, s)
			}
			total += s
		}
		if open >= 0 && total <= x.shape[a] {
			sizes[open] = x.shape[a] - total
			total = x.shape[a]
		}
		if len(sizes) != n || total != x.shape[a] {
			return c.invalid("axis %d of %s cannot be split into %s", a, x.describe(), shapeString(sizes))
		}
		return c.split(x, a, sizes)
	}, nil
}

// split cuts x along axis a into pieces of the given sizes.
func (c *call) split(x *tensor, a int, sizes []int) error {
	outer, inner := product(x.shape[:a]), product(x.shape[a+1:])
	at := 0
	for i, s := range sizes {
		shape := append(c.dims(0, 0), x.shape...)
		shape[a] = s
		d := c.out(i, x.dtype, shape...)
		for o := range outer {
			copyElems(d, o*s*inner, x, (o*x.shape[a]+at)*inner, s*inner)
		}
		at += s
	}
	return nil
}

func buildPack(b *builder) (kernel, error) {
	axis := b.int("axis", 0)
	return func(c *call) error {
		if c.inputs() == 0 {
			return c.invalid("nothing to pack")
		}
		x, n := c.in(0), c.inputs()
		a := axis
		if a < 0 {
			a += len(x.shape) + 1
		}
		if a < 0 || a > len(x.shape) {
			return c.invalid("axis %d is outside a tensor of rank %d", axis, len(x.shape)+1)
		}
		d := c.out(0, x.dtype, append(append(append(c.dims(0, 0), x.shape[:a]...), n), x.shape[a:]...)...)
		outer, inner := product(x.shape[:a]), product(x.shape[a:])
		for i := range n {
			y := c.in(i)
			if !sameShape(x.shape, y.shape) {
				return c.invalid("input %d has the shape %s, input 0 %s", i, shapeString(y.shape), shapeString(x.shape))
			}
			for o := range outer {
				copyElems(d, (o*n+i)*inner, y, o*inner, inner)
			}
		}
		return nil
	}, nil
}

func buildUnpack(b *builder) (kernel, error) {
	axis := b.int("axis", 0)
	n := b.outputsFrom("num")
	b.outputs = n
	return func(c *call) error {
		x := c.in(0)
		a := axis
		if a < 0 {
			a += len(x.shape)
		}
		if a < 0 || a >= len(x.shape) || x.shape[a] != n {
			return c.invalid("%s cannot be unpacked to %d along axis %d", x.describe(), n, axis)
		}
		outer, inner := product(x.shape[:a]), product(x.shape[a+1:])
		for i := range n {
			d := c.out(i, x.dtype, append(append(c.dims(0, 0), x.shape[:a]...), x.shape[a+1:]...)...)
			for o := range outer {
				copyElems(d, o*inner, x, (o*n+i)*inner, inner)
			}
		}
		return nil
	}, nil
}

// walk visits the elements of a tensor of the given shape in row-major order
// and calls f with the position in another tensor, reached by strides from
// start. The last dimension is left to f.
func walk(shape, stride []int, start int, f func(o, at int)) {
	rank := len(shape)
	if product(shape) == 0 {
		return
	}
	if rank == 0 {
		f(0, start)
		return
	}
	var idx [maxRank]int
	n := shape[rank-1]
	at := start
	for o := 0; ; o += n {
		f(o, at)
		i := rank - 2
		for ; i >= 0; i-- {
			at += stride[i]
			if idx[i]++; idx[i] < shape[i] {
				break
			}
			at -= stride[i] * shape[i]
			idx[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// gatherStrided fills d, row by row, from x: the element at index i comes from
// start + the sum of i*stride.
func gatherStrided(d, x *tensor, stride []int, start int) {
	last, n := 1, 1
	if r := len(d.shape); r > 0 {
		last, n = stride[r-1], d.shape[r-1]
	}
	walk(d.shape, stride, start, func(o, at int) {
		if last == 1 {
			copyElems(d, o, x, at, n)
			return
		}
		for j := range n {
			copyElems(d, o+j, x, at+j*last, 1)
		}
	})
}

// scatterStrided is the inverse: the elements of x go to places in d.
func scatterStrided(d, x *tensor, stride []int, start int) {
	last, n := 1, 1
	if r := len(x.shape); r > 0 {
		last, n = stride[r-1], x.shape[r-1]
	}
	walk(x.shape, stride, start, func(o, at int) {
		if last == 1 {
			copyElems(d, at, x, o, n)
			return
		}
		for j := range n {
			copyElems(d, at+j*last, x, o+j, 1)
		}
	})
}

// rowMajor returns the strides of a shape in scratch memory k.
func (c *call) rowMajor(k int, shape []int) []int {
	s := c.dims(k, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// ranked returns an error for tensors of more dimensions than the loops take.
func (c *call) ranked(x *tensor) error {
	if len(x.shape) > maxRank {
		return c.invalid("%s has more than %d dimensions", x.describe(), maxRank)
	}
	return nil
}

func slice(c *call) error {
	x := c.in(0)
	begin, size := c.intsOf(1, c.in(1)), c.intsOf(2, c.in(2))
	if err := c.ranked(x); err != nil {
		return err
	}
	if len(begin) != len(x.shape) || len(size) != len(x.shape) {
		return c.invalid("begin %s and size %s do not fit %s", shapeString(begin), shapeString(size), x.describe())
	}
	for i, d := range x.shape {
		if size[i] == -1 {
			size[i] = d - begin[i]
		}
		if begin[i] < 0 || size[i] < 0 || begin[i] > d-size[i] {
			return c.invalid("begin %s and size %s are outside %s", shapeString(begin), shapeString(size), x.describe())
		}
	}
	stride := c.rowMajor(0, x.shape)
	start := 0
	for i, b := range begin {
		start += b * stride[i]
	}
	gatherStrided(c.out(0, x.dtype, size...), x, stride, start)
	return nil
}

func tile(c *call) error {
	x := c.in(0)
	times := c.intsOf(0, c.in(1))
	if err := c.ranked(x); err != nil {
		return err
	}
	if len(times) != len(x.shape) {
		return c.invalid("multiples %s do not fit %s", shapeString(times), x.describe())
	}
	shape := c.dims(1, len(times))
	for i, t := range times {
		if t < 0 {
			return c.invalid("multiples %s", shapeString(times))
		}
		shape[i] = x.shape[i] * t
	}
	d := c.out(0, x.dtype, shape...)
	if d.count() == 0 {
		return nil
	}
	stride := c.rowMajor(2, x.shape)
	walk(shape, c.zeros(3, len(shape)), 0, func(o, _ int) { tileRow(d, x, shape, stride, o) })
	return nil
}

// zeros returns n zeros in scratch memory k.
func (c *call) zeros(k, n int) []int {
	s := c.dims(k, n)
	clear(s)
	return s
}

// tileRow fills the row of d that begins at element o.
func tileRow(d, x *tensor, shape, stride []int, o int) {
	r := len(shape)
	if r == 0 {
		copyElems(d, 0, x, 0, 1)
		return
	}
	from, rest := 0, o/shape[r-1]
	for i := r - 2; i >= 0; i-- {
		from += rest % shape[i] % x.shape[i] * stride[i]
		rest /= shape[i]
	}
	w := x.shape[r-1]
	for j := 0; j < shape[r-1]; j += w {
		copyElems(d, o+j, x, from, w)
	}
}

// paddings returns the rows of input 1, checked against x.
func (c *call) paddings(x *tensor) ([]int, error) {
	p := c.in(1)
	if len(p.shape) != 2 || p.shape[1] != 2 || p.shape[0] != len(x.shape) {
		return nil, c.invalid("paddings %s do not fit %s", p.describe(), x.describe())
	}
	pads := c.intsOf(1, p)
	for _, v := range pads {
		if v < 0 {
			return nil, c.invalid("a padding is %d", v)
		}
	}
	return pads, c.ranked(x)
}

func pad(c *call) error {
	x := c.in(0)
	pads, err := c.paddings(x)
	if err != nil {
		return err
	}
	shape := c.dims(0, len(x.shape))
	for i, n := range x.shape {
		shape[i] = pads[2*i] + n + pads[2*i+1]
	}
	d := c.out(0, x.dtype, shape...)
	zero(d)
	if c.inputs() == 3 {
		if c.in(2).count() != 1 {
			return c.invalid("the padding must be a scalar, not %s", c.in(2).describe())
		}
		repeatElem(d, c.in(2))
	}
	stride := c.rowMajor(2, shape)
	start := 0
	for i, s := range stride {
		start += pads[2*i] * s
	}
	scatterStrided(d, x, stride, start)
	return nil
}

// mirror maps position i of a padded dimension to one of n elements. edge is 1
// when the border element is not repeated.
func mirror(i, before, n, edge int) int {
	i -= before
	if i < 0 {
		return -i - 1 + edge
	}
	if i >= n {
		return 2*n - 1 - i - edge
	}
	return i
}

func (b *builder) mirrorEdge() int {
	switch m := b.string("mode", ""); m {
	case "REFLECT":
		return 1
	case "SYMMETRIC":
	default:
		b.fail("attribute mode is %q", m)
	}
	return 0
}

func (c *call) mirrorPads(x *tensor, edge int, inner func(i int) int) ([]int, error) {
	pads, err := c.paddings(x)
	if err != nil {
		return nil, err
	}
	for i := range x.shape {
		if n := inner(i); pads[2*i] > n-edge || pads[2*i+1] > n-edge {
			return nil, c.invalid("paddings of dimension %d exceed its %d elements", i, n)
		}
	}
	return pads, nil
}

// mirrorWalk calls f with each position of a padded shape and the position in
// the inner shape that it mirrors.
func (c *call) mirrorWalk(shape, inner, pads []int, edge int, f func(o, at int)) {
	stride := c.rowMajor(2, inner)
	for o := range product(shape) {
		at, rest := 0, o
		for i := len(shape) - 1; i >= 0; i-- {
			at += mirror(rest%shape[i], pads[2*i], inner[i], edge) * stride[i]
			rest /= shape[i]
		}
		f(o, at)
	}
}

func buildMirrorPad(b *builder) (kernel, error) {
	edge := b.mirrorEdge()
	return func(c *call) error {
		x := c.in(0)
		pads, err := c.mirrorPads(x, edge, func(i int) int { return x.shape[i] })
		if err != nil {
			return err
		}
		shape := c.dims(0, len(x.shape))
		for i, n := range x.shape {
			shape[i] = pads[2*i] + n + pads[2*i+1]
		}
		d := c.out(0, x.dtype, shape...)
		c.mirrorWalk(d.shape, x.shape, pads, edge, func(o, at int) { copyElems(d, o, x, at, 1) })
		return nil
	}, nil
}

func buildMirrorPadGrad(b *builder) (kernel, error) {
	edge := b.mirrorEdge()
	return func(c *call) error {
		g := c.in(0)
		pads, err := c.mirrorPads(g, edge, func(i int) int { p := c.in(1); return g.shape[i] - p.intAt(2*i) - p.intAt(2*i+1) })
		if err != nil {
			return err
		}
		shape := c.dims(0, len(g.shape))
		for i, n := range g.shape {
			shape[i] = n - pads[2*i] - pads[2*i+1]
		}
		d := c.out(0, g.dtype, shape...)
		zero(d)
		if g.dtype == tFloat {
			c.mirrorWalk(g.shape, d.shape, pads, edge, func(o, at int) { elems[float32](d)[at] += elems[float32](g)[o] })
			return nil
		}
		c.mirrorWalk(g.shape, d.shape, pads, edge, func(o, at int) { elems[float64](d)[at] += elems[float64](g)[o] })
		return nil
	}, nil
}

func reverseMask(c *call) error {
	x, mask := c.in(0), elems[bool](c.in(1))
	if len(mask) != len(x.shape) {
		return c.invalid("%d flags do not fit %s", len(mask), x.describe())
	}
	var flip uint64
	for i, m := range mask {
		if m {
			flip |= 1 << i
		}
	}
	return c.flip(x, flip)
}

func reverse(c *call) error {
	x := c.in(0)
	var flip uint64
	for _, a := range c.intsOf(0, c.in(1)) {
		if a < -len(x.shape) || a >= len(x.shape) {
			return c.invalid("axis %d is outside %s", a, x.describe())
		}
		if a < 0 {
			a += len(x.shape)
		}
		flip |= 1 << a
	}
	return c.flip(x, flip)
}

// flip reverses the dimensions whose bits are set.
func (c *call) flip(x *tensor, mask uint64) error {
	if err := c.ranked(x); err != nil {
		return err
	}
	stride := c.rowMajor(0, x.shape)
	start := 0
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros64(mask)
		start += stride[i] * (x.shape[i] - 1)
		stride[i] = -stride[i]
	}
	gatherStrided(c.outLike(0, x.dtype, x), x, stride, start)
	return nil
}

func buildReverseSequence(b *builder) (kernel, error) {
	seq, batch := b.int("seq_dim", 0), b.int("batch_dim", 0)
	return func(c *call) error {
		x, lens := c.in(0), c.in(1)
		r := len(x.shape)
		if seq < 0 || batch < 0 || seq >= r || batch >= r || seq == batch || len(lens.shape) != 1 || lens.shape[0] != x.shape[batch] {
			return c.invalid("lengths %s do not fit dimensions %d and %d of %s", lens.describe(), seq, batch, x.describe())
		}
		stride := c.rowMajor(0, x.shape)
		d := c.outLike(0, x.dtype, x)
		for o := range x.count() {
			i, n := o/stride[seq]%x.shape[seq], lens.intAt(o/stride[batch]%x.shape[batch])
			if n < 0 || n > x.shape[seq] {
				return c.invalid("a length is %d, outside [0, %d]", n, x.shape[seq])
			}
			from := o
			if i < n {
				from += (n - 1 - 2*i) * stride[seq]
			}
			copyElems(d, o, x, from, 1)
		}
		return nil
	}, nil
}

func transposed(c *call) error {
	x := c.in(0)
	perm := c.intsOf(0, c.in(1))
	if err := c.ranked(x); err != nil {
		return err
	}
	if len(perm) != len(x.shape) {
		return c.invalid("permutation %s does not fit %s", shapeString(perm), x.describe())
	}
	stride := c.rowMajor(1, x.shape)
	shape, moved := c.dims(2, len(perm)), c.dims(3, len(perm))
	seen := 0
	for i, p := range perm {
		if p < 0 || p >= len(perm) || seen&(1<<p) != 0 {
			return c.invalid("%s is no permutation", shapeString(perm))
		}
		seen |= 1 << p
		shape[i], moved[i] = x.shape[p], stride[p]
	}
	d := c.out(0, x.dtype, shape...)
	if x.dtype == tFloat && len(perm) == 2 && perm[0] == 1 {
		transpose32(elems[float32](d), elems[float32](x), x.shape[0], x.shape[1])
		return nil
	}
	gatherStrided(d, x, moved, 0)
	return nil
}

func transpose32(d, x []float32, m, n int) {
	for i := range m {
		row := x[i*n : (i+1)*n]
		for j, v := range row {
			d[j*m+i] = v
		}
	}
}

func buildSpaceDepth(toDepth bool) func(*builder) (kernel, error) {
	return func(b *builder) (kernel, error) {
		size := b.int("block_size", 0)
		if f := b.string("data_format", "NHWC"); f != "NHWC" {
			return nil, fmt.Errorf("no kernel for data_format=%s", f)
		}
		return func(c *call) error { return c.spaceDepth(size, toDepth) }, nil
	}
}

// spaceDepth moves blocks of size x size pixels into channels, or back.
func (c *call) spaceDepth(size int, toDepth bool) error {
	x := c.in(0)
	if len(x.shape) != 4 || size < 1 || size > 1<<15 {
		return c.invalid("blocks of %d in %s", size, x.describe())
	}
	n, h, w, ch := x.shape[0], x.shape[1], x.shape[2], x.shape[3]
	if toDepth && (h%size != 0 || w%size != 0) || !toDepth && ch%(size*size) != 0 {
		return c.invalid("blocks of %d do not fit %s", size, x.describe())
	}
	var d *tensor
	if toDepth {
		h, w = h/size, w/size
		d = c.out(0, x.dtype, n, h, w, ch*size*size)
	} else {
		ch /= size * size
		d = c.out(0, x.dtype, n, h*size, w*size, ch)
	}
	for i := range n * h * w * size * size {
		q := i % size
		p := i / size % size
		j := i / (size * size) % w
		r := i / (size * size * w) // row of blocks over the batch
		deep := ((r*w+j)*size*size + p*size + q) * ch
		flat := ((r*size+p)*w*size + j*size + q) * ch
		if toDepth {
			copyElems(d, deep, x, flat, ch)
		} else {
			copyElems(d, flat, x, deep, ch)
		}
	}
	return nil
}
