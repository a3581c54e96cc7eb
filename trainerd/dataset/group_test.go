package dataset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// patients is a table of 100 rows of 23 patients, whose number is also the only
// feature; rows without a name are those of one each.
func patients() string {
	var b strings.Builder
	b.WriteString("x,patient,y\n")
	for i := range 100 {
		id := i * i % 23
		if i%20 == 7 {
			fmt.Fprintf(&b, "%d,,%d\n", 100+i, i%2)
			continue
		}
		fmt.Fprintf(&b, "%d,p%d,%d\n", id, id, i%2)
	}
	return b.String()
}

// No group is in both parts, every row is in one, and the test part is about as
// large as without groups.
func TestGroups(t *testing.T) {
	file := write(t, t.TempDir(), "a.csv", []byte(patients()))
	tested := make(map[string]bool)
	for seed := range uint64(8) {
		for _, shuffle := range []bool{true, false} {
			o := Options{Header: true, Label: Column{Name: "y"}, Group: "patient", Missing: true, TestFraction: 0.2, BatchSize: 1, Shuffle: shuffle, Seed: seed}
			d, err := Load(t.Context(), file, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Columns) != 1 || d.TrainRows+d.TestRows != 100 || d.TestRows < 15 || d.TestRows > 25 {
				t.Fatalf("features %q; %d rows train, %d test", d.Columns, d.TrainRows, d.TestRows)
			}
			train := make(map[float32]bool)
			for i := range d.TrainRows {
				x, _, err := d.Batch(int64(i))
				if err != nil {
					t.Fatal(err)
				}
				train[floats(x)[0]] = true
			}
			x, _, err := d.Test(0, d.TestRows)
			if err != nil {
				t.Fatal(err)
			}
			for _, patient := range floats(x) {
				if train[patient] {
					t.Errorf("seed %d, shuffle %v: patient %v is in both parts", seed, shuffle, patient)
				}
				if shuffle {
					tested[fmt.Sprint(patient)] = true
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(tested) < 12 {
		t.Errorf("with 8 seeds only these patients test: %q", slices.Sorted(maps.Keys(tested)))
	}
}

func TestGroupErrors(t *testing.T) {
	file := write(t, t.TempDir(), "a.csv", []byte("x,g,y\n1,a,0\n2,a,1\n3,a,0\n"))
	for group, want := range map[string]string{
		"g": "all rows are of one group", "y": "data.group is the column \"y\", which is the label", "h": "there is no column \"h\" for the group",
	} {
		_, err := Load(t.Context(), file, Options{Header: true, Label: Column{Name: "y"}, Group: group, TestRows: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("group %s: %v; want %q", group, err, want)
		}
	}
	two := write(t, t.TempDir(), "b.csv", []byte("x,g,y\n1,a,0\n2,a,1\n3,b,0\n4,b,1\n5,b,1\n"))
	d, err := Load(t.Context(), two, Options{Header: true, Label: Column{Name: "y"}, Group: "g", TestRows: 1, Shuffle: true})
	if err != nil {
		t.Fatal(err)
	}
	if d.TrainRows != 3 || d.TestRows != 2 {
		t.Errorf("%d rows train and %d test; want the smaller group to test", d.TrainRows, d.TestRows)
	}
}

// The column that a survey takes is one whose name says whom the rows are about,
// and in which names are repeated.
func TestFindGroup(t *testing.T) {
	for _, c := range []struct {
		header string
		names  int
		want   string
	}{
		{"a,patient,b,class", 10, "patient"}, {"a,PatientID,b,class", 30, "PatientID"}, {"a,subject no,b,class", 10, "subject no"}, {"a,id,b,class", 20, "id"},
		{"a,patient,b,class", 3, ""}, {"a,patient,b,class", 60, ""}, {"a,user_rating,b,class", 10, ""}, {"a,age_group,b,class", 10, ""}, {"a,plant,b,class", 10, ""},
		{"a,PID,b,class", 7, ""}, {"a,PID,b,class", 30, "PID"}, {"a,group,b,class", 6, ""}, {"a,group,b,class", 25, "group"},
	} {
		s := survey(t, tableText(c.header, 60, func(i int) string { return fmt.Sprintf("%d,%d,%d,%d", i*i, i%c.names, i*31%97, i%2) }))
		p, err := s.Plan(t.Context(), 3, AnyTask)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Group(); got != c.want {
			t.Errorf("%s with %d names: group %q, want %q", c.header, c.names, got, c.want)
		}
		if p.Ungroup(); p.Group() != "" {
			t.Errorf("%s: still grouped", c.header)
		}
	}
}
