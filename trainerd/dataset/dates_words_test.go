package dataset

import (
	"fmt"
	"testing"
	"time"
)

// TestDatesAsTheyAreWritten: columns of dates in forms that programs and people of several countries
// use are dates, each that moment.
func TestDatesAsTheyAreWritten(t *testing.T) {
	german := []string{"Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember"}
	french := []string{"janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.", "nov.", "déc."}
	spanish := []string{"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"}
	portuguese := []string{"Janeiro", "Fevereiro", "Março", "Abril", "Maio", "Junho", "Julho", "Agosto", "Setembro", "Outubro", "Novembro", "Dezembro"}
	italian := []string{"gen", "feb", "mar", "apr", "mag", "giu", "lug", "ago", "set", "ott", "nov", "dic"}
	const minutes, seconds = time.DateOnly + " 15:04", time.DateTime
	for _, c := range []struct {
		says  string // what of a time is written, as a layout
		write func(time.Time) string
	}{
		{minutes, func(at time.Time) string { return at.Format("02/01/2006 03:04pm") }},
		{minutes, func(at time.Time) string { return at.Format("2-Jan-06 03:04 PM") }},
		{minutes, func(at time.Time) string { return at.Format("02.01.2006, 15:04") }},
		{minutes, func(at time.Time) string { return at.Format("200601021504") }},
		{seconds, func(at time.Time) string { return at.Format("20060102150405") }},
		{seconds, func(at time.Time) string { return at.Format("20060102T150405") }},
		{seconds, func(at time.Time) string { return at.Format("2006:01:02 15:04:05") }},
		{seconds, func(at time.Time) string { return at.Format("2006-01-02T15:04:05-0700") }},
		{"15:04", func(at time.Time) string {
			return at.Format("3:04 ") + map[bool]string{true: "a.m.", false: "p.m."}[at.Hour() < 12]
		}},
		{"15", func(at time.Time) string { return at.Format("3 PM") }},
		{"2006-01", func(at time.Time) string { return at.Format("Jan-2006") }},
		{"2006-01", func(at time.Time) string { return at.Format("Jan-06") }},
		{"2006-01", func(at time.Time) string { return at.Format("200601") }},
		{"2006-01", func(at time.Time) string { return at.Format("01-2006") }},
		{time.DateOnly, func(at time.Time) string { return fmt.Sprintf("%d. %s %d", at.Day(), german[at.Month()-1], at.Year()) }},
		{time.DateOnly, func(at time.Time) string { return fmt.Sprintf("%d %s %d", at.Day(), french[at.Month()-1], at.Year()) }},
		{time.DateOnly, func(at time.Time) string {
			return fmt.Sprintf("%d de %s de %d", at.Day(), spanish[at.Month()-1], at.Year())
		}},
		{time.DateOnly, func(at time.Time) string {
			return fmt.Sprintf("%d %s %d", at.Day(), portuguese[at.Month()-1], at.Year())
		}},
		{time.DateOnly, func(at time.Time) string {
			return fmt.Sprintf("%02d-%s-%d", at.Day(), italian[at.Month()-1], at.Year())
		}},
		{time.DateOnly, func(at time.Time) string { return fmt.Sprintf("%d年%d月%d日", at.Year(), at.Month(), at.Day()) }},
		{time.DateOnly, func(at time.Time) string {
			end := map[int]string{1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}[at.Day()]
			return at.Format("January 2") + map[bool]string{true: "th", false: end}[end == ""] + at.Format(", 2006")
		}},
	} {
		checkColumnOfDates(t, c.write, func(at time.Time) time.Time {
			at, err := time.Parse(c.says, at.Format(c.says))
			if err != nil {
				t.Fatal(err)
			}
			return at
		})
	}
	checkColumnOfDates(t, func(at time.Time) string { return fmt.Sprintf("%dQ%d", at.Year(), (at.Month()+2)/3) }, firstOfQuarter)
	checkColumnOfDates(t, func(at time.Time) string { return fmt.Sprintf("Q%d %d", (at.Month()+2)/3, at.Year()) }, firstOfQuarter)
	checkColumnOfDates(t, func(at time.Time) string {
		year, week := at.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	}, func(at time.Time) time.Time {
		return at.Truncate(24*time.Hour).AddDate(0, 0, -int(at.Weekday()+6)%7)
	})
}

func firstOfQuarter(at time.Time) time.Time {
	return time.Date(at.Year(), (at.Month()-1)/3*3+1, 1, 0, 0, 0, 0, time.UTC)
}

// checkColumnOfDates profiles a column of days that cover each month, and reads it.
func checkColumnOfDates(t *testing.T, write func(time.Time) string, want func(time.Time) time.Time) {
	t.Helper()
	p := newProfile("seen", allDateForms())
	var days []time.Time
	for i := range 200 {
		days = append(days, time.Date(2011, time.January, 1+5*i, (7*i)%24, (11*i)%60, (13*i)%60, 0, time.UTC))
		p.add(write(days[i]))
	}
	if p.kind() != KindDate {
		t.Errorf("%s: %s, want %s", write(days[0]), p.kind(), KindDate)
		return
	}
	for _, at := range days {
		f := p.dateForm().feature
		got, err := f.time(write(at))
		w := want(at)
		if w.Year() == 0 {
			w = w.AddDate(1970, 0, 0)
		}
		if err != nil || !got.Equal(w) {
			t.Errorf("%s, as %s: %v, %v; want %v", write(at), p.dateForm().form, got, err, w)
			return
		}
	}
}

// TestNoDates: words that are only a little like dates are words.
func TestNoDates(t *testing.T) {
	for _, words := range [][]string{
		{"12 Main", "7 Mainz", "9 Market"}, {"S-001", "S-002"}, {"R2-D2", "C-3PO"}, {"1st", "2nd", "3rd"}, {"2 doors", "4 doors"},
		{"3-Mar", "18-Oct"}, {"Q1", "Q2"}, {"1m80", "1m75"}, {"A4", "B5"}, {"PT", "P"}, {"201213x", "201214x"}, {"2011-W60"}, {"5 oz", "6 oz"},
	} {
		p := newProfile("x", allDateForms())
		for i := range 40 {
			p.add(words[i%len(words)])
		}
		if p.kind() == KindDate {
			t.Errorf("%q: dates as %s", words, p.dateForm().form)
		}
	}
	for _, numbers := range []string{"2009%02d", "20110%02d1"} { // months from 0 to 39
		p := newProfile("x", allDateForms())
		for i := range 40 {
			p.add(fmt.Sprintf(numbers, i))
		}
		if p.kind() != KindNumber {
			t.Errorf("%s: %s, want numbers", numbers, p.kind())
		}
	}
	p := newProfile("x", allDateForms())
	p.add("200912")
	p.add("201001")
	if p.kind() != KindNumber {
		t.Errorf("two numbers: %s, want numbers", p.kind())
	}
}

// TestLengthsOfTime reads them in the forms of clocks, people, pandas, Python, Go and ISO 8601.
func TestLengthsOfTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1:30": 90 * time.Minute, "125:02:03.5": 125*time.Hour + 2*time.Minute + 3500*time.Millisecond, "-0:30": -30 * time.Minute,
		"2 days 01:30:00": 49*time.Hour + 30*time.Minute, "1 day, 2:03:04": 26*time.Hour + 3*time.Minute + 4*time.Second,
		"-1 days +23:00:00": -time.Hour, "0 days 00:00:01.250000": 1250 * time.Millisecond, "1:05.25": 65250 * time.Millisecond,
		"0h 18m": 18 * time.Minute, "1h30m": 90 * time.Minute, "1 h 5 min": 65 * time.Minute, "2 hours, 5 minutes": 125 * time.Minute,
		"2 hours and 1 minute": 121 * time.Minute, "3 days": 72 * time.Hour, "45m": 45 * time.Minute, "350ms": 350 * time.Millisecond,
		"1.5s": 1500 * time.Millisecond, "PT1H30M": 90 * time.Minute, "P2D": 48 * time.Hour, "P1DT30S": 24*time.Hour + 30*time.Second, "10 µs": 10 * time.Microsecond,
		"2 hrs": 2 * time.Hour, "90 min.": 90 * time.Minute,
	} {
		got, err := parseDuration(text)
		if d := got.Sub(time.Unix(0, 0)); err != nil || d != want {
			t.Errorf("%s: %v, %v; want %v", text, d, err, want)
		}
	}
	for _, text := range []string{"", "5", "h", "5x", "30m 1h", "1h 1h", "1:75", "P", "PT", "12:30:99", "5 m and", "1e3s", "-5m", "1.2.3 s"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%s: %v, want an error", text, got)
		}
	}
	for _, c := range []struct{ a, b, want string }{
		{"90 min", "85 min", "number in min"}, {"45m", "1h", "date days, of lengths of time"}, {"1 day", "3 days", "number in day"},
		{"1h 30m", "0h 5m", "date days, of lengths of time"}, {"1:30", "2:05", "date days, written hours:minutes:seconds"},
	} {
		s := survey(t, tableText("took,other,label", 120, func(i int) string { return fmt.Sprintf("%s,%d,%d", []string{c.a, c.b}[i%2], i*7%13, i/2%2) }))
		p, err := s.Plan(t.Context(), 2, AnyTask)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(p.Uses[0].Kind, " ", p.Uses[0].Rule); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}
