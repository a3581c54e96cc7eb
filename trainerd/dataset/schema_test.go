package dataset

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSchemaOfCSV(t *testing.T) {
	d := read(t, "a,y,b\n1,0,2\n3,1,4\n", Options{Header: true, Label: Column{Name: "y"}})
	want := Schema{
		Format: FormatCSV, Columns: 3, Classes: 2,
		Features: []Feature{{Name: "a", Kind: KindNumber}, {Name: "b", Kind: KindNumber, Column: 2}},
		Label:    Feature{Name: "y", Kind: KindCategory, Column: 1},
		Split:    &Split{Rows: 2},
	}
	if diff := cmp.Diff(want, d.Schema); diff != "" {
		t.Error(diff)
	}
}

// TestSplitOf describes splits: what decides on the test part is in it, and nothing else.
func TestSplitOf(t *testing.T) {
	const rows = "0,1\n1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n7,0\n"
	for _, tt := range []struct {
		name string
		o    Options
		want Split
	}{
		{"none", Options{Shuffle: true, Seed: 3}, Split{Rows: 8}},
		{"last rows", Options{TestRows: 2, Seed: 3}, Split{Rows: 8, Tests: 2}},
		{"chosen", Options{TestFraction: 0.25, Shuffle: true, Seed: 3}, Split{Rows: 8, Tests: 2, Shuffled: true, Seed: 3}},
	} {
		if d := read(t, rows, tt.o); *d.Schema.Split != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, *d.Schema.Split, tt.want)
		}
	}
}

func TestSchemaParse(t *testing.T) {
	s := Schema{Features: []Feature{
		{Kind: KindNumber}, {Kind: KindCategory, Vocabulary: []string{"red", "NA"}},
		{Kind: KindDate}, {Kind: KindDate, Layout: "02.01.2006 15:04"}, {Kind: KindID},
	}}
	words := s.Vocabularies()
	for _, tt := range []struct {
		feature     int
		field, want string
	}{
		{0, " -1.5 ", "-1.5"}, {0, "", "NaN"}, {0, "n/a", "NaN"}, {0, "?", "NaN"}, {0, "inf", `"inf" is not a finite number`}, {0, "red", `"red" is not a number`},
		{1, "red", "0"}, {1, " NA", "1"}, {1, "blue", "-1"}, {1, "", "-1"},
		{2, "1970-01-03", "2"}, {2, "1969-12-31", "-1"}, {2, "1970-01-02T12:00:00Z", "1.5"}, {2, "null", "NaN"}, {2, "2.1.1970", `"2.1.1970" is not a date`},
		{3, "02.01.1970 06:00", "1.25"},
		{4, "", "-1"}, {4, "7", "7"}, {4, "7.5", `"7.5" is not an id`},
	} {
		v, reason, _ := s.Parse(words, tt.feature, tt.field)
		got := reason
		if reason == "" {
			got = fmt.Sprint(v)
		}
		if got != tt.want {
			t.Errorf("feature %d, %q: got %s, want %s", tt.feature, tt.field, got, tt.want)
		}
	}
}

func TestSchemaParseLabel(t *testing.T) {
	named := Schema{Label: Feature{Kind: KindCategory, Vocabulary: []string{"cat", "dog"}}, Classes: 2}
	numbered := Schema{Label: Feature{Kind: KindCategory}, Classes: 2}
	number := Schema{Label: Feature{Kind: KindNumber}}
	for _, tt := range []struct {
		schema      Schema
		field, want string
	}{
		{named, "dog", "1"}, {named, "cow", `the label "cow" is not a class of the model`}, {named, "1", `the label "1" is not a class of the model`},
		{numbered, "1", "1"}, {numbered, "1.0", "1"}, {numbered, "2", `the label "2" is out of range: the model has the classes 0 to 1`},
		{numbered, "x", `the label "x" is not an integer`}, {numbered, "0.5", `the label "0.5" is not an integer`},
		{number, "2.5", "2.5"}, {number, "", "the label is missing"},
	} {
		v, reason := tt.schema.ParseLabel(tt.field)
		got := reason
		if reason == "" {
			got = fmt.Sprint(v)
		}
		if got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.field, got, tt.want)
		}
	}
}

// TestStatistics compares with what the two-pass formulas give, for rows in
// memory and for a stream, whose test rows must not count.
func TestStatistics(t *testing.T) {
	d := read(t, "1,10,2\n3,10,4\n8,10,6\n100,7,9\n", Options{Label: Column{Index: -1}, Numbers: true, TestRows: 1})
	s, err := d.Statistics()
	if err != nil {
		t.Fatal(err)
	}
	want := &Statistics{
		Features: []Moments{{Rows: 3, Mean: 4, Variance: 26.0 / 3, Min: 1, Max: 8}, {Rows: 3, Mean: 10, Min: 10, Max: 10}},
		Label:    Moments{Rows: 3, Mean: 4, Variance: 8.0 / 3, Min: 2, Max: 6},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, s, near); diff != "" {
		t.Error(diff)
	}
}

// TestMomentsLeaveOutMissing holds that a missing value changes nothing but its
// count.
func TestMomentsLeaveOutMissing(t *testing.T) {
	var m Moments
	for _, v := range []float64{math.NaN(), 2, math.NaN(), 6} {
		m.add(v)
	}
	m.finish()
	if want := (Moments{Rows: 4, Missing: 2, Mean: 4, Variance: 4, Min: 2, Max: 6}); m != want {
		t.Errorf("got %+v, want %+v", m, want)
	}
}
