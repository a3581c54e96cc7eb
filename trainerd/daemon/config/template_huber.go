package config

import (
	"fmt"

	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/dataset/crossval"
)

const (
	// mostHidden in R2 is what is predicted at most where labels far from all others hide the
	// rest, and leastShown what the rest then has to show in addition.
	mostHidden, leastShown = 0.1, 0.3
	// nearLabels is how many deviations from the median a label is at most, for the rest.
	nearLabels = 5
)

// judgeHuber finds out whether a few labels that are far from all others keep squared errors
// from learning what the rest shows: then the loss is to be huber_loss. j is the judgement of all
// labels, and best the one that counts.
func (p *Template) judgeHuber(d *dataset.Dataset, j *crossval.Judgement) (best *crossval.Judgement, found string, err error) {
	if p.Plan == nil || !p.isNumber() || d == nil || bestOf(j) > mostHidden {
		return j, "", nil
	}
	s, err := d.LabelSpread()
	if err != nil {
		return nil, "", err
	}
	rows, err := judgedRows(d)
	if err != nil {
		return nil, "", err
	}
	for i, label := range rows.Labels {
		rows.Labels[i] = min(max(label, s.Median-nearLabels*s.Deviation), s.Median+nearLabels*s.Deviation)
	}
	near, err := crossval.Judge(rows)
	if err != nil || bestOf(&near) < bestOf(j)+leastShown {
		return j, "", nil // rows that cannot be judged say nothing for the other loss
	}
	p.huber = true
	return &near, fmt.Sprintf("; loss is huber_loss, since a few labels far from all others hide what the rest shows, with R2 %.2g", bestOf(&near)), nil
}

// withLoss returns the lines of a model that predicts a number, with its loss.
func (p *Template) withLoss(lines []string) []string {
	if !p.huber {
		return lines
	}
	return append(lines, `loss = "huber_loss"   # labels far from all others hardly count; "mean_squared_error" counts them`)
}

// lossScale returns by how much l2 is to be smaller than for squared errors: huber_loss has half
// of them.
func (p *Template) lossScale() float64 {
	if p.huber {
		return 0.5
	}
	return 1
}
