package dataset

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// A pattern names the files of one table, in training, in the survey and for a model.
func TestTableInSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "2026-01.csv", []byte("size,town,bought\n1,Rome,yes\n2,Oslo,no\n"))
	write(t, dir, "2026-02.csv", []byte("size,town,bought\n3,Bern,yes\n4,Oslo,no\n5,Rome,yes\n"))
	all := filepath.Join(dir, "2026-*.csv")
	s, err := NewSurvey(t.Context(), all)
	if err != nil || s.Rows != 5 || s.Columns[1].Distinct != 3 {
		t.Fatalf("%+v, %v", s, err)
	}
	if sample := sample(t, all, "", AnyTask); sample != nil {
		t.Errorf("taken for %+v", sample)
	}
	o := Options{Header: true, Label: Column{Name: "bought"}, Categories: []string{"town", "bought"}, BatchSize: 5}
	d := load(t, all, o)
	if d.TrainRows != 5 || len(d.Schema.Features[1].Vocabulary) != 3 {
		t.Errorf("%d rows, words %q", d.TrainRows, d.Schema.Features[1].Vocabulary)
	}
	in, err := OpenExamples(t.Context(), all, &d.Schema, ExamplesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	rows := 0
	if err := in.Each(func(*Example) error { rows++; return nil }); err != nil || rows != 5 {
		t.Errorf("%d rows to predict, %v", rows, err)
	}
	wantError(t, filepath.Join(dir, "2027-*.csv"), o, "2027-*.csv: no file matches the pattern")
}

// A fault is in the file that has it.
func TestFaultInOneOfSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a1.csv", []byte("size,bought\n1,0\n2,1\n"))
	second := write(t, dir, "a2.csv", []byte("size,bought\n3,1\nfour,0\n5\n"))
	all := filepath.Join(dir, "a*.csv")
	o := Options{Header: true, Label: Column{Name: "bought"}}
	wantError(t, all, o, second+`:3: column 1 ("size"): "four" is not a number`, second+":4: the row has 1 columns")
	d := load(t, filepath.Join(dir, "a1.csv"), o)
	in, err := OpenExamples(t.Context(), all, &d.Schema, ExamplesOptions{NoMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	err = in.Each(func(*Example) error { return nil })
	if err == nil || err == io.EOF || !strings.Contains(err.Error(), second+`:3: column 1 ("size"): "four" is not a number`) || !strings.Contains(err.Error(), second+":4: the row has 1 columns") {
		t.Errorf("rows to predict: %v", err)
	}
}
