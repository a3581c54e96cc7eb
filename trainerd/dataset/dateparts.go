package dataset

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// DatePart is what a date says besides its place in time: which of some values it has
// that come again and again.
type DatePart string

const (
	// Weekday is 0 for Monday.
	Weekday DatePart = "weekday"
	// DayOfMonth is 0 for the first.
	DayOfMonth DatePart = "day"
	// Month is 0 for January.
	Month DatePart = "month"
	// Hour is that of the time of day, in UTC.
	Hour DatePart = "hour"
)

// DateParts has all parts.
var DateParts = []DatePart{Weekday, DayOfMonth, Month, Hour}

// Size returns how many values the part has; 0 for a part that does not exist.
func (p DatePart) Size() int {
	switch p {
	case Weekday:
		return 7
	case DayOfMonth:
		return 31
	case Month:
		return 12
	case Hour:
		return 24
	}
	return 0
}

// FloatError is by how much of itself a float32 may differ from the number that it
// is nearest to. A date is taken to be the latest time that its days may mean, so that
// ten o'clock is never a moment before ten.
const FloatError = 0x1p-24

// Of returns the part of a date as a raw row has it; -1 if it is missing.
func (p DatePart) Of(days float32) int {
	if math.IsNaN(float64(days)) {
		return -1
	}
	latest := float64(days) + math.Abs(float64(days))*FloatError
	day := math.Floor(latest)
	if p == Hour {
		return int((latest - day) * 24)
	}
	return p.at(time.Unix(int64(day)*24*60*60, 0).UTC())
}

// at returns the part of a time.
func (p DatePart) at(t time.Time) int {
	switch p {
	case Weekday:
		return int(t.Weekday()+6) % 7
	case DayOfMonth:
		return t.Day() - 1
	case Month:
		return int(t.Month()) - 1
	}
	return t.Hour()
}

// quoteParts lists parts for a message.
func quoteParts(parts []DatePart) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = string(p)
	}
	return quoteNames(names)
}

// checkParts says what is wrong with the parts of a column, which has dates as in
// layout; "" for nothing.
func checkParts(parts []DatePart, layout string) (reason string) {
	for i, p := range parts {
		switch {
		case p.Size() == 0:
			return fmt.Sprintf("has the part %q; the parts are %s", p, quoteParts(DateParts))
		case slices.Contains(parts[:i], p):
			return fmt.Sprintf("has the part %q twice", p)
		case layout == durationLayout:
			return "has parts, but holds lengths of time"
		}
	}
	return ""
}

// dateSpan is what the dates of a column cover.
type dateSpan struct {
	layout                        string
	first, last                   time.Time
	weekdays, days, months, hours uint32 // a bit for each that occurs
}

// add counts a date. With another layout than before it begins again: what was
// counted was another day.
func (s *dateSpan) add(f *Feature, field string) {
	at, err := f.time(field)
	if err != nil {
		return
	}
	if at = at.UTC(); s.first.IsZero() || s.layout != f.Layout {
		*s = dateSpan{layout: f.Layout, first: at, last: at}
	}
	if at.Before(s.first) {
		s.first = at
	}
	if at.After(s.last) {
		s.last = at
	}
	s.weekdays |= 1 << Weekday.at(at)
	s.days |= 1 << DayOfMonth.at(at)
	s.months |= 1 << Month.at(at)
	s.hours |= 1 << Hour.at(at)
}

// parts returns those that come again and again in what the dates cover. The months of
// less than a year say no more than the number of days does, nor do the weekdays of the
// first or last day of each month.
func (s *dateSpan) parts() (parts []DatePart) {
	const day, fewestDays = 24 * time.Hour, 5
	if s.layout == durationLayout {
		return nil
	}
	covered := s.last.Sub(s.first)
	if covered > 4*7*day && bits.OnesCount32(s.weekdays) > 1 && bits.OnesCount32(s.days) >= fewestDays {
		parts = append(parts, Weekday)
	}
	if covered >= 360*day && bits.OnesCount32(s.months) > 1 {
		parts = append(parts, Month)
	}
	if bits.OnesCount32(s.hours) > 1 {
		parts = append(parts, Hour)
	}
	return parts
}

// DropDateParts learns from no parts of dates.
func (p *Plan) DropDateParts() {
	for i := range p.Uses {
		p.Uses[i].Parts = nil
	}
}

// DropDateParts leaves the days of dates alone.
func (s *Schema) DropDateParts() {
	for i := range s.Features {
		s.Features[i].Parts = nil
	}
}

// DateParts says for people which parts of which columns are inputs; "" for none.
func (p *Plan) DateParts() string {
	var all []string
	for _, u := range p.Uses {
		if len(u.Parts) == 0 || u.Drop || u.Weight || u.Group {
			continue
		}
		text := "the "
		for i, part := range u.Parts {
			switch {
			case i > 0 && i == len(u.Parts)-1:
				text += " and "
			case i > 0:
				text += ", "
			}
			text += string(part)
		}
		all = append(all, text+" of "+u.Name)
	}
	return strings.Join(all, ", ")
}
