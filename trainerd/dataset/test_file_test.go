package dataset

import (
	"fmt"
	"path/filepath"
	"testing"
)

// The file that is called like the test part of another one, and what is wrong with it.
func TestFindTestFile(t *testing.T) {
	const train = "size,town,day,bought\n4,Rome,2024-01-02,yes\n2,Oslo,2024-01-03,no\n9,Rome,2024-01-04,yes\n7,Oslo,2024-01-05,no\n"
	good := "bought,size,town,day,other\nno,5,Bern,2024-02-02,x\nyes,6,Rome,2024-02-03,y\n"
	for _, c := range []struct {
		train, test, text string
		want              string // what is found, "" for nothing
	}{
		{"train.csv", "test.csv", good, "test.csv, 2 rows"},
		{"titanic_train.csv", "titanic_test.csv", good, "titanic_test.csv, 2 rows"},
		{"Train.csv", "Test.csv", good, "Test.csv, 2 rows"},
		{"training.csv", "validation.csv", good, "validation.csv, 2 rows"},
		{"train.csv", "valid.csv", good, "valid.csv, 2 rows"},
		{"strain.csv", "stest.csv", good, ""},
		{"train.csv", "test.tsv", good, ""},
		{"data.csv", "test.csv", good, ""},
		{"train.csv", "test.csv", "size,town,day\n5,Bern,2024-02-02\n6,Rome,2024-02-03\n", "test.csv, 2 rows, unlabelled"},
		{"train.csv", "test.csv", "size,town,day,bought\n5,Bern,2024-02-02,\n6,Rome,2024-02-03,?\n", "test.csv, 2 rows, unlabelled"},
		{"train.csv", "test.csv", "size,town,day,bought\n5,Bern,2024-02-02,\n,Rome,2024-02-03,no\n", "test.csv, 2 rows, missing"},
		{"train.csv", "test.csv", "size,town,bought\n5,Bern,yes\n6,Rome,no\n", `test.csv, 2 rows: there is no column "day"`},
		{"train.csv", "test.csv", "size,town,day,bought\nbig,Bern,2024-02-02,no\n6,Rome,2024-02-03,no\n", `test.csv, 2 rows: the column "size" has numbers here, but not there`},
		{"train.csv", "test.csv", "size,town,day,bought\n5,Bern,2/2/24,no\n6,Rome,2/3/24,no\n", `test.csv, 2 rows: the column "day" has dates here, but not there`},
		{"train.csv", "test.csv", "size,town,day,bought\n5,Bern,2024-02-02,no\n6,Rome,2024-02-03,maybe\n", `test.csv, 2 rows: its label "maybe" is not one of the 2 classes`},
		{"train.csv", "test.csv", "", "test.csv, 0 rows: "},
	} {
		dir := t.TempDir()
		name := write(t, dir, c.train, []byte(train))
		write(t, dir, c.test, []byte(c.text))
		s, err := NewSurvey(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan(t.Context(), 3, AnyTask)
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.FindTestFile(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if got := describeTestFile(f); len(c.text) > 0 && got != c.want || len(got) < len(c.want) || got[:len(c.want)] != c.want {
			t.Errorf("%s next to %s: %q, want %q", c.test, c.train, got, c.want)
		}
	}
}

func describeTestFile(f *TestFile) string {
	if f == nil {
		return ""
	}
	text := fmt.Sprintf("%s, %d rows", filepath.Base(f.Name), f.Rows)
	switch {
	case f.Unlabelled:
		return text + ", unlabelled"
	case f.Reason != "":
		return text + ": " + f.Reason
	case f.Missing:
		return text + ", missing"
	}
	return text
}

// Columns without names are those in the same place.
func TestFindTestFileWithoutHeader(t *testing.T) {
	for text, want := range map[string]string{
		"1,2,a\n3,4,b\n":     "test.csv, 2 rows",
		"1,2\n3,4\n":         "test.csv, 2 rows, unlabelled",
		"1,2,3,a\n3,4,5,b\n": "test.csv, 2 rows, unlabelled",
	} {
		dir := t.TempDir()
		name := write(t, dir, "train.csv", []byte("5,6,a\n7,8,b\n9,1,a\n2,3,b\n"))
		write(t, dir, "test.csv", []byte(text))
		s, err := NewSurvey(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan(t.Context(), 2, AnyTask)
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.FindTestFile(t.Context(), p)
		if got := describeTestFile(f); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
