package dataset

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

const (
	// leakRows and leakFields are how many rows and fields are looked at, and fewestLeakRows how
	// few show nothing.
	leakRows, leakFields, fewestLeakRows = 100_000, 10_000_000, 50
	// mostLeaks bounds the notes.
	mostLeaks = 3
	// equalNumbers is the correlation of numbers that say the same.
	equalNumbers = 0.999
	// missingErrors and wordErrors are how many of the errors of always answering the most frequent
	// class are left at most where a column tells the class.
	missingErrors, wordErrors = 0.1, 0.02
)

// leak collects how far a column tells the label by itself.
type leak struct {
	column int
	number Feature
	// Numbers to predict.
	n, firstX, firstY               float64
	sumX, sumY, sumXX, sumYY, sumXY float64 // of what they have more than the first
	// Classes.
	ranges    map[string]*classRange
	words     map[string]map[string]int // the classes of each word
	isMissing [2]map[string]int         // the classes of the rows with a value, and without
}

// classRange is where the numbers of the rows of a class lie.
type classRange struct {
	low, high float64
	rows      int
}

// leaks finds columns that tell the label nearly by themselves: many of these are known only once
// the label is.
func (s *Survey) leaks(ctx context.Context, p *Plan) (notes []string, err error) {
	all := s.possibleLeaks(p)
	classes, rows := make(map[string]int), 0
	labels := p.Uses[p.Label].field()
	err = s.first(ctx, min(leakRows, leakFields/len(s.Columns)), func(row *table.Row) {
		label := strings.TrimSpace(row.Fields[p.Label])
		if labels.isMissing(label) {
			return
		}
		if !p.Numbers {
			classes[label]++
		}
		rows++
		for _, l := range all {
			l.add(strings.TrimSpace(row.Fields[l.column]), label, &labels, p.Numbers)
		}
	})
	if err != nil || rows < fewestLeakRows {
		return nil, err
	}
	label := s.Columns[p.Label].Name
	for _, l := range all {
		why := l.whyNumber(label)
		if !p.Numbers {
			why = l.whyClass(label, classes, rows)
		}
		if why != "" && len(notes) < mostLeaks {
			notes = append(notes, fmt.Sprintf("%s: %s; if it becomes known only with %s, put it into drop in [data] (init --drop)", s.Columns[l.column].Name, why, label))
		}
	}
	return notes, nil
}

// possibleLeaks returns the columns that are learnt from.
func (s *Survey) possibleLeaks(p *Plan) (all []*leak) {
	for i, u := range p.Uses {
		if i == p.Label || u.Drop || u.Weight || u.Group || u.Kind == KindText {
			continue
		}
		l := &leak{column: i, number: u.field(), isMissing: [2]map[string]int{{}, {}}}
		if u.Kind == KindNumber {
			l.ranges = make(map[string]*classRange)
		}
		if u.Kind == KindCategory && !s.Columns[i].Many && !s.Columns[i].namesGroups() {
			l.words = make(map[string]map[string]int)
		}
		all = append(all, l)
	}
	return all
}

// field returns how the fields of the column are written.
func (u *Use) field() Feature { return Feature{Kind: u.Kind, Unit: u.Unit, NA: u.NA} }

// first calls f for the first n rows at most.
func (s *Survey) first(ctx context.Context, n int, f func(*table.Row)) error {
	t, err := openFiles(s.file, s.Options)
	if err != nil {
		return err
	}
	defer t.Close()
	return s.eachOf(ctx, t, n, f)
}

func (l *leak) add(field, label string, labels *Feature, numbers bool) {
	v, ok := l.value(field)
	if numbers {
		if y, reason, _ := labels.number(label); ok && reason == "" {
			l.pair(v, float64(y))
		}
		return
	}
	if l.number.isMissing(field) {
		l.isMissing[1][label]++
		return
	}
	l.isMissing[0][label]++
	if ok {
		l.stretch(label, v)
	}
	if l.words != nil {
		if l.words[field] == nil {
			l.words[strings.Clone(field)] = make(map[string]int)
		}
		l.words[field][label]++
	}
}

// value returns the number in a field of a column of numbers.
func (l *leak) value(field string) (float64, bool) {
	if l.ranges == nil || l.number.isMissing(field) {
		return 0, false
	}
	v, err := strconv.ParseFloat(l.number.plain(field), 64)
	return v, err == nil && !math.IsInf(v, 0)
}

func (l *leak) pair(x, y float64) {
	if l.n++; l.n == 1 {
		l.firstX, l.firstY = x, y
	}
	x, y = x-l.firstX, y-l.firstY // so that large numbers keep their digits
	l.sumX, l.sumY = l.sumX+x, l.sumY+y
	l.sumXX, l.sumYY, l.sumXY = l.sumXX+x*x, l.sumYY+y*y, l.sumXY+x*y
}

func (l *leak) stretch(label string, v float64) {
	r := l.ranges[label]
	if r == nil {
		r = &classRange{low: v, high: v}
		l.ranges[strings.Clone(label)] = r
	}
	r.low, r.high, r.rows = min(r.low, v), max(r.high, v), r.rows+1
}

// whyNumber says how numbers tell the numbers to predict, "" if they do not.
func (l *leak) whyNumber(label string) string {
	spread := (l.n*l.sumXX - l.sumX*l.sumX) * (l.n*l.sumYY - l.sumY*l.sumY)
	r := (l.n*l.sumXY - l.sumX*l.sumY) / math.Sqrt(spread)
	if l.n < fewestLeakRows || !(math.Abs(r) > equalNumbers) {
		return ""
	}
	return fmt.Sprintf("it goes with %s almost exactly (correlation %.5g)", label, r)
}

// whyClass says how a column tells the class, "" if it does not.
func (l *leak) whyClass(label string, classes map[string]int, rows int) string {
	errors := float64(without(classes))
	if l.apart(classes) {
		return "its ranges for the classes of " + label + " do not overlap, so it alone tells the class"
	}
	if n := without(l.isMissing[0]) + without(l.isMissing[1]); len(l.isMissing[1]) > 0 && len(l.isMissing[0]) > 0 && float64(n) <= missingErrors*errors {
		return fmt.Sprintf("whether it is missing tells %s in %s of the rows", label, percent(rows-n, rows))
	}
	const repeated = 10 // rows of a word, on the mean
	if len(l.words) < 2 || repeated*len(l.words) > rows {
		return ""
	}
	n := without(l.isMissing[1])
	for _, of := range l.words {
		n += without(of)
	}
	if float64(n) <= wordErrors*errors {
		return fmt.Sprintf("its words tell %s in %s of the rows", label, percent(rows-n, rows))
	}
	return ""
}

// apart reports whether no two classes have numbers in the same range, and each has several.
func (l *leak) apart(classes map[string]int) bool {
	const fewest = 5
	if len(l.ranges) != len(classes) || len(classes) < 2 {
		return false
	}
	var all []*classRange
	for _, r := range l.ranges {
		if r.rows < fewest {
			return false
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *classRange) int { return cmp.Compare(a.low, b.low) })
	for i := range all[1:] {
		if all[i].high >= all[i+1].low {
			return false
		}
	}
	return true
}

// most returns how many rows the most frequent class has.
func most(classes map[string]int) (n int) {
	for _, rows := range classes {
		n = max(n, rows)
	}
	return n
}

// without returns how many rows have another class than the most frequent one.
func without(classes map[string]int) (n int) {
	for _, rows := range classes {
		n += rows
	}
	return n - most(classes)
}

// percent writes a share that is near 1, without rounding it up to it.
func percent(part, of int) string {
	if part == of {
		return "all"
	}
	return fmt.Sprintf("%.3g %%", math.Floor(1000*float64(part)/float64(of))/10)
}
