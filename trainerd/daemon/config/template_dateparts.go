package config

import (
	"fmt"
	"slices"

	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/dataset/crossval"
)

// leastPartGain in R2 is what the parts of dates have to promise together.
const leastPartGain = 0.01

// judgeDateParts leaves out the parts of dates unless rows are predicted better with
// them. with is the judgement with them, and best the one of what is left. A table of many
// rows keeps them: it has enough to find out that they say nothing.
func (p *Template) judgeDateParts(d *dataset.Dataset, with *crossval.Judgement) (best *crossval.Judgement, found string, err error) {
	if p.Plan == nil || p.Plan.DateParts() == "" {
		return with, "", nil
	}
	parts := p.Plan.DateParts()
	if p.trainRows() > mostRows {
		return with, "learns from " + parts + " too", nil
	}
	uses := slices.Clone(p.Plan.Uses)
	p.Plan.DropDateParts()
	if d == nil {
		return nil, "", nil
	}
	features := slices.Clone(d.Schema.Features)
	d.Schema.DropDateParts()
	if with == nil {
		return nil, "", nil
	}
	without, err := judgement(d)
	if err != nil || without == nil || bestOf(with) <= bestOf(without)+leastPartGain {
		return without, "nothing is gained from " + parts + ", which is left out", err
	}
	p.Plan.Uses, d.Schema.Features = uses, features
	return with, fmt.Sprintf("learns from %s too, without which R2 is %.2g", parts, bestOf(without)), nil
}

// bestOf returns how well the better kind of model predicts.
func bestOf(j *crossval.Judgement) float64 { return max(j.Linear, j.Smooth) }
