package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckScale has columns whose numbers are too large or too small for the
// variance, or the range, of a float32.
func TestCheckScale(t *testing.T) {
	for _, c := range []struct {
		name          string
		feature, word float64
		label         float64
		n             Normalize
		want          string
	}{
		{"usual", 1, 1, 1, NormalizeStandard, ""},
		{"constant", 0, 1, 1, NormalizeStandard, ""},
		{"within", 1e17, 1, 1e-17, NormalizeStandard, ""},
		{"large", 1e30, 1, 1, NormalizeStandard, `x.csv: column 1 ("a"): the numbers spread by 2.9e+30, which is out of the range that a float32 can scale, 1e-19 to 1e+19; multiply the column by 1e-30, or leave it out (data.drop)`},
		{"small", 1e-30, 1, 1, NormalizeStandard, `multiply the column by 1e+30, or`},
		{"large, by the range", 1e30, 1, 1, NormalizeMinMax, ""},
		{"as it is", 1e30, 1, 1, NormalizeNone, ""},
		{"a category", 1, 1e30, 1, NormalizeStandard, ""},
		{"a large label", 1, 1, 1e30, NormalizeNone, `x.csv: column 3 ("y"): the numbers spread by`},
		{"a small label", 1, 1, 1e-30, NormalizeStandard, `multiply the column by 1e+30`},
	} {
		text := "a,w,y\n"
		for i := range 10 {
			text += fmt.Sprintf("%g,%g,%g\n", float64(i)*c.feature, float64(i%2)*c.word, float64(i)*c.label)
		}
		name := filepath.Join(t.TempDir(), "x.csv")
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		d, err := Load(t.Context(), name, Options{Header: true, Label: Column{Name: "y"}, Numbers: true, Categories: []string{"w"}})
		if err != nil {
			t.Fatal(err)
		}
		err = d.CheckScale("x.csv", c.n)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %s", c.name, err, c.want)
		}
	}
}
