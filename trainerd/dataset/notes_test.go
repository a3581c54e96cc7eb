package dataset

import (
	"fmt"
	"strings"
	"testing"
)

// What a person is told of a table before the training, and of one where there is
// nothing to tell.
func TestNotes(t *testing.T) {
	for _, c := range []struct {
		header string
		row    func(i int) string
		want   string // the note begins with, "" for none
	}{
		{"a,b,class", func(i int) string { return fmt.Sprintf("%d,%d,%d", i*i, i*31%97, i%2) }, ""},
		{"a,town,class", func(i int) string {
			return fmt.Sprintf("%d,%s,%d", i*i, []string{"Berlin", "berlin ", "Rome"}[i%3], i%2)
		},
			`town: "Berlin" and "berlin" are different words here`},
		{"a,genre,class", func(i int) string {
			return fmt.Sprintf("%d,%q,%d", i*i, []string{"drama, war", "drama", "war", "war, comedy", "comedy"}[i%5], i%2)
		}, `genre: fields have several words, as in "drama, war"; each combination is a word`},
		{"a,b,class", func(i int) string { return fmt.Sprintf("%d,%d,%s", i*i, i*31%97, []string{"x", "y", "x|y"}[i%3]) },
			`class: fields have several words, as in "x|y"; each combination is a class`},
		{"a,amount,class", func(i int) string {
			return fmt.Sprintf("%d,%s,%d", i*i, []string{"-1.5", "1.5", "few", "many"}[i%4], i/4%2)
		}, ""},
		{"a,place,class", func(i int) string { return fmt.Sprintf("%d,\"P%d, US\",%d", i*i, i%7, i%2) }, ""},
		{"a,region,class", func(i int) string {
			return fmt.Sprintf("%d,%s,%d", i*i, []string{"N", "S", "Total"}[i%2+i/119], i/2%2)
		}, `region: "Total" is there once; if its row sums up others`},
		{"country,b,class", func(i int) string {
			return fmt.Sprintf("%s,%d,%d", []string{fmt.Sprint("C", i), "Total"}[i/119], i*31%97, i%2)
		}, `country: "Total" is there once; if its row sums up others`},
		{"number,b,price", func(i int) string {
			return fmt.Sprintf("%s,%d,%d.5", []string{fmt.Sprint(i * i), "Summe:"}[i/119], i*31%97, i*7%113)
		}, `number: "Summe:" is there once; if its row sums up others`},
		{"a,y,class", func(i int) string { return fmt.Sprintf("%d,no,%d", i*i, i%2) }, `y: called like a label, but "no" is its only value`},
		{"a,b,class", func(i int) string { return fmt.Sprintf("%d,%d,%d", i*i, i*31%97, i/119) }, `class: the class "1" has only 1 of 120 rows`},
		{"a,machine,class", func(i int) string { return fmt.Sprintf("%d,p%d,%d", i*i, i%15, i%15/3%2) }, "machine: all rows of one have the same class"},
		{"a,machine,class", func(i int) string { return fmt.Sprintf("%d,p%d,%d", i*i, i%15, i%2) }, ""},
		{"a,Patient ID,class", func(i int) string { return fmt.Sprintf("%d,p%d,%d", i*i, i%60, i%2) }, "Patient ID: all rows of one are in the training or"},
		{"a,patient,class", func(i int) string { return fmt.Sprintf("%d,p%d,%d", i*i, i%100, i%2) }, ""},
		{"a,weight,class", func(i int) string { return fmt.Sprintf("%d,%d,%d", i*i, i%15, i%15/3%2) }, ""},
		{"day,b,class", func(i int) string { return fmt.Sprintf("2024-%02d-%02d,%d,%d", 1+i/28, 1+i%28, i*31%97, i%2) }, "day: the rows are in the order of time"},
		{"day,b,class", func(i int) string { return fmt.Sprintf("2024-%02d-%02d,%d,%d", 1+i%12, 1+i%28, i*31%97, i%2) }, ""},
		{"a,b,price", func(i int) string { return fmt.Sprintf("%d,%d,%d.5", i*i, i*31%97, i*7%113+i/119*900_000) }, "price: a value is 11 standard deviations from the mean; such rows"},
		{"a,b,price", func(i int) string { return fmt.Sprintf("%d,%d,%d.5", i*i, i*31%97, i*7%113+i/119*500) }, ""},
		{"ts,b,class", func(i int) string { return fmt.Sprintf("%d,%d,%d", 1700000000+i*3600, i*31%97, i%2) }, "ts: the rows are in the order of time"},
	} {
		s := survey(t, tableText(c.header, 120, c.row))
		p, err := s.Plan(t.Context(), 2, AnyTask)
		if err != nil {
			t.Fatalf("%s: %v", c.row(0), err)
		}
		notes, err := s.Notes(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(notes, "\n"); got != "" != (c.want != "") || !strings.HasPrefix(got, c.want) || len(notes) > 1 {
			t.Errorf("%s as in %s: noted %q, want %q", c.header, c.row(1), notes, c.want)
		}
	}
}
