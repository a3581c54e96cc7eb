package dataset

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

var (
	clockForm   = lazyregexp.New(`^(-?)(?:([0-9]{1,6}) days?,? \+?)?([0-9]{1,6}):([0-5]?[0-9])(?::([0-5]?[0-9](?:\.[0-9]{1,9})?))?$`)
	lapForm     = lazyregexp.New(`^()()()([0-9]{1,4}):([0-5][0-9]\.[0-9]{1,9})$`) // minutes and seconds
	isoDuration = lazyregexp.New(`^P(?:[0-9.]+[WD])*(?:T(?:[0-9.]+[HMS])+)?$`)
	unitsForm   = lazyregexp.New(`^([0-9]{1,6}(?:\.[0-9]{1,9})?) ?([a-zµμ]+)\.?,? ?(?:and )?`)
)

// timeUnits are the units of lengths of time.
var timeUnits = map[string]time.Duration{
	"w": 7 * day, "week": 7 * day, "d": day, "day": day, "h": time.Hour, "hr": time.Hour, "hour": time.Hour, "std": time.Hour,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "s": time.Second, "sec": time.Second, "second": time.Second,
	"ms": time.Millisecond, "us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond, "ns": time.Nanosecond,
}

const day = 24 * time.Hour

// parseDuration returns the time that is a length of time after 1970 began.
func parseDuration(field string) (time.Time, error) {
	d, ok := clock(field)
	if !ok {
		d, ok = withTimeUnits(field)
	}
	if !ok {
		return time.Time{}, errors.New("no hours and minutes")
	}
	return time.Unix(0, 0).Add(d), nil
}

// clock returns a length of time as clocks show it, such as 1:30, 1:30:05.5, 2 days 01:30:05 and,
// if it is minutes and seconds, 1:05.25.
func clock(field string) (d time.Duration, ok bool) {
	m := clockForm().FindStringSubmatch(field)
	if m == nil {
		m = lapForm().FindStringSubmatch(field)
	}
	if m == nil {
		return 0, false
	}
	for i, unit := range []time.Duration{day, time.Hour, time.Minute, time.Second} {
		if m[2+i] != "" {
			n, _ := strconv.ParseFloat(m[2+i], 64)
			d += time.Duration(n * float64(unit))
		}
		if i == 0 && m[1] != "" {
			d = -d // of -1 days +23:00:00, as pandas has it, only the days are negative
		}
	}
	if m[1] != "" && m[2] == "" {
		d = -d
	}
	return d, true
}

// withTimeUnits returns a length of time such as 1h 30m, 2 hours, 5 minutes, 350ms, PT1H30M or P2D.
func withTimeUnits(field string) (d time.Duration, ok bool) {
	const longest = 64
	if len(field) < 2 || len(field) > longest || field[0] != 'P' && (field[0] < '0' || field[0] > '9') {
		return 0, false
	}
	if isoDuration().MatchString(field) {
		field = strings.Replace(field[1:], "T", "", 1)
	}
	field = strings.ToLower(field)
	for last := 1000 * day; field != ""; {
		m := unitsForm().FindStringSubmatch(field)
		if m == nil {
			return 0, false
		}
		unit := timeUnits[m[2]]
		if unit == 0 {
			unit = timeUnits[strings.TrimSuffix(m[2], "s")]
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if unit == 0 || unit >= last || err != nil {
			return 0, false
		}
		d, last, field, ok = d+time.Duration(n*float64(unit)), unit, field[len(m[0]):], true
	}
	return d, ok
}
