package dataset

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// What each kind of column becomes, and that words are numbered in their order,
// not in that of the file.
func TestColumns(t *testing.T) {
	const text = "id,colour,born,size,kind\n" +
		"7,red,1970-01-03,1.5,b\n" +
		"8,blue,,NA,a\n" +
		"9,,1969-12-31,-2,b\n" +
		"5,green,1970-01-01T12:00:00Z,0,?\n" +
		"6,blue,1970-01-01,4,a\n"
	o := Options{
		Header: true, Label: Column{Name: "kind"}, Drop: []string{"id"}, Categories: []string{"colour", "kind"},
		Dates: map[string]string{"born": ""}, Missing: true,
	}
	d := read(t, text, o)
	if d.TrainRows != 4 || d.Unlabelled != 1 || d.Classes != 2 {
		t.Errorf("%d rows, %d without a label, %d classes", d.TrainRows, d.Unlabelled, d.Classes)
	}
	want := []Feature{
		{Name: "colour", Kind: KindCategory, Vocabulary: []string{"blue", "green", "red"}[:], Column: 1},
		{Name: "born", Kind: KindDate, Column: 2},
		{Name: "size", Kind: KindNumber, Column: 3},
	}
	want[0].Vocabulary = []string{"blue", "red"} // green has no label
	if diff := cmp.Diff(want, d.Schema.Features); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, d.Schema.Label.Vocabulary); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
	d.opts.BatchSize = 4
	x, y, err := d.Batch(0)
	if err != nil {
		t.Fatal(err)
	}
	nan := float32(math.NaN())
	if diff := cmp.Diff([]float32{1, 2, 1.5, 0, nan, nan, -1, -1, -2, 0, 0, 4}, floats(x), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{1, 0, 1, 0}, ints(y)); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// A test file has the words of the training file: another one is none of them
// as a feature, and an error as a label.
func TestWordsOfTestFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	train := write("train.csv", "c,y\nred,no\nblue,yes\nred,no\n")
	o := Options{Header: true, Label: Column{Name: "y"}, Categories: []string{"c", "y"}}
	o.TestFile = write("test.csv", "c,y\ngreen,yes\nred,no\n")
	d, err := Load(t.Context(), train, o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	x, y, err := d.Test(0, 2)
	if err != nil || cmp.Diff([]float32{-1, 1}, floats(x)) != "" || cmp.Diff([]int64{1, 0}, ints(y)) != "" {
		t.Errorf("test part %v %v, %v", floats(x), ints(y), err)
	}
	o.TestFile = write("worse.csv", "c,y\nred,maybe\n")
	var fault *Error
	if _, err := Load(t.Context(), train, o); !errors.As(err, &fault) || !strings.Contains(err.Error(), `worse.csv:2: column 2 ("y"): the label "maybe" is not among those of data.file`) {
		t.Errorf("another label: %v", err)
	}
}

func TestColumnErrors(t *testing.T) {
	header := func(o Options) Options {
		o.Header, o.Label = true, Column{Name: "y"}
		return o
	}
	many := "a,y\n"
	for i := range maxWords + 1 {
		many += strconv.Itoa(i) + "x,0\n"
	}
	for _, c := range []struct {
		name, text string
		opts       Options
		want       string
	}{
		{"not a date", "a,y\n1.2.2020,0\n", header(Options{Dates: map[string]string{"a": "2006-1-2"}}), `data.csv:2: column 1 ("a"): "1.2.2020" is not a date; write dates like 2026-11-25`},
		{"no such column", "a,y\n1,0\n", header(Options{Drop: []string{"b"}}), `data.csv:1: there is no column "b" for the drop; the columns are "a", "y"; set data.drop to one of them`},
		{"nothing left", "a,y\n1,0\n", header(Options{Drop: []string{"a"}}), "data.csv:1: no column is left for the features; shorten data.drop"},
		{"the label as a feature", "a,y\n1,0\n", header(Options{Features: []string{"a", "y"}}), `data.csv:1: data.features has the column "y", which is the label or occurs twice`},
		{"missing", "a,y\n,x\n", header(Options{Categories: []string{"a", "y"}}), `data.csv:2: column 1 ("a"): the field is empty; fill in a value, remove the row, or set data.missing = "fill"`},
		{"one class", "a,y\n1,x\n2,x\n", header(Options{Categories: []string{"y"}}), `data.csv: column 2 ("y"): every label is "x"; a classifier needs at least two classes`},
		{"no label at all", "a,y\n1,\n2,NA\n", header(Options{Missing: true}), `data.csv: column 2 ("y"): no row has a label`},
		{"more classes than the model has", "a,y\n1,u\n2,v\n3,w\n", header(Options{Categories: []string{"y"}, Classes: 2}), `data.csv: column 2 ("y"): there are 3 classes, more than model.classes = 2`},
		{"too many words", many, header(Options{Categories: []string{"a"}}), `data.csv:10002: column 1 ("a"): is the word number 10001 of a category; leave the column out: add it to data.drop`},
		{"binary", "a\x00\x01" + strings.Repeat("\x02", 1<<16), Options{}, "data.csv: is a binary file, not a table of text; give a table of text, or Parquet, TFRecord, IDX or images"},
		{"JSON", `{"a":1,"y":0}` + "\n" + `{"a":"b","y":1}`, Options{Format: FormatJSON, Label: Column{Name: "y"}}, `data.csv: record 2: column 1 ("a"): "b" is not a number`},
	} {
		_, err := Read(t.Context(), strings.NewReader(c.text), "data.csv", c.opts)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || len(err.Error()) > 1000 {
			t.Errorf("%s:\ngot  %.500v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestDateLayout(t *testing.T) {
	for form, want := range map[string]string{"%Y-%m-%d": "2006-1-2", "%d. %B %y": "2. January 06", "iso": "", "unix": secondsLayout, "%Y%m%d": digitDates[8].feature.Layout, "%Y%m": digitDates[6].feature.Layout, "%Y%m%d%H%M": digitDates[12].feature.Layout,
		"%Y%m%d%H%M%S": digitDates[14].feature.Layout, "quarter": quarterLayout, "%F %T%z": "2006-1-2 15:4:5-0700", "%-d/%-m": "2/1"} {
		if got, err := DateLayout(form); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", form, got, err, want)
		}
	}
	for _, form := range []string{"", "%Q", "%", "%Y1", "%-"} {
		if got, err := DateLayout(form); err == nil {
			t.Errorf("%q: %q", form, got)
		}
	}
	for _, form := range dateForms() {
		if _, err := DateLayout(form); err != nil {
			t.Error(err)
		}
	}
}

// TestTestFileByName finds the columns of a test file by their names: in another order, and
// among others.
func TestTestFileByName(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		format      Format
		train, test string
		want        string
	}{
		{FormatCSV, "id,a,c,b,y\n1,1,red,10,0\n2,2,blue,20,1\n", "y,b,more,c,a\n1,30,x,red,3\n", ""},
		{FormatJSON, `{"id":1,"a":1,"c":"red","b":10,"y":0}` + "\n" + `{"id":2,"a":2,"c":"blue","b":20,"y":1}`, `{"b":30,"y":1,"c":"red","a":3}`, ""},
		{FormatCSV, "id,a,c,b,y\n1,1,red,10,0\n2,2,blue,20,1\n", "id,a,c,y\n3,3,red,1\n", `there is no column "b", which data.file has; the columns are "id", "a", "c", "y"`},
	} {
		train, test := filepath.Join(dir, "train"), filepath.Join(dir, "test")
		for name, text := range map[string]string{train: c.train, test: c.test} {
			if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		for _, label := range []Column{{Name: "y"}, {Index: -1}} {
			d, err := Load(t.Context(), train, Options{Format: c.format, Header: true, Label: label, Drop: []string{"id"}, Categories: []string{"c"}, TestFile: test})
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			x, y, err := d.Test(0, 1)
			if err != nil || cmp.Diff([]float32{3, 1, 30}, floats(x)) != "" || cmp.Diff([]int64{1}, ints(y)) != "" {
				t.Errorf("%s, label %v: test row %v, label %v, %v", c.format, label, floats(x), ints(y), err)
			}
			d.Close()
		}
	}
}
