package dataset

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSplitUnit(t *testing.T) {
	for field, want := range map[string]string{
		"12 kg": "12|kg", "12kg": "12|kg", "-1.5e3 m/s": "-1.5e3|m/s", "12 m2": "12|m2", "EUR 12.50": "12.50|EUR", "5 °C": "5|°C", "5°": "5|°",
		"12": "", "kg": "", "u151": "", "user 12": "", "12 34": "", "1-2 kg": "", "12:30 PM": "", "0x1f": "", "inf kg": "", "": "", "12 " + strings.Repeat("x", 17): "",
	} {
		number, unit, ok := splitUnit(field)
		if got := number + "|" + unit; ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s, %v; want %q", field, got, ok, want)
		}
	}
}

// TestFewMeasures: few different numbers with a unit are numbers if the unit is one of
// what is measured.
func TestFewMeasures(t *testing.T) {
	for unit, want := range map[string]Kind{"kg": KindNumber, "°C": KindNumber, "doors": KindCategory} {
		s := survey(t, tableText("a,b,class", 60, func(i int) string { return fmt.Sprintf("%d %s,%d,%d", 2+i%3, unit, i*i, i%2) }))
		p, err := s.Plan(t.Context(), 2, AnyTask)
		if err != nil || p.Uses[0].Kind != want {
			t.Errorf("%s: %v, %v; want %v", unit, p.Uses[0].Kind, err, want)
		}
	}
}

func TestDurations(t *testing.T) {
	f := Feature{Kind: KindDate, Layout: durationLayout}
	for field, want := range map[string]float64{"12:00": 0.5, "00:00:43.2": 0.0005, "36:00:00": 1.5, "-06:00": -0.25} {
		if days, reason, _ := f.parseDate(field); reason != "" || math.Abs(float64(days)-want) > 1e-6 {
			t.Errorf("%s is %v days, %s; want %v", field, days, reason, want)
		}
	}
	for _, field := range []string{"12", "1:60", "1:2:60", "1:2:3:4", "a:b", "1:2 PM"} {
		if days, reason, _ := f.parseDate(field); reason == "" {
			t.Errorf("%q is %v days", field, days)
		}
	}
}

// Numbers with a unit and words that stand for missing values are read alike in
// training and by the schema that the model keeps.
func TestUnitsAndNAValues(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.csv")
	const text = "w,age,price\n12 kg,30,EUR 5\n13.5kg,unknown,6\n14,-,EUR 7\nNA,31,none\n"
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	o := Options{Header: true, Label: Column{Name: "price"}, Numbers: true, Missing: true,
		Units: map[string]string{"w": "kg", "price": "EUR"}, NAValues: map[string][]string{"age": {"unknown", "-"}, "price": {"none"}}}
	d, err := Load(t.Context(), name, o)
	if err != nil {
		t.Fatal(err)
	}
	nan := float32(math.NaN())
	want := [][]float32{{12, 30}, {13.5, nan}, {14, nan}}
	same := func(a, b float32) bool { return a == b || a != a && b != b }
	stored, err := json.Marshal(d.Schema)
	if err != nil {
		t.Fatal(err)
	}
	var s Schema
	if err := json.Unmarshal(stored, &s); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(text, "\n")[1:4] {
		fields := strings.Split(line, ",")
		var got []float32
		for f := range 2 {
			v, reason, _ := s.Parse(s.Vocabularies(), f, fields[f])
			if reason != "" {
				t.Error(reason)
			}
			got = append(got, v)
		}
		if label, reason := s.ParseLabel(fields[2]); reason != "" || label != float64(5+i) {
			t.Errorf("label %v, %s", label, reason)
		}
		if !slices.EqualFunc(got, want[i], same) {
			t.Errorf("row %d is %v, want %v", i, got, want[i])
		}
		batch, _, err := d.Batch(int64(i))
		if err != nil {
			t.Fatal(err)
		}
		x := floats(batch)
		if !slices.EqualFunc(x, want[i], same) {
			t.Errorf("batch %d is %v, want %v", i, x, want[i])
		}
	}
	if err := os.WriteFile(name, []byte(strings.Replace(text, "12 kg", "12 lb", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	const fault = `x.csv:2: column 1 ("w"): "12 lb" is not a number; the numbers of the column are in kg`
	if _, err := Load(t.Context(), name, o); err == nil || !strings.Contains(err.Error(), fault) {
		t.Errorf("another unit: %v", err)
	}
	o.Units = map[string]string{"no": "kg"}
	if _, err := Load(t.Context(), name, o); err == nil || !strings.Contains(err.Error(), `there is no column "no" for the units`) {
		t.Errorf("unit of no column: %v", err)
	}
}

func TestBounds(t *testing.T) {
	for field, want := range map[string]string{
		">=90": "90", "> 90": "90", "<0.5": "0.5", "≤-3": "-3", "≥1e3": "1e3", "90+": "90", "<=7": "7",
		"90": "", "+90": "", "++": "", "<": "", "<>90": "", "<a": "", "5-10": "", ">+5": "", "90++": "", "=90": "", "": "",
	} {
		if got, ok := bound(field); ok != (want != "") || ok && got != want {
			t.Errorf("%q is %q, %v; want %q", field, got, ok, want)
		}
	}
}

// TestBoundsAmongNumbers surveys columns: bounds among numbers are numbers, whatever
// else is missing; those that are not are the names of ranges.
func TestBoundsAmongNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		values string
		want   Kind
	}{
		"numbers":      {"1 2 3 4 5 6 7 8 <1 >8", KindNumber},
		"many bounds":  {"1 2 3 4 5 6 7 8 9 10 11 12 13 14 <1 <2 <3 <4 <5 <6 <7 <8 <9 <10 <11 <12", KindNumber},
		"with missing": {"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 <1 none", KindNumber},
		"ranges":       {"<18 18-30 30-60 >60", KindCategory},
		"few numbers":  {"1 2 <18 >60 >70 >80", KindCategory},
	} {
		p := newProfile(name, allDateForms())
		for field := range strings.FieldsSeq(c.values) {
			p.add(field)
		}
		if p.kind() != c.want {
			t.Errorf("%s is a %s, want a %s", name, p.kind(), c.want)
		}
		if u := p.use(); name == "with missing" && (!slices.Equal(u.NA, []string{"none"}) || u.Missing != 1) {
			t.Errorf("%s: missing %q, %d", name, u.NA, u.Missing)
		}
	}
}
