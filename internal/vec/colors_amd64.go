//go:build amd64 && !noasm

package vec

func turnHueWide(r, g, b []float32, shift float32) int {
	n := eights(len(r))
	sTurnHue(first(r), first(g), first(b), shift, n)
	return n
}

func saturateWide(r, g, b []float32, by float32) int {
	n := eights(len(r))
	sSaturate(first(r), first(g), first(b), by, n)
	return n
}
