package config

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/dataset/crossval"
)

// judgedRows returns training rows as a model sees them: numbers with deviation 1,
// a 1 for the word that a category has and for the part that a date has.
func judgedRows(d *dataset.Dataset) (rows crossval.Rows, err error) {
	s, err := d.Statistics()
	if err != nil {
		return rows, err
	}
	n := min(d.TrainRows, mostJudged)
	width := 0
	for i := range d.Schema.Features {
		width += widthOf(d.Schema.Features[i])
	}
	if width > mostFeatures || n == 0 || width == 0 {
		return crossval.Rows{Features: mat.NewDense(1, 1, nil), Labels: []float64{0}}, nil
	}
	rows = crossval.Rows{Features: mat.NewDense(n, width, nil), Classes: d.Classes, Groups: d.FirstGroups(n)}
	for step := int64(0); len(rows.Labels) < n; step++ {
		values, numbers, weights, err := numbersOf(d, step)
		if err != nil {
			return rows, err
		}
		take := min(len(numbers), n-len(rows.Labels))
		for r, number := range numbers[:take] {
			setRow(rows.Features.RawRowView(len(rows.Labels)), values[r*d.Features:(r+1)*d.Features], d.Schema.Features, s)
			rows.Labels = append(rows.Labels, number)
		}
		for _, w := range weights[:min(take, len(weights))] {
			rows.Weights = append(rows.Weights, float64(w))
		}
	}
	return rows, nil
}

// numbersOf returns a batch of training rows. weights is nil if they have none.
func numbersOf(d *dataset.Dataset, step int64) (features []float32, labels []float64, weights []float32, err error) {
	x, y, err := d.Batch(step)
	if err != nil {
		return nil, nil, nil, err
	}
	if features, err = ckptfmt.Values[float32](x); err != nil {
		return nil, nil, nil, err
	}
	if labels, err = labelsOf(y); err != nil {
		return nil, nil, nil, err
	}
	if w := d.Weights(); w != nil {
		weights, err = ckptfmt.Values[float32](w)
	}
	return features, labels, weights, err
}

// labelsOf returns numbers, or those of classes.
func labelsOf(y *ckptfmt.Tensor) (labels []float64, err error) {
	if y.DType == tfpb.DataType_DT_FLOAT {
		numbers, err := ckptfmt.Values[float32](y)
		for _, v := range numbers {
			labels = append(labels, float64(v))
		}
		return labels, err
	}
	classes, err := ckptfmt.Values[int64](y)
	for _, v := range classes {
		labels = append(labels, float64(v))
	}
	return labels, err
}

// setRow sets what a raw row is to a model.
func setRow(row []float64, raw []float32, features []dataset.Feature, s *dataset.Statistics) {
	at := 0
	for i, f := range features {
		if f.Kind == dataset.KindText {
			setText(row, raw[at:at+f.Length], wordWeights(f, s, i), f.IsList())
		} else {
			setFeature(row, float64(raw[at]), f, s.Features[at])
		}
		at, row = at+f.Size(), row[widthOf(f):]
	}
}

// wordWeights returns how much each word of a column of texts counts.
func wordWeights(f dataset.Feature, s *dataset.Statistics, feature int) []float64 {
	if f.IsList() {
		return slices.Repeat([]float64{1}, len(f.Vocabulary))
	}
	return s.IDF(feature)
}

// setText sets the weights of the words of a text, which is scaled unless it is a
// list.
func setText(row []float64, words []float32, weights []float64, list bool) {
	squares := 0.0
	for _, id := range words {
		if at := int(id); id >= 0 && row[at] == 0 {
			row[at] = weights[at]
			squares += weights[at] * weights[at]
		}
	}
	for _, id := range words {
		if at := int(id); id >= 0 && !list {
			row[at] = dataset.TextNorm * weights[at] / math.Sqrt(squares)
		}
	}
}

// setFeature sets what a value is to a model. A missing number is the mean.
func setFeature(row []float64, v float64, f dataset.Feature, m dataset.Moments) {
	switch {
	case f.Kind == dataset.KindCategory:
		if i := int(v); v >= 0 && i < len(f.Vocabulary) {
			row[i] = 1
		}
	case !math.IsNaN(v) && m.Variance > 0:
		row[0] = (v - m.Mean) / math.Sqrt(m.Variance)
	}
	setParts(row[1:], v, f)
}

// widthOf returns how many numbers a feature is to a model.
func widthOf(f dataset.Feature) int {
	width := max(1, len(f.Vocabulary))
	for _, part := range f.Parts {
		width += part.Size()
	}
	return width
}

// setParts sets a 1 for each part that a date has.
func setParts(row []float64, days float64, f dataset.Feature) {
	for _, part := range f.Parts {
		if at := part.Of(float32(days)); at >= 0 {
			row[at] = 1
		}
		row = row[part.Size():]
	}
}
