package daemon

import (
	"cmp"
	"fmt"
	"math"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/dataset"
)

// reportHuber prints the loss of a model that learns by huber_loss, next to the loss of always
// answering the median: squared errors may come mostly from a few labels far from all others.
func (j *job) reportHuber(e *evaluation, o RunOptions) {
	loss, ok := e.value("loss")
	if !ok || j.config.Model.Loss != "huber_loss" {
		return
	}
	s, err := j.data.LabelSpread()
	if err != nil {
		return // the data have changed under it
	}
	delta := cmp.Or(j.config.Model.HuberDelta, s.Deviation)
	sum := 0.0
	err = eachTestLabel(j.data, func(v float64) {
		miss := math.Abs(v - s.Median)
		square := min(miss, delta)
		sum += square*square/2 + delta*(miss-square)
	})
	if err != nil {
		return
	}
	fmt.Fprintf(o.Stdout, "test Huber loss: %.4g; the median of the training rows gives %.4g\n", loss, sum/float64(j.data.TestRows))
}

// eachTestLabel calls f with the number that each test row has as label.
func eachTestLabel(data *dataset.Dataset, f func(float64)) error {
	for row := 0; row < data.TestRows; row += testPart {
		_, y, err := data.Test(row, testPart)
		if err != nil {
			return err
		}
		labels, err := ckptfmt.Values[float32](y)
		if err != nil {
			return err
		}
		for _, v := range labels {
			f(float64(v))
		}
	}
	return nil
}
