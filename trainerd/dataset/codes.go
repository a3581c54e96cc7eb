package dataset

import (
	"slices"
	"strconv"
	"strings"
)

// isCode reports whether the numbers of a column are names of something, as postal
// codes are: some have needless zeros, all are equally long, and each is there
// several times.
func (p *Profile) isCode() bool {
	if p.codes == 0 || p.integers != p.numbers || p.values == nil || p.tooManyWords() {
		return false
	}
	length := 0
	for field := range p.values {
		if length != 0 && len(field) != length || strings.Trim(field, "0123456789") != "" {
			return false
		}
		length = len(field)
	}
	return true
}

// sentinel returns the number by which a column of numbers says that one is missing,
// such as -999, "" for none: nines alone, there several times, and farther from all
// other numbers than these are from each other.
func (p *Profile) sentinel() string {
	const fewest = 3
	if p.values == nil || p.numbers != p.present() || p.Distinct < fewest+1 {
		return ""
	}
	for field, n := range p.values {
		digits := strings.TrimSuffix(strings.TrimRight(strings.TrimPrefix(field, "-"), "0"), ".")
		if !strings.Contains(field, ".") {
			digits = strings.TrimPrefix(field, "-")
		}
		if n < fewest || len(digits) < 2 || strings.Trim(digits, "9") != "" {
			continue
		}
		if p.isFarOff(field) {
			return field
		}
	}
	return ""
}

// isFarOff reports whether a number is farther from all others than three times
// what these span.
func (p *Profile) isFarOff(field string) bool {
	var others []float64
	for other := range p.values {
		if v, err := strconv.ParseFloat(other, 64); err == nil && other != field {
			others = append(others, v)
		}
	}
	v, err := strconv.ParseFloat(field, 64)
	if err != nil || len(others) == 0 {
		return false
	}
	least, most := slices.Min(others), slices.Max(others)
	span := 3 * (most - least)
	return v < least-span || v > most+span
}

// missingBy counts the fields that are one of some words. Of many different values
// it knows that all that are not numbers are.
func (p *Profile) missingBy(words []string) (n int) {
	if p.values == nil {
		return p.words - p.units - p.bounds
	}
	for _, w := range words {
		n += p.values[w]
	}
	return n
}
