package dataset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// Use says how a job uses a column.
type Use struct {
	Name     string
	Kind     Kind
	Distinct string
	Missing  int
	// Unit is that of the numbers, and NA has the words that stand for a missing
	// one.
	Unit string
	NA   []string
	// Form is the format of the dates, for [DateLayout].
	Form string
	// Parts are those of the dates that come again and again.
	Parts []DatePart
	// Drop says that the column is left out.
	Drop bool
	// Weight says that the column has the weights of the rows.
	Weight bool
	// Group says that the rows are split by the column, which is then left out.
	Group bool
	// Words says that the classes of the label have names.
	Words bool
	// Rule says, for people, what is done, and why.
	Rule string
}

// Plan says how a job uses the columns of a table.
type Plan struct {
	Label int
	// Numbers says that the label is a number, not a class.
	Numbers bool
	// MaybeNumbers says that the classes are whole numbers, more than two, which a person may
	// mean as numbers.
	MaybeNumbers bool
	Uses         []Use
	// Test is the file with the test part; nil if it is a part of the rows.
	Test *TestFile
}

// Task is what a model learns to do.
type Task string

// Plan returns how to use the columns to predict one of them.
func (s *Survey) Plan(ctx context.Context, label int, task Task) (*Plan, error) {
	l := s.Columns[label]
	if l.Distinct < 2 {
		return nil, s.fault(label, "the label has a single value", "choose another column with --label")
	}
	l.measured = task == Regression
	p := &Plan{Label: label, Numbers: task == Regression || task == AnyTask && !l.isClasses(l.isLabelName())}
	p.MaybeNumbers = !p.Numbers && task == AnyTask && l.kind() == KindNumber && l.Distinct > 2
	switch {
	case p.Numbers && l.kind() != KindNumber:
		return nil, s.fault(label, "the label is to be a number, but has "+clip(l.Example), "choose another column with --label, or --task classification")
	case !p.Numbers && (l.Many || l.Distinct > maxClasses):
		return nil, s.fault(label, "the label has more than "+strconv.Itoa(maxClasses)+" different values, which are too many for classes", "choose another column with --label, or --task regression")
	case !p.Numbers && l.unique():
		return nil, s.fault(label, "the label is different in every row", "choose another column with --label")
	}
	same, err := s.sameAs(ctx, label, p.Numbers)
	if err != nil {
		return nil, err
	}
	for i, c := range s.Columns {
		if i == label {
			p.Uses = append(p.Uses, c.asLabel(p.Numbers))
			continue
		}
		p.Uses = append(p.Uses, c.asFeature(i, same[i]))
	}
	if group := s.findGroup(p); group >= 0 && !same[group] {
		p.GroupBy(group)
	}
	if !p.hasFeature() {
		s.useCounts(p)
	}
	if !p.hasFeature() {
		hint := "a table needs columns of numbers, dates, or words that occur several times"
		if slices.ContainsFunc(s.Columns, (*Profile).namesImages) {
			hint = "to learn from the images, give their folder, and this table as the labels: trainerd init --label " + shell.Quote(s.file) + " FOLDER"
		}
		return nil, &Error{File: s.file, Reason: "no column is left to learn from" + p.whyLeftOut(), Hint: hint}
	}
	return p, nil
}

// hasFeature reports whether there is a column to learn from.
func (p *Plan) hasFeature() bool {
	for i, u := range p.Uses {
		if i != p.Label && !u.Drop {
			return true
		}
	}
	return false
}

// useCounts learns from columns that count the rows: where there is nothing else,
// these are more than numbers of rows, as the x of a curve.
func (s *Survey) useCounts(p *Plan) {
	for i, c := range s.Columns {
		if u := &p.Uses[i]; i != p.Label && c.countsRows() && !c.looksLikeID() && c.Name != unnamedIndex && !u.Group {
			u.Drop, u.Rule = false, ""
		}
	}
}

// whyLeftOut says of the first columns why they are left out.
func (p *Plan) whyLeftOut() (text string) {
	const most = 3
	n := 0
	for i, u := range p.Uses {
		if i == p.Label {
			continue
		}
		if n++; n > most {
			return text + ", ..."
		}
		text += fmt.Sprintf("%s %s is %s", map[bool]string{true: ":", false: ","}[n == 1], clip(u.Name), u.Rule)
	}
	return text
}

// Weigh makes a column the weights of the rows, and returns its name.
func (p *Plan) Weigh(column int) string {
	u := &p.Uses[column]
	u.Kind, u.Drop, u.Rule, u.Weight = KindNumber, false, "weight of the row", true
	return u.Name
}

func (s *Survey) fault(column int, reason, hint string) *Error {
	return &Error{File: s.file, Column: column + 1, Name: s.Columns[column].Name, Reason: reason, Hint: hint}
}

func (p *Profile) use() Use {
	u := Use{Name: p.Name, Kind: p.kind(), Missing: p.Missing, Distinct: strconv.Itoa(p.Distinct)}
	if p.Many {
		u.Distinct = "> " + u.Distinct
	}
	switch u.Kind {
	case KindDate:
		u.Form = p.dateForm().form
		u.Parts = p.span.parts()
		if u.NA = slices.Sorted(maps.Keys(p.undated)); len(u.NA) > 0 {
			u.Missing += p.words - p.dated
		}
	case KindNumber:
		switch {
		case p.isMagnitudes():
			u.Unit = Magnitudes
		case p.units > 0:
			u.Unit = p.unit
		}
		if u.NA = p.naValues(); u.NA != nil {
			u.Missing += p.missingBy(u.NA)
		}
	}
	return u
}

func (p *Profile) asLabel(numbers bool) Use {
	u := p.use()
	u.Parts = nil
	u.Rule = "label: a number"
	if !numbers {
		u.Words = !(p.kind() == KindNumber && p.isNumbered())
		u.Kind, u.Unit, u.NA, u.Missing = KindCategory, "", nil, p.Missing
		u.Rule = fmt.Sprintf("label: %d classes", p.Distinct)
	}
	if u.Unit != "" {
		u.Rule += " in " + u.Unit
	}
	if u.Missing > 0 {
		u.Rule += "; rows without it are left out"
	}
	return u
}

// asFeature returns the use of a column that is not the label. sameAsLabel says
// that it is the label in other words.
func (p *Profile) asFeature(at int, sameAsLabel bool) Use {
	u := p.use()
	if u.Rule, u.Drop = p.whyNot(at, sameAsLabel); u.Drop {
		u.Rule = "left out: " + u.Rule
		return u
	}
	if p.isText() {
		u.Kind = KindText
	}
	var rules []string
	if rule := p.kindRule(u); rule != "" {
		rules = append(rules, rule)
	}
	if u.Unit != "" {
		rules = append(rules, "in "+u.Unit)
	}
	if u.Kind == KindNumber && p.bounds > 0 {
		rules = append(rules, "a bound is its number")
	}
	if len(u.NA) > 0 {
		rules = append(rules, quoteNames(u.NA)+" missing")
	}
	switch {
	case p.Missing > 0 && u.Kind == KindText:
		rules = append(rules, "missing has no words")
	case p.Missing > 0 && u.Kind == KindCategory:
		rules = append(rules, "missing is none of them")
	case u.Missing > 0:
		rules = append(rules, "missing becomes the mean")
	}
	u.Rule = strings.Join(rules, "; ")
	return u
}

// kindRule says what is done because of the kind of a column; "" for what goes without saying.
func (p *Profile) kindRule(u Use) string {
	switch {
	case u.Kind == KindText && p.isTags():
		return "lists of words, an input for each word"
	case u.Kind == KindText:
		return "texts, an input for each frequent word"
	case u.Kind == KindCategory && p.isCode():
		return "codes, one input each"
	case u.Kind == KindCategory && p.numbers > 0:
		return "words among numbers, one input each"
	case u.Kind == KindCategory:
		return "words, one input each"
	case u.Form == UnixSeconds:
		return "seconds since 1970"
	case u.Form == UnixMillis:
		return "milliseconds since 1970"
	case u.Form == Duration && strings.ContainsFunc(p.Example, unicode.IsLetter):
		return "days, of lengths of time"
	case u.Form == Duration:
		return "days, written hours:minutes:seconds"
	case u.Form == Quarter, u.Form == Week:
		return "days since 1970, of the first of each " + u.Form
	case u.Kind == KindDate && !strings.ContainsAny(u.Form, "dYy") && u.Form != ISODate:
		return "time of day, written " + u.Form
	case u.Kind == KindDate:
		return "days since 1970, written " + u.Form
	case p.Distinct == 1:
		return "constant, so without effect"
	}
	return ""
}

// whyNot returns why a column is left out.
func (p *Profile) whyNot(at int, sameAsLabel bool) (why string, drop bool) {
	kind := p.kind()
	switch {
	case p.present() == 0:
		return "no values", true
	case sameAsLabel:
		return "is the label in other words", true
	case p.countsRows() && p.Rows > 2:
		return "counts the rows", true
	case at == 0 && p.Name == unnamedIndex && (p.unique() || p.Many):
		return "the index, without a name", true
	case kind == KindNumber && p.integers == p.numbers && p.looksLikeID() && (p.unique() || p.Many):
		return "identifies the rows", true
	case kind == KindCategory && p.Distinct == 1 && p.Missing == 0:
		return "constant", true
	case kind == KindCategory && 2*p.numbers > p.present() && len(p.odd) > 0 && (p.unique() || p.tooManyWords()):
		return fmt.Sprintf("numbers, but also %d words such as %s", p.words-p.units-p.bounds, quoteNames(slices.Sorted(maps.Keys(p.odd))[:1])), true
	case kind == KindCategory && p.foreign == p.present() && (p.unique() || p.tooManyWords()):
		return "numbers with decimal commas, but other columns have points: write them alike", true
	case p.namesImages():
		return "names images, which a table does not read", true
	case p.isText(): // learnt from
	case kind == KindCategory && p.unique():
		return "different in every row", true
	case kind == KindCategory && p.tooManyWords():
		return "too many different words", true
	}
	return "", false
}

// namesImages reports whether the values are names of files with images.
func (p *Profile) namesImages() bool {
	return p.kind() == KindCategory && (p.unique() || p.tooManyWords()) && isImage(p.Example)
}

// sameAs returns the columns each of whose values belongs to one class of the
// label, and the other way round: the label by another name.
func (s *Survey) sameAs(ctx context.Context, label int, numbers bool) (same map[int]bool, err error) {
	const most = 100
	l := s.Columns[label]
	there, back := make(map[int]map[string]string), make(map[int]map[string]string)
	for i, p := range s.Columns {
		if i != label && !numbers && p.Distinct == l.Distinct && p.Missing == l.Missing && p.Distinct <= most {
			there[i], back[i] = make(map[string]string), make(map[string]string)
		}
	}
	if len(there) == 0 || 2*l.Distinct > l.present() {
		return nil, nil
	}
	t, err := openFiles(s.file, s.Options)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	err = s.each(ctx, t, func(row *table.Row) {
		class := strings.TrimSpace(row.Fields[label])
		for i := range there {
			value := strings.TrimSpace(row.Fields[i])
			if !pair(there[i], value, class) || !pair(back[i], class, value) {
				delete(there, i)
			}
		}
	})
	same = make(map[int]bool)
	for i := range there {
		same[i] = true
	}
	return same, err
}

// pair notes that two values occur together, and reports whether the first has
// occurred with no other.
func pair(known map[string]string, a, b string) bool {
	if other, ok := known[a]; ok {
		return other == b
	}
	known[strings.Clone(a)] = strings.Clone(b)
	return true
}

const (
	// AnyTask lets the label decide.
	AnyTask Task = ""
	// Classification predicts a class.
	Classification Task = "classification"
	// Regression predicts a number.
	Regression Task = "regression"
)
