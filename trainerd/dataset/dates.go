package dataset

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ISODate is the name of the date layout of ISO 8601 and RFC 3339: 2026-01-31,
// or 2026-01-31T12:00:00Z.
const ISODate = "iso"

// dateWords are the directives of strftime and what package time has for them.
// As in Python, months, days and hours may lack their leading zero.
var dateWords = map[string]string{
	"%Y": "2006", "%y": "06", "%m": "1", "%d": "2", "%e": "2", "%H": "15", "%I": "3", "%M": "4", "%S": "5", "%p": "PM",
	"%b": "Jan", "%B": "January", "%a": "Mon", "%A": "Monday", "%j": "002", "%z": "-0700", "%Z": "MST",
	"%F": "2006-1-2", "%T": "15:4:5", "%D": "1/2/06", "%-m": "1", "%-d": "2", "%-H": "15", "%-M": "4", "%-S": "5",
}

// Duration is the name of the layout of lengths of time: hours, minutes and optional seconds, as
// in 01:30 or 125:02:03.5, also after days, as in 2 days 01:30:00; or numbers with units, as in
// 1h 30m or PT1H30M. Their values are in days, like those of dates.
const Duration = "duration"

// UnixSeconds and UnixMillis are the names of the layouts of times that are the seconds, or
// milliseconds, since 1970, as programs and pandas write them.
const (
	UnixSeconds = "unix"
	UnixMillis  = "unix_ms"
)

// Quarter and Week are the names of the layouts of the quarters of a year, as in 2026Q1, 2026-Q1 and
// Q1 2026, and of the weeks of ISO 8601, as in 2026-W05. Each is its first day.
const (
	Quarter = "quarter"
	Week    = "week"
)

// The layouts of these; no layout of package time is like them.
const (
	durationLayout = "h:m:s"
	secondsLayout  = "unix s"
	millisLayout   = "unix ms"
	quarterLayout  = "yQq"
	weekLayout     = "y-Www"
)

// namedLayouts are the layouts that no directives describe.
var namedLayouts = map[string]string{ISODate: "", Duration: durationLayout, UnixSeconds: secondsLayout, UnixMillis: millisLayout,
	Quarter: quarterLayout, Week: weekLayout}

// parseUnix returns the time that is a number of units after 1970 began.
func parseUnix(field string, unit time.Duration) (time.Time, error) {
	n, err := strconv.ParseFloat(field, 64)
	if most := float64(math.MaxInt64 / unit); !(math.Abs(n) < most) {
		return time.Time{}, errors.Join(err, errors.New("not a number of seconds since 1970"))
	}
	return time.Unix(0, 0).Add(time.Duration(n * float64(unit))), err
}

// unixForm returns the form of a whole number that is a time of our age, as seconds or
// milliseconds; false for another number.
func unixForm(n float64) (form dateForm, ok bool) {
	const first, last = 631_152_000, 4_102_444_800 // 1990 and 2100
	switch {
	case n >= first && n < last:
		return dateForm{UnixSeconds, Feature{Kind: KindDate, Layout: secondsLayout}}, true
	case n >= first*1000 && n < last*1000:
		return dateForm{UnixMillis, Feature{Kind: KindDate, Layout: millisLayout}}, true
	}
	return dateForm{}, false
}

// DateLayout returns the layout, as in package time, for one of strftime, for
// [ISODate], [Duration], [UnixSeconds], [UnixMillis], [Quarter] or [Week].
func DateLayout(format string) (layout string, err error) {
	if layout, ok := namedLayouts[format]; ok {
		return layout, nil
	}
	var b strings.Builder
	for rest := format; rest != ""; {
		if rest[0] != '%' {
			if rest[0] >= '0' && rest[0] <= '9' {
				return "", fmt.Errorf("%q has a digit outside of a directive such as %%Y", format)
			}
			b.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		size := min(2, len(rest))
		if strings.HasPrefix(rest, "%-") {
			size = min(3, len(rest))
		}
		word, ok := dateWords[rest[:size]]
		if !ok {
			return "", fmt.Errorf("%q has the directive %q, which is not known", format, rest[:size])
		}
		b.WriteString(word)
		rest = rest[size:]
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("a date's form is empty")
	}
	return b.String(), nil
}

// dateForms are the forms of dates that are tried, the first of several wins:
// with months before days, as pandas takes them.
func dateForms() []string {
	days := []string{
		"%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m-%d-%Y", "%d-%m-%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y",
		"%b %d %Y", "%b %d, %Y", "%B %d, %Y", "%B %d %Y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y",
		"%d%b%Y", "%d%b%y", "%d/%b/%Y", "%d. %B %Y", "%d. %b %Y", "%Y年%m月%d日", "%a, %d %b %Y", "%a %d %b %Y", "%a, %b %d, %Y", "%A, %B %d, %Y", "%A, %d %B %Y",
	}
	all := []string{ISODate}
	for _, d := range days {
		for _, t := range []string{"", " %H:%M:%S", " %H:%M", "T%H:%M:%S", "T%H:%M", " %I:%M:%S %p", " %I:%M %p", " %H:%M:%S %z", " %H:%M:%S %Z"} {
			all = append(all, d+t)
		}
	}
	return append(all, "%Y-%m-%d %H:%M:%S%z", "%Y-%m-%dT%H:%M:%S%z", "%Y%m%dT%H%M%S", "%Y%m%dT%H%M%S%z", "%Y:%m:%d %H:%M:%S", "%Y-%m-%d %H", "%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %Z %Y", "%d/%b/%Y:%H:%M:%S %z", "%d%b%Y:%H:%M:%S",
		"%Y-%m", "%Y/%m", "%b %Y", "%B %Y", "%m/%Y", "%m-%Y", "%m.%Y", "%b-%Y", "%B-%Y", "%b-%y", Quarter, Week,
		Duration, "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%I %p")
}

// digitDates are the forms of dates that are whole numbers of so many digits.
var digitDates = map[int]dateForm{
	6:  {"%Y%m", Feature{Kind: KindDate, Layout: "20061"}},
	8:  {"%Y%m%d", Feature{Kind: KindDate, Layout: "200612"}},
	12: {"%Y%m%d%H%M", Feature{Kind: KindDate, Layout: "200612154"}},
	14: {"%Y%m%d%H%M%S", Feature{Kind: KindDate, Layout: "2006121545"}},
}

// digitForm returns the form of a whole number that is a date of our time; false for another
// number.
func digitForm(field string) (form dateForm, ok bool) {
	const first, last = 1800, 2199
	if form, ok = digitDates[len(field)]; !ok {
		return form, false
	}
	at, err := time.Parse("20060102150405"[:len(field)], field)
	return form, err == nil && at.Year() >= first && at.Year() <= last
}
