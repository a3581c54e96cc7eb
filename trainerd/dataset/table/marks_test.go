package table

import "testing"

// TestMarksOfNumbers: what only remarks on a number is left out, and texts that are no numbers
// without it stay.
func TestMarksOfNumbers(t *testing.T) {
	point, comma, grouped := numbersOf(Dialect{}), numbersOf(Dialect{Decimal: ','}), numbersOf(Dialect{Thousands: ','})
	for _, c := range []struct {
		read        func(string) string
		field, want string
	}{
		{point, "US$ 5.5", "5.5"}, {point, "R$12", "12"}, {point, "-HK$ 3", "-3"}, {point, "Rs. 450", "450"}, {point, "kr 20", "20"},
		{point, "5.5[2]", "5.5"}, {point, "5.5 [note 3][b]", "5.5"}, {point, "17*", "17"}, {point, "-0.5†", "-0.5"}, {point, "($5)*", "-5"},
		{point, "5.2 ± 0.1", "5.2"}, {point, "5.2±0.1", "5.2"}, {comma, "5,25 ± 0,1", "5.25"}, {comma, "R$ 1234,5", "1234.5"},
		{grouped, "32,713,864[12]", "32713864"}, {grouped, "$1,234", "1234"}, {grouped, "US$1,234.5 million", "1234.5 million"},
		{grouped, "$1,234M", "1234M"},
		{point, "note [2]", "note [2]"}, {point, "[2]", "[2]"}, {point, "***", "***"}, {point, "a ± b", "a ± b"}, {point, "5 ± b", "5 ± b"},
		{point, "R2D2", "R2D2"}, {point, "US$", "US$"}, {point, "F$ x", "F$ x"}, {point, "RM", "RM"}, {point, "kr", "kr"}, {point, "room 5*", "room 5*"},
		{point, "ABCD$5", "ABCD$5"}, {point, "", ""},
	} {
		if got := c.read(c.field); got != c.want {
			t.Errorf("%q: %q, want %q", c.field, got, c.want)
		}
	}
}
