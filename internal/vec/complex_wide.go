//go:build (amd64 || arm64) && !noasm

package vec

func butterflyWide[T Float](sum, rest, a, b *Complex[T], wRe, wIm T) int {
	n := wide[T](len(sum.Re))
	if single[T]() {
		sButterfly(f32(sum.Re), f32(sum.Im), f32(rest.Re), f32(rest.Im), f32(a.Re), f32(a.Im), f32(b.Re), f32(b.Im), float32(wRe), float32(wIm), n)
	} else {
		dButterfly(f64(sum.Re), f64(sum.Im), f64(rest.Re), f64(rest.Im), f64(a.Re), f64(a.Im), f64(b.Re), f64(b.Im), float64(wRe), float64(wIm), n)
	}
	return n
}

func mirrorWide[T Float](d, e, a, b *Complex[T], wRe, wIm T) int {
	n := wide[T](len(d.Re))
	if single[T]() {
		sMirror(f32(d.Re), f32(d.Im), f32(e.Re), f32(e.Im), f32(a.Re), f32(a.Im), f32(b.Re), f32(b.Im), float32(wRe), float32(wIm), .5, n)
	} else {
		dMirror(f64(d.Re), f64(d.Im), f64(e.Re), f64(e.Im), f64(a.Re), f64(a.Im), f64(b.Re), f64(b.Im), float64(wRe), float64(wIm), .5, n)
	}
	return n
}
