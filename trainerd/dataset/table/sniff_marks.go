package table

import "strings"

// groupMark returns the mark other than commas and points that is between the
// thousands of numbers, 0 for none.
func groupMark(rows [][]string, d Dialect) (mark rune) {
	decimal := d.Decimal
	if decimal == 0 {
		decimal = '.'
	}
	most := 0
	for _, m := range groupMarks {
		if m == d.Separator {
			continue
		}
		n := 0
		for c := range rows[0] {
			n += countGrouped(rows[min(1, len(rows)-1):], c, decimal, m)
		}
		if n > most {
			mark, most = m, n
		}
	}
	return mark
}

// countGrouped returns how many numbers of a column have a mark between their
// thousands. Where all fields are of the same length, and whole, they are rather
// codes, as those of towns and telephones; and where some are not numbers, words.
func countGrouped(rows [][]string, c int, decimal, mark rune) (n int) {
	size, isNumber := 0, false
	for _, row := range rows {
		if c >= len(row) || IsMissing(row[c]) {
			continue
		}
		field := row[c]
		if before, number, after, ok := measured(field); ok && before+after != "" {
			field = number
		}
		if _, ok := plainNumber(field, decimal, mark); !ok {
			return 0
		}
		isNumber = isNumber || strings.ContainsRune(field, decimal) || size > 0 && len(field) != size
		size = len(field)
		if strings.ContainsRune(field, mark) {
			n++
		}
	}
	if !isNumber {
		return 0
	}
	return n
}
