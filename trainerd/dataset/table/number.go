package table

import (
	"math"
	"strconv"
	"strings"
)

// IsNumber reports whether a field is a finite number as Go and Python write it.
func IsNumber(field string) bool {
	v, err := strconv.ParseFloat(field, 64)
	return err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) && !strings.ContainsAny(field, "xX_pP")
}

// numbersOf returns what writes the numbers of a dialect as Go does, nil if they
// are so already.
func numbersOf(d Dialect) func(string) string {
	decimal := d.Decimal
	if decimal == 0 {
		decimal = '.'
	}
	if decimal == '.' && d.Thousands == 0 {
		return nil
	}
	return func(field string) string {
		if plain, ok := plainNumber(field, decimal, d.Thousands); ok {
			return plain
		}
		return field
	}
}

// plainNumber writes a number with a decimal point and without marks between its
// digits. It reports false for what is no number in the given notation.
func plainNumber(field string, decimal, thousands rune) (string, bool) {
	if field == "" || len(field) > 64 {
		return "", false
	}
	whole, fraction, hasFraction := strings.Cut(field, string(decimal))
	if thousands != 0 && strings.ContainsRune(whole, thousands) {
		if !grouped(whole, thousands) {
			return "", false
		}
		whole = strings.ReplaceAll(whole, string(thousands), "")
	}
	if decimal != '.' && (strings.Contains(whole, ".") || strings.Contains(fraction, ".")) {
		return "", false
	}
	plain := whole
	if hasFraction {
		plain += "." + fraction
	}
	return plain, IsNumber(plain)
}

// grouped reports whether digits are in groups of three, but for the first.
func grouped(whole string, mark rune) bool {
	groups := strings.Split(strings.TrimLeft(whole, "+-"), string(mark))
	for i, g := range groups {
		if len(g) != 3 && i > 0 || len(g) == 0 || len(g) > 3 || strings.Trim(g, "0123456789") != "" {
			return false
		}
	}
	return true
}

// missing are the fields that stand for a missing value, as pandas reads them,
// and the question mark of the UCI repository.
var missing = map[string]bool{
	"": true, "#N/A": true, "#N/A N/A": true, "#NA": true, "-1.#IND": true, "-1.#QNAN": true, "-NaN": true, "-nan": true,
	"1.#IND": true, "1.#QNAN": true, "<NA>": true, "N/A": true, "NA": true, "NULL": true, "NaN": true, "None": true,
	"n/a": true, "nan": true, "null": true, "?": true,
}

// IsMissing reports whether a field, without blanks around it, stands for a
// missing value.
func IsMissing(field string) bool { return missing[field] }
