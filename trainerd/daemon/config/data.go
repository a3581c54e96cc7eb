package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// The values of data.missing.
const (
	missingError = "error"
	missingFill  = "fill"
)

// DatasetOptions says how the data are read.
func (c *Config) DatasetOptions() dataset.Options {
	comma, _ := utf8.DecodeRuneInString(c.Data.Separator)
	d, m := c.Data, c.Model
	o := dataset.Options{
		Format: d.Format, Comma: comma, Header: d.Header, Label: dataset.Column(d.Label), Features: d.Features,
		Dialect: d.dialect(), Drop: d.Drop, Categories: d.Categories, Dates: d.Dates.layouts(), Missing: d.Missing == missingFill,
		LabelFile: d.Labels, Image: d.Image,
		Numbers: m.Family == "linear", IDs: m.Family == "embedding_bag", Classes: m.Classes,
		Scale: d.Scale, Normalize: d.Normalize,
		Shuffle: d.Shuffle, Seed: d.Seed, ShuffleBuffer: d.ShuffleBuffer, MemoryLimit: d.MemoryMB << 20,
		TestFile: d.TestFile, TestLabelFile: d.TestLabels,
		TestRows: d.TestRows, TestFraction: d.TestFraction, BatchSize: d.BatchSize,
	}
	if !c.IsGraph() {
		o.Scale, o.Normalize = 1, dataset.NormalizeNone // the model does that itself
	}
	if o.IDs {
		o.Width = m.Inputs
	}
	if o.Image == nil {
		o.Image = m.Image
	}
	return o
}

// dialect says how CSV is written.
func (d *Data) dialect() table.Dialect {
	first := func(text, byDefault string) rune {
		r, size := utf8.DecodeRuneInString(text)
		if size == 0 || text == byDefault {
			return 0
		}
		return r
	}
	return table.Dialect{
		Quote: first(d.Quote, `"`), Comment: first(d.Comment, ""), Skip: d.SkipLines, Encoding: d.Encoding,
		Decimal: first(d.Decimal, "."), Thousands: first(d.Thousands, ""),
	}
}

// Columns are columns of the data in the config: names, or indices from 0, which
// are the names in a file without a header.
type Columns []string

func (c *Columns) decodeValue(v any) (want string) {
	const form = `a list of columns, as in ["age", "town"]`
	items, ok := v.([]any)
	if !ok {
		return form
	}
	all := make(Columns, len(items))
	for i, item := range items {
		switch item := item.(type) {
		case string:
			all[i] = item
		case int64:
			all[i] = strconv.FormatInt(item, 10)
		default:
			return form
		}
		if all[i] == "" {
			return form
		}
	}
	*c = all
	return ""
}

// Dates are columns that have dates, and how these are written, for
// [dataset.DateLayout].
type Dates map[string]string

func (d *Dates) decodeValue(v any) (want string) {
	const form = `a table of columns, as in { born = "%Y-%m-%d", sold = "iso" }`
	m, ok := v.(map[string]any)
	if !ok {
		return form
	}
	all := make(Dates, len(m))
	for column, value := range m {
		text, ok := value.(string)
		if !ok || column == "" {
			return form
		}
		if _, err := dataset.DateLayout(text); err != nil {
			return fmt.Sprintf("%s; %v", form, err)
		}
		all[column] = text
	}
	*d = all
	return ""
}

// layouts returns how the dates are written, as package time has it.
func (d Dates) layouts() map[string]string {
	if len(d) == 0 {
		return nil
	}
	all := make(map[string]string, len(d))
	for column, form := range d {
		all[column], _ = dataset.DateLayout(form) // decodeValue has tried it
	}
	return all
}

// isTableFormat reports whether a format has rows and columns.
func isTableFormat(f dataset.Format) bool {
	return slices.Contains([]dataset.Format{dataset.FormatCSV, dataset.FormatJSON, dataset.FormatParquet}, f)
}

// text checks how CSV is written.
func (v *Validator) text(d Data) {
	comma, _ := utf8.DecodeRuneInString(d.Separator)
	valid := utf8.RuneCountInString(d.Separator) == 1 && comma != utf8.RuneError && !unicode.IsDigit(comma) && !slices.Contains([]rune("\r\n.+-\"'"), comma)
	v.Require(valid, "data.separator", fmt.Sprintf("%q cannot separate columns", d.Separator), `want one character, such as "," or ";" or "\t"`)
	v.Require(d.Quote == `"` || d.Quote == "'", "data.quote", fmt.Sprintf("%q cannot enclose fields", d.Quote), `want "\"" or "'"`)
	mark, _ := utf8.DecodeRuneInString(d.Comment)
	v.Require(d.Comment == "" || utf8.RuneCountInString(d.Comment) == 1 && unicode.IsPunct(mark) || d.Comment == "|", "data.comment",
		fmt.Sprintf("%q cannot begin comments", d.Comment), `want one character, such as "#"`)
	v.Require(d.SkipLines >= 0, "data.skip_lines", fmt.Sprintf("want 0 or more, got %d", d.SkipLines), "")
	v.Require(d.Encoding == "" || d.Encoding == table.Latin1, "data.encoding", fmt.Sprintf("there is no encoding %q", d.Encoding), `want "latin1", or "" for UTF-8 and UTF-16`)
	v.Require(d.Decimal == "." || d.Decimal == ",", "data.decimal", fmt.Sprintf("%q cannot be a decimal mark", d.Decimal), `want "." or ","`)
	v.Require(slices.Contains([]string{"", ",", ".", "'", " ", "_"}, d.Thousands) && d.Thousands != d.Decimal, "data.thousands",
		fmt.Sprintf("%q cannot stand between digits", d.Thousands), `want "," or ".", not the one of data.decimal`)
}

// columns checks which columns of a table are used.
func (v *Validator) columns(d Data) {
	v.Require(d.Missing == missingError || d.Missing == missingFill, "data.missing", fmt.Sprintf("there is no rule %q", d.Missing), `want "error" or "fill"`)
	v.Require(len(d.Features) == 0 || len(d.Drop) == 0, "data.drop", "is set together with data.features", "remove one of the two")
	dates := slices.Sorted(maps.Keys(d.Dates))
	for _, c := range d.Categories {
		v.Require(!slices.Contains(dates, c), "data.dates", fmt.Sprintf("has the column %q, as has data.categories", c), "remove it from one of the two")
	}
}

// tableKeys are the keys that have an effect on tables alone, and textKeys those
// that have one on CSV alone.
var (
	tableKeys = []string{"drop", "categories", "dates", "missing"}
	textKeys  = []string{"separator", "header", "quote", "comment", "skip_lines", "decimal", "thousands"}
)

// tableOnly reports keys that have no effect on the format.
func (v *Validator) tableOnly(d Data) {
	report := func(keys []string) {
		for _, key := range keys {
			v.Require(!v.config.IsSet("data."+key), "data."+key, fmt.Sprintf("has no effect on the format %q", d.Format), "remove it")
		}
	}
	if !isTableFormat(d.Format) {
		report(tableKeys)
	}
	if d.Format == dataset.FormatJSON || d.Format == dataset.FormatParquet {
		report(textKeys)
	}
}
