package dataset

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// Magnitudes is the unit of columns whose numbers may be followed by K, M or B, for thousands,
// millions and billions, or by such a word, as in 950, 1.2K, $3M and 5 billion.
const Magnitudes = "K/M/B"

var magnitudes = map[string]float64{
	"K": 1e3, "k": 1e3, "M": 1e6, "B": 1e9, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "mn": 1e6, "bn": 1e9, "tn": 1e12,
	"Mio": 1e6, "Mrd": 1e9, "Bio": 1e12, "lakh": 1e5, "crore": 1e7, "Cr": 1e7,
}

// fromMagnitude returns the number of a field such as 1.2K or $5 billion as Go writes it; false for
// any other field.
func fromMagnitude(field string) (number string, ok bool) {
	const longest = 64
	if len(field) < 2 || len(field) > longest {
		return "", false
	}
	end := strings.LastIndexAny(field, "0123456789.") + 1
	if end == len(field) && strings.HasSuffix(field, ".") { // 5 Mio.
		end = strings.LastIndexAny(field[:end-1], "0123456789.") + 1
	}
	word := strings.TrimSuffix(strings.TrimLeft(field[end:], " "), ".")
	factor := magnitudes[word]
	if factor == 0 {
		factor = magnitudes[strings.ToLower(word)]
	}
	plain := strings.TrimRight(table.TrimCurrency(field[:end]), " ")
	if factor == 0 || !table.IsNumber(plain) || len(word) == 1 && field[end] == ' ' { // 270 K are kelvins
		return "", false
	}
	v, err := strconv.ParseFloat(plain, 64)
	return strconv.FormatFloat(v*factor, 'g', -1, 64), err == nil
}

// isMagnitudes reports whether the values are numbers of several magnitudes, but for a few words
// that mean none. One magnitude alone is a unit.
func (p *Profile) isMagnitudes() bool {
	const few = 20
	n := p.numbers + p.magnitudes
	if p.magnitudes == 0 || p.numbers == 0 && p.spare == 0 {
		return false
	}
	return n == p.present() || p.hasFewOdd() && 2*n >= p.present() && (p.Distinct-len(p.odd) > few || p.Many)
}

// hasFewOdd reports whether there are words among the numbers, but no more than mean none.
func (p *Profile) hasFewOdd() bool { return len(p.odd) > 0 && len(p.odd) <= fewOdd && !p.texts }

// oddWords returns these words.
func (p *Profile) oddWords() []string {
	if len(p.odd) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(p.odd))
}
