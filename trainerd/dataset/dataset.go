package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/fileerr"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// Format is how the examples are stored.
type Format string

const (
	// FormatCSV is a table of text, plain or compressed with gzip.
	FormatCSV Format = "csv"
	// FormatJSON is JSON lines, or an array of objects; the keys are the columns.
	FormatJSON Format = "json"
	// FormatParquet is a file of Apache Parquet.
	FormatParquet Format = "parquet"
	// FormatTFRecord is one or more TFRecord files of tf.Example messages, plain
	// or compressed with gzip. The name may be a pattern, as in "train-*".
	FormatTFRecord Format = "tfrecord"
	// FormatIDX is a file of arrays and one of labels, as for MNIST, plain or
	// compressed with gzip.
	FormatIDX Format = "idx"
	// FormatNumPy is a file of an array of NumPy, with an example in each row, and one of
	// labels. Arrays of an .npz are named as if it were their folder, mnist.npz/x_train; its
	// own name means the array with the examples.
	FormatNumPy Format = "npy"
	// FormatImages is a folder with a folder of images for each class, or of images whose
	// labels a table has. The classes are numbered in the order of their names.
	FormatImages Format = "images"
)

// Normalize says how features are scaled by the statistics of the training rows.
type Normalize string

const (
	// NormalizeNone leaves the features unchanged.
	NormalizeNone Normalize = ""
	// NormalizeStandard subtracts each column's mean and divides by its
	// standard deviation. A constant column becomes 0.
	NormalizeStandard Normalize = "standard"
	// NormalizeMinMax maps each column's smallest value to 0 and its greatest
	// to 1. A constant column becomes 0; a test row may be outside that range.
	NormalizeMinMax Normalize = "minmax"
)

// Column names one column: by Name if that is set (the file must then have a
// header), otherwise by Index, where 0 is the first and -1 the last.
type Column struct {
	Name  string
	Index int
}

// Options says how to read and split the data. The zero value reads CSV
// without a header, takes the first column as label, keeps the features
// unchanged and the rows in the file's order, and trains on all of them, one
// by one.
type Options struct {
	// Format of the data; "" means FormatCSV.
	Format Format
	// Comma divides the columns of CSV; 0 means ','.
	Comma rune
	// Header says that the first row of CSV holds column names. Without it their
	// names are their numbers, from 0.
	Header bool
	// Dialect has the other properties of CSV. Its Separator and Header have
	// no effect.
	Dialect table.Dialect
	// Label is the column of a table with the label; for tf.Example messages
	// the feature of that name, by default "label".
	Label Column
	// Features names the columns of a table that make up an example, in this
	// order; none means all except the label and those in Drop. For tf.Example
	// messages it names the features; none means all except the label, ordered
	// by name.
	Features []string
	// Drop names the columns of a table that are not used.
	Drop []string
	// Categories names the columns of a table that hold words from a small
	// set. The label is one if the classes have names.
	Categories []string
	// Texts names the columns of a table that hold texts, see [KindText].
	Texts []string
	// Dates has the layouts, as in package time, of the columns of a table that
	// hold dates; "" is RFC 3339, or its date alone.
	Dates map[string]string
	// DateParts has the parts of the dates of columns that are learnt from next to their days.
	DateParts map[string][]DatePart
	// Units has the units of columns of numbers, see [Feature]; NAValues has the
	// words of columns that stand for a missing value.
	Units    map[string]string
	NAValues map[string][]string
	// Weight names the column of a table, or the feature of tf.Example messages,
	// with the weight of each example: a number that is not negative. It is then
	// not used as a feature, unless Features has it. "" gives all the same
	// weight.
	Weight string
	// Group names the column of a table that says which rows belong together, as
	// those of one patient: all of them go into the training part or into the
	// test part. It is then not used as a feature, unless Features has it. ""
	// splits row by row.
	Group string
	// ClassWeights multiplies the weights of the training examples by a number for
	// each class, by its name, or by 1 for missing classes; nil for none.
	ClassWeights map[string]float64
	// Balance gives each class the same total weight in the training.
	Balance bool
	// Missing says that fields of a table may be missing: a number or date is
	// then NaN, a word -1, and a row without a label is left out. Without it a
	// missing field is an error.
	Missing bool
	// LabelFile holds the labels of IDX and NumPy data. "" means the name of the data with
	// "labels-idx1" for "images-idx3", y for X, or labels for features or images. For images it
	// is a table of the images in the folder, with the name and the label of each; "" means that
	// the folders in it are the classes.
	LabelFile string
	// Image is the height, width and channels (1: grey, 3: colours) to which
	// images are resized. IDX data have their own size.
	Image []int
	// Numbers says that labels are numbers to predict, not classes.
	Numbers bool
	// IDs says that features are ids, integers below 2^24. Negative means no id;
	// so does an empty field of CSV, and padding of lists in tf.Example messages.
	IDs bool
	// Width is the number of ids of an example, to which lists are padded; 0
	// means that of the longest list. Other features all have the same number.
	Width int
	// Classes is the number of classes; 0 means one more than the largest label.
	Classes int
	// Scale divides every feature; 0 means 1. With Normalize it has no effect.
	Scale float64
	// Normalize scales each column by its statistics over the training rows.
	Normalize Normalize
	// Shuffle mixes the rows, by Seed, before the split and again in every epoch.
	// Without it the last rows of the file are the test part.
	Shuffle bool
	Seed    uint64
	// ShuffleBuffer, if not 0, reads TFRecord files as a stream, with that many
	// examples in memory at a time; Shuffle then mixes only those. See the
	// package documentation.
	ShuffleBuffer int
	// MemoryLimit limits the bytes of examples held in memory; 0 means
	// DefaultMemoryLimit. Image files beyond it are read again for each batch;
	// for other data, exceeding it is an error.
	MemoryLimit int64
	// TestFile holds the test part, in the same format. "" means that a part of
	// the rows is kept for testing.
	TestFile string
	// TestLabelFile is the LabelFile of TestFile.
	TestLabelFile string
	// TestRows is how many rows to keep for testing. If it is 0, TestFraction
	// (at least 0, less than 1) of the rows, rounded to the nearest, are kept.
	TestRows     int
	TestFraction float64
	// BatchSize is the number of rows of a batch; 0 means 1.
	BatchSize int

	// Fit is the Schema of other examples, whose words are used to read a
	// table; nil for those of the table itself.
	Fit *Schema
}

// DefaultMemoryLimit is 2 GiB.
const DefaultMemoryLimit = 2 << 30

// Dataset is training data, in a training and a test part: examples of float32
// features, or int64 ids, each with a label, an int64 class or a float32
// number.
//
// Batch and Test use buffers of the Dataset, so a Dataset is for one goroutine
// at a time.
type Dataset struct {
	// Columns holds the names of the features of CSV, nil without a header; the
	// names of the classes' folders are in ClassNames.
	Columns    []string
	ClassNames []string
	// Schema says what the columns hold.
	Schema Schema
	// Features is the number of features of an example.
	Features int
	// Image is the height, width and channels of images, nil for other data.
	Image []int
	// Classes is the number of classes; labels lie in [0, Classes). It is 0 for
	// numbers.
	Classes int
	// TrainRows and TestRows are the sizes of the two parts.
	TrainRows, TestRows int
	// Unlabelled is the number of rows of a table that were left out for lack
	// of a label.
	Unlabelled int

	opts  Options
	train ordered
	test  store
	// trainGroups has the group of each training row; nil for none.
	trainGroups []uint32
	// eachTrain calls f with the features and the label of each training example.
	eachTrain  func(f func(x []float32, label int64)) error
	statistics *Statistics // nil before they are asked for

	batch, tests tensors         // those that were asked for last
	weights      *ckptfmt.Tensor // of the newer of the two
	close        []func() error
}

// Load reads the data called name, until ctx is done. If the contents are invalid,
// the error is an [*Errors]. The caller must close the Dataset.
func Load(ctx context.Context, name string, o Options) (*Dataset, error) {
	o = o.withDefaults()
	train, err := open(ctx, name, o.LabelFile, o)
	if err != nil {
		return nil, err
	}
	if o.TestFile == "" {
		return newDataset(train, nil, o)
	}
	fit := o
	fit.Classes, fit.Width, fit.Image, fit.Fit = train.classes, train.width, train.image, train.schema
	if o.Format == FormatImages {
		schema := train.schemaOrNumbers(o)
		fit.Fit = &schema
	}
	test, err := open(ctx, o.TestFile, o.TestLabelFile, fit)
	if err != nil {
		return nil, err
	}
	if test.width != train.width {
		return nil, &Error{File: o.TestFile, Reason: fmt.Sprintf("its examples have %d features, those of %s %d", test.width, name, train.width),
			Hint: "data.test_file needs examples of the same kind as data.file"}
	}
	return newDataset(train, test, o)
}

// Read is [Load] of CSV or JSON from r; name is used in errors.
func Read(ctx context.Context, r io.Reader, name string, o Options) (*Dataset, error) {
	o = o.withDefaults()
	s, err := readCSV(ctx, r, name, o)
	if err != nil {
		return nil, err
	}
	return newDataset(s, nil, o)
}

func (o Options) withDefaults() Options {
	if o.Format == "" {
		o.Format = FormatCSV
	}
	if o.Scale == 0 {
		o.Scale = 1
	}
	if o.MemoryLimit == 0 {
		o.MemoryLimit = DefaultMemoryLimit
	}
	o.BatchSize = max(o.BatchSize, 1)
	return o
}

// open reads the examples of a file or folder.
func open(ctx context.Context, name, labels string, o Options) (*source, error) {
	switch o.Format {
	case FormatCSV, FormatJSON, FormatParquet:
		if err := statTable(name); err != nil {
			return nil, err
		}
		return openTable(ctx, name, o)
	case FormatTFRecord:
		return openRecords(ctx, name, o)
	case FormatIDX, FormatNumPy:
		return openArrays(ctx, name, labels, o)
	case FormatImages:
		return openImages(ctx, name, labels, o)
	}
	return nil, &Error{File: name, Reason: fmt.Sprintf("there is no format %q", o.Format), Hint: "use csv, json, parquet, tfrecord, idx, npy or images"}
}

func openError(name string, err error) *Error {
	return &Error{File: name, Reason: "cannot be opened", Err: unwrapPath(err), Hint: fileerr.Hint(name, err, "check the name; in a config a relative path starts at its folder")}
}

// newDataset splits and scales the examples of train, unless test has the test
// part.
func newDataset(train, test *source, o Options) (*Dataset, error) {
	d := &Dataset{
		Columns: train.columns, ClassNames: train.classNames, Schema: train.schemaOrNumbers(o), Unlabelled: train.unlabelled,
		Features: train.width, Image: train.image, Classes: train.classes, opts: o,
	}
	d.close = append(d.close, train.close)
	if err := d.divide(train, test); err != nil {
		d.Close()
		return nil, err
	}
	tests := d.TestRows
	if test != nil {
		tests = 0
	}
	d.Schema.Split = splitOf(train.rows.count(), tests, o)
	d.batch, d.tests = newTensors(d.Features, o), newTensors(d.Features, o)
	return d, nil
}

func (o Options) featureType() tfpb.DataType {
	if o.IDs {
		return tfpb.DataType_DT_INT64
	}
	return tfpb.DataType_DT_FLOAT
}

func (o Options) labelType() tfpb.DataType {
	if o.Numbers {
		return tfpb.DataType_DT_FLOAT
	}
	return tfpb.DataType_DT_INT64
}

// Close closes the files that a Dataset reads from.
func (d *Dataset) Close() error {
	var errs []error
	for _, f := range d.close {
		errs = append(errs, f())
	}
	d.close = nil
	return errors.Join(errs...)
}

// BatchSize returns the number of rows of every batch.
func (d *Dataset) BatchSize() int { return d.opts.BatchSize }

// StepsPerEpoch returns the number of steps after which every training row has
// been used at least once: the rows divided by the batch size, rounded up.
func (d *Dataset) StepsPerEpoch() int64 {
	b := int64(d.opts.BatchSize)
	return (int64(d.TrainRows) + b - 1) / b
}

// Batch returns the training batch of a step, counted from 0: features
// [BatchSize, Features] and labels [BatchSize]. It depends only on the data,
// the options and the step, as described in the package documentation. The
// tensors are overwritten by the next call. It fails if a file has changed, or
// was not held in memory and is damaged.
func (d *Dataset) Batch(step int64) (x, y *ckptfmt.Tensor, err error) {
	t := &d.batch
	t.begin(d.opts.BatchSize)
	n := uint64(d.TrainRows)
	position := uint64(step) * uint64(d.opts.BatchSize)
	for range d.opts.BatchSize {
		if err := d.train.example(&t.rows, position/n, int(position%n)); err != nil {
			return nil, nil, err
		}
		position++
	}
	return d.give(t)
}

// Test returns up to limit test rows starting with row start, as Batch returns
// training rows; the first dimension is the number of rows. The tensors are
// overwritten by the next call.
func (d *Dataset) Test(start, limit int) (x, y *ckptfmt.Tensor, err error) {
	start = min(max(start, 0), d.TestRows)
	end := start + min(max(limit, 0), d.TestRows-start)
	t := &d.tests
	t.begin(end - start)
	for i := start; i < end; i++ {
		if err := d.test.append(&t.rows, i); err != nil {
			return nil, nil, err
		}
	}
	return d.give(t)
}
