package dataset

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTextWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		" ?! ":                    "",
		"Don't PANIC, it's 42.5%": "don t panic it s 42 5",
		"red|Blue;green":          "red blue green",
		"ÉTÉ straße ΟΔΟΣ İzmir":   "été straße οδοσ i̇zmir",
		"東京タワー is tall":           "東 京 タ ワ ー is tall",
		"สวัสดี":                  "ส ว ั ส ด ี",
		"한국어 नमस्ते":              "한국어 नमस्ते",
		"a\x00b\u00a0c\u200bd":    "a b c d",
	} {
		if got := strings.Join(TextWords(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

const reviews = "review,stars,y\n" +
	"\"Good, really good!\",5,yes\n" +
	"bad,1,no\n" +
	"\"A good\nphone\",4,yes\n" +
	",3,no\n" +
	"Bad phone: BAD,2,no\n"

func reviewOptions() Options {
	return Options{Header: true, Label: Column{Name: "y"}, Texts: []string{"review"}, Categories: []string{"y"}}
}

// TestTexts numbers the words that two texts have by their frequency, the others not at
// all, and a text that is empty has none.
func TestTexts(t *testing.T) {
	d := read(t, reviews, reviewOptions())
	want := []Feature{{Name: "review", Kind: KindText, Vocabulary: []string{"bad", "good", "phone"}, Length: 3, Column: 0}, {Name: "stars", Kind: KindNumber, Column: 1}}
	if diff := cmp.Diff(want, d.Schema.Features); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
	if d.Features != 4 || d.Schema.Width() != 4 {
		t.Errorf("%d and %d numbers in a row, want 4", d.Features, d.Schema.Width())
	}
	d.opts.BatchSize = 5
	x, _, err := d.Batch(0)
	if err != nil {
		t.Fatal(err)
	}
	rows := []float32{1, 1, -1, 5, 0, -1, -1, 1, 1, 2, -1, 4, -1, -1, -1, 3, 0, 2, 0, 2}
	if diff := cmp.Diff(rows, floats(x)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	s, err := d.Statistics()
	if err != nil || len(s.Words) != 2 || !slices.Equal(s.Words[0], []int64{2, 2, 2}) || s.Words[1] != nil {
		t.Errorf("rows with each word: %v, %v", s.Words, err)
	}
	if idf := s.IDF(0); math.Abs(idf[0]-(1+math.Log(2))) > 1e-12 {
		t.Errorf("weights %v", idf)
	}
}

// TestTextsOfOtherRows reads the rows of a test file, and those to predict, as the training
// rows are read.
func TestTextsOfOtherRows(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const others = "review,stars,y\nGOOD good good good,1,no\nunknown phone,2,yes\n"
	o := reviewOptions()
	o.TestFile = write("test.csv", others)
	d, err := Load(t.Context(), write("train.csv", reviews), o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	x, _, err := d.Test(0, 2)
	if diff := cmp.Diff([]float32{1, 1, 1, 1, 2, -1, -1, 2}, floats(x)); err != nil || diff != "" {
		t.Errorf("test rows: %v\n%s", err, diff)
	}
	got, err := readExamples(t, others, &d.Schema, ExamplesOptions{NoMissing: true})
	if diff := cmp.Diff([]string{"[1 1 1 1] 0", "[2 -1 -1 2] 1"}, got); err != nil || diff != "" {
		t.Errorf("rows to predict: %v\n%s", err, diff)
	}
}

// TestTextLimits bounds the words of a column and of a text.
func TestTextLimits(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("review,y\n")
	for i := range maxTextWords + 10 {
		fmt.Fprintf(&rows, "w%d w%d,%d\n", i, i+1, i%2)
	}
	fmt.Fprintf(&rows, "%s,1\n", strings.Repeat("w7 ", 2*maxTextLength))
	d := read(t, rows.String(), Options{Header: true, Label: Column{Name: "y"}, Texts: []string{"review"}})
	if f := d.Schema.Features[0]; len(f.Vocabulary) != maxTextWords || f.Length != maxTextLength || f.Vocabulary[0] != "w7" {
		t.Errorf("%d words, %d in a text, the first is %q", len(f.Vocabulary), f.Length, f.Vocabulary[0])
	}
	d = read(t, "a,b,y\nonly here,1,0\nnever again,2,1\n", Options{Header: true, Label: Column{Name: "y"}, Texts: []string{"a"}})
	if got := d.Schema.Features[0].Vocabulary; len(got) != 4 {
		t.Errorf("of texts without a common word: %q, want all four", got)
	}
	for _, c := range []struct {
		text string
		o    Options
		want string
	}{
		{"a,y\n?!,0\n--,1\n", Options{Texts: []string{"a"}}, `data.csv: column 1 ("a"): the texts have no words; leave the column out: add it to data.drop`},
		{"a,y\nx,0\n", Options{Texts: []string{"b"}}, `data.csv:1: there is no column "b" for the texts; the columns are "a", "y"; set data.texts to one of them`},
		{"a,y\nx,0\n", Options{Texts: []string{"y"}}, `data.csv:1: data.texts has the column "y", which is the label; remove it there`},
	} {
		c.o.Header, c.o.Label = true, Column{Name: "y"}
		_, err := Read(t.Context(), strings.NewReader(c.text), "data.csv", c.o)
		if place := (*Errors)(nil); !errors.As(err, &place) || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// TestStoredTexts bounds what a stored schema may claim of a text.
func TestStoredTexts(t *testing.T) {
	for _, length := range []int{-1, 0, maxTextLength + 1} {
		text := fmt.Sprintf(`{"features":[{"kind":"text","vocabulary":["a"],"length":%d}],"label":{"kind":"number"}}`, length)
		if err := new(Schema).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("a text of %d words is accepted", length)
		}
	}
}

// TestPlanTexts learns from texts, not from names.
func TestPlanTexts(t *testing.T) {
	for _, c := range []struct {
		name string
		cell func(i int) string
		want Kind
	}{
		{"reviews", func(i int) string { return fmt.Sprintf("the phone number %d was good for me", i) }, KindText},
		{"names", func(i int) string { return fmt.Sprintf("Mr. Owen Harris Braund%d", i) }, KindCategory},
		{"many texts, often repeated", func(i int) string { return fmt.Sprintf("the %d. of some texts that are repeated", i%1200) }, KindText},
		{"tags", func(i int) string { return []string{"drama|war", "war|comedy|drama", "comedy", "war"}[i%4] }, KindText},
		{"arrays of texts", func(i int) string { return []string{`"[""a"", ""b""]"`, `"[]"`, `"[""b""]"`}[i%3] }, KindText},
		{"arrays of texts, some long", func(i int) string {
			return []string{`"[""a""]"`, `"[""a"", ""` + strings.Repeat("b", 300) + `""]"`}[i%2]
		}, KindText},
		{"arrays of numbers", func(i int) string { return []string{`"[1, 2]"`, `"[2]"`}[i%2] }, KindCategory},
		{"places", func(i int) string { return fmt.Sprintf(`"P%d, US"`, i%40) }, KindCategory},
		{"few texts", func(i int) string { return fmt.Sprintf("one of the %d templates of texts", i%3) }, KindCategory},
	} {
		s := survey(t, tableText("text,other,label", 8000, func(i int) string { return fmt.Sprintf("%s,%d,%d", c.cell(i), i*7%13, i/2%2) }))
		p, err := s.Plan(t.Context(), 2, AnyTask)
		if err != nil || p.Uses[0].Kind != c.want || c.want == KindText && p.Uses[0].Drop {
			t.Errorf("%s: %+v, %v; want a %s", c.name, p.Uses[0], err, c.want)
		}
	}
}

// TestProfileOfDocuments keeps no whole documents to tell them apart.
func TestProfileOfDocuments(t *testing.T) {
	p := newProfile("document", allDateForms())
	for i := range 100 {
		p.add(strings.Repeat("some long text ", 1000) + fmt.Sprint(i/2))
	}
	kept := 0
	for value := range p.values {
		kept += len(value)
	}
	if p.Distinct != 50 || kept > 50*longestValue {
		t.Errorf("%d different documents, %d bytes of them; want 50, and at most %d", p.Distinct, kept, 50*longestValue)
	}
}
