package dataset

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func survey(t *testing.T, text string) *Survey {
	t.Helper()
	name := filepath.Join(t.TempDir(), "data.csv")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := NewSurvey(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tableText makes n rows of what f gives.
func tableText(header string, n int, f func(i int) string) string {
	var b strings.Builder
	b.WriteString(header + "\n")
	for i := range n {
		b.WriteString(f(i) + "\n")
	}
	return b.String()
}

// What is made of columns of all sorts. The last is the label.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name string
		cell func(i int) string // of the first column
		want string             // its kind and rule
	}{
		{"x", func(i int) string { return fmt.Sprint(i * i) }, "number "},
		{"x", func(i int) string { return fmt.Sprint(i) }, "number left out: counts the rows"},
		{"x", func(i int) string { return fmt.Sprint(i + 1) }, "number left out: counts the rows"},
		{"time", func(i int) string { return fmt.Sprint(i + 1) }, "number "},
		{"year", func(i int) string { return fmt.Sprint(1900 + i) }, "number "},
		{"PassengerId", func(i int) string { return fmt.Sprint(5000 - 3*i) }, "number left out: identifies the rows"},
		{"", func(i int) string { return fmt.Sprint("r", i) }, "category left out: the index, without a name"},
		{"name", func(i int) string { return fmt.Sprint("Mr. ", i) }, "category left out: different in every row"},
		{"review", func(i int) string { return fmt.Sprintf("it is my chair number %d", i) }, "text texts, an input for each frequent word"},
		{"name", func(i int) string { return fmt.Sprint("Braund Mr. Owen ", i) }, "category left out: different in every row"},
		{"ticket", func(i int) string { return fmt.Sprint("A/", i*2/3) }, "category left out: too many different words"},
		{"town", func(i int) string { return fmt.Sprint("T", i%30) }, "category words, one input each"},
		{"flag", func(i int) string { return fmt.Sprint(i%3 == 0) }, "category words, one input each"},
		{"flag", func(i int) string { return []string{"yes", "no", ""}[i%3] }, "category words, one input each; missing is none of them"},
		{"one", func(int) string { return "same" }, "category left out: constant"},
		{"one", func(int) string { return "1" }, "number constant, so without effect"},
		{"none", func(int) string { return "NA" }, "number left out: no values"},
		{"some", func(i int) string { return []string{"1.5", "null", "2.5"}[i%3] }, "number missing becomes the mean"},
		{"mixed", func(i int) string { return []string{"1", "2", "unknown"}[i%3] }, "category words among numbers, one input each"},
		{"day", func(i int) string { return fmt.Sprintf("%d/%d/2020", 1+i%12, 1+i%28) }, "date days since 1970, written %m/%d/%Y"},
		{"day", func(i int) string { return fmt.Sprintf("%d/%d/2020", 1+i%28, 1+i%12) }, "date days since 1970, written %d/%m/%Y"},
		{"at", func(i int) string { return fmt.Sprintf("2020-01-%02d 1%d:30", 1+i%28, i%10) }, "date days since 1970, written %Y-%m-%d %H:%M"},
		{"at", func(i int) string { return fmt.Sprintf("2020-01-%02dT10:30:00+01:00", 1+i%28) }, "date days since 1970, written iso"},
		{"at", func(i int) string { return []string{"Jan 3 2020", "", "Feb 12 2021"}[i%3] }, "date days since 1970, written %b %d %Y; missing becomes the mean"},
		{"at", func(i int) string {
			return fmt.Sprintf("%d/%d/2020 1%d:05:00 %s", 1+i%12, 1+i%28, i%3, []string{"AM", "PM"}[i%2])
		}, "date days since 1970, written %m/%d/%Y %I:%M:%S %p"},
		{"at", func(i int) string { return fmt.Sprintf("2020-01-%02d 10:30:00+01:00", 1+i%28) }, "date days since 1970, written %Y-%m-%d %H:%M:%S%z"},
		{"at", func(i int) string { return fmt.Sprintf("2020-01-%02d 10:30:00.125 UTC", 1+i%28) }, "date days since 1970, written %Y-%m-%d %H:%M:%S %Z"},
		{"at", func(i int) string { return fmt.Sprintf(`"Wed, %02d Jan 2020 10:30:00 +0100"`, 1+i%28) }, "date days since 1970, written %a, %d %b %Y %H:%M:%S %z"},
		{"at", func(i int) string { return fmt.Sprintf("%02dJAN2020", 1+i%28) }, "date days since 1970, written %d%b%Y"},
		{"at", func(i int) string { return fmt.Sprint(20200101 + i%28) }, "date days since 1970, written %Y%m%d"},
		{"at", func(i int) string { return fmt.Sprint(20200101 + i%40) }, "number "},
		{"created_at", func(i int) string { return fmt.Sprint(1700000000 + i*4000) }, "date seconds since 1970"},
		{"timestamp", func(i int) string { return fmt.Sprint(1700000000000 + i*4000) }, "date milliseconds since 1970"},
		{"timestamp", func(i int) string { return fmt.Sprint(5000 + i*i*4000) }, "number "},
		{"phone", func(i int) string { return fmt.Sprint(1700000000 + i*4000) }, "number "},
		{"at", func(i int) string {
			return []string{fmt.Sprintf("2020-01-%02d", 1+i%28), "NaT", "0000-00-00"}[max(0, i-117)]
		}, `date days since 1970, written iso; "0000-00-00", "NaT" missing; missing becomes the mean`},
		{"at", func(i int) string { return []string{"unknown", fmt.Sprintf("2020-01-%02d", 1+i%28)}[min(i, 1)] }, `date days since 1970, written iso; "unknown" missing; missing becomes the mean`},
		{"at", func(i int) string { return fmt.Sprintf([]string{"%d/1/2020", "1/%d/2020"}[i/60], 20+i%5) }, "category words, one input each"},
		{"at", func(i int) string { return []string{"spring", "fall", "2020-01-01"}[i%3] }, "category words, one input each"},
		{"took", func(i int) string { return fmt.Sprintf("%d:%02d:%02d", i%30, i%60, i*7%60) }, "date days, written hours:minutes:seconds"},
		{"at", func(i int) string { return fmt.Sprintf("%d:%02d %s", 1+i%12, i%60, []string{"AM", "PM"}[i%2]) }, "date time of day, written %I:%M %p"},
		{"weight", func(i int) string { return fmt.Sprintf("%.1f kg", float64(i*31%97)/3) }, "number in kg"},
		{"price", func(i int) string { return fmt.Sprintf("EUR %d", i*31%97) }, "number in EUR"},
		{"price", func(i int) string { return fmt.Sprintf("US$ %d.5", i*31%97) }, "number "},
		{"price", func(i int) string { return fmt.Sprintf("$%d.5 per hour", i*31%97) }, "number in per hour"},
		{"people", func(i int) string { return fmt.Sprint(i*31%97, []string{"", "[b]", "*", " [12]"}[i%4]) }, "number "},
		{"lead", func(i int) string { return fmt.Sprintf("%d.5 ± 0.1", i*31%97) }, "number "},
		{"took", func(i int) string { return []string{"1 year", fmt.Sprint(i, " years")}[min(i/2, 1)] }, "number in year"},
		{"size", func(i int) string {
			return []string{fmt.Sprintf("%d.5M", i), fmt.Sprint(i, "k"), "Varies with device"}[i%3]
		}, `number in K/M/B; "Varies with device" missing; missing becomes the mean`},
		{"customer", func(i int) string { return fmt.Sprint(100001 + i) }, "number left out: counts the rows"},
		{"Jahr", func(i int) string { return fmt.Sprint(1880 + i) }, "number "},
		{"Kd-Nr.", func(i int) string { return fmt.Sprint(5000 - 3*i) }, "number left out: identifies the rows"},
		{"Order Number", func(i int) string { return fmt.Sprint(5000 - 3*i) }, "number left out: identifies the rows"},
		{"casino", func(i int) string { return fmt.Sprint(5000 - 3*i) }, "number "},
		{"doors", func(i int) string { return fmt.Sprintf("%d doors", 2+i%3) }, "category words, one input each"},
		{"units", func(i int) string { return fmt.Sprint(i*31%97, []string{" kg", " g"}[i%2]) }, "category left out: different in every row"},
		{"few", func(i int) string { return []string{fmt.Sprint(i * i), "unknown"}[i/118] }, `number "unknown" missing; missing becomes the mean`},
		{"many", func(i int) string { return []string{fmt.Sprint(i * i), "w" + fmt.Sprint(i)}[i/80] }, `category left out: numbers, but also 40 words such as "w80"`},
		{"codes", func(i int) string { return []string{fmt.Sprint(i % 5), "A"}[i/118] }, "category words among numbers, one input each"},
		{"sheet", func(i int) string { return fmt.Sprintf(`="%03d"`, i*31%97) }, "number "},
		{"half", func(i int) string { return []string{fmt.Sprintf("%d.5", i*i), "large", "small", fmt.Sprint(i)}[i%4] }, `number "large", "small" missing; missing becomes the mean`},
		{"rate", func(i int) string {
			return []string{fmt.Sprintf("%.1f/5", 1+float64(i%40)/10), "NEW", "-"}[max(0, i-117)]
		}, `number in /5; "-", "NEW" missing; missing becomes the mean`},
		{"rate", func(i int) string { return fmt.Sprintf("%d /10", i%10) }, "number in /10"},
		{"beat", func(i int) string { return fmt.Sprintf("%d/4", 3+i%2) }, "category words, one input each"},
		{"photo", func(i int) string { return fmt.Sprintf("img%03d.JPG", i) }, "category left out: names images, which a table does not read"},
		{"zip", func(i int) string { return []string{"02139", "10001", "94105"}[i%3] }, "category codes, one input each"},
		{"zip", func(i int) string { return fmt.Sprintf("%05d", i*i*37) }, "number "},
		{"month", func(i int) string { return fmt.Sprint(1 + i%12) }, "number "},
		{"level", func(i int) string { return []string{fmt.Sprintf("%.1f", float64(i%40)/7), "-999"}[i/100] }, `number "-999" missing; missing becomes the mean`},
		{"level", func(i int) string { return []string{fmt.Sprintf("%.2f", float64(i%40)/7), "9999.00"}[i/100] }, `number "9999.00" missing; missing becomes the mean`},
		{"level", func(i int) string { return []string{fmt.Sprint(i % 40), "99"}[i/100] }, "number "},
		{"same", func(i int) string { return []string{"zero", "one"}[i/2%2] }, "category left out: is the label in other words"},
	} {
		s := survey(t, tableText(c.name+",other,label", 120, func(i int) string { return fmt.Sprintf("%s,%d,%d", c.cell(i), i*7%13, i/2%2) }))
		p, err := s.Plan(t.Context(), 2, AnyTask)
		if err != nil {
			t.Errorf("%s %s: %v", c.name, c.cell(0), err)
			continue
		}
		if got := fmt.Sprint(p.Uses[0].Kind, " ", p.Uses[0].Rule); got != c.want {
			t.Errorf("%s, as in %s: %q, want %q", c.name, c.cell(1), got, c.want)
		}
	}
}

// Which column is predicted, and as what.
func TestChooseLabel(t *testing.T) {
	for _, c := range []struct {
		header string
		row    func(i int) string
		want   string
	}{
		{"a,target,c", func(i int) string { return fmt.Sprintf("%d,%d,%d", i*i, i%3, i%5) }, "target for its name: 3 classes"},
		{"class,survived,c", func(i int) string { return fmt.Sprintf("%d,%d,%d", i%3, i%2, i%5) }, "survived for its name: 2 classes"},
		{"a,b,c", func(i int) string { return fmt.Sprintf("%d,%d,%.1f", i*i, i%3, float64(i)*1.7) }, "c as the last column: number"},
		{"a,b,id", func(i int) string { return fmt.Sprintf("%d,%d,%d", i*i, i%3, i) }, "b as the last column that can be predicted: 3 classes"},
		{"a,b,user_id", func(i int) string { return fmt.Sprintf("%d,%d,%d", i*i, i%3, i*31%71) }, "b as the last column that can be predicted: 3 classes"},
		{"a,b,day", func(i int) string { return fmt.Sprintf("%d,%s,2020-01-%02d", i*i, []string{"x", "y"}[i%2], 1+i%28) }, "b as the last column that can be predicted: 2 classes"},
		{"a,species,sex", func(i int) string { return fmt.Sprintf("%d,s%d,m%d", i*i, i%3, i%2) }, "species for its name: 3 classes"},
		{"a,b,rating", func(i int) string { return fmt.Sprintf("%d,%d,%d", i*i, i%3, 3+i%7) }, "rating as the last column: 7 classes"},
		{"a,b,visits", func(i int) string { return fmt.Sprintf("%d,%d,%d", i*i, i%3, i%9+i/120*(i-120)/2) }, "visits as the last column: number"},
		{"a,b,letter", func(i int) string { return fmt.Sprintf("%d,%d,%d.0", i*i, i%3, i%14) }, "letter as the last column: 14 classes"},
		{"a,b,age", func(i int) string { return fmt.Sprintf("%d,%d,%d", i*i, i%3, i*31%71) }, "age as the last column: number"},
		{"a,b,digit", func(i int) string { return fmt.Sprintf("%d,%d,%.1f", i*i, i%3, float64(i%2)) }, "digit as the last column: 2 classes"},
		{"a,b,label", func(i int) string { return fmt.Sprintf("%d,%d,%d", i*i, i%3, i%40) }, "label for its name: 40 classes"},
	} {
		s := survey(t, tableText(c.header, 140, c.row))
		label, why := s.ChooseLabel()
		p, err := s.Plan(t.Context(), label, AnyTask)
		if err != nil {
			t.Errorf("%s: %v", c.header, err)
			continue
		}
		got := fmt.Sprintf("%s %s: ", s.Columns[label].Name, why)
		if p.Numbers {
			got += "number"
		} else {
			got += fmt.Sprintf("%d classes", s.Columns[label].Distinct)
		}
		if got != c.want {
			t.Errorf("%s: %s; want %s", c.header, got, c.want)
		}
	}
}

// TestTwoRows: two different numbers are no classes.
func TestTwoRows(t *testing.T) {
	s := survey(t, "a,b\n1,2\n3,4\n")
	if p, err := s.Plan(t.Context(), 1, AnyTask); err != nil || !p.Numbers {
		t.Errorf("%+v, %v; want a number to predict", p, err)
	}
}

func TestSurveyColumn(t *testing.T) {
	s := survey(t, "a,b,0\n1,2,3\n4,5,6\n")
	for text, want := range map[string]int{"a": 0, "B": 1, "0": 2, "1": 1, "-1": 2, "-3": 0} {
		if got, ok := s.Column(text); !ok || got != want {
			t.Errorf("%s is column %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"c", "3", "-4", ""} {
		if got, ok := s.Column(text); ok {
			t.Errorf("%q is column %d", text, got)
		}
	}
}

// The x of a curve counts the rows, but there is nothing else to learn from.
func TestPlanOfACurve(t *testing.T) {
	for header, want := range map[string]bool{"x,y": true, "nDeaths,y": true, "id,y": false, ",y": false} {
		s := survey(t, tableText(header, 50, func(i int) string { return fmt.Sprintf("%d,%.1f", i, float64(i*i)/7) }))
		p, err := s.Plan(t.Context(), 1, AnyTask)
		if (err == nil) != want {
			t.Errorf("%s: %v", header, err)
			continue
		}
		if want && (p.Uses[0].Drop || p.Uses[0].Rule != "") {
			t.Errorf("%s: %+v", header, p.Uses[0])
		}
	}
}

// TestManyWords uses a column of more than a thousand words only if these come often
// enough to be learnt.
func TestManyWords(t *testing.T) {
	for words, want := range map[int]string{2000: "words, one input each", 3000: "left out: too many different words"} {
		s := survey(t, tableText("product,price", 12_000, func(i int) string { return fmt.Sprintf("p%d,%d.5", i%words, i*i%977) }))
		p, err := s.Plan(t.Context(), 1, AnyTask)
		if words == 3000 {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d words: %v, want %q", words, err, want)
			}
			continue
		}
		if err != nil || p.Uses[0].Rule != want {
			t.Errorf("%d words: %v, want %q", words, err, want)
		}
	}
}

// TestChooseFirstColumn predicts the classes in the first column of a table without names if
// there are no others.
func TestChooseFirstColumn(t *testing.T) {
	for _, c := range []struct {
		name string
		row  func(i int) string
		want int
	}{
		{"classes first", func(i int) string { return fmt.Sprintf("%d,%d.5,%d.25", 1+i%3, i*7, i*13) }, 0},
		{"classes last", func(i int) string { return fmt.Sprintf("%d.5,%d.25,%d", i*7, i*13, 1+i%3) }, 2},
		{"classes first and last", func(i int) string { return fmt.Sprintf("%d,%d.5,%d", i%2, i*7, 1+i%3) }, 2},
		{"words first", func(i int) string { return fmt.Sprintf("%c,%d.5,%d", 'a'+i%3, i*7, i*13%90) }, 2},
		{"numbers alone", func(i int) string { return fmt.Sprintf("%d.1,%d.5,%d.5", i, i*7, i*13) }, 2},
	} {
		s := survey(t, strings.TrimPrefix(tableText("", 120, c.row), "\n"))
		if got, why := s.ChooseLabel(); got != c.want {
			t.Errorf("%s: column %d %s, want %d", c.name, got, why, c.want)
		}
	}
}

// TestBalance measures how rare some classes are.
func TestBalance(t *testing.T) {
	for rare, want := range map[int]float64{100: 1, 2: 0.0396} {
		s := survey(t, tableText("a,y", 200, func(i int) string { return fmt.Sprintf("%d,%t", i*i, i < rare) }))
		if got := s.Balance(1); math.Abs(got-want) > 1e-4 {
			t.Errorf("%d of 200: %v, want %v", rare, got, want)
		}
	}
}

// TestMixedDecimalMarks says why numbers are not numbers where a table has two decimal marks.
func TestMixedDecimalMarks(t *testing.T) {
	s := survey(t, strings.ReplaceAll(tableText("turnover;margin;class", 40, func(i int) string {
		return fmt.Sprintf("%d.%03d,50 €;%d.25 %%;%c", 1+i, i, i, 'a'+i%2)
	}), "\n", "\r\n"))
	p, err := s.Plan(t.Context(), 2, AnyTask)
	if err != nil || p.Uses[0].Rule != "left out: numbers with decimal commas, but other columns have points: write them alike" || p.Uses[1].Kind != KindNumber {
		t.Errorf("%+v, %v", p.Uses, err)
	}
}
