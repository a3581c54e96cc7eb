package tfevents

import "math"

// Point is one point of a [Series]. [RunData.Value] returns its value.
type Point struct {
	WallTime float64
	Step     int64

	series *Series
	cell   cell
}

// Replaces reports whether the previous point of the series is at the same step and from the same
// writer: TensorBoard's data server shows only the last of such points.
func (p Point) Replaces(previous Point) bool {
	return p.Step == previous.Step && (p.cell.file == previous.cell.file || !p.series.points.isMixed())
}

// Size returns how many bytes the value of the point takes, encoded.
func (p Point) Size() int {
	if p.cell.form == formSimple {
		return int(simpleValueSize(p.series.Tag))
	}
	return p.cell.size
}

// Scalar returns the value of a scalar that the index holds: a 32-bit one, in
// either style, as all writers make them. [decode.Scalar] reads the others.
func (p Point) Scalar() (float64, bool) {
	return float64(math.Float32frombits(p.cell.number)), p.cell.form != formOther
}
