package dataset

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// Notes returns what a person should know about a table before training on it:
// things that are not faults, but often misleading.
func (s *Survey) Notes(ctx context.Context, p *Plan) ([]string, error) {
	notes := s.otherEncoding()
	for i, u := range p.Uses {
		notes = append(notes, s.Columns[i].sums()...)
		if u.Drop || u.Kind != KindCategory {
			continue
		}
		notes = append(notes, s.Columns[i].spellings()...)
		notes = append(notes, s.Columns[i].severalWords(i == p.Label)...)
	}
	if s.Short > 0 {
		notes = append(notes, fmt.Sprintf("row %d, and maybe others, has fewer fields than there are columns; those at its end are missing", s.Short))
	}
	if !p.Numbers {
		notes = append(notes, s.Columns[p.Label].rareClass()...)
	}
	if p.Numbers {
		notes = append(notes, s.Columns[p.Label].farOff()...)
	}
	if group := p.Group(); group != "" {
		notes = append(notes, fmt.Sprintf("%s: all rows of one are in the training or all in the test part, which shows how the model does on others; group in [data] says so, and it is not a feature", group))
	}
	notes = append(notes, s.constantLabels(p)...)
	notes = append(notes, s.otherLabels(p)...)
	more, err := s.leaks(ctx, p)
	notes = append(notes, more...)
	if err != nil || p.Test != nil {
		return notes, err
	}
	more, err = s.orderNotes(ctx, p)
	return append(notes, more...), err
}

// spellings finds words that differ in their case and blanks alone.
func (p *Profile) spellings() []string {
	same := make(map[string]string)
	for _, word := range slices.Sorted(maps.Keys(p.values)) {
		if table.IsNumber(word) {
			continue
		}
		key := strings.ToLower(strings.Join(strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(" _-.", r) }), ""))
		if other, ok := same[key]; ok && key != "" {
			return []string{fmt.Sprintf("%s: %s and %s are different words here; write them alike if they mean the same", p.Name, clip(other), clip(word))}
		}
		same[key] = word
	}
	return nil
}

// sumWords begin the rows that spreadsheets have below a table.
var sumWords = []string{"total", "totals", "sum", "subtotal", "grand total", "average", "avg", "mean", "summe", "gesamt", "insgesamt", "durchschnitt", "total general", "somme", "moyenne"}

// sums finds a word that names a row which sums up the others.
func (p *Profile) sums() []string {
	for _, word := range slices.Sorted(maps.Keys(p.values)) {
		if p.values[word] == 1 && slices.Contains(sumWords, strings.ToLower(strings.TrimRight(word, ":"))) {
			return []string{fmt.Sprintf("%s: %s is there once; if its row sums up others it is not an example, so remove it", p.Name, clip(word))}
		}
	}
	return nil
}

// severalWords finds words that are made of others, as in "drama|comedy".
func (p *Profile) severalWords(label bool) []string {
	for _, mark := range []string{"|", ";", ","} {
		example := p.joined(mark)
		if example == "" {
			continue
		}
		what := "each combination is a word of its own; in texts of [data] instead of categories, each word is an input"
		if label {
			what = "each combination is a class of its own"
		}
		return []string{fmt.Sprintf("%s: fields have several words, as in %s; %s", p.Name, clip(example), what)}
	}
	return nil
}

// rareClass finds a label one of whose classes is hardly ever there: then always
// answering the other is right nearly always.
func (p *Profile) rareClass() []string {
	const rare = 20 // one of so many rows
	least, fewest := "", p.present()+1
	for _, word := range slices.Sorted(maps.Keys(p.values)) {
		if n := p.values[word]; n < fewest {
			least, fewest = word, n
		}
	}
	if p.Distinct < 2 || fewest*rare*p.Distinct/2 > p.present() {
		return nil
	}
	return []string{fmt.Sprintf(`%s: the class %s has only %d of %d rows, so the accuracy says little of it; class_weights = "balanced" in [data] gives it more weight, and trainerd eval shows each class`,
		p.Name, clip(least), fewest, p.present())}
}

// farOff finds a number to predict with a few rows so far from the others that their squared
// errors count for more than those of all others together.
func (p *Profile) farOff() []string {
	const far = 10 // standard deviations; of a normal distribution none is
	m := p.moments
	m.finish()
	off := max(m.Max-m.Mean, m.Mean-m.Min) / math.Sqrt(m.Variance)
	if !(off > far) {
		return nil
	}
	return []string{fmt.Sprintf(`%s: a value is %.0f standard deviations from the mean; such rows decide what is learnt from squared errors: correct them, leave them out, predict the logarithm, or set loss = "huber_loss" in [model]`, p.Name, off)}
}

// orderNotes finds rows that belong together, so that a random test part is not a fair
// one: rows in the order of time, and groups of rows with the same label.
func (s *Survey) orderNotes(ctx context.Context, p *Plan) (notes []string, err error) {
	groups := s.possibleGroups(p)
	dates := s.possibleTimes(p)
	if len(groups) == 0 && len(dates) == 0 {
		return nil, nil
	}
	t, err := openFiles(s.file, s.Options)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	err = s.each(ctx, t, func(row *table.Row) {
		for _, g := range groups {
			g.add(strings.TrimSpace(row.Fields[g.column]), strings.TrimSpace(row.Fields[p.Label]))
		}
		for _, d := range dates {
			d.add(strings.TrimSpace(row.Fields[d.column]))
		}
	})
	for _, d := range dates {
		if d.ordered() {
			notes = append(notes, fmt.Sprintf("%s: the rows are in the order of time, but the test rows are chosen at random among them; shuffle = false in [data] takes the last rows instead", s.Columns[d.column].Name))
			break
		}
	}
	for _, g := range groups {
		if g.together(s.Columns[p.Label].Distinct) {
			notes = append(notes, fmt.Sprintf("%s: all rows of one have the same %s, and some of them come into the test part; group = %q in [data] (init --group) keeps them together", s.Columns[g.column].Name, s.Columns[p.Label].Name, s.Columns[g.column].Name))
			break
		}
	}
	return notes, err
}

// group is a column whose values may be the names of groups of rows.
type group struct {
	column int
	labels map[string]string // of each group, as long as it has one
	mixed  int               // groups with several labels
}

// groupWords are words in the names of columns that may say which rows belong
// together.
var groupWords = append([]string{"session", "group", "device", "sensor", "machine", "site", "plant", "store"}, groupNames...)

// namesGroups reports whether the name of a column is that of whom its rows are
// about. The values do not say it: those of any good feature go with one label.
func (p *Profile) namesGroups() bool {
	name := strings.ToLower(p.Name)
	return p.looksLikeID() || slices.ContainsFunc(groupWords, func(word string) bool { return strings.Contains(name, word) })
}

// possibleGroups returns the columns with so many different values that each is in
// several rows.
func (s *Survey) possibleGroups(p *Plan) (all []*group) {
	const fewest, rows = 10, 3
	if p.Numbers || p.Group() != "" {
		return nil
	}
	for i, c := range s.Columns {
		isName := c.kind() == KindCategory || c.kind() == KindNumber && c.numbers == c.integers
		if i != p.Label && isName && c.namesGroups() && !c.Many && c.Distinct >= fewest && rows*c.Distinct <= c.present() && c.Distinct > 2*s.Columns[p.Label].Distinct {
			all = append(all, &group{column: i, labels: make(map[string]string)})
		}
	}
	return all
}

const severalLabels = "\x00"

func (g *group) add(name, label string) {
	if known := g.labels[name]; known == severalLabels || pair(g.labels, name, label) {
		return
	}
	g.labels[name] = severalLabels
	g.mixed++
}

// together reports whether nearly every group has one label.
func (g *group) together(classes int) bool {
	const most = 20 // one of so many may be mixed
	different := make(map[string]bool)
	for _, label := range g.labels {
		different[label] = true
	}
	return most*g.mixed <= len(g.labels) && len(different) >= min(classes, 2)
}

// times is a column that may be the time of the rows.
type times struct {
	column int
	read   func(string) (float64, bool)
	last   float64
	rows   int
	later  int // than the row before
	bad    bool
}

// possibleTimes returns the columns of dates, and of numbers that are called like
// times.
func (s *Survey) possibleTimes(p *Plan) (all []*times) {
	for i, c := range s.Columns {
		name := strings.ToLower(c.Name)
		switch {
		case i == p.Label:
		case c.kind() == KindDate:
			f := c.dateForm().feature
			all = append(all, &times{column: i, read: func(text string) (float64, bool) {
				at, err := f.time(text)
				return Days(at), err == nil
			}})
		case c.kind() == KindNumber && slices.Contains([]string{"time", "timestamp", "ts", "unix", "epoch", "year"}, name):
			all = append(all, &times{column: i, read: func(text string) (float64, bool) {
				v, err := strconv.ParseFloat(text, 64)
				return v, err == nil
			}})
		}
	}
	return all
}

func (d *times) add(text string) {
	v, ok := d.read(text)
	if !ok {
		return
	}
	if d.rows++; d.rows > 1 {
		d.bad = d.bad || v < d.last
		if v > d.last {
			d.later++
		}
	}
	d.last = v
}

// ordered reports whether the rows are in the order of time, at many times.
func (d *times) ordered() bool {
	const fewest = 10
	return !d.bad && d.later >= fewest && 2*d.later >= d.rows
}

// Balance returns how evenly the rows are divided among the classes of a column: 1 for equal
// numbers, and near 0 if nearly all are of one class.
func (s *Survey) Balance(column int) float64 {
	p := s.Columns[column]
	if p.values == nil || p.Distinct < 2 {
		return 1
	}
	squares := 0.0
	for _, n := range p.values {
		share := float64(n) / float64(p.present())
		squares += share * share
	}
	return (1 - squares) / (1 - 1/float64(p.Distinct))
}
