package table

import (
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// currencyBefore are currencies as they are written before a number, besides single signs and codes.
var currencyBefore = lazyregexp.New(`^(?:[A-Z]{1,3}\$|Rs\.?|Rp\.?|RM|Fr\.|kr\.?|Kč|zł) ?`)

// TrimCurrency returns a number, with or without a unit, without the currency before it, as in
// US$ 5 and $3.5M; any other text as it is.
func TrimCurrency(field string) string {
	const longest = 64
	if field == "" || len(field) > longest || isDigit(field[0]) {
		return field
	}
	sign, rest := "", field
	if field[0] == '-' || field[0] == '+' {
		sign, rest = field[:1], field[1:]
	}
	number := strings.TrimLeft(rest, units)
	if number == rest {
		number = rest[len(currencyBefore().FindString(rest)):]
	}
	number = strings.TrimLeft(number, " \u00a0\u202f")
	if number == rest || number == "" || !isDigit(number[0]) && number[0] != '.' {
		return field
	}
	return sign + number
}

// withoutMarks returns a number without what only remarks on it: footnotes, as in 5[2] and 5*, and
// its uncertainty, as in 5.2 ± 0.1. Another text is returned without them too.
func withoutMarks(field string) string {
	const longest, footnotes = 64, "*†‡"
	if len(field) > longest {
		return field
	}
	if value, uncertainty, ok := strings.Cut(field, "±"); ok && beginsNumber(strings.TrimLeft(uncertainty, " ")) {
		field = strings.TrimRight(value, " ")
	}
	for {
		bare := strings.TrimRight(field, footnotes)
		if open := strings.LastIndexByte(bare, '['); open > 0 && strings.HasSuffix(bare, "]") {
			bare = bare[:open]
		}
		if bare = strings.TrimRight(bare, " "); bare == field || bare == "" {
			return field
		}
		field = bare
	}
}
