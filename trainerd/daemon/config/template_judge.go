package config

import (
	"context"
	"fmt"

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
	mostFeatures = 8000
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
// than a weighted sum of the features, and whether parts of dates help, and returns
// the result as a line; "" for none. d is the result of [Template.Load], whose
// examples it makes those of the config.
func (p *Template) Judge(d *dataset.Dataset) (found string, err error) {
	j, err := judgement(d)
	if err != nil {
		return "", err
	}
	j, parts, err := p.judgeDateParts(d, j)
	if j == nil || err != nil {
		return parts, err // rows without anything to learn, or too many: any model will do
	}
	leftOut := "one at a time"
	if p.Plan.Group() != "" {
		leftOut = "with all others of their " + p.Plan.Group()
	}
	found = fmt.Sprintf("rows left out %s are predicted with R2 %.2g by a weighted sum", leftOut, j.Linear)
	if parts != "" {
		parts = "; " + parts
	}
	var huber string
	if p.judged, huber, err = p.judgeHuber(d, j); err != nil {
		return "", err
	}
	parts += huber
	if p.isWeightedSum() {
		family := "linear"
		if !p.isNumber() {
			family = "softmax"
		}
		return found + ", and not much better by a smooth function; family is " + family + parts, nil
	}
	return found + fmt.Sprintf(", %.2g with a smooth function; so hidden layers are added", j.Smooth) + parts, nil
}

// judgement returns how well rows that were left out are predicted; nil if that is not
// known.
func judgement(d *dataset.Dataset) (*crossval.Judgement, error) {
	if d == nil || d.Classes > mostClasses {
		return nil, nil
	}
	rows, err := judgedRows(d)
	if err != nil {
		return nil, err
	}
	j, err := crossval.Judge(rows)
	if err != nil {
		return nil, nil
	}
	return &j, nil
}

// isWeightedSum reports whether hidden layers promise no gain.
func (p *Template) isWeightedSum() bool {
	return p.judged != nil && p.judged.Smooth < p.judged.Linear+max(leastGain, leastErrors*p.judged.Uncertainty)
}

// weightedNumber returns the lines of a linear regression. Its l2 is the one with
// which rows that were left out were predicted best.
func (p *Template) weightedNumber() []string {
	l2 := p.lossScale() * 2 * p.judged.Ridge / float64(p.trainRows()) // of half the squares, and the mean of errors
	lines := []string{`family = "linear"   # a weighted sum of the features; "mlp_regressor" has hidden layers`, smallWeights(l2)}
	return p.withLoss(append(lines, rateLines("0.03")...))
}
