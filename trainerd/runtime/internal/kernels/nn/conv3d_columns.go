package nn

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/gemm"
)

// Convolutions of volumes whose planes are not computed as images are products: what
// the filter covers at each voxel of some lines of the output is laid out as a row of
// a matrix.

// volumeLines is some lines of the output, along the width, and how volumes map
// to the rows of their matrix: as many lines at a time as stay in the cache.
type volumeLines struct {
	*grid
	cin, column int // elements of a voxel, and of a row
	all, most   int // lines, and lines at a time
	first, n    int // the lines
}

// lines returns the first lines.
func (g *grid) lines(cin int) volumeLines {
	const elements = 1 << 19
	column := g.e[0].kernel * g.e[1].kernel * g.e[2].kernel * cin
	l := volumeLines{grid: g, cin: cin, column: column, all: g.batch * g.e[0].out * g.e[1].out}
	l.most = max(1, elements/max(1, g.e[2].out*column))
	l.n = min(l.most, l.all)
	return l
}

// next goes to the next lines; n is 0 at the end.
func (l *volumeLines) next() {
	l.first += l.n
	l.n = min(l.most, l.all-l.first)
}

// rows is the number of rows of the matrix, and span where they are in a tensor
// with so many elements for each voxel of the output.
func (l *volumeLines) rows() int { return l.n * l.e[2].out }

func (l *volumeLines) span(channels int) (from, to int) {
	line := l.e[2].out * channels
	return l.first * line, (l.first + l.n) * line
}

// matrixOf returns memory for the matrix of the most lines at a time.
func matrixOf[T float32 | float64](c *exec.KernelContext, l *volumeLines) []T {
	return exec.Scratch[T](c, exec.ScratchA, l.rows()*l.column)
}

// moveVolume fills the rows of a matrix from volumes, or adds them back.
func moveVolume[T float32 | float64](l *volumeLines, volumes, matrix []T, back bool) {
	d, h, w := &l.e[0], &l.e[1], &l.e[2]
	row := w.kernel * l.cin
	for i := range l.n {
		line := l.first + i
		n, od, oh := line/(d.out*h.out), line/h.out%d.out, line%h.out
		dlo, dhi, dbase := d.span(od)
		hlo, hhi, hbase := h.span(oh)
		lines := matrix[i*w.out*l.column:][:w.out*l.column]
		if !back && (dhi-dlo < d.kernel || hhi-hlo < h.kernel) {
			clear(lines)
		}
		for kd := dlo; kd < dhi; kd++ {
			for kh := hlo; kh < hhi; kh++ {
				at := ((n*d.in+dbase+kd*d.dilation)*h.in + hbase + kh*h.dilation) * w.in
				moveLine(w, l.cin, at, volumes, lines[(kd*h.kernel+kh)*row:], l.column, back)
			}
		}
	}
}

// moveLine moves what a row of the kernel covers at all positions of a line of volumes
// that begins with voxel at; the rows are step elements apart.
func moveLine[T float32 | float64](w *extent, cin, at int, volumes, rows []T, step int, back bool) {
	row := w.kernel * cin
	for ow := range w.out {
		to := rows[ow*step:][:row]
		if from := ow*w.stride - w.before; !back && w.dilation == 1 && from >= 0 && from+w.kernel <= w.in {
			copy(to, volumes[(at+from)*cin:])
			continue
		}
		moveRow(w, cin, ow, at, volumes, to, back)
	}
}

// moveRow moves what a row of the kernel covers at position ow of a line of
// volumes that begins with voxel at.
func moveRow[T float32 | float64](w *extent, cin, ow, at int, volumes, row []T, back bool) {
	lo, hi, base := w.span(ow)
	if !back {
		clear(row[:lo*cin])
		clear(row[hi*cin:])
	}
	step := 1
	if w.dilation == 1 {
		step = max(1, hi-lo) // all at once
	}
	for k := lo; k < hi; k += step {
		p := (at + base + k*w.dilation) * cin
		voxels, part := volumes[p:p+step*cin], row[k*cin:(k+step)*cin]
		if back {
			elem.AddTo(voxels, part)
		} else {
			copy(part, voxels)
		}
	}
}

func conv3D[T float32 | float64](mul gemm.Func[T]) func(c *exec.KernelContext, v *volumes) error {
	return func(c *exec.KernelContext, v *volumes) error {
		x, filter := c.In(0), c.In(1)
		g, err := v.filterGrid(c, x.Shape, filter.Shape)
		if err != nil {
			return err
		}
		cin, cout := filter.Shape[3], filter.Shape[4]
		d := c.Out(0, x.DType, g.outShape(cout)...)
		xs, fs, ds := exec.Elems[T](x), exec.Elems[T](filter), exec.Elems[T](d)
		if volumeConv(c, mul, &g, xs, fs, ds, cin, cout) {
			return nil
		}
		l := g.lines(cin)
		for matrix := matrixOf[T](c, &l); l.n > 0; l.next() {
			moveVolume(&l, xs, matrix, false)
			from, to := l.span(cout)
			mul(false, false, l.rows(), cout, l.column, matrix[:l.rows()*l.column], fs, 0, ds[from:to])
		}
		return nil
	}
}

func conv3DInput[T float32 | float64](mul gemm.Func[T]) func(c *exec.KernelContext, v *volumes) error {
	return func(c *exec.KernelContext, v *volumes) error {
		shape, err := sizesOr(c, 0)
		if err != nil {
			return err
		}
		filter, grad := c.In(1), c.In(2)
		g, err := v.gradArgs(c, shape, filter.Shape, grad)
		if err != nil {
			return err
		}
		cin, cout := filter.Shape[3], filter.Shape[4]
		d := c.Out(0, grad.DType, shape...)
		fs, gs, ds := exec.Elems[T](filter), exec.Elems[T](grad), exec.Elems[T](d)
		if volumeInputGrad(c, mul, &g, gs, fs, ds, cin, cout) {
			return nil
		}
		clear(ds)
		l := g.lines(cin)
		for matrix := matrixOf[T](c, &l); l.n > 0; l.next() {
			from, to := l.span(cout)
			mul(false, true, l.rows(), l.column, cout, gs[from:to], fs, 0, matrix[:l.rows()*l.column])
			moveVolume(&l, ds, matrix, true)
		}
		return nil
	}
}

func conv3DFilter[T float32 | float64](mul gemm.Func[T]) func(c *exec.KernelContext, v *volumes) error {
	return func(c *exec.KernelContext, v *volumes) error {
		shape, err := sizesOr(c, 1)
		if err != nil {
			return err
		}
		x, grad := c.In(0), c.In(2)
		g, err := v.gradArgs(c, x.Shape, shape, grad)
		if err != nil {
			return err
		}
		cin, cout := shape[3], shape[4]
		d := c.Out(0, grad.DType, shape...)
		xs, gs, ds := exec.Elems[T](x), exec.Elems[T](grad), exec.Elems[T](d)
		if volumeFilterGrad(c, mul, &g, xs, gs, ds, cin, cout) {
			return nil
		}
		clear(ds)
		l := g.lines(cin)
		// The matrix is the second factor, which need not be copied for few channels.
		sum := exec.Scratch[T](c, exec.ScratchB, cout*l.column)
		clear(sum)
		for matrix := matrixOf[T](c, &l); l.n > 0; l.next() {
			moveVolume(&l, xs, matrix, false)
			from, to := l.span(cout)
			mul(true, false, cout, l.column, l.rows(), gs[from:to], matrix[:l.rows()*l.column], 1, sum)
		}
		gemm.Turn(ds, sum, cout, l.column)
		return nil
	}
}
