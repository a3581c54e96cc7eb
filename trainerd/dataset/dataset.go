package dataset

import (
	"io"
	"os"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Normalize says how features are scaled by the statistics of the training rows.
type Normalize string

const (
	// NormalizeNone leaves the features as they are.
	NormalizeNone Normalize = ""
	// NormalizeStandard subtracts each column's mean and divides by its
	// standard deviation. A constant column becomes 0.
	NormalizeStandard Normalize = "standard"
	// NormalizeMinMax maps each column's smallest value to 0 and its greatest
	// to 1. A constant column becomes 0; a test row may lie outside.
	NormalizeMinMax Normalize = "minmax"
)

// Column names one column: by Name when that is set (the file must then have a
// header), else by Index, where 0 is the first and -1 the last.
type Column struct {
	Name  string
	Index int
}

// Options says how to read and divide the data. The zero value reads a file
// without a header, takes the first column as label, keeps the features as
// they are and the rows in the file's order, and trains on all of them, one by
// one.
type Options struct {
	// Comma divides the columns; 0 means ','.
	Comma rune
	// Header says that the first row holds column names.
	Header bool
	// Label is the column with the class.
	Label Column
	// Classes is the number of classes; 0 means one more than the greatest label.
	Classes int
	// Scale divides every feature; 0 means 1. With Normalize it has no effect.
	Scale float64
	// Normalize scales each column by its statistics over the training rows.
	Normalize Normalize
	// Shuffle mixes the rows, by Seed, before the split and again in every epoch.
	// Without it the last rows of the file are the test part.
	Shuffle bool
	Seed    uint64
	// TestRows is how many rows to keep for testing. When it is 0, TestFraction
	// (at least 0, less than 1) of the rows, rounded to the nearest, are kept.
	TestRows     int
	TestFraction float64
	// BatchSize is the number of rows of a batch; 0 means 1.
	BatchSize int
}

// Dataset is tabular data in memory: rows of float32 features with an int64
// label each, in a training and a test part.
//
// Batch uses buffers of the Dataset, so a Dataset is for one goroutine at a time.
type Dataset struct {
	// Columns holds the names of the features, nil when the file has no header.
	Columns []string
	// Features is the number of features of a row.
	Features int
	// Classes is the number of classes; labels lie in [0, Classes).
	Classes int
	// TrainRows and TestRows are the sizes of the two parts.
	TrainRows, TestRows int

	opts  Options
	train part
	test  part

	// The batch that was made last, and the order of the epoch that it came from.
	batchX, batchY ckptfmt.Tensor
	order          []uint32
	epoch          uint64
	ordered        bool
}

// part is a run of rows as tensors hold them: little-endian, one behind the other.
type part struct {
	x []byte // float32, Features a row
	y []byte // int64, one a row
}

// Load reads the file name. What is wrong with the contents is an [*Errors].
func Load(name string, o Options) (*Dataset, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &Error{File: name, Reason: "cannot be opened", Err: unwrapPath(err), Hint: "check data.file; a relative path starts at the config's folder"}
	}
	defer f.Close()
	return Read(f, name, o)
}

// Read is [Load] from r; name is what errors call it.
func Read(r io.Reader, name string, o Options) (*Dataset, error) {
	t, err := readTable(r, name, o)
	if err != nil {
		return nil, err
	}
	if o.Scale == 0 {
		o.Scale = 1
	}
	o.BatchSize = max(o.BatchSize, 1)
	return newDataset(t, o)
}

// newDataset splits and scales the rows of t.
func newDataset(t *table, o Options) (*Dataset, error) {
	rows := len(t.labels)
	tests, err := testRows(t.name, rows, o)
	if err != nil {
		return nil, err
	}
	order := make([]uint32, rows)
	arrange(order, o.Shuffle, o.Seed, splitEpoch)
	trainOrder, testOrder := order[:rows-tests], order[rows-tests:]
	if err := scale(t, trainOrder, o); err != nil {
		return nil, err
	}
	d := &Dataset{
		Columns: t.columns(), Features: t.width, Classes: t.classes,
		TrainRows: len(trainOrder), TestRows: len(testOrder),
		opts: o, train: t.take(trainOrder), test: t.take(testOrder),
		order: order[:len(trainOrder)],
	}
	n := int64(o.BatchSize)
	d.batchX = ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{n, int64(t.width)}}
	d.batchY = ckptfmt.Tensor{DType: tfpb.DataType_DT_INT64, Shape: []int64{n}}
	return d, nil
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
// [BatchSize, Features] of DT_FLOAT and labels [BatchSize] of DT_INT64. It
// depends on nothing but the data, the options and the step; the package's
// documentation says how. The tensors are overwritten by the next call.
func (d *Dataset) Batch(step int64) (x, y *ckptfmt.Tensor) {
	wide := 4 * d.Features
	d.batchX.Data = d.batchX.Data[:0]
	d.batchY.Data = d.batchY.Data[:0]
	n := uint64(d.TrainRows)
	position := uint64(step) * uint64(d.opts.BatchSize)
	for range d.opts.BatchSize {
		d.enter(position / n)
		row := int(d.order[position%n])
		d.batchX.Data = append(d.batchX.Data, d.train.x[row*wide:(row+1)*wide]...)
		d.batchY.Data = append(d.batchY.Data, d.train.y[row*8:(row+1)*8]...)
		position++
	}
	return &d.batchX, &d.batchY
}

// enter makes d.order the order of an epoch.
func (d *Dataset) enter(epoch uint64) {
	if d.ordered && (d.epoch == epoch || !d.opts.Shuffle) {
		return
	}
	arrange(d.order, d.opts.Shuffle, d.opts.Seed, epoch)
	d.epoch, d.ordered = epoch, true
}

// Test returns up to limit test rows from row start on, as Batch returns
// training rows; the first dimension is the number of rows. The tensors share
// the Dataset's memory and must not be changed.
func (d *Dataset) Test(start, limit int) (x, y *ckptfmt.Tensor) {
	start = min(max(start, 0), d.TestRows)
	end := start + min(max(limit, 0), d.TestRows-start)
	wide := 4 * d.Features
	n := int64(end - start)
	x = &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{n, int64(d.Features)}, Data: d.test.x[start*wide : end*wide]}
	y = &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT64, Shape: []int64{n}, Data: d.test.y[start*8 : end*8]}
	return x, y
}
