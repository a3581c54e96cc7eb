package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// Kind is the kind of values in a column.
type Kind string

const (
	// KindNumber is a plain number; NaN is a missing one.
	KindNumber Kind = "number"
	// KindCategory is one of a list of words, given as its index in the
	// vocabulary; -1 is a missing word, or one that is not in the vocabulary.
	KindCategory Kind = "category"
	// KindDate is a date, given as days since 1970-01-01 in UTC with the time of
	// day as a fraction; NaN is a missing one.
	KindDate Kind = "date"
	// KindID is an id in a bag, negative for none.
	KindID Kind = "id"
	// KindText is a text, given as the indices in the vocabulary of up to Length of its words,
	// then -1; words that are not in the vocabulary are left out.
	KindText Kind = "text"
)

// Feature describes one column of the examples, or the label.
type Feature struct {
	// Name is the column's name; "" in a file without a header.
	Name string `json:"name,omitempty"`
	Kind Kind   `json:"kind"`
	// Vocabulary has the words of a category or of texts, or the names of a label's
	// classes, in the order of their indices.
	Vocabulary []string `json:"vocabulary,omitempty"`
	// Length is how many numbers of a raw row a text takes.
	Length int `json:"length,omitempty"`
	// Layout is how dates are written, as in package time. "" means RFC 3339, or
	// its date alone.
	Layout string `json:"layout,omitempty"`
	// Parts are those of a date that a model learns from next to the days.
	Parts []DatePart `json:"parts,omitempty"`
	// Unit follows the numbers of the column, as in 12 kg, or precedes them if
	// it is a currency code; numbers without it are accepted too.
	Unit string `json:"unit,omitempty"`
	// NA has the words of the column that mean a missing value, in addition to
	// those of [IsMissing].
	NA []string `json:"na,omitempty"`
	// Column is the index in a row of the training file, from 0.
	Column int `json:"column"`
}

// Schema describes the examples. A raw row has one float32 for each feature, and
// Length of them for a text, as described at its Kind; nothing is scaled or filled in.
type Schema struct {
	// Format is that of the training file.
	Format Format `json:"format,omitempty"`
	// Columns is the number of columns in a row of the training file, including
	// unused ones; 0 for data without columns.
	Columns int `json:"columns,omitempty"`
	// Decimal and Thousands are the marks in the numbers of the training file, 0 for
	// those of Go.
	Decimal   rune `json:"decimal,omitempty"`
	Thousands rune `json:"thousands,omitempty"`
	// Image is the height, width and channels of images, nil for other data.
	Image []int `json:"image,omitempty"`

	// Records names the features of tf.Example messages that make up an example;
	// nil means all except the label, ordered by name.
	Records []string `json:"records,omitempty"`

	Features []Feature `json:"features,omitempty"`
	// Label is what is predicted: a class if its Kind is KindCategory (the
	// vocabulary then holds the names of the classes, nil if they are the
	// numbers themselves), otherwise a number.
	Label Feature `json:"label"`
	// Classes is the number of classes, 0 for a label that is a number.
	Classes int `json:"classes,omitempty"`
	// Split says which rows of the training file are its test part; nil if that is not
	// known, as of a schema that an older version stored.
	Split *Split `json:"split,omitempty"`
}

// Split says how the rows of a file were divided into a training and a test part. Of
// unchanged rows, an equal Split has the same ones in each part.
type Split struct {
	// Rows is the number of all rows, Tests that of the test part: 0 if all rows train.
	Rows  int `json:"rows"`
	Tests int `json:"tests,omitempty"`
	// Shuffled says that the test part was chosen at random, by Seed, and not as the last
	// rows; Streamed that it was chosen as for rows that are not all in memory.
	Shuffled bool   `json:"shuffled,omitempty"`
	Streamed bool   `json:"streamed,omitempty"`
	Seed     uint64 `json:"seed,omitempty"`
}

// splitOf describes how a training file of so many rows was divided.
func splitOf(rows, tests int, o Options) *Split {
	s := &Split{Rows: rows, Tests: tests}
	if tests > 0 && o.Shuffle {
		s.Shuffled, s.Seed = true, o.Seed
		s.Streamed = o.ShuffleBuffer > 0 && o.Format == FormatTFRecord
	}
	return s
}

// HasWords reports whether some feature is a category or a text.
func (s *Schema) HasWords() bool {
	return slices.ContainsFunc(s.Features, func(f Feature) bool { return f.HasWords() })
}

// HasWords reports whether the feature is a category or a text.
func (f *Feature) HasWords() bool { return f.Kind == KindCategory || f.Kind == KindText }

// Size returns how many numbers of a raw row the feature takes.
func (f *Feature) Size() int {
	if f.Kind == KindText {
		return f.Length
	}
	return 1
}

// featureAt returns the feature that a number of a raw row is of.
func (s *Schema) featureAt(number int) *Feature {
	for i := range s.Features {
		if number -= s.Features[i].Size(); number < 0 {
			return &s.Features[i]
		}
	}
	return &s.Label
}

// IsList reports whether the texts are lists of a few words, such as the tags of a picture,
// each of which counts as much as that of a category; of longer texts, a word counts the
// less the more there are.
func (f *Feature) IsList() bool {
	const most = 8 // words
	return f.Kind == KindText && f.Length <= most
}

// Width returns how many numbers a raw row has.
func (s *Schema) Width() (width int) {
	for i := range s.Features {
		width += s.Features[i].Size()
	}
	return width
}

// MayMiss reports whether the format can omit a number.
func (s *Schema) MayMiss() bool {
	switch s.Format {
	case FormatTFRecord, FormatIDX, FormatNumPy, FormatImages:
		return false
	}
	return true
}

// HasNames reports whether all features have different names.
func (s *Schema) HasNames() bool {
	seen := make(map[string]bool)
	for _, f := range s.Features {
		if f.Name == "" || seen[f.Name] {
			return false
		}
		seen[f.Name] = true
	}
	return len(s.Features) > 0
}

// ClassName returns the name of a class, or its number if it has none.
func (s *Schema) ClassName(class int) string {
	if class >= 0 && class < len(s.Label.Vocabulary) {
		return s.Label.Vocabulary[class]
	}
	return strconv.Itoa(class)
}

// IsMissing reports whether a field, without surrounding blanks, means a
// missing value.
func IsMissing(field string) bool { return table.IsMissing(field) }

// Vocabularies finds the indices of words; see [Schema.Vocabularies].
type Vocabularies []map[string]int

// Vocabularies returns the words of each feature.
func (s *Schema) Vocabularies() Vocabularies {
	all := make(Vocabularies, len(s.Features))
	for i, f := range s.Features {
		all[i] = f.index()
	}
	return all
}

func (f *Feature) index() map[string]int {
	if !f.HasWords() {
		return nil
	}
	words := make(map[string]int, len(f.Vocabulary))
	for i, w := range f.Vocabulary {
		words[w] = i
	}
	return words
}

// Parse returns the raw value of a field of feature i, which is not text, or what is wrong
// with it and what to do. Blanks around the field are ignored.
func (s *Schema) Parse(v Vocabularies, i int, field string) (raw float32, reason, hint string) {
	field = strings.TrimSpace(field)
	switch f := &s.Features[i]; f.Kind {
	case KindCategory:
		if at, ok := v[i][field]; ok {
			return float32(at), "", ""
		}
		return -1, "", ""
	case KindDate:
		if f.isMissing(field) {
			return float32(math.NaN()), "", ""
		}
		return f.parseDate(field)
	case KindID:
		return Options{IDs: true}.parseFeature(field)
	}
	f := &s.Features[i]
	if f.isMissing(field) {
		return float32(math.NaN()), "", ""
	}
	return f.number(field)
}

// parseDate returns a date as days.
func (f *Feature) parseDate(field string) (days float32, reason, hint string) {
	if IsMissing(field) {
		return float32(math.NaN()), "", ""
	}
	at, err := f.time(field)
	if err != nil {
		return 0, fmt.Sprintf("%s is not a date", clip(field)), "write dates like " + f.example()
	}
	return float32(Days(at)), "", ""
}

// example returns a date as the column has them.
func (f *Feature) example() string {
	day := time.Date(2026, time.November, 25, 13, 45, 10, 0, time.UTC)
	switch f.Layout {
	case durationLayout:
		return "1:30:00"
	case secondsLayout:
		return strconv.FormatInt(day.Unix(), 10)
	case millisLayout:
		return strconv.FormatInt(day.UnixMilli(), 10)
	case quarterLayout:
		return "2026Q4"
	case weekLayout:
		return "2026-W48"
	}
	return day.Format(cmp.Or(f.Layout, time.DateOnly))
}

// time reads a date, however plainDate lets it be written.
func (f *Feature) time(field string) (time.Time, error) {
	at, err := f.plainTime(field)
	if err != nil && f.Layout != "" {
		if plain := plainDate(f.Layout, field); plain != field {
			return f.plainTime(plain)
		}
	}
	return at, err
}

func (f *Feature) plainTime(field string) (time.Time, error) {
	switch f.Layout {
	case durationLayout:
		return parseDuration(field)
	case secondsLayout:
		return parseUnix(field, time.Second)
	case millisLayout:
		return parseUnix(field, time.Millisecond)
	case quarterLayout:
		return parseQuarter(field)
	case weekLayout:
		return parseWeek(field)
	}
	if f.Layout != "" {
		at, err := parseTime(f.Layout, field)
		if at.Year() == 0 { // a time of day; so far from 1970 a float32 would not tell minutes
			at = at.AddDate(1970, 0, 0)
		}
		return at, err
	}
	at, err := time.Parse(time.DateOnly, field)
	if err != nil {
		at, err = time.Parse(time.RFC3339, field)
	}
	return at, err
}

// parseTime reads a time the same way on all machines: names of zones, but for UTC,
// are not looked up. An offset may have a colon, or be Z, as in Python.
func parseTime(layout, field string) (time.Time, error) {
	const offset = "-0700"
	at, err := time.ParseInLocation(layout, field, time.UTC)
	if err != nil && strings.Contains(layout, offset) {
		at, err = time.ParseInLocation(strings.Replace(layout, offset, "Z07:00", 1), field, time.UTC)
	}
	return at, err
}

// Days returns a time as days since 1970-01-01 in UTC, with a fraction.
func Days(t time.Time) float64 {
	const day = 24 * 60 * 60
	return (float64(t.Unix()) + float64(t.Nanosecond())/1e9) / day
}

// lacksLabel reports whether a field means that there is no label.
func (s *Schema) lacksLabel(field string) bool {
	field = strings.TrimSpace(field)
	return s.Label.isMissing(field) && !slices.Contains(s.Label.Vocabulary, field)
}

// ParseLabel returns a label as in a Dataset, a class or a number, or what is
// wrong with it. A missing label, or a class that the model does not know, is an
// error: nothing can be compared with it.
func (s *Schema) ParseLabel(field string) (label float64, reason string) {
	field = strings.TrimSpace(field)
	if s.lacksLabel(field) {
		return 0, "the label is missing"
	}
	if s.Label.Kind != KindCategory {
		v, reason, _ := s.Label.number(field)
		return float64(v), reason
	}
	if i := slices.Index(s.Label.Vocabulary, field); i >= 0 {
		return float64(i), ""
	}
	class, err := strconv.ParseFloat(field, 64)
	switch {
	case s.Label.Vocabulary != nil:
		return 0, fmt.Sprintf("the label %s is not a class of the model", clip(field))
	case errors.Is(err, strconv.ErrSyntax), class != math.Trunc(class):
		return 0, fmt.Sprintf("the label %s is not an integer", clip(field))
	case class < 0 || class >= float64(s.Classes):
		return 0, fmt.Sprintf("the label %s is out of range: the model has the classes 0 to %d", clip(field), s.Classes-1)
	}
	return class, ""
}
