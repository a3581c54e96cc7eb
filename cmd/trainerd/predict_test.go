package main

import (
	"math"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/predict"
)

// Each answer is a line of JSON, also NaN.
func TestPredictionsInJSON(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		classes []string
		row     predict.Row
		want    string
	}{
		{nil, predict.Row{Value: 0.1}, `{"prediction":0.1}`},
		{nil, predict.Row{Value: inf}, `{"prediction":"-Infinity"}`},
		{[]string{"a", "b"}, predict.Row{Class: 1, Probabilities: []float32{0.2, nan}}, `{"prediction":"b","probabilities":{"a":0.2,"b":"NaN"}}`},
	} {
		var out strings.Builder
		c.row.Example = new(dataset.Example)
		w := &predictionWriter{classes: c.classes, named: true}
		if err := w.json(&out)(&c.row); err != nil || out.String() != c.want+"\n" {
			t.Errorf("%s, %v; want %s", &out, err, c.want)
		}
	}
}
