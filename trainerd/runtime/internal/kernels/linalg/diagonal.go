package linalg

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops on the diagonals of the matrices in the last two dimensions.
var diagonalOps = exec.OpTable{
	"MatrixDiag":       {Types: exec.ValueTypes, Build: exec.WithoutAttrs(matrixDiag)},
	"MatrixDiagV2":     {Types: exec.ValueTypes, Build: buildDiagBands},
	"MatrixDiagV3":     {Types: exec.ValueTypes, Build: buildDiagBands},
	"MatrixDiagPart":   {Types: exec.ValueTypes, Build: exec.WithoutAttrs(matrixDiagPart)},
	"MatrixDiagPartV2": {Types: exec.ValueTypes, Build: buildDiagPartBands},
	"MatrixDiagPartV3": {Types: exec.ValueTypes, Build: buildDiagPartBands},
	"MatrixSetDiag":    {Types: exec.ValueTypes, Build: exec.WithoutAttrs(matrixSetDiag)},
	"MatrixSetDiagV2":  {Types: exec.ValueTypes, Build: buildSetDiagBands},
	"MatrixSetDiagV3":  {Types: exec.ValueTypes, Build: buildSetDiagBands},
	"Diag":             {Types: exec.ValueTypes, Build: exec.WithoutAttrs(diagTensor)},
	"DiagPart":         {Types: exec.ValueTypes, Build: exec.WithoutAttrs(diagTensorPart)},

	"MatrixBandPart": {Types: exec.ValueTypes, Build: exec.WithoutAttrs(bandPart)},
}

// matrices is a tensor as a batch of matrices.
type matrices struct{ batch, rows, cols int }

func matricesOf(c *exec.KernelContext, i int) (matrices, error) {
	x := c.In(i)
	r := len(x.Shape)
	if r < 2 {
		return matrices{}, c.Invalid("the input must be a matrix or a batch of them, not %s", x.Describe())
	}
	return matrices{exec.NumElements(x.Shape[:r-2]), x.Shape[r-2], x.Shape[r-1]}, nil
}

// bands is a range of diagonals, counted from the main one upwards. Each is
// stored in a row of width elements, to the left or to the right of the row.
type bands struct {
	lo, hi, width      int
	superLeft, subLeft bool // alignment of diagonals above and below the main one
}

// bandsFrom reads a range of diagonals from input i, for matrices of a shape.
func bandsFrom(c *exec.KernelContext, i int, m matrices, superLeft, subLeft bool) (bands, error) {
	k := c.IntsOf(1, c.In(i))
	if len(k) < 1 || len(k) > 2 {
		return bands{}, c.Invalid("the diagonals must be one number or two, not %s", c.In(i).Describe())
	}
	b := bands{lo: k[0], hi: k[len(k)-1], superLeft: superLeft, subLeft: subLeft}
	if b.lo > b.hi || b.lo <= -m.rows && b.lo != 0 || b.hi >= m.cols && b.hi != 0 {
		return b, c.Invalid("diagonals %v are not in %d by %d matrices", k, m.rows, m.cols)
	}
	b.width = min(m.rows+min(b.hi, 0), m.cols-max(b.lo, 0))
	return b, nil
}

// count returns the number of diagonals.
func (b *bands) count() int { return b.hi - b.lo + 1 }

// alignment parses attribute align, such as RIGHT_LEFT: how diagonals above
// and below the main one are padded. Older ops, without it, pad on the right.
func alignment(b *exec.OpConstruction) (superLeft, subLeft bool) {
	switch align := b.StringOr("align", "LEFT_LEFT"); align {
	case "LEFT_LEFT":
		return true, true
	case "LEFT_RIGHT":
		return true, false
	case "RIGHT_LEFT":
		return false, true
	case "RIGHT_RIGHT":
		return false, false
	default:
		b.Fail("attribute align is %q", align)
		return true, true
	}
}

// each calls f for every element of the bands with its place in the stored
// diagonals, which begin with the highest, and its place in the matrix.
func (b *bands) each(m matrices, f func(stored, at int)) {
	for d := b.hi; d >= b.lo; d-- {
		n := max(0, min(m.rows+min(d, 0), m.cols-max(d, 0)))
		row, col := max(-d, 0), max(d, 0)
		start := (b.hi - d) * b.width
		if d >= 0 && !b.superLeft || d < 0 && !b.subLeft {
			start += b.width - n
		}
		for i := range n {
			f(start+i, (row+i)*m.cols+col+i)
		}
	}
}

func matrixDiag(c *exec.KernelContext) error {
	x := c.In(0)
	if len(x.Shape) < 1 {
		return c.Invalid("the diagonal must be a vector or a batch of them, not %s", x.Describe())
	}
	n := x.Dim(-1)
	d := c.Out(0, x.DType, append(append(c.ScratchInts(0, 0), x.Shape...), n)...)
	elem.Zero(d)
	for i := range x.NumElements() {
		exec.CopyElems(d, i*n+i%n, x, i, 1)
	}
	return nil
}

// matrixSize reads the size of the matrices to make from inputs 2 and 3; -1
// asks for the smallest that diagonals of n elements fit into.
func matrixSize(c *exec.KernelContext, n, lo, hi int) (matrices, error) {
	rows, err := c.IntScalar(2, "the number of rows")
	if err != nil {
		return matrices{}, err
	}
	cols, err := c.IntScalar(3, "the number of columns")
	if err != nil {
		return matrices{}, err
	}
	m := matrices{rows: n - min(hi, 0), cols: n + max(lo, 0)}
	switch {
	case rows == -1 && cols == -1:
		m.rows = max(m.rows, m.cols)
		m.cols = m.rows
	case rows != -1 && cols != -1:
		m.rows, m.cols = rows, cols
	case rows != -1:
		m.rows = rows
	default:
		m.cols = cols
	}
	if m.rows < 0 || m.cols < 0 {
		return m, c.Invalid("matrices of %d by %d", m.rows, m.cols)
	}
	return m, nil
}

// buildDiagBands builds the op that makes matrices from bands of diagonals.
func buildDiagBands(b *exec.OpConstruction) (exec.Kernel, error) {
	superLeft, subLeft := alignment(b)
	return func(c *exec.KernelContext) error {
		x, pad := c.In(0), c.In(4)
		k := c.IntsOf(1, c.In(1))
		if len(k) < 1 || len(k) > 2 || len(x.Shape) < 1 || pad.NumElements() != 1 {
			return c.Invalid("diagonals %v of %s, padded with %s", k, x.Describe(), pad.Describe())
		}
		lo, hi := k[0], k[len(k)-1]
		m, err := matrixSize(c, x.Dim(-1), lo, hi)
		if err != nil {
			return err
		}
		band, err := bandsFrom(c, 1, m, superLeft, subLeft)
		if err != nil {
			return err
		}
		outer := x.Shape[:len(x.Shape)-1]
		if lo != hi {
			if len(outer) == 0 || outer[len(outer)-1] != band.count() {
				return c.Invalid("%s does not hold %d diagonals", x.Describe(), band.count())
			}
			outer = outer[:len(outer)-1]
		}
		if band.width != x.Dim(-1) {
			return c.Invalid("diagonals of %d elements do not fit %d by %d matrices", x.Dim(-1), m.rows, m.cols)
		}
		d := c.Out(0, x.DType, append(append(c.ScratchInts(0, 0), outer...), m.rows, m.cols)...)
		elem.Fill(d, pad)
		moveBands(c, &band, m, exec.NumElements(outer), func(stored, at int) { exec.CopyElems(d, at, x, stored, 1) })
		return nil
	}, nil
}

// moveBands calls f for every element of the bands of n matrices.
func moveBands(c *exec.KernelContext, b *bands, m matrices, n int, f func(stored, at int)) {
	for i := range n {
		b.each(m, func(stored, at int) { f(i*b.count()*b.width+stored, i*m.rows*m.cols+at) })
	}
}

func matrixDiagPart(c *exec.KernelContext) error {
	m, err := matricesOf(c, 0)
	if err != nil {
		return err
	}
	x := c.In(0)
	b := bands{width: min(m.rows, m.cols), superLeft: true, subLeft: true}
	d := c.Out(0, x.DType, append(append(c.ScratchInts(0, 0), x.Shape[:len(x.Shape)-2]...), b.width)...)
	moveBands(c, &b, m, m.batch, func(stored, at int) { exec.CopyElems(d, stored, x, at, 1) })
	return nil
}

func buildDiagPartBands(b *exec.OpConstruction) (exec.Kernel, error) {
	superLeft, subLeft := alignment(b)
	return func(c *exec.KernelContext) error {
		m, err := matricesOf(c, 0)
		if err != nil {
			return err
		}
		band, err := bandsFrom(c, 1, m, superLeft, subLeft)
		if err != nil {
			return err
		}
		x, pad := c.In(0), c.In(2)
		if pad.NumElements() != 1 {
			return c.Invalid("the padding must be a scalar, not %s", pad.Describe())
		}
		shape := append(c.ScratchInts(0, 0), x.Shape[:len(x.Shape)-2]...)
		if band.lo != band.hi {
			shape = append(shape, band.count())
		}
		d := c.Out(0, x.DType, append(shape, band.width)...)
		elem.Fill(d, pad)
		moveBands(c, &band, m, m.batch, func(stored, at int) { exec.CopyElems(d, stored, x, at, 1) })
		return nil
	}, nil
}

func matrixSetDiag(c *exec.KernelContext) error {
	m, err := matricesOf(c, 0)
	if err != nil {
		return err
	}
	return setBands(c, m, &bands{width: min(m.rows, m.cols), superLeft: true, subLeft: true})
}

func buildSetDiagBands(b *exec.OpConstruction) (exec.Kernel, error) {
	superLeft, subLeft := alignment(b)
	return func(c *exec.KernelContext) error {
		m, err := matricesOf(c, 0)
		if err != nil {
			return err
		}
		band, err := bandsFrom(c, 2, m, superLeft, subLeft)
		if err != nil {
			return err
		}
		return setBands(c, m, &band)
	}, nil
}

// setBands copies input 0 and replaces bands of it by input 1.
func setBands(c *exec.KernelContext, m matrices, b *bands) error {
	x, diagonals := c.In(0), c.In(1)
	want := append(c.ScratchInts(4, 0), x.Shape[:len(x.Shape)-2]...)
	if b.count() > 1 {
		want = append(want, b.count())
	}
	if !exec.SameShape(diagonals.Shape, append(want, b.width)) {
		return c.Invalid("%s does not hold %d diagonals of %d elements for %s", diagonals.Describe(), b.count(), b.width, x.Describe())
	}
	d := c.OutLike(0, x.DType, x)
	exec.CopyElems(d, 0, x, 0, x.NumElements())
	moveBands(c, b, m, m.batch, func(stored, at int) { exec.CopyElems(d, at, diagonals, stored, 1) })
	return nil
}

// diagTensor makes a tensor of twice the rank that is zero off the diagonal.
func diagTensor(c *exec.KernelContext) error {
	x := c.In(0)
	n := x.NumElements()
	d := c.Out(0, x.DType, append(append(c.ScratchInts(0, 0), x.Shape...), x.Shape...)...)
	elem.Zero(d)
	for i := range n {
		exec.CopyElems(d, i*(n+1), x, i, 1)
	}
	return nil
}

func diagTensorPart(c *exec.KernelContext) error {
	x := c.In(0)
	half := len(x.Shape) / 2
	if len(x.Shape)%2 != 0 || half == 0 || !exec.SameShape(x.Shape[:half], x.Shape[half:]) {
		return c.Invalid("the two halves of %s differ", exec.ShapeString(x.Shape))
	}
	d := c.Out(0, x.DType, x.Shape[:half]...)
	n := d.NumElements()
	for i := range n {
		exec.CopyElems(d, i, x, i*(n+1), 1)
	}
	return nil
}

// bandPart keeps the diagonals of matrices from the lower-th below to the
// upper-th above the main one; negative numbers keep all.
func bandPart(c *exec.KernelContext) error {
	x := c.In(0)
	lower, err := c.IntScalar(1, "the number of lower diagonals")
	if err != nil {
		return err
	}
	upper, err := c.IntScalar(2, "the number of upper diagonals")
	if err != nil {
		return err
	}
	if len(x.Shape) < 2 {
		return c.Invalid("%s is not a matrix", x.Describe())
	}
	m, n := x.Dim(-2), x.Dim(-1)
	d := c.OutLike(0, x.DType, x)
	elem.Zero(d)
	for r := range exec.NumElements(x.Shape[:len(x.Shape)-1]) {
		i := r % m
		lo, hi := 0, n
		if lower >= 0 {
			lo = min(max(0, i-lower), n)
		}
		if upper >= 0 {
			hi = min(n, i+upper+1)
		}
		if lo < hi {
			exec.CopyElems(d, r*n+lo, x, r*n+lo, hi-lo)
		}
	}
	return nil
}
