package config

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/dataset/crossval"
)

const (
	// mostJudged is how many rows are compared with each other, drawn by the
	// shuffle: the time is that of their cube.
	mostJudged = 600
	// mostRows is the largest table that is judged by those. Hidden layers learn
	// larger ones without learning rows by heart.
	mostRows = 10_000
	// mostFeatures bounds what a row takes, words included.
	mostFeatures = 5000
	// mostClasses bounds the time, which is that of each class.
	mostClasses = 50
	// fewestClassified is the smallest table of classes for which hidden layers are
	// thought of.
	fewestClassified = 100
	// leastGain in R2 is what hidden layers have to promise, and more than chance
	// gives.
	leastGain = 0.02
	// leastErrors is how many standard errors that must be: with one, some tables of
	// 30 to 60 rows got hidden layers by chance, and predicted new rows worse.
	leastErrors = 1.5
)

// Load reads the data of the config with that name, if [Template.Judge] needs them.
// It returns nil if it does not, or if they cannot be read: the check of the config,
// which follows, says why.
func (p *Template) Load(ctx context.Context, name string) (*dataset.Dataset, error) {
	if p.Sample != nil || p.trainRows() > mostRows || !p.isNumber() && p.isSmall(fewestClassified) {
		return nil, nil
	}
	text, err := p.Text(name)
	if err != nil {
		return nil, err
	}
	c, err := parse(name, []byte(text), nil)
	if err != nil {
		return nil, nil
	}
	d, err := dataset.Load(ctx, c.Data.File, c.DatasetOptions())
	if err != nil {
		return nil, ctx.Err()
	}
	return d, nil
}

// Judge finds out, for a table, whether unseen rows are predicted better by more
// than a weighted sum of the features, and returns the result as a line; "" for
// none. d is the result of [Template.Load].
func (p *Template) Judge(d *dataset.Dataset) (found string, err error) {
	if d == nil || d.Classes > mostClasses {
		return "", nil
	}
	rows, err := judgedRows(d)
	if err != nil {
		return "", err
	}
	j, err := crossval.Judge(rows)
	if err != nil {
		return "", nil // rows without anything to learn: any model will do
	}
	p.judged = &j
	leftOut := "one at a time"
	if rows.Groups != nil {
		leftOut = "with all others of their " + p.Plan.Group()
	}
	found = fmt.Sprintf("rows left out %s are predicted with R2 %.2g by a weighted sum", leftOut, j.Linear)
	if p.isWeightedSum() {
		family := "linear"
		if !p.isNumber() {
			family = "softmax"
		}
		return found + ", and not much better by a smooth function; family is " + family, nil
	}
	return found + fmt.Sprintf(", %.2g with a smooth function; so hidden layers are added", j.Smooth), nil
}

// isWeightedSum reports whether hidden layers promise no gain.
func (p *Template) isWeightedSum() bool {
	return p.judged != nil && p.judged.Smooth < p.judged.Linear+max(leastGain, leastErrors*p.judged.Uncertainty)
}

// weightedNumber returns the lines of a linear regression. Its l2 is the one with
// which rows that were left out were predicted best.
func (p *Template) weightedNumber() []string {
	l2 := 2 * p.judged.Ridge / float64(p.trainRows()) // of half the squares, and the mean of errors
	lines := []string{`family = "linear"   # a weighted sum of the features; "mlp_regressor" has hidden layers`, smallWeights(l2)}
	return append(lines, rateLines("0.03")...)
}

// judgedRows returns training rows as a model sees them: numbers with deviation 1,
// a 1 for the word that a category has.
func judgedRows(d *dataset.Dataset) (rows crossval.Rows, err error) {
	s, err := d.Statistics()
	if err != nil {
		return rows, err
	}
	n := min(d.TrainRows, mostJudged)
	places, width := make([]int, d.Features), 0
	for i := range places {
		places[i] = width
		width += max(1, len(featureOf(d, i).Vocabulary))
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
			row := rows.Features.RawRowView(len(rows.Labels))
			for i, v := range values[r*d.Features : (r+1)*d.Features] {
				setFeature(row[places[i]:], float64(v), featureOf(d, i), s.Features[i])
			}
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

func featureOf(d *dataset.Dataset, i int) dataset.Feature {
	if i < len(d.Schema.Features) {
		return d.Schema.Features[i]
	}
	return dataset.Feature{Kind: dataset.KindNumber}
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
}
