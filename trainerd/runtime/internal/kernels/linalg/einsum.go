package linalg

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/gemm"
)

var einsumOps = exec.OpTable{
	"Einsum": {Types: factorTypes, Build: withHalves("T", buildEinsum)},
}

// einsumTerm is one operand or the result of an equation: a letter for each
// dimension, with "..." for any number of dimensions between head and tail.
type einsumTerm struct {
	head, tail string
	dots       bool
}

// The dimensions of "..." are labels after the letters, counted from the last
// one, so that operands of different rank align.
const (
	einsumDots   = 1 << 8
	einsumLabels = einsumDots + exec.MaxRank
)

// einsumDims holds the size of each label, -1 for one that is not used.
type einsumDims [einsumLabels]int

func parseEinsum(equation string, inputs int) ([]einsumTerm, error) {
	left, right, ok := strings.Cut(strings.ReplaceAll(equation, " ", ""), "->")
	operands := strings.Split(left, ",")
	if !ok || len(operands) != inputs || inputs < 1 || inputs > 2 {
		return nil, fmt.Errorf("no kernel for equation %q with %d inputs", equation, inputs)
	}
	var terms []einsumTerm
	for _, text := range append(operands, right) {
		var t einsumTerm
		t.head, t.tail, t.dots = strings.Cut(text, "...")
		for _, r := range t.head + t.tail {
			if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
				return nil, fmt.Errorf("equation %q is not one", equation)
			}
		}
		terms = append(terms, t)
	}
	return terms, nil
}

func buildEinsum(b *exec.OpConstruction) (exec.Kernel, error) {
	terms, err := parseEinsum(b.String("equation"), b.NumInputs())
	if err != nil {
		return nil, err
	}
	switch b.DType("T") {
	case exec.Complex64:
		return einsum(terms, gemm.Complex64s, nil), nil
	case exec.Complex128:
		return einsum(terms, gemm.Complex128s, nil), nil
	case exec.Bfloat16:
		wide, err := exec.Widened("T", buildEinsum)(b)
		return einsum(terms, gemm.Bfloat16s, wide), err
	}
	return exec.ByType(b.DType("T"), einsum(terms, gemm.Many32s, nil), einsum(terms, gemm.Many64s, nil), einsum(terms, gemm.Integers[int32], nil), einsum(terms, gemm.Integers[int64], nil))
}

// labels writes the term's labels for a tensor of the given rank to out.
func (t *einsumTerm) labels(rank int, out []int) ([]int, error) {
	dots := rank - len(t.head) - len(t.tail)
	if rank > exec.MaxRank || dots < 0 || dots > 0 && !t.dots {
		return nil, fmt.Errorf("a tensor of rank %d does not fit %s", rank, t)
	}
	out = out[:0]
	for _, r := range []byte(t.head) {
		out = append(out, int(r))
	}
	for i := range dots {
		out = append(out, einsumDots+dots-1-i)
	}
	for _, r := range []byte(t.tail) {
		out = append(out, int(r))
	}
	return out, nil
}

func (t *einsumTerm) String() string {
	if t.dots {
		return t.head + "..." + t.tail
	}
	return t.head
}

// einsumOperand is an operand, seen as a function of labels.
type einsumOperand struct {
	t      *exec.Tensor
	labels []int
	stride [einsumLabels]int // repeated labels walk the diagonal
	has    [einsumLabels]bool
}

// load enters an operand's sizes into dims. Dimensions of "..." broadcast.
func (o *einsumOperand) load(term *einsumTerm, t *exec.Tensor, dims *einsumDims) error {
	var err error
	if o.labels, err = term.labels(len(t.Shape), make([]int, 0, exec.MaxRank)); err != nil {
		return err
	}
	o.t = t
	step := 1
	for i := len(o.labels) - 1; i >= 0; i-- {
		l, n := o.labels[i], t.Shape[i]
		switch {
		case dims[l] < 0 || l >= einsumDots && dims[l] == 1:
			dims[l] = n
		case dims[l] != n && (l < einsumDots || n != 1):
			return fmt.Errorf("dimension %d of %s is not %d", i, t.Describe(), dims[l])
		}
		o.has[l] = true
		if l < einsumDots || n > 1 {
			o.stride[l] += step
		}
		step *= n
	}
	return nil
}

// einsumPlan sorts the labels by what becomes of them: pairs of matrices, one
// pair for each value of the batch labels, are multiplied.
type einsumPlan struct {
	dims                      einsumDims
	batch, left, right, inner []int
	alone                     [2][]int // labels that only one operand has: they are summed
}

func (p *einsumPlan) sort(a, b *einsumOperand, kept *[einsumLabels]bool) {
	for l, n := range p.dims {
		inA, inB := a.has[l], b.has[l]
		switch {
		case n < 0:
		case inA && inB && kept[l]:
			p.batch = append(p.batch, l)
		case inA && inB:
			p.inner = append(p.inner, l)
		case kept[l] && inA:
			p.left = append(p.left, l)
		case kept[l]:
			p.right = append(p.right, l)
		case inA:
			p.alone[0] = append(p.alone[0], l)
		default:
			p.alone[1] = append(p.alone[1], l)
		}
	}
}

func (p *einsumPlan) size(lists ...[]int) int {
	n := 1
	for _, list := range lists {
		for _, l := range list {
			n *= p.dims[l]
		}
	}
	return n
}

// einsumPack lays an operand's elements out in the order of the labels, with
// those in alone summed, in scratch memory k - or where they are if they
// already lie so.
func einsumPack[T exec.Arithmetic](c *exec.KernelContext, k int, p *einsumPlan, o *einsumOperand, alone []int, order ...[]int) ([]T, error) {
	shape, stride, err := p.strided(&o.stride, order...)
	if err != nil {
		return nil, err
	}
	src := exec.Elems[T](o.t)
	if len(alone) == 0 && isRowMajor(shape, stride) {
		return src, nil
	}
	d := exec.Scratch[T](c, k, exec.NumElements(shape))
	if exec.NumElements(shape) == 0 {
		return d, nil
	}
	over, overStride, err := p.strided(&o.stride, alone)
	if err != nil {
		return nil, err
	}
	if len(alone) == 0 {
		elem.Gather(d, src, shape, stride)
		return d, nil
	}
	n, step := lastOf(shape, stride)
	m, overStep := lastOf(over, overStride)
	elem.Walk(shape, stride, 0, func(to, at int) {
		for i := range n {
			var s T
			elem.Walk(over, overStride, at+i*step, func(_, at int) {
				for j := range m {
					s += src[at+j*overStep]
				}
			})
			d[to+i] = s
		}
	})
	return d, nil
}

// strided returns sizes and strides of labels.
func (p *einsumPlan) strided(by *[einsumLabels]int, order ...[]int) (shape, stride []int, err error) {
	for _, list := range order {
		for _, l := range list {
			shape, stride = append(shape, p.dims[l]), append(stride, by[l])
		}
	}
	if len(shape) > exec.MaxRank {
		return nil, nil, fmt.Errorf("an equation of more than %d dimensions", exec.MaxRank)
	}
	return shape, stride, nil
}

// lastOf returns the size and stride that walk leaves to its callback.
func lastOf(shape, stride []int) (n, step int) {
	if len(shape) == 0 {
		return 1, 1
	}
	return shape[len(shape)-1], stride[len(shape)-1]
}

func isRowMajor(shape, stride []int) bool {
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] != 1 && stride[i] != n {
			return false
		}
		n *= shape[i]
	}
	return true
}

// einsum is the kernel of an equation. adding takes what needs more of the elements than to be
// moved and multiplied by mul; nil if T adds by itself.
func einsum[T exec.Arithmetic](terms []einsumTerm, mul gemm.Func[T], adding exec.Kernel) exec.Kernel {
	return func(c *exec.KernelContext) error {
		p := &einsumPlan{}
		for i := range p.dims {
			p.dims[i] = -1
		}
		var operands [2]einsumOperand
		dots := 0
		for i := range c.NumInputs() {
			if err := operands[i].load(&terms[i], c.In(i), &p.dims); err != nil {
				return c.Invalid("%v", err)
			}
			dots = max(dots, len(c.In(i).Shape)-len(terms[i].head)-len(terms[i].tail))
		}
		result := &terms[len(terms)-1]
		rank := len(result.head) + len(result.tail)
		if result.dots {
			rank += dots
		}
		labels, err := result.labels(rank, make([]int, 0, exec.MaxRank))
		if err != nil {
			return c.Invalid("%v", err)
		}
		shape, err := p.result(&operands, labels)
		if err != nil {
			return c.Invalid("%v", err)
		}
		vectors := c.NumInputs() == 2 && p.byVectors(&operands, labels)
		if adding != nil && (vectors || len(p.alone[0])+len(p.alone[1]) > 0) {
			return adding(c)
		}
		if c.NumInputs() == 2 && !vectors && p.turned(labels) {
			p.turn(&operands)
		}
		if vectors {
			err = einsumVectors(p, exec.Elems[T](c.Out(0, operands[0].t.DType, shape...)), &operands, labels)
		} else {
			err = einsumRun(c, p, &operands, labels, shape, mul)
		}
		if err != nil {
			return c.Invalid("%v", err)
		}
		return nil
	}
}

// result sorts the labels, and returns the shape of the result, whose dimensions have those that are
// given.
func (p *einsumPlan) result(operands *[2]einsumOperand, labels []int) ([]int, error) {
	var kept [einsumLabels]bool
	shape := make([]int, len(labels))
	for i, l := range labels {
		if p.dims[l] < 0 {
			return nil, fmt.Errorf("dimension %d of the result is in no input", i)
		}
		kept[l] = true
		shape[i] = p.dims[l]
	}
	p.sort(&operands[0], &operands[1], &kept)
	return shape, nil
}

// turned reports whether the product of the operands is the transposed one of the result, as that
// for the gradient of a weight is: then the factors should change places.
func (p *einsumPlan) turned(labels []int) bool {
	for _, l := range labels {
		if left := slices.Contains(p.left, l); left || slices.Contains(p.right, l) {
			return !left
		}
	}
	return false
}

func (p *einsumPlan) turn(operands *[2]einsumOperand) {
	operands[0], operands[1] = operands[1], operands[0]
	p.left, p.right = p.right, p.left
	p.alone[0], p.alone[1] = p.alone[1], p.alone[0]
}

// einsumRun computes output 0, whose dimensions have the given labels, by products of matrices.
func einsumRun[T exec.Arithmetic](c *exec.KernelContext, p *einsumPlan, operands *[2]einsumOperand, labels, shape []int, mul gemm.Func[T]) error {
	x, ta, err := einsumMatrices[T](c, exec.ScratchA, p, &operands[0], p.alone[0], p.left, p.inner)
	if err != nil {
		return err
	}
	d := exec.Elems[T](c.Out(0, operands[0].t.DType, shape...))
	from, stride, err := p.places(shape, labels)
	if err != nil {
		return err
	}
	if c.NumInputs() == 1 {
		einsumUnpack(d, x, from, stride)
		return nil
	}
	y, tb, err := einsumMatrices[T](c, exec.ScratchB, p, &operands[1], p.alone[1], p.inner, p.right)
	if err != nil {
		return err
	}
	product, size := d, p.size(p.batch, p.left, p.right)
	inPlace := size == len(d) && isRowMajor(from, stride)
	if !inPlace {
		product = exec.Scratch[T](c, exec.ScratchC, size)
	}
	einsumMultiply(c, p, matrixPairs[T]{mul: mul, tx: ta, ty: tb, x: x, y: y, d: product})
	if !inPlace {
		einsumUnpack(d, product, from, stride)
	}
	return nil
}

// einsumMatrices returns an operand as matrices, one for each value of the batch labels,
// and whether they are transposed: so that they are where they lie, or that what lies next
// to each other stays so.
func einsumMatrices[T exec.Arithmetic](c *exec.KernelContext, k int, p *einsumPlan, o *einsumOperand, alone, rows, cols []int) (m []T, transposed bool, err error) {
	shape, stride, err := p.strided(&o.stride, p.batch, cols, rows)
	if err != nil {
		return nil, false, err
	}
	if len(rows) > 0 && len(cols) > 0 && (isRowMajor(shape, stride) || o.stride[rows[len(rows)-1]] == 1) {
		m, err = einsumPack[T](c, k, p, o, alone, p.batch, cols, rows)
		return m, true, err
	}
	m, err = einsumPack[T](c, k, p, o, alone, p.batch, rows, cols)
	return m, false, err
}

// einsumMultiply multiplies the matrices of each value of the batch labels.
func einsumMultiply[T exec.Arithmetic](c *exec.KernelContext, p *einsumPlan, pairs matrixPairs[T]) {
	pairs.m, pairs.n, pairs.k = p.size(p.left), p.size(p.right), p.size(p.inner)
	batch := []int{p.size(p.batch)}
	_ = pairs.batch.Init(batch, batch) // equal shapes fit
	w := exec.InFrame[matrixPairs[T]](c)
	*w = pairs
	w.do(batch[0])
	*w = matrixPairs[T]{}
}

// places returns the sizes of the product's dimensions, and the strides that they have in the
// result.
func (p *einsumPlan) places(shape, labels []int) (size, stride []int, err error) {
	var by [einsumLabels]int
	step := 1
	for i := len(labels) - 1; i >= 0; i-- {
		by[labels[i]] += step
		step *= shape[i]
	}
	return p.strided(&by, p.batch, p.left, p.right)
}

// einsumUnpack moves the product to its places. Where a label is repeated the rest of the
// result is zero.
func einsumUnpack[T exec.Arithmetic](d, product []T, size, stride []int) {
	if len(product) != len(d) {
		clear(d)
	}
	elem.Scatter(d, product, size, stride)
}
