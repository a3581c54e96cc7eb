package dataset

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
)

// recordLoad is the first skip TFRecord files.
type recordLoad struct {
	reader  *recordReader
	errs    *Errors
	memory  memoryLimit
	values  []float32 // unless they are streamed
	ends    []int     // of the examples in values
	labels  labels    // unless they are streamed
	weights []float32 // none unless a feature has them
	counts  []int     // examples of each file
	rows    int
	top     int64
	widest  int
}

// readAll reads all files. It continues after a faulty example, so that one run
// shows more than one fault, and with the next file after a damaged one.
func (l *recordLoad) readAll(ctx context.Context) error {
	for i := range l.reader.files {
		if err := l.readFile(ctx, i); err != nil {
			l.errs.add(err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if l.rows == 0 && len(l.errs.Problems) == 0 {
		l.errs.add(&Error{Reason: "holds no records", Hint: "training needs at least two"})
	}
	return l.errs.err()
}

func (l *recordLoad) readFile(ctx context.Context, i int) *Error {
	r, before := l.reader, l.rows
	if err := r.open(i); err != nil {
		return asError(err)
	}
	var x []float32
	for ctx.Err() == nil {
		data, err := r.next()
		if err == io.EOF {
			l.counts = append(l.counts, l.rows-before)
			return nil
		}
		if err != nil {
			return asError(err)
		}
		var label int64
		if x, label, err = r.parse(x[:0], data); err != nil {
			l.errs.add(asError(err))
			continue
		}
		if e := l.keep(x, label); e != nil {
			return e
		}
	}
	return nil // readAll says why
}

// asError returns the *Error that all errors of this package are.
func asError(err error) *Error {
	if e, ok := err.(*Error); ok {
		return e
	}
	return &Error{Reason: "cannot be read", Err: err}
}

func (l *recordLoad) keep(x []float32, label int64) *Error {
	o := l.reader.opts
	l.rows++
	l.top, l.widest = max(l.top, label), max(l.widest, len(x))
	if l.rows == maxRows {
		return l.reader.fault("", "divide the data", "is number %d, more than are supported", l.rows)
	}
	if o.Weight != "" {
		l.weights = append(l.weights, l.reader.weight)
	}
	if o.ShuffleBuffer > 0 {
		return nil
	}
	l.values = append(l.values, x...)
	l.ends = append(l.ends, len(l.values))
	l.labels = append(l.labels, label)
	if reason, remedy := l.memory.exceeded(l.size()); reason != "" {
		return &Error{Reason: "the examples " + reason,
			Hint: "set data.shuffle_buffer to the number of examples that are held in memory at a time, or " + remedy}
	}
	return nil
}

// size returns how many bytes the examples take so far.
func (l *recordLoad) size() int64 {
	return 4*int64(len(l.values)) + 16*int64(len(l.labels)) + 4*int64(len(l.weights))
}

// source returns what was read.
func (l *recordLoad) source(name string) (*source, error) {
	o := l.reader.opts
	s := &source{name: name, width: max(l.widest, 1), weights: l.weights, records: l.reader.features, close: noClose}
	if len(o.Image) == 3 && o.Image[0]*o.Image[1]*o.Image[2] == s.width {
		s.image = o.Image
	}
	s.place = func(row, _ int) *Error { return l.locate(row) }
	if e := l.countClasses(s); e != nil {
		e.File = name
		return nil, e
	}
	if o.ShuffleBuffer > 0 {
		own := func() *recordRows {
			return &recordRows{reader: recordReader{opts: o, files: l.reader.files, features: l.reader.features, width: s.width}, counts: l.counts, rows: l.rows}
		}
		s.rows, s.close = l.stream(s, own)
		return s, nil
	}
	s.rows = &floatRows{values: l.rectangle(s.width), width: s.width, labels: l.labels}
	return s, nil
}

// stream makes the files the source's rows.
func (l *recordLoad) stream(s *source, own func() *recordRows) (rows, func() error) {
	s.reopen = func() *source {
		again, r := *s, own()
		again.rows, again.close = r, r.reader.close
		return &again
	}
	r := own()
	return r, r.reader.close
}

// rectangle fills up examples that are shorter than others: bags of ids.
func (l *recordLoad) rectangle(width int) []float32 {
	if len(l.values) == width*l.rows {
		return l.values
	}
	all, start := make([]float32, 0, width*l.rows), 0
	for i, end := range l.ends {
		all = append(all, l.values[start:end]...)
		for len(all) < (i+1)*width {
			all = append(all, -1)
		}
		start = end
	}
	return all
}

func (l *recordLoad) countClasses(s *source) (e *Error) {
	const check = "check that data.label is the right feature"
	o := l.reader.opts
	if o.ShuffleBuffer == 0 {
		s.classes, e = o.countClasses(l.labels, check)
		return e
	}
	switch {
	case o.Numbers:
	case o.Classes > 0:
		s.classes = o.Classes
	case l.top == 0 || l.top >= int64(l.rows):
		return &Error{Reason: fmt.Sprintf("the greatest label of %d examples is %d", l.rows, l.top), Hint: check + "; if it is, set model.classes"}
	case l.top < math.MaxInt32:
		s.classes = int(l.top) + 1
	}
	return nil
}

// locate returns the place of an example.
func (l *recordLoad) locate(row int) *Error {
	for i, n := range l.counts {
		if row < n {
			return &Error{File: l.reader.files[i], Record: row + 1}
		}
		row -= n
	}
	return &Error{File: l.errs.File}
}

// recordRows are the examples of TFRecord files, read when they are asked for:
// fast in the order of the files, from the beginning of a file when the order
// goes back.
type recordRows struct {
	reader recordReader
	counts []int // examples of each file
	rows   int

	first  int // row of the first example of the open file
	loaded int // row of values, if values is not nil
	values []float32
	class  int64
}

func (r *recordRows) count() int { return r.rows }

func (r *recordRows) features(x []float32, i int) ([]float32, error) {
	if err := r.read(i); err != nil {
		return x, err
	}
	return append(x, r.values...), nil
}

func (r *recordRows) label(i int) (int64, error) {
	err := r.read(i)
	return r.class, err
}

// read makes row i the one that is loaded.
func (r *recordRows) read(i int) error {
	if r.values != nil && r.loaded == i {
		return nil
	}
	r.values = slices.Grow(r.values[:0], max(r.reader.width, 1))
	if err := r.seek(i); err != nil {
		return r.lost(err)
	}
	for {
		data, err := r.reader.next()
		if err != nil {
			return r.lost(err)
		}
		if r.first+r.reader.record-1 < i {
			continue
		}
		r.values, r.class, err = r.reader.parse(r.values[:0], data)
		if err != nil {
			return r.lost(err)
		}
		r.loaded = i
		return nil
	}
}

// lost forgets what is loaded. A file that ends before it did has changed.
func (r *recordRows) lost(err error) error {
	r.values = nil
	if err == io.EOF {
		return r.reader.fault("", "do not change the data while a job uses them", "the file has ended, but had %d records before", r.counts[r.reader.at])
	}
	return err
}

// seek opens the file of row i, unless it is open and not yet beyond it.
func (r *recordRows) seek(i int) error {
	file, first := 0, 0
	for i >= first+r.counts[file] {
		first += r.counts[file]
		file++
	}
	if r.reader.file != nil && r.reader.at == file && r.first+r.reader.record <= i {
		return nil
	}
	r.first = first
	return r.reader.open(file)
}
