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

// Data says what to train on. A relative path starts at the config's
// folder; one given with --set starts at the working directory.
type Data struct {
	// File with the examples, in the rows of an array for npy, of an .npz as "mnist.npz/x_train"; for images the folder
	// that has a folder of PNG, JPEG, GIF and BMP files for each class; for tables and tfrecord also a pattern such as
	// "train-*", whose files are read as one. A graph that reads its own input has none.
	File string `toml:"file" path:"config"`
	// Format of the file: "csv", "json" (a JSON object a line, or an array of
	// them), "parquet", "tfrecord" (of tf.Example messages), "idx" (as MNIST's), "npy" (of
	// NumPy) or "images". All but parquet, npy and images may be compressed with gzip; csv and
	// json with bzip2 and zstd too, or be the only file of a zip archive.
	Format dataset.Format `toml:"format"`
	// Separator of the columns of CSV; " " is any run of blanks and tabs.
	Separator string `toml:"separator"`
	// Header says that the first row of CSV holds the names of the columns.
	// Without it their names are their numbers, from 0.
	Header bool `toml:"header"`
	// HeaderRows is the number of rows of that header. A column's name then joins the
	// words above each other, as in "sensor.t".
	HeaderRows int `toml:"header_rows"`
	// Quote encloses fields of CSV that have separators in them: "\"" or "'".
	Quote string `toml:"quote"`
	// Comment begins lines of CSV that are skipped, such as "#". Default: none.
	Comment string `toml:"comment"`
	// SkipLines is the number of lines before the table in CSV.
	SkipLines int `toml:"skip_lines"`
	// Encoding of CSV and json: "" is UTF-8, or UTF-16 if the file begins like
	// that; "latin1" is Windows-1252.
	Encoding string `toml:"encoding"`
	// Decimal is the decimal mark of the numbers in CSV: "." or ",".
	Decimal string `toml:"decimal"`
	// Thousands is the mark between groups of three digits in CSV, as in 1,234,567.
	// Default: there is none.
	Thousands string `toml:"thousands"`
	// Label is the column of csv, json or parquet with the class, or for
	// linear and mlp_regressor the number to predict: a name, or an index from 0; negative
	// ones count from the end. Classes are numbers from 0 up, or words: then the
	// column is one of categories. For tfrecord it is the name of a feature,
	// "label" by default.
	Label Column `toml:"label"`
	// Labels is the file with the labels of idx or npy data. Default: the file's name
	// with "labels-idx1" for "images-idx3", y for X, or labels for features or images. For
	// images in one folder it is a table with the name and the label of each.
	Labels string `toml:"labels" path:"config"`
	// Features are the columns that make up an example, in this order. Default:
	// all except the label and those in drop. For tfrecord they are the features
	// of the messages; default: all except the label, ordered by name.
	Features Columns `toml:"features"`
	// Drop lists the columns that are left out.
	Drop Columns `toml:"drop"`
	// Categories lists the columns of words; each word becomes an input of the
	// model: 1 if the field has it, otherwise 0. The words are those of the file;
	// any other word, as in a test file, counts as none of them.
	Categories Columns `toml:"categories"`
	// Texts lists the columns of texts, such as reviews, or of several words, as in "red, blue".
	// Each of the 5,000 words that occur in the most texts becomes an input of the model: 1 if the
	// text has it, otherwise 0. If texts have more than eight words, it is the rarity of the word
	// instead of 1, and the inputs are scaled to a sum of squares of 9 (tf-idf). A word is a run of
	// letters and digits, whatever their case; in Chinese, Japanese and Thai each character is one.
	Texts Columns `toml:"texts"`
	// Dates are the columns with dates, and their format: "iso", "unix" or "unix_ms"
	// (seconds or milliseconds since 1970), "quarter" (2026Q1), "week" (2026-W05), "duration"
	// (hours:minutes:seconds, 1h 30m, PT1H30M), or that of strftime, as in
	// { born = "%d.%m.%Y" }. Names of months (%b, %B) may be English, German, French,
	// Spanish, Italian, Portuguese or Dutch. A date becomes the days since 1970-01-01.
	Dates Dates `toml:"dates"`
	// DateParts are the parts of dates from which a model also learns, as in { sold = ["weekday",
	// "month", "hour"] }; "day", of the month, is possible, too. Each value of a part becomes an
	// input, like a word of a category. Hours are those of UTC if the dates have a time zone.
	DateParts DateParts `toml:"date_parts"`
	// Units are the units of columns of numbers, as in { weight = "kg" } for 12 kg;
	// each number has this unit, or none. Currency signs and % need not be listed. "K/M/B" is for
	// numbers such as 950, 1.2K and 3M, thousands, millions and billions.
	Units Units `toml:"units"`
	// NAValues are the words of a column that mean a missing value, in addition to
	// those that always do (see missing), as in { age = ["unknown", "-"] }.
	NAValues NAValues `toml:"na_values"`
	// Weight is the column, or for tfrecord the feature, with the weight of each
	// example: a number from 0 up, by which its loss is multiplied, in training and
	// evaluation. Only their ratios matter: they are divided by their mean. The
	// column is then not used as a feature. Accuracy, R2 and RMSE ignore weights.
	Weight ColumnName `toml:"weight"`
	// Group is the column of a table that says which rows belong together, as those
	// of one patient do: the split puts all of them into the training part or all
	// into the test part, which then shows how the model performs on other
	// groups. The column is then not used as a feature.
	Group ColumnName `toml:"group"`
	// ClassWeights multiply the loss of training examples by a number for each
	// class, as in { yes = 5, no = 1 }, 1 for a class that is not listed;
	// "balanced" gives all classes the same total weight, however rare they are.
	ClassWeights ClassWeights `toml:"class_weights"`
	// Missing says what happens if an example lacks a value: the field is empty or
	// is NA, NaN, null, None, N/A or "?". "error" refuses it. "fill" uses the mean
	// of the training rows for a number or date, and none of the words for a
	// category; a row without a label is left out.
	Missing string `toml:"missing"`
	// Image is the height, width and channels (1: grey, 3: colours) to which
	// images are resized, as in [32, 32, 3].
	Image []int `toml:"image"`
	// Scale divides all features that are numbers, unless normalize is set.
	Scale float64 `toml:"scale"`
	// Normalize each number by the statistics of the training part: "standard"
	// for mean 0 and deviation 1, "minmax" for 0 to 1, "" for neither. A model
	// family does that in its graph, so that the trained model takes raw rows.
	Normalize dataset.Normalize `toml:"normalize"`
	// KeepStatistics lets a job resume with data whose statistics (means,
	// deviations) differ: it continues with those in its checkpoint. It also lets a
	// job resume whose test part has other rows, even some that have trained.
	// Without it both are errors.
	KeepStatistics bool `toml:"keep_statistics"`
	// Shuffle the rows before the split and in each epoch. Without it the last
	// rows are the test part.
	Shuffle bool `toml:"shuffle"`
	// ShuffleBuffer is the number of tfrecord examples that are in memory, and
	// mixed, at a time; 0 holds all.
	ShuffleBuffer int `toml:"shuffle_buffer"`
	// MemoryMB limits the examples held in memory, in MiB. Images beyond it are
	// read again when they are used; for other data, exceeding it is an error. So is
	// exceeding a quarter of the memory of the machine, or of the control group,
	// with a table or tfrecord examples that are all in memory.
	MemoryMB int64 `toml:"memory_mb"`
	// Seed of the shuffle. The same seed gives the same split and batches.
	Seed uint64 `toml:"seed"`
	// TestFile holds the test part, in the format of file. Without it a part of
	// the rows is kept for testing.
	TestFile string `toml:"test_file" path:"config"`
	// TestLabels is for test_file what labels is for file.
	TestLabels string `toml:"test_labels" path:"config"`
	// TestFraction of the rows is kept for testing.
	TestFraction float64 `toml:"test_fraction"`
	// TestRows is the number of rows kept for testing, instead of a fraction.
	TestRows int `toml:"test_rows"`
	// BatchSize is the number of rows of a step.
	BatchSize int `toml:"batch_size"`
}

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
		Dialect: d.dialect(), Drop: d.Drop, Categories: d.Categories, Texts: d.Texts, Dates: d.Dates.layouts(), DateParts: d.DateParts, Units: d.Units, NAValues: d.NAValues, Missing: d.Missing == missingFill,
		Weight: string(d.Weight), Group: string(d.Group), ClassWeights: d.ClassWeights.Each, Balance: d.ClassWeights.Balanced,
		LabelFile: d.Labels, Image: d.Image,
		Numbers: m.IsRegression(), IDs: m.Family == "embedding_bag", Classes: m.Classes,
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
		Quote: first(d.Quote, `"`), Comment: first(d.Comment, ""), Skip: d.SkipLines, HeaderRows: d.HeaderRows, Encoding: d.Encoding,
		Decimal: first(d.Decimal, "."), Thousands: first(d.Thousands, ""),
	}
}

// Columns are columns of the data in the config: names, or indices from 0, which
// serve as names in a file without a header.
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

// Dates are columns with dates, and their formats, for [dataset.DateLayout].
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
	v.Require(d.HeaderRows == 0 || d.Header && d.HeaderRows > 0 && d.HeaderRows <= maxHeaderRows, "data.header_rows",
		fmt.Sprintf("want 1 to %d, and data.header = true, got %d", maxHeaderRows, d.HeaderRows), "correct it, or remove it")
	v.Require(d.Encoding == "" || d.Encoding == table.Latin1, "data.encoding", fmt.Sprintf("there is no encoding %q", d.Encoding), `want "latin1", or "" for UTF-8 and UTF-16`)
	v.Require(d.Decimal == "." || d.Decimal == ",", "data.decimal", fmt.Sprintf("%q cannot be a decimal mark", d.Decimal), `want "." or ","`)
	v.Require(slices.Contains([]string{"", ",", ".", "'", "\u2019", " ", "\u00a0", "\u202f", "_"}, d.Thousands) && d.Thousands != d.Decimal, "data.thousands",
		fmt.Sprintf("%q cannot separate digits", d.Thousands), `want "," or ".", not the one of data.decimal`)
}

// columns checks which columns of a table are used.
func (v *Validator) columns(d Data) {
	v.Require(d.Missing == missingError || d.Missing == missingFill, "data.missing", fmt.Sprintf("there is no rule %q", d.Missing), `want "error" or "fill"`)
	v.Require(len(d.Features) == 0 || len(d.Drop) == 0, "data.drop", "is set together with data.features", "remove one of the two")
	v.Require(d.Group == "" || d.TestFile == "", "data.group", "has no effect with data.test_file", "remove one of the two")
	v.Require(len(d.NAValues) == 0 || d.Missing == missingFill, "data.na_values", `has no effect with data.missing = "error"`, `set data.missing = "fill", or remove it`)
	dates := slices.Sorted(maps.Keys(d.Dates))
	for _, c := range slices.Sorted(maps.Keys(d.DateParts)) {
		v.Require(d.Dates[c] != "", "data.date_parts", fmt.Sprintf("has the column %q, which is not in data.dates", c), "add it there, with the format of its dates")
		v.Require(d.Dates[c] != dataset.Duration, "data.date_parts", fmt.Sprintf("has the column %q, which holds lengths of time", c), "remove it")
	}
	for _, c := range d.Categories {
		v.Require(!slices.Contains(dates, c), "data.dates", fmt.Sprintf("has the column %q, as has data.categories", c), "remove it from one of the two")
	}
	v.texts(d)
}

// texts checks which columns hold texts.
func (v *Validator) texts(d Data) {
	for _, c := range d.Texts {
		v.Require(!slices.Contains(d.Categories, c), "data.texts", fmt.Sprintf("has the column %q, as has data.categories", c), "remove it from one of the two")
		v.Require(d.Dates[c] == "", "data.texts", fmt.Sprintf("has the column %q, as has data.dates", c), "remove it from one of the two")
	}
	v.Require(len(d.Texts) == 0 || v.config.Model.Family != "embedding_bag", "data.texts", "has no effect on the family embedding_bag, which takes ids", "choose another family, or remove it")
}

// maxHeaderRows bounds data.header_rows.
const maxHeaderRows = 8

// tableKeys are the keys that have an effect on tables alone, and textKeys those
// that have one on CSV alone.
var (
	tableKeys = []string{"drop", "categories", "texts", "dates", "date_parts", "units", "na_values", "group", "missing"}
	textKeys  = []string{"separator", "header", "header_rows", "quote", "comment", "skip_lines", "decimal", "thousands"}
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
	v.Require(d.Weight == "" || d.Format == dataset.FormatTFRecord || isTableFormat(d.Format), "data.weight",
		fmt.Sprintf("has no effect on the format %q", d.Format), "remove it; data.class_weights has one")
	numbers := v.config.Model.IsRegression()
	v.Require(!numbers || d.ClassWeights.isZero(), "data.class_weights", "has no effect on a label that is a number", "remove it; data.weight is the column with the weights")
	if d.Format == dataset.FormatJSON || d.Format == dataset.FormatParquet {
		report(textKeys)
	}
}
