package elem

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Spread broadcasts x, of shape from, to d, of shape to.
func Spread[T exec.Element](c *exec.KernelContext, d, x []T, to, from []int) {
	if len(d) == 0 {
		return
	}
	var times, dims [exec.MaxRank]int
	rank := len(to)
	for i := range rank {
		dims[i] = DimFrom(from, rank, i)
		times[i] = to[i] / max(1, dims[i])
	}
	Repeat(c, d, x, dims[:rank], times[:rank])
}

// Repeat fills d, which is not empty, with x repeated along each of its
// dimensions.
func Repeat[T exec.Element](c *exec.KernelContext, d, x []T, dims, times []int) {
	// What is not repeated stays with the dimension before it.
	for len(dims) > 0 && times[len(dims)-1] == 1 {
		dims, times = dims[:len(dims)-1], times[:len(times)-1]
	}
	if len(dims) == 0 {
		copy(d, x)
		return
	}
	// Nor do dimensions that are not repeated need more than one.
	var joined [2][exec.MaxRank]int
	rank := 0
	for i, n := range dims {
		if rank > 0 && times[i] == 1 && joined[1][rank-1] == 1 {
			joined[0][rank-1] *= n
			continue
		}
		joined[0][rank], joined[1][rank] = n, times[i]
		rank++
	}
	repeat(c, d, x, joined[0][:rank], joined[1][:rank])
}

// repeat fills one block, and copies it as often as the first dimension says.
func repeat[T exec.Element](c *exec.KernelContext, d, x []T, dims, times []int) {
	once := len(d) / times[0]
	switch {
	case len(dims) == 2 && len(x) == dims[0]:
		repeatEach(c, d[:once], x, times[1])
	case len(dims) > 1:
		from, to := len(x)/dims[0], once/dims[0]
		for i := range dims[0] {
			repeat(c, d[i*to:(i+1)*to], x[i*from:(i+1)*from], dims[1:], times[1:])
		}
	case once == 1:
		fill(c, d, x[0])
		return
	default:
		copy(d, x)
	}
	double(c, d, once)
}

// repeatEach fills d with each element of x so many times.
func repeatEach[T any](c *exec.KernelContext, d, x []T, times int) {
	const few = 16
	for i, v := range x {
		to := d[i*times:][:times]
		if times > few {
			fill(c, to, v)
			continue
		}
		for k := range to {
			to[k] = v
		}
	}
}

// fill sets all elements to v: some by one, the others by copying those, which
// moves many at a time.
func fill[T any](c *exec.KernelContext, d []T, v T) {
	some := min(len(d), 16)
	for i := range some {
		d[i] = v
	}
	double(c, d, some)
}

// double repeats the first elements of d until it is full. Between long pieces it
// looks at the context.
func double[T any](c *exec.KernelContext, d []T, first int) {
	const piece = exec.PieceBytes / 8
	for done := first; done < len(d); {
		from := done % first
		n := min(done-from, len(d)-done, piece)
		if n == piece {
			c.GoOn()
		}
		done += copy(d[done:done+n], d[from:from+n])
	}
}
