package dataset

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// monthWords has, for each month, the beginnings of its names in German, French, Spanish, Italian,
// Portuguese, Dutch and the Scandinavian languages that are not those of its English name.
var monthWords = [12][]string{
	{"jän", "ene", "gen"}, {"fév", "fev"}, {"mär", "maa", "mrt"}, {"avr", "abr"}, {"mai", "mag", "mei", "maj"}, {"juin", "giu"},
	{"juil", "lug"}, {"aoû", "aou", "ago"}, {"set"}, {"okt", "oct", "ott", "out"}, {}, {"dez", "déc", "dic"},
}

// monthOf returns the month that a word names; false if it names none.
func monthOf(word string) (time.Month, bool) {
	const shortest, longest = 3, 10
	word = strings.ToLower(word)
	if n := len([]rune(word)); n < shortest || n > longest {
		return 0, false
	}
	for i, begins := range monthWords {
		month := time.Month(i + 1)
		for _, begin := range append(begins, strings.ToLower(month.String()[:3])) {
			if strings.HasPrefix(word, begin) {
				return month, true
			}
		}
	}
	return 0, false
}

var (
	halfOfDay = lazyregexp.New(`(?i)([0-9]) ?([ap])\.?m\b\.?`)
	ordinal   = lazyregexp.New(`(?i)\b([0-9]{1,2})(?:st|nd|rd|th)\b`)
	thenClock = lazyregexp.New(`(?:,| -| at| um) ([0-9]{1,2}:[0-9]{2})`)
)

// isPlainDate reports whether plainDate leaves a date as it is, whatever the layout.
func isPlainDate(field string) bool {
	return plainDate("Jan", field) == field && plainDate("January", field) == field
}

// plainDate writes a date as the layouts of package time have it: months in English, as long as
// the layout has them, 3 instead of 3rd, PM instead of p.m., and a blank before the time of day.
func plainDate(layout, field string) string {
	const longest = 64
	if len(field) > longest {
		return field
	}
	field = halfOfDay().ReplaceAllStringFunc(field, func(half string) string {
		m := halfOfDay().FindStringSubmatch(half)
		return m[1] + " " + strings.ToUpper(m[2]) + "M"
	})
	field = thenClock().ReplaceAllString(ordinal().ReplaceAllString(field, "$1"), " $1")
	if !strings.Contains(layout, "Jan") {
		return field
	}
	var b strings.Builder
	for field != "" {
		n := strings.IndexFunc(field, func(r rune) bool { return !unicode.IsLetter(r) })
		if n < 0 {
			n = len(field)
		}
		if n == 0 {
			b.WriteByte(field[0])
			field = field[1:]
			continue
		}
		word := field[:n]
		field = field[n:]
		switch month, ok := monthOf(word); {
		case word == "de" && strings.HasPrefix(field, " "): // 3 de marzo de 2026
			field = field[1:]
		case !ok:
			b.WriteString(word)
		case strings.Contains(layout, "January"):
			b.WriteString(month.String())
		default:
			b.WriteString(month.String()[:3])
			field = strings.TrimPrefix(field, ".")
		}
	}
	return b.String()
}

var (
	quarterForm = lazyregexp.New(`^(?:([0-9]{4})[- ]?Q([1-4])|Q([1-4])[-/ ]?([0-9]{4}))$`)
	weekForm    = lazyregexp.New(`^([0-9]{4})-?W([0-9]{2})$`)
)

// parseQuarter returns the first day of a quarter of a year.
func parseQuarter(field string) (time.Time, error) {
	m := quarterForm().FindStringSubmatch(field)
	if m == nil {
		return time.Time{}, fmt.Errorf("%q is not a quarter of a year", field)
	}
	year, _ := strconv.Atoi(m[1] + m[4])
	quarter, _ := strconv.Atoi(m[2] + m[3])
	return time.Date(year, time.Month(3*quarter-2), 1, 0, 0, 0, 0, time.UTC), nil
}

// parseWeek returns the Monday of a week of ISO 8601: the first one has the fourth of January.
func parseWeek(field string) (time.Time, error) {
	m := weekForm().FindStringSubmatch(field)
	if m == nil {
		return time.Time{}, fmt.Errorf("%q is not a week of a year", field)
	}
	year, _ := strconv.Atoi(m[1])
	week, _ := strconv.Atoi(m[2])
	if week < 1 || week > 53 {
		return time.Time{}, fmt.Errorf("%q is not a week of a year", field)
	}
	first := time.Date(year, time.January, 4, 0, 0, 0, 0, time.UTC)
	return first.AddDate(0, 0, 7*(week-1)-int(first.Weekday()+6)%7), nil
}
