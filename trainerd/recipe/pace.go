package recipe

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// pace is how many steps an epoch has, as far as lines with a part of an epoch and the
// steps of their bars show that. A line and its bar come by different pipes: on a busy
// machine the bar may be a later one. The epoch in the line shows that.
type pace struct {
	low, high float64 // bounds of the steps of an epoch
	agreed    int     // lines that agree
	outliers  int     // lines in a row that do not
	decimals  int     // of the epoch with the most
}

// The limits of what is believed: so many lines have to agree, and where so many in a row do
// not, these are believed.
const (
	fewAgree     = 2
	manyOutliers = 3
)

// transformers prints so many digits, in older versions so many decimals, and leaves out
// zeros at the end: 0.4 is 0.40.
const (
	mostDigits    = 4
	leastDecimals = 2
)

// correct returns the step of a point, which a bar says, or the nearest one that the epoch in
// the point allows.
func (c *pace) correct(step int64, p *Point) int64 {
	at := slices.IndexFunc(p.Values, func(v Value) bool { return v.Tag == "epoch" })
	if at < 0 || step <= 0 || !(p.Values[at].Value > 0) {
		return step
	}
	epoch := p.Values[at].Value
	half := c.halfUnit(epoch)
	if half >= epoch {
		return step
	}
	low, high := float64(step)/(epoch+half), float64(step)/(epoch-half)
	switch {
	case c.agreed > 0 && max(low, c.low) <= min(high, c.high):
		c.low, c.high, c.outliers = max(low, c.low), min(high, c.high), 0
		c.agreed++
		return step
	case (c.agreed >= fewAgree || c.agreed > 0 && low > c.high) && c.outliers+1 < manyOutliers: // a bar is rather too late than too early
		c.outliers++
		return nearest(step, (epoch-half)*c.low, (epoch+half)*c.high)
	}
	c.low, c.high, c.agreed, c.outliers = low, high, 1, 0
	return step
}

// halfUnit returns how far an epoch may be from what was printed.
func (c *pace) halfUnit(epoch float64) float64 {
	_, printed, _ := strings.Cut(strconv.FormatFloat(epoch, 'f', -1, 64), ".")
	c.decimals = max(c.decimals, leastDecimals, min(len(printed), mostDigits))
	before := max(int(math.Floor(math.Log10(epoch)))+1, 0)
	return math.Pow10(-max(min(c.decimals, mostDigits-before), 0)) / 2
}

// nearest returns the whole number within bounds that is nearest to a step, or that which is
// nearest to them where there is none.
func nearest(step int64, low, high float64) int64 {
	const rounding = 1e-6
	first, last := math.Ceil(low-rounding), math.Floor(high+rounding)
	if first > last {
		return int64(math.Round((low + high) / 2))
	}
	return int64(min(max(float64(step), first), last))
}
