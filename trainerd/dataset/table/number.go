package table

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsNumber reports whether a field is a finite number as Go and Python write it.
func IsNumber(field string) bool {
	v, err := strconv.ParseFloat(field, 64)
	return err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) && !strings.ContainsAny(field, "xX_pP")
}

// numbersOf returns what writes the numbers of a dialect as Go does.
func numbersOf(d Dialect) func(string) string {
	decimal := d.Decimal
	if decimal == 0 {
		decimal = '.'
	}
	if decimal == '.' && d.Thousands == 0 {
		return withoutUnit
	}
	return func(field string) string {
		if plain, ok := plainNumber(field, decimal, d.Thousands); ok {
			return plain
		}
		if before, number, after, ok := measured(field); ok {
			if plain, ok := plainNumber(number, decimal, d.Thousands); ok {
				return before + plain + after
			}
		}
		if number, ok := degrees(field); ok {
			return number
		}
		return field
	}
}

// groupMarks come between groups of three digits, besides commas and points.
const groupMarks = "' \u2019\u00a0\u202f_"

// measured divides a number with a unit, as in 1.234,5 kg or EUR 1,000, or false for
// any other field. The texts around the number have the blanks.
func measured(field string) (before, number, after string, ok bool) {
	const longest, longestUnit = 64, 16
	if len(field) < 2 || len(field) > longest {
		return "", "", "", false
	}
	number = field
	if len(field) > 4 && field[3] == ' ' && strings.Trim(field[:3], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		before, number = field[:4], strings.TrimLeft(field[4:], " ")
	} else {
		number = TrimCurrency(field) // of a currency and a unit, as in $3.5M, the unit is left
	}
	end := strings.LastIndexAny(number, "0123456789") + 1
	number, after = number[:end], number[end:]
	unit := strings.TrimLeft(after, " ")
	first, _ := utf8.DecodeRuneInString(unit)
	isUnit := unit != "" && len(unit) <= longestUnit && (unicode.IsLetter(first) || first == '°')
	ok = end > 0 && strings.Trim(number, "+-0123456789.,"+groupMarks) == "" && (before != "" && after == "" || before == "" && isUnit)
	return before, number, after, ok
}

// units are the signs of currencies that come before or after a number; a percent
// sign comes after it.
const units = "$€£¥₹₩₽₺₫₴฿₦₱₪"

// withoutUnit returns a number with a unit without it, as in $5 and 12 %; other
// fields as they are.
func withoutUnit(field string) string {
	if isPlain(field) && !strings.Contains(field, "±") {
		return field // most numbers
	}
	if number, ok := degrees(field); ok {
		return number
	}
	signed := withSign(withoutMarks(field))
	if number, ok := trimUnit(signed); ok && IsNumber(number) {
		return number
	}
	if signed != field && IsNumber(signed) {
		return signed
	}
	return field
}

// isPlain reports whether a field begins, after a sign, and ends with a digit.
func isPlain(field string) bool {
	n := len(field)
	signed := n > 1 && (field[0] == '-' || field[0] == '+')
	return n > 0 && isDigit(field[n-1]) && (isDigit(field[0]) || signed && isDigit(field[1]))
}

// withSign writes a negative number as Go does: (1.5) and ($1.5) of accountants,
// 1.50- of their machines, and the minus sign of typesetters. Whole numbers with
// the sign at the end stay, since these may be marks at school.
func withSign(field string) string {
	const longest = 64
	n := len(field)
	if n < 3 || n > longest {
		return field
	}
	for _, sign := range []string{"\u2212", "\u2013"} {
		if rest, ok := strings.CutPrefix(field, sign); ok && beginsNumber(rest) {
			return "-" + rest
		}
	}
	switch inner := field[1 : n-1]; {
	case field[0] == '(' && field[n-1] == ')' && beginsNumber(inner):
		return "-" + inner
	case field[n-1] == '-' && beginsNumber(field) && strings.ContainsAny(field, ".,"):
		return "-" + field[:n-1]
	}
	return field
}

// beginsNumber reports whether a text begins like a number without a sign.
func beginsNumber(text string) bool {
	text = strings.TrimLeft(text, units+" ")
	return text != "" && (isDigit(text[0]) || text[0] == '.' && len(text) > 1)
}

// trimUnit takes a unit off a field; false if it has none.
func trimUnit(field string) (number string, ok bool) {
	const longest = 64
	if n := len(field); n < 2 || n > longest || isPlain(field) {
		return field, false
	}
	sign := ""
	if field[0] == '-' || field[0] == '+' {
		sign, field = field[:1], field[1:]
	}
	number = strings.TrimRight(field, "%"+units)
	if len(number) == len(field) {
		number = TrimCurrency(field)
	}
	if len(number) == len(field) || number == "" {
		return sign + field, false
	}
	number = strings.Trim(number, " \u00a0\u202f")
	if sign != "" && (strings.HasPrefix(number, "-") || strings.HasPrefix(number, "+")) {
		return sign + field, false
	}
	return sign + number, true
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// plainNumber writes a number with a decimal point, without marks between its
// digits, and without a unit. It reports false for what is not a number in the given
// notation.
func plainNumber(field string, decimal, thousands rune) (string, bool) {
	if field == "" || len(field) > 64 {
		return "", false
	}
	field, _ = trimUnit(withSign(withoutMarks(field)))
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
	if len(groups) > 1 && strings.HasPrefix(groups[0], "0") {
		return false // 0,125
	}
	for i, g := range groups {
		if len(g) != 3 && i > 0 || len(g) == 0 || len(g) > 3 || strings.Trim(g, "0123456789") != "" {
			return false
		}
	}
	return true
}

// missing are the fields that mean a missing value, as pandas reads them, and the question
// mark of the UCI repository. The errors of spreadsheets mean one as well.
var missing = map[string]bool{
	"": true, "-1.#IND": true, "-1.#QNAN": true, "-NaN": true, "-nan": true,
	"1.#IND": true, "1.#QNAN": true, "<NA>": true, "N/A": true, "NA": true, "NULL": true, "NaN": true, "None": true,
	"n/a": true, "nan": true, "null": true, "?": true,
}

// IsMissing reports whether a field, without surrounding blanks, means a
// missing value.
func IsMissing(field string) bool { return missing[field] || isSheetError(field) }

// HasDecimalComma reports whether a field, of a table whose decimal mark is a point, is a number
// with a comma instead, or with points between thousands, as in 1.234,50 €.
func HasDecimalComma(field string) bool {
	if !strings.ContainsAny(field, ",.") {
		return false
	}
	if _, number, _, ok := measured(field); ok {
		field = number
	}
	_, ok := plainNumber(field, ',', '.')
	return ok
}
