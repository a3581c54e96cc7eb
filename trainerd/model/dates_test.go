package model_test

import (
	"math"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
)

// TestDateParts compares the parts of dates in the graph with those of package dataset:
// of each day of four centuries, at all hours, and of a missing date.
func TestDateParts(t *testing.T) {
	d := &model.Data{
		Schema: dataset.Schema{
			Features: []dataset.Feature{{Name: "n", Kind: dataset.KindNumber}, {Name: "sold on", Kind: dataset.KindDate, Parts: dataset.DateParts}},
			Label:    dataset.Feature{Name: "y", Kind: dataset.KindCategory}, Classes: 2,
		},
		Statistics: &dataset.Statistics{Features: []dataset.Moments{{}, {}}},
	}
	m, err := model.Spec{Config: model.Config{Family: "softmax", Inputs: 2, Classes: 2}, Data: d}.Build()
	if err != nil {
		t.Fatal(err)
	}
	const days, width = 146097 + 400, 2 + 7 + 31 + 12 + 24
	rows := make([]float64, 0, 2*days)
	for i := range days {
		rows = append(rows, 0, float64(i-110000)+float64(i%24)/24)
	}
	rows[1] = math.NaN()
	sess := startModel(t, m)
	got := fetch(t, sess, map[string]*ckptfmt.Tensor{"x:0": floatTensor([]int64{days, 2}, rows...)}, "features/concat:0")
	if len(got) != days*width {
		t.Fatalf("%d numbers, want %d rows of %d", len(got), days, width)
	}
	for i := range days {
		at := i*width + 2
		for _, part := range dataset.DateParts {
			want := part.Of(float32(rows[2*i+1]))
			for n, v := range got[at : at+part.Size()] {
				if isOne := n == want; isOne != (v == 1) || !isOne && v != 0 {
					t.Fatalf("%s of the days %v: %v, want a one at %d", part, rows[2*i+1], got[at:at+part.Size()], want)
				}
			}
			at += part.Size()
		}
	}
}
