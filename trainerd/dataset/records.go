package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/glob"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfexample"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// defaultLabel is the feature of tf.Example messages with the label.
const defaultLabel = "label"

// maxRecord bounds the size of a record, which is held in memory as a whole, then
// again as a message and as an example.
const maxRecord = 64 << 20

// recordReader reads the examples of TFRecord files, one after the other.
type recordReader struct {
	opts     Options
	files    []string
	features []string // in order; found in the first record unless given
	width    int      // of an example; 0 before the first one, unless given
	// labelOptional lets examples lack a label.
	labelOptional bool

	at      int // file that is open
	file    *os.File
	records *tfrecord.Reader
	record  int     // number of the record read last, in its file
	weight  float32 // of the example that was parsed last
}

// openRecords reads the files of a pattern: once, to check and count the
// examples, and into memory unless they are to be streamed.
func openRecords(ctx context.Context, name string, o Options) (*source, error) {
	files, err := matching(name)
	if err != nil {
		return nil, err
	}
	r := &recordReader{opts: o, files: files, features: o.Features}
	if o.IDs {
		r.width = o.Width
	}
	l := &recordLoad{reader: r, errs: &Errors{File: name}, widest: r.width, memory: o.memoryLimit()}
	defer r.close()
	if err := l.readAll(ctx); err != nil {
		return nil, err
	}
	return l.source(name)
}

// matching returns the files of a pattern, or the one of that name.
func matching(name string) ([]string, error) {
	if _, err := os.Stat(name); err == nil || !strings.ContainsAny(name, "*?[") {
		return []string{name}, nil
	}
	files, err := filepath.Glob(patternIn(name))
	if err != nil || len(files) == 0 {
		return nil, &Error{File: name, Reason: "no file matches the pattern", Err: err, Hint: "check the name; in a config a relative path starts at its folder"}
	}
	return files, nil
}

// patternIn takes the folder of a pattern as it is written, if there is one.
func patternIn(name string) string {
	dir, base := filepath.Split(name)
	if _, err := os.Stat(filepath.Clean(dir)); err != nil {
		return name
	}
	return glob.Escape(dir) + base
}

func (r *recordReader) close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// open begins file i.
func (r *recordReader) open(i int) error {
	r.close()
	f, err := os.Open(r.files[i])
	if err != nil {
		return openError(r.files[i], err)
	}
	r.file, r.at, r.record = f, i, 0
	var magic [2]byte
	n, _ := f.ReadAt(magic[:], 0)
	compression := tfrecord.Uncompressed
	if n == 2 && bytes.Equal(magic[:], []byte{0x1f, 0x8b}) {
		compression = tfrecord.GZIP
	}
	if r.records, err = tfrecord.NewCompressedReader(f, compression); err != nil {
		return r.readError(err)
	}
	r.records.MaxSize = maxRecord
	return nil
}

// next returns the next record of the open file, io.EOF at its end.
func (r *recordReader) next() ([]byte, error) {
	data, err := r.records.Next()
	if err == io.EOF {
		return nil, io.EOF
	}
	r.record++
	if err != nil {
		return nil, r.readError(err)
	}
	return data, nil
}

func (r *recordReader) readError(err error) *Error {
	e := &Error{File: r.files[r.at], Record: r.record, Reason: "cannot be read", Err: unwrapPath(err), Hint: "the file is damaged, or not a TFRecord file; get it again"}
	var corrupt *tfrecord.CorruptError
	if errors.As(err, &corrupt) {
		e.Err = fmt.Errorf("offset %d: %s: %w", corrupt.Offset, corrupt.Part, corrupt.Err)
	}
	if errors.Is(err, tfrecord.ErrTooLarge) {
		e.Hint = "the file is damaged; if it is not, divide the example into smaller ones"
	}
	return e
}

func (r *recordReader) fault(feature, hint, format string, args ...any) *Error {
	return &Error{File: r.files[r.at], Record: r.record, Name: feature, Reason: fmt.Sprintf(format, args...), Hint: hint}
}

// notExample is the fault of a record that is something else.
func (r *recordReader) notExample(err error) *Error {
	e := r.fault("", "TFRecord files that trainerd trains with hold tf.Example messages", "is not a tf.Example")
	if e.Err = err; errors.Is(err, tfexample.ErrSequenceExample) {
		e.Reason, e.Err = "is a tf.SequenceExample", nil
		e.Hint += "; store each moment of the sequence as one, or numbers that say something of all of it"
	}
	return e
}

// parse appends the features of a record, and returns its label.
func (r *recordReader) parse(x []float32, data []byte) ([]float32, int64, error) {
	example, err := tfexample.Unmarshal(data)
	if err != nil {
		return x, 0, r.notExample(err)
	}
	features := example.GetFeatures().GetFeature()
	label := r.opts.Label.Name
	if label == "" {
		label = defaultLabel
	}
	if r.features == nil {
		for name := range features {
			if name != label && name != r.opts.Weight {
				r.features = append(r.features, name)
			}
		}
		slices.Sort(r.features)
	}
	start := len(x)
	for _, name := range r.features {
		f := features[name]
		if f == nil {
			return x, 0, r.fault(name, "set data.features to those that all examples have", "is missing; the example has %s", namesOf(features))
		}
		var e *Error
		if x, e = r.appendFeature(x, name, f); e != nil {
			return x, 0, e
		}
	}
	if x, err = r.fit(x, start); err != nil {
		return x, 0, err
	}
	l, e := r.label(label, features)
	if e == nil {
		e = r.parseWeight(features)
	}
	if e != nil {
		return x, 0, e
	}
	return x, l, nil
}

// parseWeight takes the weight of an example, if it is to have one.
func (r *recordReader) parseWeight(features map[string]*tfpb.Feature) *Error {
	name := r.opts.Weight
	if name == "" {
		return nil
	}
	f := features[name]
	if f == nil {
		return r.fault(name, "set data.weight to the feature with the weights", "is missing; the example has %s", namesOf(features))
	}
	ints, floats := f.GetInt64List().GetValue(), f.GetFloatList().GetValue()
	switch {
	case len(ints)+len(floats) != 1:
		return r.fault(name, "a weight is one number", "has %d integers and %d floats", len(ints), len(floats))
	case len(ints) == 1:
		r.weight = float32(ints[0])
	default:
		r.weight = floats[0]
	}
	if reason := checkWeight(r.weight); reason != "" {
		return r.fault(name, "correct it, or remove the example", "%s", reason)
	}
	return nil
}

func namesOf(features map[string]*tfpb.Feature) string {
	names := make([]string, 0, len(features))
	for name := range features {
		names = append(names, name)
	}
	slices.Sort(names)
	return quoteNames(names)
}

// fit checks the number of features, and fills up a bag of ids.
func (r *recordReader) fit(x []float32, start int) ([]float32, error) {
	n := len(x) - start
	switch {
	case r.opts.IDs && (r.width == 0 || n <= r.width):
		for range r.width - n {
			x = append(x, -1)
		}
	case r.opts.IDs:
		return x, r.fault("", "raise model.inputs", "has %d ids, but model.inputs = %d", n, r.width)
	case n == 0:
		return x, r.fault("", "check data.features", "has no features")
	case r.width == 0:
		r.width = n
	case n != r.width:
		return x, r.fault("", "all examples need the same features", "has %d features, but the first one %d", n, r.width)
	}
	return x, nil
}

func (r *recordReader) appendFeature(x []float32, name string, f *tfpb.Feature) ([]float32, *Error) {
	switch list := f.GetKind().(type) {
	case *tfpb.Feature_FloatList:
		if r.opts.IDs {
			return x, r.fault(name, "ids are an int64_list", "is a list of floats")
		}
		for i, v := range list.FloatList.GetValue() {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return x, r.fault(name, "remove the example", "value %d is %v, not a finite number", i, v)
			}
			x = append(x, v)
		}
	case *tfpb.Feature_Int64List:
		for i, v := range list.Int64List.GetValue() {
			if r.opts.IDs && (v < -maxID || v >= maxID) {
				return x, r.fault(name, fmt.Sprintf("ids are integers from 0 to %d", maxID-1), "value %d is %d, which is not an id", i, v)
			}
			x = append(x, float32(v))
		}
	case *tfpb.Feature_BytesList:
		for _, v := range list.BytesList.GetValue() {
			var e *Error
			if x, e = r.appendBytes(x, name, v); e != nil {
				return x, e
			}
		}
	}
	return x, nil
}

// appendBytes takes bytes as an image, if they are one, else as numbers from 0
// to 255.
func (r *recordReader) appendBytes(x []float32, name string, data []byte) ([]float32, *Error) {
	if r.opts.IDs {
		return x, r.fault(name, "ids are an int64_list", "is a list of bytes")
	}
	if bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")) || bytes.HasPrefix(data, []byte{0xff, 0xd8, 0xff}) {
		size := r.opts.Image
		if len(size) != 3 || size[2] != 1 && size[2] != 3 {
			return x, r.fault(name, "set data.image to height, width and channels (1 or 3), as in [32, 32, 3]", "is an image, but the size of images is %v", size)
		}
		pixels, err := decodeImage(nil, r.files[r.at], data, [3]int(size))
		if e := new(Error); errors.As(err, &e) {
			e.Record, e.Name = r.record, name
			return x, e
		}
		data = pixels
	}
	for _, v := range data {
		x = append(x, float32(v))
	}
	return x, nil
}

// label returns the label of an example: its class, or the bits of a number.
func (r *recordReader) label(name string, features map[string]*tfpb.Feature) (int64, *Error) {
	f := features[name]
	if f == nil && r.labelOptional {
		return noLabel, nil
	}
	if f == nil {
		return 0, r.fault(name, "set data.label to the name of the feature with the label", "is missing; the example has %s", namesOf(features))
	}
	ints, floats := f.GetInt64List().GetValue(), f.GetFloatList().GetValue()
	switch {
	case len(ints)+len(floats) != 1:
		return 0, r.fault(name, "a label is one number", "has %d integers and %d floats", len(ints), len(floats))
	case r.opts.Numbers && len(ints) == 1:
		return int64(math.Float32bits(float32(ints[0]))), nil
	case r.opts.Numbers:
		if v := float64(floats[0]); math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, r.fault(name, "remove the example", "the label is %v, not a finite number", v)
		}
		return int64(math.Float32bits(floats[0])), nil
	case len(floats) == 1:
		return 0, r.fault(name, "labels are the classes' numbers, an int64_list", "the label %v is a float", floats[0])
	}
	if reason, hint := r.opts.checkClass(ints[0]); reason != "" {
		return 0, r.fault(name, hint, "%s", reason)
	}
	return ints[0], nil
}
