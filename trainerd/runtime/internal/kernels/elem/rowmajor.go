package elem

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Walk visits the elements of a tensor of the given shape in row-major order
// and calls f with the position in another tensor, reached by strides from
// start. The last dimension is left to f.
func Walk(shape, stride []int, start int, f func(o, at int)) {
	rank := len(shape)
	if exec.NumElements(shape) == 0 {
		return
	}
	if rank == 0 {
		f(0, start)
		return
	}
	var idx [exec.MaxRank]int
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

// GatherStrided fills d, row by row, from x: the element at index i comes from
// start + the sum of i*stride.
func GatherStrided(d, x *exec.Tensor, stride []int, start int) {
	moveStrided(d, x, layout{shape: d.Shape, stride: stride, start: start})
}

// ScatterStrided is the inverse: the elements of x go to places in d.
func ScatterStrided(d, x *exec.Tensor, stride []int, start int) {
	moveStrided(d, x, layout{shape: x.Shape, stride: stride, start: start, scatter: true})
}

// Gather is GatherStrided of elements: d has the given shape.
func Gather[T any](d, x []T, shape, stride []int) {
	var room [2][exec.MaxRank + 2]int
	l := layout{}
	l.shape, l.stride = joined(shape, stride, room[0][:0], room[1][:0])
	move(d, x, l)
}

// Scatter is ScatterStrided of elements: x has the given shape.
func Scatter[T any](d, x []T, shape, stride []int) {
	var room [2][exec.MaxRank + 2]int
	l := layout{scatter: true}
	l.shape, l.stride = joined(shape, stride, room[0][:0], room[1][:0])
	move(d, x, l)
}

// layout says where the elements of one tensor are in another one, from which they are
// taken unless they are scattered.
type layout struct {
	shape, stride []int
	start         int
	scatter       bool
}

func moveStrided(d, x *exec.Tensor, l layout) {
	var room [2][exec.MaxRank + 2]int
	l.shape, l.stride = joined(l.shape, l.stride, room[0][:0], room[1][:0])
	if x.DType == exec.String {
		move(d.Strings, x.Strings, l)
		return
	}
	switch exec.ElemSize(x.DType) {
	case 1:
		move(exec.Elems[uint8](d), exec.Elems[uint8](x), l)
	case 2:
		move(exec.Elems[uint16](d), exec.Elems[uint16](x), l)
	case 4:
		move(exec.Elems[uint32](d), exec.Elems[uint32](x), l)
	case 8:
		move(exec.Elems[uint64](d), exec.Elems[uint64](x), l)
	case 16:
		move(exec.Elems[complex128](d), exec.Elems[complex128](x), l)
	}
}

// joined returns dimensions, two at least, in memory that is there for them: one for
// those whose elements follow each other.
func joined(of, by, shape, stride []int) ([]int, []int) {
	shape, stride = append(shape, 1), append(stride, 0)
	for i, n := range of {
		last := len(shape) - 1
		if stride[last] == n*by[i] {
			shape[last], stride[last] = shape[last]*n, by[i]
			continue
		}
		shape, stride = append(shape, n), append(stride, by[i])
	}
	if len(shape) == 1 {
		shape, stride = append(shape, 1), append(stride, 1)
	}
	return shape, stride
}

// transposedLines is how many cache lines stay in the first cache where a matrix is transposed.
const transposedLines = 32

// move moves the elements, those of the last two dimensions in loops of its own.
func move[T any](d, x []T, l layout) {
	r := len(l.shape) - 1
	n, last := l.shape[r], l.stride[r]
	rows, next := l.shape[r-1], l.stride[r-1]
	if 1 < n && n <= shortRow && last == 1 {
		Walk(l.shape[:r], l.stride[:r], l.start, func(o, at int) {
			if near := n * o; l.scatter {
				putShort(d, x[near:near+n*rows], at, n, next)
			} else {
				takeShort(d[near:near+n*rows], x, at, n, next)
			}
		})
		return
	}
	// Elements of neighbouring rows share cache lines where a matrix is transposed.
	block := n
	if next == 1 && last > 1 && n > 2*transposedLines {
		block = transposedLines
	}
	Walk(l.shape[:r], l.stride[:r], l.start, func(o, at int) {
		for j := 0; j < n; j += block {
			m := min(block, n-j)
			for i := range rows {
				near, far := (o+i)*n+j, at+i*next+j*last
				if l.scatter {
					putRow(d, x[near:near+m], far, last)
				} else {
					takeRow(d[near:near+m], x, far, last)
				}
			}
		}
	})
}

// shortRow is how many elements that follow each other are moved without a loop: such as the
// colours of a pixel, or the coordinates of a point.
const shortRow = 4

// takeShort is takeRow for rows of n elements that follow each other. The rows of x are as far
// from each other as step says.
func takeShort[T any](d, x []T, at, n, step int) {
	for ; len(d) >= n; at += step {
		from := x[at:][:n:n]
		d[0], d[1] = from[0], from[1]
		if n > 2 {
			d[2] = from[2]
		}
		if n > 3 {
			d[3] = from[3]
		}
		d = d[n:]
	}
}

// putShort is putRow for such rows.
func putShort[T any](d, x []T, at, n, step int) {
	for ; len(x) >= n; at += step {
		to := d[at:][:n:n]
		to[0], to[1] = x[0], x[1]
		if n > 2 {
			to[2] = x[2]
		}
		if n > 3 {
			to[3] = x[3]
		}
		x = x[n:]
	}
}

func takeRow[T any](d, x []T, at, step int) {
	if step == 1 && len(d) > 8 {
		copy(d, x[at:at+len(d)])
		return
	}
	for j := range d {
		d[j] = x[at]
		at += step
	}
}

func putRow[T any](d, x []T, at, step int) {
	if step == 1 && len(x) > 8 {
		copy(d[at:at+len(x)], x)
		return
	}
	for _, v := range x {
		d[at] = v
		at += step
	}
}

// RowMajor returns the strides of a shape in scratch memory k.
func RowMajor(c *exec.KernelContext, k int, shape []int) []int {
	s := c.ScratchInts(k, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// Zeros returns n zeros in scratch memory k.
func Zeros(c *exec.KernelContext, k, n int) []int {
	s := c.ScratchInts(k, n)
	clear(s)
	return s
}
