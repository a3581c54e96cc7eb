package dataset

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// Survey describes a table, for code that writes a job for it.
type Survey struct {
	// Options says how the table is read.
	Options table.Options
	// Columns are in the order of the table.
	Columns []*Profile
	// Rows is the number of rows, and Short the last row that lacks fields at its
	// end, which are then missing; 0 for none.
	Rows, Short int

	file string
}

// NewSurvey reads a table, until ctx is done.
func NewSurvey(ctx context.Context, name string) (*Survey, error) {
	s, err := surveyTable(ctx, name, table.Options{Sniff: true})
	switch {
	case err != nil:
		return nil, err
	case len(s.Columns) < 2:
		return nil, &Error{File: name, Reason: "has a single column", Hint: "a row needs a label and at least one feature"}
	case s.Rows == 0:
		return nil, &Error{File: name, Reason: "holds no rows", Hint: "training needs at least two"}
	case s.Rows < 2:
		return nil, &Error{File: name, Reason: "holds a single row", Hint: "training needs at least two"}
	}
	return s, nil
}

// surveyTable reads a table as o says, also one with few rows.

func surveyTable(ctx context.Context, name string, o table.Options) (*Survey, error) {
	if err := statTable(name); err != nil {
		return nil, err
	}
	t, err := openFiles(name, o)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	s := &Survey{Options: t.Options, file: name}
	forms := allDateForms()
	for _, column := range t.Columns {
		s.Columns = append(s.Columns, newProfile(column, forms))
	}
	err = s.each(ctx, t, func(row *table.Row) {
		for i, p := range s.Columns {
			p.add(strings.TrimSpace(row.Fields[i]))
		}
		s.Rows++
	})
	return s, err
}

// each calls f for every row. Rows that are faulty are left to the training,
// which reports them with their places.
func (s *Survey) each(ctx context.Context, t *table.Table, f func(*table.Row)) error {
	return s.eachOf(ctx, t, maxRows, f)
}

// eachOf calls f for the rows among the first n.
func (s *Survey) eachOf(ctx context.Context, t *table.Table, n int, f func(*table.Row)) error {
	for range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if e := (*table.Error)(nil); errors.As(err, &e) && e.Row {
			continue
		}
		if err != nil {
			return tableError(s.file, err)
		}
		if row.FillUp(len(s.Columns)) {
			s.Short = max(s.Short, row.Number)
		}
		if len(row.Fields) == len(s.Columns) {
			f(row)
		}
	}
	return nil
}

// Column returns the column with a name or a number, from 0, or from the end
// if negative; false if there is none.
func (s *Survey) Column(text string) (int, bool) {
	names := make([]string, len(s.Columns))
	for i, p := range s.Columns {
		names[i] = p.Name
	}
	return columnCalled(text, names)
}

// columnCalled returns the column with a name, whatever its case, or with a number.
func columnCalled(text string, names []string) (int, bool) {
	text = table.Name(text)
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		if i := slices.IndexFunc(names, func(name string) bool { return same(name, text) }); i >= 0 {
			return i, true
		}
	}
	i, err := strconv.Atoi(text)
	if i < 0 {
		i += len(names)
	}
	return i, err == nil && i >= 0 && i < len(names)
}

// labelNames are names that columns to predict have, the likeliest first.
var labelNames = []string{"target", "label", "labels", "survived", "y", "outcome", "diagnosis", "species", "class"}

// ChooseLabel returns the column that is most likely to be predicted, and why.
func (s *Survey) ChooseLabel() (column int, why string) {
	for _, name := range labelNames {
		for i, p := range s.Columns {
			if strings.EqualFold(p.Name, name) && p.Distinct > 1 && (p.kind() == KindNumber || !p.unique()) {
				return i, "for its name"
			}
		}
	}
	if s.firstHasClasses() {
		return 0, "as the only column of classes, in a table without names"
	}
	for i, p := range slices.Backward(s.Columns) {
		if p.Distinct > 1 && p.kind() != KindDate && !p.countsRows() && !p.looksLikeID() && (p.kind() == KindNumber || !p.tooManyWords()) {
			if i == len(s.Columns)-1 {
				return i, "as the last column"
			}
			return i, "as the last column that can be predicted"
		}
	}
	return len(s.Columns) - 1, "as the last column"
}

// firstHasClasses reports whether the classes are in the first column, as files without names
// have them: few different whole numbers, while the last column has many.
func (s *Survey) firstHasClasses() bool {
	if s.Options.Header || s.Options.Format != table.CSV || s.Columns[0].kind() != KindNumber {
		return false
	}
	return s.Columns[0].Distinct > 1 && !slices.ContainsFunc(s.Columns[1:], func(p *Profile) bool { return p.isClasses(false) }) && s.Columns[0].isClasses(false)
}

// isLabelName reports whether a column is called like one to predict.
func (p *Profile) isLabelName() bool {
	return slices.ContainsFunc(labelNames, func(name string) bool { return strings.EqualFold(p.Name, name) })
}

// tooManyWords reports whether words are texts or identifiers, no categories.
func (p *Profile) tooManyWords() bool {
	const few, many = 10, 1000
	switch {
	case p.Many || p.Distinct > maxWords:
		return true
	case p.Distinct > many: // each has a vector, which its rows have to teach
		return 5*p.Distinct > p.present()
	}
	return p.Distinct > few && 2*p.Distinct > p.present()
}

// unnamedIndex is what a first column without a name is called.
const unnamedIndex = "Unnamed: 0"
