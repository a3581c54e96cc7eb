package vec

// Complex is complex numbers, their real and imaginary parts apart.
type Complex[T Float] struct{ Re, Im []T }

// Butterfly sets sum to a + b, and rest to (a - b) * w: a step of a Fourier transform.
// The slice of the sum's real parts gives the length.
func Butterfly[T Float](sum, rest, a, b Complex[T], wRe, wIm T) {
	n := len(sum.Re)
	sum.Im, rest.Re, rest.Im = sum.Im[:n], rest.Re[:n], rest.Im[:n]
	a.Re, a.Im, b.Re, b.Im = a.Re[:n], a.Im[:n], b.Re[:n], b.Im[:n]
	for i := butterflyWide(&sum, &rest, &a, &b, wRe, wIm); i < n; i++ {
		re, im := times(a.Re[i]-b.Re[i], a.Im[i]-b.Im[i], wRe, wIm)
		sum.Re[i], sum.Im[i] = a.Re[i]+b.Re[i], a.Im[i]+b.Im[i]
		rest.Re[i], rest.Im[i] = re, im
	}
}

// Mirror makes two numbers of the spectrum of a real signal, d and the one that mirrors it,
// e, of the same two of the transform of the signal's pairs, a and b: of their conjugate
// parts e1 = (a + conj b)/2 and e2 = (a - conj b)/2i, d is e1 + w e2, and e the conjugate of
// e1 - w e2. They may have the memory of a and b.
func Mirror[T Float](d, e, a, b Complex[T], wRe, wIm T) {
	n := len(d.Re)
	d.Im, e.Re, e.Im = d.Im[:n], e.Re[:n], e.Im[:n]
	a.Re, a.Im, b.Re, b.Im = a.Re[:n], a.Im[:n], b.Re[:n], b.Im[:n]
	for i := mirrorWide(&d, &e, &a, &b, wRe, wIm); i < n; i++ {
		re, im := times((a.Im[i]+b.Im[i])/2, (b.Re[i]-a.Re[i])/2, wRe, wIm)
		evenRe, evenIm := (a.Re[i]+b.Re[i])/2, (a.Im[i]-b.Im[i])/2
		d.Re[i], d.Im[i] = evenRe+re, evenIm+im
		e.Re[i], e.Im[i] = evenRe-re, im-evenIm
	}
}

// times is the product of two complex numbers, not fused.
func times[T Float](re, im, wRe, wIm T) (T, T) {
	return T(re*wRe) - T(im*wIm), T(re*wIm) + T(im*wRe)
}
