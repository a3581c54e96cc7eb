//go:build (amd64 || arm64) && !noasm

package vec

// function is one of those that the assembly has. It is called by number, not by
// a func value, so that nothing escapes.
type function int

const (
	expFunction function = iota
	logFunction
	tanhFunction
	erfFunction
	erfcFunction
	sigmoidFunction
	sinFunction
	cosFunction
)

func (f function) call(d, x *float32, n int) {
	switch f {
	case expFunction:
		sExp(d, x, n)
	case logFunction:
		sLog(d, x, n)
	case tanhFunction:
		sTanh(d, x, n)
	case erfFunction:
		sErf(d, x, n)
	case erfcFunction:
		sErfc(d, x, n)
	case sigmoidFunction:
		sSigmoid(d, x, n)
	case sinFunction:
		sSin(d, x, n)
	case cosFunction:
		sCos(d, x, n)
	}
}

// whole runs a function of float32 on all elements, and returns their number,
// or 0 for float64.
func whole[T Float](d, x []T, f function) int {
	if !assembly || !single[T]() {
		return 0
	}
	n := wide[T](len(d))
	f.call(f32(d), f32(x), n)
	if n == len(d) {
		return n
	}
	// The rest goes the same way, so that an element's result does not
	// depend on its place.
	var rest [register / 4]T
	copy(rest[:], x[n:])
	f.call(f32(rest[:]), f32(rest[:]), len(rest))
	copy(d[n:], rest[:])
	return len(d)
}

func expWide[T Float](d, x []T) int     { return whole(d, x, expFunction) }
func logWide[T Float](d, x []T) int     { return whole(d, x, logFunction) }
func tanhWide[T Float](d, x []T) int    { return whole(d, x, tanhFunction) }
func erfWide[T Float](d, x []T) int     { return whole(d, x, erfFunction) }
func erfcWide[T Float](d, x []T) int    { return whole(d, x, erfcFunction) }
func sigmoidWide[T Float](d, x []T) int { return whole(d, x, sigmoidFunction) }
func sinWide[T Float](d, x []T) int     { return whole(d, x, sinFunction) }
func cosWide[T Float](d, x []T) int     { return whole(d, x, cosFunction) }
