package dataset

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfexample"
)

// weighed returns the weights of a batch, and of the test part.
func weighed(t *testing.T, d *Dataset) (train, test []float32) {
	t.Helper()
	if _, _, err := d.Batch(0); err != nil {
		t.Fatal(err)
	}
	train = floats(d.Weights())
	if _, _, err := d.Test(0, d.TestRows); err != nil {
		t.Fatal(err)
	}
	return train, floats(d.Weights())
}

// Weights are divided by their mean in each part, whatever the data are stored as;
// those of classes have no effect on the test part.
func TestWeights(t *testing.T) {
	dir := t.TempDir()
	csv := write(t, dir, "a.csv", []byte("x,w,y\n1,1,no\n2,3,yes\n3,2,no\n4,2,no\n5,4,yes\n6,12,no\n"))
	var all []map[string]*tfpb.Feature
	for i, w := range []float32{1, 3, 2, 2, 4, 12} {
		label := tfexample.Int64s([]int64{0, 1, 0, 0, 1, 0}[i])
		all = append(all, map[string]*tfpb.Feature{"x": tfexample.Floats(float32(i)), "w": tfexample.Floats(w), "label": label})
	}
	messages := write(t, dir, "a.tfrecord", records(all...))
	table := Options{Header: true, Label: Column{Name: "y"}, Categories: []string{"y"}, Weight: "w", TestRows: 2, BatchSize: 4}
	tfrecord := Options{Format: FormatTFRecord, Weight: "w", TestRows: 2, BatchSize: 4}
	stream := tfrecord
	stream.ShuffleBuffer = 3
	balanced, classes, alone := table, table, table
	balanced.Weight, balanced.Drop, balanced.Balance = "", []string{"w"}, true
	classes.ClassWeights = map[string]float64{"yes": 2}
	alone.Weight, alone.Drop = "", []string{"w"}
	own, ownTest := []float32{.5, 1.5, 1, 1}, []float32{.5, 1.5}
	for _, c := range []struct {
		name, file  string
		opts        Options
		train, test []float32
	}{
		{"csv", csv, table, own, ownTest},
		{"tfrecord", messages, tfrecord, own, ownTest},
		{"stream", messages, stream, own, ownTest},
		{"balanced", csv, balanced, []float32{2. / 3, 2, 2. / 3, 2. / 3}, []float32{1, 1}},
		{"classes", csv, classes, []float32{4. / 11, 24. / 11, 8. / 11, 8. / 11}, ownTest},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := load(t, c.file, c.opts)
			if d.Features != 1 {
				t.Errorf("the examples have %d features, want 1: the weight is none", d.Features)
			}
			train, test := weighed(t, d)
			near := cmpopts.EquateApprox(0, 1e-6)
			if diff := cmp.Diff(c.train, train, near) + cmp.Diff(c.test, test, near); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if d := load(t, csv, alone); d.HasWeights() || d.Weights() != nil {
		t.Error("data without weights have weights")
	}
}

// A shuffled training sees each row with its own weight.
func TestWeightsFollowTheirRows(t *testing.T) {
	var rows strings.Builder
	for i := range 40 {
		fmt.Fprintf(&rows, "%d,%d,%d\n", i+1, i+1, i%2)
	}
	file := write(t, t.TempDir(), "a.csv", []byte(rows.String()))
	d := load(t, file, Options{Label: Column{Index: 2}, Weight: "1", TestRows: 10, BatchSize: 7, Shuffle: true, Seed: 3})
	for step := range int64(12) {
		x, _, err := d.Batch(step)
		if err != nil {
			t.Fatal(err)
		}
		ratio := floats(d.Weights())[0] / floats(x)[0]
		for i, w := range floats(d.Weights()) {
			if math.Abs(float64(w/floats(x)[i]/ratio)-1) > 1e-5 {
				t.Fatalf("step %d: row %v has the weight %v", step, floats(x)[i], w)
			}
		}
	}
}

func TestWeightErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(rows string) string { return write(t, dir, "a.csv", []byte("x,w,y\n"+rows)) }
	o := Options{Header: true, Label: Column{Name: "y"}, Weight: "w"}
	wantError(t, file("1,-1,0\n2,1,1\n"), o, `a.csv:2: column 2 ("w"): the weight -1 is not a number from 0 up`)
	wantError(t, file("1,,0\n2,1,1\n"), o, `a.csv:2: column 2 ("w"): the weight is missing`)
	wantError(t, file("1,much,0\n2,1,1\n"), o, `the weight: "much" is not a number`)
	wantError(t, file("1,0,0\n2,0,1\n"), o, "the sum of the weights of 2 rows is 0")
	o.Weight = "v"
	wantError(t, file("1,1,0\n2,1,1\n"), o, `there is no column "v" for the weight`)
	o.Weight = "y"
	wantError(t, file("1,1,0\n2,1,1\n"), o, `data.weight is the column "y", which is the label`)
	o.Weight, o.ClassWeights = "", map[string]float64{"5": 2}
	wantError(t, file("1,1,0\n2,1,1\n"), o, `data.class_weights has the class "5"`, "the classes are 0 to 1")
}
