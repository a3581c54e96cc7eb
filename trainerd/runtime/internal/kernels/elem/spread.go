package elem

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Spread broadcasts x, of shape from, to d, of shape to.
func Spread[T exec.Element](d, x []T, to, from []int) {
	if len(d) == 0 {
		return
	}
	var times, dims [exec.MaxRank]int
	rank := len(to)
	for i := range rank {
		dims[i] = DimFrom(from, rank, i)
		times[i] = to[i] / max(1, dims[i])
	}
	Repeat(d, x, dims[:rank], times[:rank])
}

// Repeat fills d, which is not empty, with x repeated along each of its
// dimensions.
func Repeat[T exec.Element](d, x []T, dims, times []int) {
	// What is not repeated stays with the dimension before it.
	for len(dims) > 0 && times[len(dims)-1] == 1 {
		dims, times = dims[:len(dims)-1], times[:len(times)-1]
	}
	if len(dims) == 0 {
		copy(d, x)
		return
	}
	repeat(d, x, dims, times)
}

// repeat fills one block, and copies it as often as the first dimension says.
func repeat[T exec.Element](d, x []T, dims, times []int) {
	once := len(d) / times[0]
	switch {
	case len(dims) > 1:
		from, to := len(x)/dims[0], once/dims[0]
		for i := range dims[0] {
			repeat(d[i*to:(i+1)*to], x[i*from:(i+1)*from], dims[1:], times[1:])
		}
	case once == 1:
		fill(d, x[0])
		return
	default:
		copy(d, x)
	}
	for done := once; done < len(d); done *= 2 {
		copy(d[done:], d[:done])
	}
}

// fill sets all elements to v: some by one, the others by copying those, which
// moves many at a time.
func fill[T any](d []T, v T) {
	some := min(len(d), 16)
	for i := range some {
		d[i] = v
	}
	for done := some; done < len(d); done *= 2 {
		copy(d[done:], d[:done])
	}
}
