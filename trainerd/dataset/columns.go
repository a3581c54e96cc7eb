package dataset

import (
	"fmt"
	"slices"
	"strconv"
)

// columnPlan says what is made of the columns of a table.
type columnPlan struct {
	columns    []string // names of all
	named      bool     // those are names, not numbers
	label      int
	labels     Feature  // how they are written
	weight     int      // -1 for none
	group      int      // -1 for none
	classes    bool     // the labels are words
	classNames []string // if they are known
	features   []Feature
}

// newColumnPlan finds the columns that o names.
func newColumnPlan(columns []string, o Options) (*columnPlan, *Error) {
	o = o.asFitted()
	p := &columnPlan{columns: columns, named: o.hasNames()}
	var e *Error
	if p.label, e = p.find(o.Label, "label"); e != nil {
		return nil, e
	}
	if p.weight, e = p.findOther(o.Weight, "weight"); e != nil {
		return nil, e
	}
	if p.group, e = p.findOther(o.Group, "group"); e != nil {
		return nil, e
	}
	if len(columns) == 1 {
		return nil, &Error{Reason: "has a single column", Hint: fmt.Sprintf("a row needs a label and at least one feature, separated by %q; check data.separator", o.separator())}
	}
	if e := p.lacks(o.Fit); e != nil {
		return nil, e
	}
	used, e := p.used(o)
	if e != nil {
		return nil, e
	}
	kinds, e := p.kinds(o)
	if e != nil {
		return nil, e
	}
	for _, c := range used {
		f := Feature{Kind: kinds[c], Column: c, Layout: o.Dates[columns[c]], Unit: o.Units[columns[c]], NA: o.NAValues[columns[c]]}
		if f.Kind == KindDate {
			f.Parts = o.DateParts[columns[c]]
		}
		if f.Kind == "" {
			f.Kind = KindNumber
		}
		if o.IDs {
			f.Kind = KindID
		}
		if p.named {
			f.Name = columns[c]
		}
		p.features = append(p.features, f)
	}
	p.labels = Feature{Unit: o.Units[columns[p.label]], NA: o.NAValues[columns[p.label]]}
	p.classes = kinds[p.label] == KindCategory && !o.Numbers
	p.fit(o.Fit)
	return p, nil
}

// asFitted names the columns of a test file by those of the training file, if they have names:
// they may be in another order, and among others.
func (o Options) asFitted() Options {
	if o.Fit == nil || !o.hasNames() || !o.Fit.HasNames() {
		return o
	}
	o.Features, o.Drop = nil, nil
	for _, f := range o.Fit.Features {
		o.Features = append(o.Features, f.Name)
	}
	if o.Fit.Label.Name != "" {
		o.Label = Column{Name: o.Fit.Label.Name}
	}
	return o
}

func (o Options) separator() rune {
	if o.Comma == 0 {
		return ','
	}
	return o.Comma
}

// lacks returns an error for a column of the training file that a test file does not have.
func (p *columnPlan) lacks(known *Schema) *Error {
	if known == nil || !p.named || !known.HasNames() {
		return nil
	}
	for _, f := range known.Features {
		if !slices.Contains(p.columns, f.Name) {
			return &Error{Reason: fmt.Sprintf("there is no column %s, which data.file has; the columns are %s", clip(f.Name), quoteNames(p.columns)), Hint: "add it, or put it into data.drop"}
		}
	}
	return nil
}

// fit takes the words that another file has shown.
func (p *columnPlan) fit(known *Schema) {
	if known == nil || len(known.Features) != len(p.features) {
		return
	}
	for i := range p.features {
		p.features[i].Vocabulary, p.features[i].Length = known.Features[i].Vocabulary, known.Features[i].Length
	}
	p.classNames = known.Label.Vocabulary
}

// find returns the index of a column that a setting names, or why there is none.
func (p *columnPlan) find(want Column, setting string) (index int, e *Error) {
	n := len(p.columns)
	choose := fmt.Sprintf("set data.%s to one of them", setting)
	places := fmt.Sprintf("the %d columns are 0 to %d, or -%d to -1 from the end", n, n-1, n)
	if want.Name == "" {
		index = want.Index
		if index < 0 {
			index += n
		}
		if index < 0 || index >= n {
			return 0, &Error{Reason: fmt.Sprintf("there is no column %d for the %s; %s", want.Index, setting, places), Hint: choose}
		}
		return index, nil
	}
	if index = slices.Index(p.columns, want.Name); index >= 0 {
		return index, nil
	}
	if !p.named {
		return 0, &Error{Reason: fmt.Sprintf("the %s column %s is given by name, but the file is read without a header", setting, clip(want.Name)),
			Hint: fmt.Sprintf("set data.header = true, or data.%s to an index: %s", setting, places)}
	}
	return 0, &Error{Reason: fmt.Sprintf("there is no column %s for the %s; the columns are %s", clip(want.Name), setting, quoteNames(p.columns)), Hint: choose}
}

// findOther returns the index of a column that is not the label, -1 for none.
func (p *columnPlan) findOther(name, setting string) (int, *Error) {
	if name == "" {
		return -1, nil
	}
	c, e := p.find(Column{Name: name}, setting)
	if e == nil && c == p.label {
		e = &Error{Reason: fmt.Sprintf("data.%s is the column %s, which is the label", setting, clip(name)), Hint: "name another column"}
	}
	return c, e
}

// used returns the columns of the features: those that are named, else all but
// the label, the weight, the group and those that are dropped.
func (p *columnPlan) used(o Options) (used []int, e *Error) {
	for _, name := range o.Features {
		c, e := p.find(Column{Name: name}, "features")
		if e != nil {
			return nil, e
		}
		if c == p.label || slices.Contains(used, c) {
			return nil, &Error{Reason: fmt.Sprintf("data.features has the column %s, which is the label or occurs twice", clip(name)), Hint: "remove it from the list"}
		}
		used = append(used, c)
	}
	if len(used) > 0 {
		return used, nil
	}
	dropped := make(map[int]bool)
	for _, name := range o.Drop {
		c, e := p.find(Column{Name: name}, "drop")
		if e != nil {
			return nil, e
		}
		dropped[c] = true
	}
	for c := range p.columns {
		if c != p.label && c != p.weight && c != p.group && !dropped[c] {
			used = append(used, c)
		}
	}
	if len(used) == 0 {
		return nil, &Error{Reason: "no column is left for the features", Hint: "shorten data.drop"}
	}
	return used, nil
}

// kinds returns what the columns hold that are not numbers.
func (p *columnPlan) kinds(o Options) (map[int]Kind, *Error) {
	kinds := make(map[int]Kind)
	for _, name := range o.Categories {
		c, e := p.find(Column{Name: name}, "categories")
		if e != nil {
			return nil, e
		}
		kinds[c] = KindCategory
	}
	for _, name := range o.Texts {
		c, e := p.find(Column{Name: name}, "texts")
		if e != nil {
			return nil, e
		}
		if c == p.label {
			return nil, &Error{Reason: fmt.Sprintf("data.texts has the column %s, which is the label", clip(name)), Hint: "remove it there"}
		}
		kinds[c] = KindText
	}
	for name := range o.Dates {
		c, e := p.find(Column{Name: name}, "dates")
		if e != nil {
			return nil, e
		}
		kinds[c] = KindDate
	}
	if e := p.checkDateParts(o, kinds); e != nil {
		return nil, e
	}
	for name := range o.Units {
		c, e := p.find(Column{Name: name}, "units")
		if e != nil {
			return nil, e
		}
		if kinds[c] != "" {
			return nil, &Error{Reason: fmt.Sprintf("data.units has the column %s, which holds no numbers", clip(name)), Hint: "remove it there"}
		}
	}
	for name := range o.NAValues {
		if _, e := p.find(Column{Name: name}, "na_values"); e != nil {
			return nil, e
		}
	}
	return kinds, nil
}

// checkDateParts returns an error for parts of a column that has none.
func (p *columnPlan) checkDateParts(o Options, kinds map[int]Kind) *Error {
	for name, parts := range o.DateParts {
		c, e := p.find(Column{Name: name}, "date_parts")
		if e != nil {
			return e
		}
		reason := checkParts(parts, o.Dates[name])
		if kinds[c] != KindDate {
			reason = "has parts, but no dates"
		}
		if reason != "" {
			return &Error{Reason: fmt.Sprintf("data.date_parts: the column %s %s", clip(name), reason), Hint: "correct it, or remove it there"}
		}
	}
	return nil
}

// locate adds a column to a fault.
func (p *columnPlan) locate(column int, e *Error) *Error {
	e.Column = column + 1
	if p.named && p.columns[column] != strconv.Itoa(column) {
		e.Name = p.columns[column]
	}
	return e
}

// names returns the names of the features, nil if they have none.
func (p *columnPlan) names() []string {
	if !p.named {
		return nil
	}
	all := make([]string, len(p.features))
	for i, f := range p.features {
		all[i] = f.Name
	}
	return all
}

// schema returns what the columns hold.
func (p *columnPlan) schema(o Options, classes int, classNames []string) *Schema {
	s := &Schema{Format: o.Format, Columns: len(p.columns), Decimal: o.Dialect.Decimal, Thousands: o.Dialect.Thousands, Classes: classes, Features: p.features}
	s.Label = Feature{Kind: KindNumber, Column: p.label, Vocabulary: classNames, Unit: p.labels.Unit, NA: p.labels.NA}
	if p.named {
		s.Label.Name = p.columns[p.label]
	}
	if !o.Numbers {
		s.Label.Kind = KindCategory
	}
	return s
}
