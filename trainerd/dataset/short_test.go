package dataset

import (
	"strings"
	"testing"
)

// Fields that a row lacks at its end are missing ones, in training and in use; without
// missing = "fill" they are an error (TestReadErrors).
func TestShortRows(t *testing.T) {
	text := "a,b,y\n1,2,no\n3\n4,5\n6,7,yes\n8,9,no\n"
	s := survey(t, "a,b,y\n"+strings.Repeat("1,2,no\n", 60)+text[6:])
	if s.Short != 63 || s.Columns[2].Missing != 2 || s.Columns[1].Missing != 1 {
		t.Errorf("row %d is short; %d values of b and %d labels are missing", s.Short, s.Columns[1].Missing, s.Columns[2].Missing)
	}
	d, err := Read(t.Context(), strings.NewReader(text), "data.csv", Options{Header: true, Label: Column{Name: "y"}, Categories: []string{"y"}, Missing: true, BatchSize: 3})
	if err != nil {
		t.Fatal(err)
	}
	if d.TrainRows != 3 || d.Unlabelled != 2 {
		t.Errorf("%d rows with and %d without a label; want 3 and 2", d.TrainRows, d.Unlabelled)
	}
	schema := Schema{Format: FormatCSV, Columns: 3, Features: []Feature{{Name: "a", Kind: KindNumber}, {Name: "b", Kind: KindNumber, Column: 1}}, Label: Feature{Name: "y", Kind: KindNumber, Column: 2}}
	rows, err := readExamples(t, "a,b\n1,2\n3\n", &schema, ExamplesOptions{})
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if rows[1] != "[3 NaN] NaN" {
		t.Errorf("a short row is read as %s", rows[1])
	}
}
