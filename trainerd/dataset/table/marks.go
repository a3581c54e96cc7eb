package table

import "strings"

// currencyWords are currencies as they are written before a number, besides single signs, codes and
// dollars of a country, such as US$.
var currencyWords = []string{"Rs.", "Rs", "Rp.", "Rp", "RM", "Fr.", "kr.", "kr", "Kč", "zł"}

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
	number := afterCurrency(rest)
	if len(number) == len(rest) {
		return field
	}
	number = strings.TrimLeft(number, " \u00a0\u202f")
	if number == "" || !isDigit(number[0]) && number[0] != '.' {
		return field
	}
	return sign + number
}

// afterCurrency returns what comes after a currency. It is called for each word of a table.
func afterCurrency(text string) string {
	const dollars = 4 // at most three letters and the sign
	switch {
	case text == "":
	case text[0] == '$' || text[0] >= 0x80:
		return strings.TrimLeft(text, units)
	case text[0] >= 'A' && text[0] <= 'Z' || text[0] == 'k' || text[0] == 'z':
		if i := strings.IndexByte(text[:min(dollars, len(text))], '$'); i > 0 && strings.Trim(text[:i], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			return text[i+1:]
		}
		for _, word := range currencyWords {
			if text[0] == word[0] && strings.HasPrefix(text, word) {
				return text[len(word):]
			}
		}
	}
	return text
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
	for field != "" {
		if last := field[len(field)-1]; last != '*' && last != ']' && last < 0x80 {
			break // most fields
		}
		bare := strings.TrimRight(field, footnotes)
		if open := strings.LastIndexByte(bare, '['); open > 0 && strings.HasSuffix(bare, "]") {
			bare = bare[:open]
		}
		if bare = strings.TrimRight(bare, " "); bare == field || bare == "" {
			return field
		}
		field = bare
	}
	return field
}
