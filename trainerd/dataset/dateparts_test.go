package dataset

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDatePartOf compares the parts of dates, as a float32 has their days, with those
// that package time finds.
func TestDatePartOf(t *testing.T) {
	for at := time.Date(1890, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2050; at = at.Add(25 * time.Hour) {
		days := float32(Days(at))
		for _, part := range DateParts {
			if got, want := part.Of(days), part.at(at); got != want {
				t.Fatalf("%s of %v: %d, want %d", part, at, got, want)
			}
			if got := part.Of(days); got < 0 || got >= part.Size() {
				t.Fatalf("%s of %v: %d, want less than %d", part, at, got, part.Size())
			}
		}
	}
	monday := time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
	if w, h := Weekday.Of(float32(Days(monday))), Hour.Of(float32(Days(monday))); w != 0 || h != 23 {
		t.Errorf("weekday %d, hour %d of a Monday at 23:00", w, h)
	}
	if got := Month.Of(float32(math.NaN())); got != -1 {
		t.Errorf("a missing date has the month %d", got)
	}
}

// TestPlanDateParts proposes the parts that come again and again.
func TestPlanDateParts(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n) }
	for _, c := range []struct {
		name string
		cell func(i int) string
		want string
	}{
		{"a year of days", func(i int) string { return day(3 * i).Format(time.DateOnly) }, "weekday, month"},
		{"two months of days", func(i int) string { return day(i % 60).Format(time.DateOnly) }, "weekday"},
		{"some weeks", func(i int) string { return day(i % 20).Format(time.DateOnly) }, ""},
		{"Mondays", func(i int) string { return day(1 + 7*i).Format(time.DateOnly) }, "month"},
		{"months", func(i int) string { return day(0).AddDate(0, i, 0).Format(time.DateOnly) }, "month"},
		{"years", func(i int) string { return fmt.Sprintf("%d-01-01", 1900+i) }, ""},
		{"hours", func(i int) string { return day(0).Add(time.Duration(i) * time.Hour).Format(time.RFC3339) }, "hour"},
		{"a year of hours", func(i int) string { return day(0).Add(time.Duration(i) * 75 * time.Hour).Format(time.DateTime) }, "weekday, month, hour"},
		{"digits", func(i int) string { return day(5 * i).Format("20060102") }, "weekday, month"},
		{"days before months, as is seen late", func(i int) string { return day(i).Format("02/01/2006") }, "weekday"},
		{"seconds", func(i int) string { return fmt.Sprint(day(0).Add(time.Duration(i) * 75 * time.Hour).Unix()) }, "weekday, month, hour"},
		{"milliseconds", func(i int) string { return fmt.Sprint(day(0).Add(time.Duration(i) * time.Hour).UnixMilli()) }, "hour"},
		{"times of day", func(i int) string { return fmt.Sprintf("%d:%02d PM", 1+i%12, i%60) }, "hour"},
		{"lengths of time", func(i int) string { return fmt.Sprintf("%d:%02d:%02d", i%30, i%60, i*7%60) }, ""},
		{"numbers", func(i int) string { return fmt.Sprint(i * i) }, ""},
	} {
		s := survey(t, tableText("at,other,label", 130, func(i int) string { return fmt.Sprintf("%s,%d,%d", c.cell(i), i*7%13, i/2%2) }))
		p, err := s.Plan(t.Context(), 2, AnyTask)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var parts []string
		for _, part := range p.Uses[0].Parts {
			parts = append(parts, string(part))
		}
		if got := strings.Join(parts, ", "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestDatePartsOfColumns puts the parts into the schema, and refuses those of columns
// that have none.
func TestDatePartsOfColumns(t *testing.T) {
	read := func(parts map[string][]DatePart) (*Dataset, error) {
		return Read(context.Background(), strings.NewReader("at,n,y\n2026-11-28,1,0\n2026-11-29,2,1\n"), "data.csv", Options{
			Header: true, Label: Column{Name: "y"}, Dates: map[string]string{"at": ""}, DateParts: parts})
	}
	d, err := read(map[string][]DatePart{"at": {Weekday, Hour}})
	if err != nil || !slices.Equal(d.Schema.Features[0].Parts, []DatePart{Weekday, Hour}) {
		t.Fatalf("%+v, %v", d, err)
	}
	for want, parts := range map[string]map[string][]DatePart{
		`no column "when"`:               {"when": {Month}},
		`"n" has parts, but no dates`:    {"n": {Month}},
		`has the part "year"; the parts`: {"at": {"year"}},
		`has the part "month" twice`:     {"at": {Month, Month}},
	} {
		if _, err := read(parts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", parts, err, want)
		}
	}
}
