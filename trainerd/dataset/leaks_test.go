package dataset

import (
	"fmt"
	"strings"
	"testing"
)

// Columns that tell the label by themselves, and such as only go with it.
func TestLeaks(t *testing.T) {
	noise := func(i int) int { return i * 7919 % 101 }
	words := []string{"red", "green", "blue"}
	for _, c := range []struct {
		name   string
		header string
		row    func(i int) string
		want   string // the note begins with, "" for none
	}{
		{"a copy of the number", "a,euros,price", func(i int) string { return fmt.Sprintf("%d,%.2f,%d.5", noise(i), 0.92*float64(i*31%997), i*31%997) },
			"euros: it goes with price almost exactly (correlation 1); if it becomes known only with price, put it into drop in [data] (init --drop)"},
		{"the number turned round", "a,left,done", func(i int) string { return fmt.Sprintf("%d,%d,%d.5", noise(i), 1_000_000_000_000-i*31%997, i*31%997) },
			"left: it goes with done almost exactly (correlation -1)"},
		{"a good feature of a number", "a,size,price", func(i int) string { return fmt.Sprintf("%d,%d,%d.5", noise(i), i*31%997, i*31%997+noise(i)) }, ""},
		{"missing unless survived", "a,boat,survived", func(i int) string {
			return fmt.Sprintf("%d,%s,%d", noise(i), []string{"", words[i/3%3]}[i%3/2], min(i%3/2, i%40))
		},
			"boat: whether it is missing tells survived in 99 % of the rows; if"},
		{"missing for one of them", "a,boat,survived", func(i int) string { return fmt.Sprintf("%d,%s,%d", noise(i), []string{"", words[i%3]}[i%3/2], i%3%2) }, ""},
		{"ranges apart", "a,score,passed", func(i int) string { return fmt.Sprintf("%d,%d,%d", noise(i), i%2*200+noise(i), i%2) },
			"score: its ranges for the classes of passed do not overlap, so it alone tells the class; if"},
		{"ranges that touch", "a,score,passed", func(i int) string { return fmt.Sprintf("%d,%d,%d", noise(i), i%2*90+noise(i), i%2) }, ""},
		{"words for the class", "a,reason,left", func(i int) string { return fmt.Sprintf("%d,%s,%d", noise(i), words[i%3], i%3/2) },
			"reason: its words tell left in all of the rows; if"},
		{"words that help", "a,reason,left", func(i int) string { return fmt.Sprintf("%d,%s,%d", noise(i), words[i%3], min(i%3/2, i%5)) }, ""},
	} {
		s := survey(t, tableText(c.header, 330, c.row))
		p, err := s.Plan(t.Context(), 2, AnyTask)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		notes, err := s.leaks(t.Context(), p)
		if got := strings.Join(notes, "\n"); err != nil || (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: noted %q, %v; want %q", c.name, notes, err, c.want)
		}
	}
}

// A few rows show nothing, and of many columns the first are named.
func TestLeaksOfFewRowsAndManyColumns(t *testing.T) {
	row := func(i int) string { return fmt.Sprintf("%d,%d,%d,%d,%d.5", i*2, i*3, i*4, i*5, i*i%37*i) }
	copies := func(i int) string { return fmt.Sprintf("%d,%d,%d,%d,%d.5", i*i*2, i*i*3, i*i*4, i*i*5, i*i) }
	for _, c := range []struct {
		rows int
		row  func(int) string
		want int
	}{{fewestLeakRows - 1, copies, 0}, {200, copies, mostLeaks}, {200, row, 0}} {
		s := survey(t, tableText("a,b,c,d,price", c.rows, c.row))
		p, err := s.Plan(t.Context(), 4, AnyTask)
		if err != nil {
			t.Fatal(err)
		}
		if notes, err := s.leaks(t.Context(), p); err != nil || len(notes) != c.want {
			t.Errorf("%d rows: noted %q, %v; want %d", c.rows, notes, err, c.want)
		}
	}
}

// Several columns that are called like labels.
func TestOtherLabels(t *testing.T) {
	for header, want := range map[string]string{
		"a,target_x,target_y": "target_x: called like the label, and learnt from",
		"y1,y2,y3":            "y1, y2: called like the label",
		"a,target_x,class":    "",
		"labels,b,label":      "",
		"a,year,y":            "",
	} {
		s := survey(t, tableText(header, 60, func(i int) string { return fmt.Sprintf("%d,%d,%d.5", i*7%31, i*11%37, i*13%41) }))
		p, err := s.Plan(t.Context(), 2, AnyTask)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.otherLabels(p), "\n"); (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: noted %q, want %q", header, got, want)
		}
	}
}
