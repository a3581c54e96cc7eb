package dataset

import (
	"fmt"
	"slices"
	"strings"
)

// labelStems begin the names of columns where there are several to predict.
var labelStems = []string{"target", "label", "y", "outcome", "output"}

// labelStem returns how a name begins that is one of several labels, as target_2 and y1; "" for
// other names.
func labelStem(name string) string {
	name = strings.ToLower(name)
	end := strings.IndexAny(name, " _-.0123456789")
	if end < 0 || !slices.Contains(labelStems, name[:end]) {
		return ""
	}
	return name[:end]
}

// otherLabels finds columns that are called as the label is, one of several: what is to be
// predicted too is rarely known when the label is asked for.
func (s *Survey) otherLabels(p *Plan) []string {
	stem := labelStem(s.Columns[p.Label].Name)
	if stem == "" {
		return nil
	}
	var others []string
	for i, u := range p.Uses {
		if i != p.Label && !u.Drop && labelStem(u.Name) == stem {
			others = append(others, u.Name)
		}
	}
	if len(others) == 0 {
		return nil
	}
	const most = 5
	list := strings.Join(others[:min(most, len(others))], ", ")
	if len(others) > most {
		list += ", ..."
	}
	return []string{fmt.Sprintf("%s: called like the label, and learnt from; a job predicts one column, so if they are to be predicted too, put them into drop in [data] (init --drop), and write a job for each", list)}
}

// constantLabels finds columns that are called like labels, but have a single value, so that another
// one was chosen.
func (s *Survey) constantLabels(p *Plan) (notes []string) {
	for i, c := range s.Columns {
		if i != p.Label && c.isLabelName() && c.Distinct == 1 {
			notes = append(notes, fmt.Sprintf("%s: called like a label, but %s is its only value, and nothing can be learnt from a single class", c.Name, clip(c.Example)))
		}
	}
	return notes
}
