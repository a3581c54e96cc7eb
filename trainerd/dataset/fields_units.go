package dataset

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// longestUnit bounds the unit of a number, in bytes.
const longestUnit = 16

// knownUnits are those of what is measured, rather than counted or classified.
var knownUnits = strings.Fields("kg g mg µg lb lbs oz km m cm mm µm mi ft in yd l L ml mL cl ha m2 m² m3 m³ km/h mph m/s kn " +
	"s sec ms min h hr hrs hours d day days week weeks month months year yr yrs years °C °F °K V mV A mA W kW MW J kJ kWh kcal cal Hz kHz MHz GHz " +
	"/5 /10 /20 /100 B KB kB MB GB TB KiB MiB GiB Pa kPa bar mbar psi rpm hp PS kW/h USD EUR GBP CHF JPY INR CNY AUD CAD SEK NOK DKK PLN BRL")

// splitUnit divides a field such as "12 kg", "12kg", "EUR 12.50" or "3.1/5" into the number
// and its unit; false for any other.
func splitUnit(field string) (number, unit string, ok bool) {
	if len(field) < 2 || len(field) > 64 {
		return "", "", false
	}
	field = table.TrimCurrency(field)
	if number, of, slash := strings.Cut(field, "/"); slash && table.IsNumber(strings.TrimSpace(number)) {
		unit = "/" + strings.TrimSpace(of)
		return strings.TrimSpace(number), unit, slices.Contains(knownUnits, unit)
	}
	if first, rest, blank := strings.Cut(field, " "); blank {
		rest = strings.TrimSpace(rest)
		if isCurrency(first) && table.IsNumber(rest) {
			return rest, first, true
		}
		return first, rest, table.IsNumber(first) && isUnit(rest)
	}
	end := strings.LastIndexAny(field, "0123456789.") + 1
	number, unit = field[:end], field[end:]
	return number, unit, table.IsNumber(number) && isUnit(unit)
}

// sameUnit reports whether two units are the same, or one is the plural of the other, as in 1 day and
// 3 days.
func sameUnit(a, b string) bool {
	const shortest = 3 // s is one itself
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || len(a) >= shortest && b == a+"s"
}

// isCurrency reports whether a word is like the code of a currency.
func isCurrency(word string) bool {
	return len(word) == 3 && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// isUnit reports whether a text is like a unit: it begins with a letter or a
// degree sign.
func isUnit(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return len(text) <= longestUnit && (unicode.IsLetter(first) || first == '°')
}

// isMissing reports whether a field means no value.
func (f *Feature) isMissing(field string) bool {
	return table.IsMissing(field) || slices.Contains(f.NA, field)
}

// plain returns a number without the unit of the column, and without the sign of a
// bound.
func (f *Feature) plain(field string) string {
	if number, ok := bound(field); ok {
		return number
	}
	if f.Unit == "" {
		return field
	}
	if number, ok := fromMagnitude(field); ok && f.Unit == Magnitudes {
		return number
	}
	if number, unit, ok := splitUnit(field); ok && sameUnit(unit, f.Unit) {
		return number
	}
	return field
}

// bound returns the number of one that is known from one side alone, as in >=90,
// 90+ and <0.5; false for any other field.
func bound(field string) (number string, ok bool) {
	const longest = 32
	if len(field) < 2 || len(field) > longest {
		return "", false
	}
	number = strings.TrimSuffix(field, "+")
	if len(number) == len(field) {
		_, first := utf8.DecodeRuneInString(field)
		if !strings.ContainsAny(field[:first], "<>≤≥") {
			return "", false
		}
		number = strings.TrimLeft(strings.TrimPrefix(field[first:], "="), " ")
	}
	return number, table.IsNumber(number) && !strings.HasPrefix(number, "+")
}

// number reads a number of the column, with its unit or without.
func (f *Feature) number(field string) (v float32, reason, hint string) {
	v, reason, hint = parseFeature(f.plain(field))
	if reason != "" && f.Unit != "" {
		hint = "the numbers of the column are in " + f.Unit + ", as data.units says"
	}
	return v, reason, hint
}
