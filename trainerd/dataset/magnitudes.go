package dataset

import (
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// Magnitudes is the unit of columns whose numbers may be followed by K, M or B, for thousands,
// millions and billions, as in 950, 1.2K and $3M.
const Magnitudes = "K/M/B"

var magnitudes = map[byte]float64{'K': 1e3, 'k': 1e3, 'M': 1e6, 'B': 1e9}

// fromMagnitude returns the number of a field such as 1.2K as Go writes it; false for any other
// field.
func fromMagnitude(field string) (number string, ok bool) {
	const longest, currencies = 64, "$€£¥"
	if len(field) < 2 || len(field) > longest {
		return "", false
	}
	factor := magnitudes[field[len(field)-1]]
	plain := strings.TrimLeft(field[:len(field)-1], currencies)
	if factor == 0 || !table.IsNumber(plain) {
		return "", false
	}
	v, err := strconv.ParseFloat(plain, 64)
	return strconv.FormatFloat(v*factor, 'g', -1, 64), err == nil
}

// magnitudeOf counts a field such as 1.2K.
func (p *Profile) magnitudeOf(field string) {
	if _, ok := fromMagnitude(field); ok {
		p.magnitudes++
		p.marks |= 1 << (field[len(field)-1] & 0x1f) // of a letter, whatever its case
	}
}

// isMagnitudes reports whether the values are numbers of several magnitudes. One magnitude alone
// is a unit.
func (p *Profile) isMagnitudes() bool {
	several := p.numbers > 0 || p.marks&(p.marks-1) != 0
	return p.magnitudes > 0 && several && p.numbers+p.magnitudes == p.present()
}
