//go:build amd64 && !noasm

package vec

import "unsafe"

// addWindowWide does all elements or, where they are fewer than a register has, none. The
// last register overlaps the one before.
func addWindowWide[T Float](d, x []T, at int, w []T, f *Window) int {
	n := eights(len(d))
	if !single[T]() || n == 0 {
		return 0
	}
	s := unsafe.Slice(f32(d), len(d))
	var last [8]float32
	end := len(s) - len(last)
	copy(last[:], s[end:])
	window32(s, x[at:], w, f, n)
	if n < len(s) {
		window32(last[:], x[at+end:], w[end:], f, len(last))
		copy(s[n:], last[n-end:])
	}
	return len(s)
}

func window32[T Float](d []float32, x, w []T, f *Window, n int) {
	sWindow(first(d), f32(x), f32(w), f.Rows, f.Taps, 4*f.XRow, 4*f.XTap, 4*f.WRow, 4*f.WTap, n)
}
