package dataset

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// testWords are words in the names of files with a test part, in the place where those of the
// training part have train.
var testWords = []string{"test", "testing", "val", "valid", "validation", "eval", "dev"}

// partBeside returns the file next to another one that is called like a part of the same data;
// "" for none.
func partBeside(name, part string) string {
	dir, base := filepath.Split(name)
	for _, train := range []string{"train", "training"} {
		for _, written := range []func(string) string{strings.ToLower, capital, strings.ToUpper} {
			other, ok := replaceWord(base, written(train), written(part))
			if !ok {
				continue
			}
			if path := filepath.Join(dir, other); isFile(path) {
				return path
			}
		}
	}
	return ""
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// TestFile is a table next to another one, called like its test part.
type TestFile struct {
	Name string
	Rows int
	// Unlabelled says that its rows are to be predicted, as they have no labels.
	Unlabelled bool
	// Reason says why it cannot be the test part; "" if it can.
	Reason string
	// Missing says that fields are missing.
	Missing bool
}

// FindTestFile returns the test part of a table by its name, as test.csv is that of train.csv;
// nil if there is no such file.
func (s *Survey) FindTestFile(ctx context.Context, p *Plan) (*TestFile, error) {
	for _, part := range testWords {
		name := partBeside(s.file, part)
		if name == "" {
			continue
		}
		t, err := surveyTable(ctx, name, s.Options)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return &TestFile{Name: name, Reason: strings.TrimPrefix(err.Error(), name+": ")}, nil
		}
		if t.Rows == 0 {
			return &TestFile{Name: name, Reason: "it holds no rows"}, nil
		}
		return s.asTestFile(t, p), nil
	}
	return nil, nil
}

// asTestFile finds out whether the rows of another table are such as those of this one.
func (s *Survey) asTestFile(t *Survey, p *Plan) *TestFile {
	f := &TestFile{Name: t.file, Rows: t.Rows}
	label := s.sameColumn(t, p.Label)
	if f.Unlabelled = label == nil || label.present() == 0; f.Unlabelled {
		return f
	}
	if f.Reason = s.unknownLabel(label, p); f.Reason != "" {
		return f
	}
	for i, u := range p.Uses {
		if i == p.Label || u.Drop && !u.Weight {
			continue
		}
		other := s.sameColumn(t, i)
		if other == nil {
			f.Reason = "there is no column " + clip(u.Name)
			return f
		}
		if !u.fits(other) {
			f.Reason = fmt.Sprintf("the column %s has %ss here, but not there", clip(u.Name), u.Kind)
			return f
		}
		f.Missing = f.Missing || other.Missing > 0 && u.Kind != KindText
	}
	f.Missing = f.Missing || label.Missing > 0
	return f
}

func (s *Survey) hasNames() bool { return s.Options.Header || s.Options.Format != table.CSV }

// sameColumn returns a column of this table in another one; nil if that has none.
func (s *Survey) sameColumn(t *Survey, column int) *Profile {
	if !s.hasNames() {
		if len(t.Columns) != len(s.Columns) {
			return nil
		}
		return t.Columns[column]
	}
	i := slices.IndexFunc(t.Columns, func(p *Profile) bool { return p.Name == s.Columns[column].Name })
	if i < 0 {
		return nil
	}
	return t.Columns[i]
}

// unknownLabel says which label of a profile the plan does not predict, "" for none.
func (s *Survey) unknownLabel(label *Profile, p *Plan) string {
	if p.Numbers {
		if label.kind() != KindNumber {
			return fmt.Sprintf("the label %s is not a number", clip(label.Example))
		}
		return ""
	}
	known := s.Columns[p.Label].values
	for _, class := range slices.Sorted(maps.Keys(label.values)) {
		if known[class] == 0 {
			return fmt.Sprintf("its label %s is not one of the %d classes", clip(class), len(known))
		}
	}
	return ""
}

// fits reports whether fields can be read as the plan says.
func (u *Use) fits(p *Profile) bool {
	switch {
	case p.present() == 0:
		return true
	case u.Kind == KindNumber:
		return p.words == 0 || p.kind() == KindNumber
	case u.Kind == KindDate:
		return p.isDigitDates() || p.isDated() && slices.ContainsFunc(p.forms, func(f dateForm) bool { return f.form == u.Form })
	}
	return true
}
