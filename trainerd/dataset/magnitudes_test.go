package dataset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMagnitudes reads 1.2K as 1200 where a column has other magnitudes too; one alone is a
// unit.
func TestMagnitudes(t *testing.T) {
	for _, c := range []struct {
		name string
		cell func(i int) string
		want string // the unit
	}{
		{"words", func(i int) string { return fmt.Sprintf("US$%d.5 %s", i, []string{"million", "billion"}[i%2]) }, Magnitudes},
		{"abbreviated", func(i int) string { return fmt.Sprintf("%d.%d %s", i, i%10, []string{"Mio.", "Mrd."}[i%2]) }, Magnitudes},
		{"money in billions", func(i int) string { return fmt.Sprintf("$%dB", i) }, "B"},
		{"thousands and millions", func(i int) string { return fmt.Sprintf("%d.%d%c", i, i%10, "KM"[i%2]) }, Magnitudes},
		{"plain numbers too", func(i int) string { return fmt.Sprint(i*31+1, []string{"", "k"}[i%2]) }, Magnitudes},
		{"money", func(i int) string { return fmt.Sprintf("$%d.5%c", i, "MB"[i%2]) }, Magnitudes},
		{"one magnitude", func(i int) string { return fmt.Sprintf("%d.5K", i) }, "K"},
		{"kelvins", func(i int) string { return fmt.Sprintf("%d K", 270+i) }, "K"},
		{"kelvins and numbers", func(i int) string { return fmt.Sprint(270+i, []string{"", " K"}[i%2]) }, "K"},
		{"numbers", func(i int) string { return fmt.Sprint(i * i) }, ""},
	} {
		s := survey(t, tableText("n,other,label", 60, func(i int) string { return fmt.Sprintf("%s,%d,%d", c.cell(i), i*7%13, i/2%2) }))
		p, err := s.Plan(t.Context(), 2, AnyTask)
		if err != nil || p.Uses[0].Kind != KindNumber || p.Uses[0].Unit != c.want || p.Uses[0].NA != nil {
			t.Errorf("%s: %+v, %v; want numbers in %q", c.name, p.Uses[0], err, c.want)
		}
	}
	d := read(t, "n,y\n950,0\n1.2K,1\n$3M,0\n2B,1\n", Options{Header: true, Label: Column{Name: "y"}, Units: map[string]string{"n": Magnitudes}})
	d.opts.BatchSize = 4
	x, _, err := d.Batch(0)
	if diff := cmp.Diff([]float32{950, 1200, 3e6, 2e9}, floats(x)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	_, err = Read(t.Context(), strings.NewReader("n,y\n950,0\n1.2T,1\n"), "data.csv", Options{Header: true, Label: Column{Name: "y"}, Units: map[string]string{"n": Magnitudes}})
	if err == nil || !strings.Contains(err.Error(), `"1.2T" is not a number; the numbers of the column are in K/M/B, as data.units says`) {
		t.Error(err)
	}
}
