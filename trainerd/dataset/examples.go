package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// ExamplesOptions says how to read rows for a trained model.
type ExamplesOptions struct {
	// Format of the file; "" means to detect it, or to use that of the
	// training file if detection fails.
	Format Format
	// Labels is the file with the labels of IDX and NumPy data; "" means the one with the
	// matching name, if any. For images in one folder it is a table of them.
	Labels string
	// NeedLabel makes data without labels, or a label that the model does not know,
	// an error. In a table a label may be missing: it is then NaN.
	NeedLabel bool
	// NoMissing makes a missing number an error.
	NoMissing bool
	// Coerce treats a field of a table that is not the number or date that its
	// column requires as missing, unless NoMissing is set; without it such a field
	// is an error, which names CoerceOption if that is not "".
	Coerce       bool
	CoerceOption string
	// Keep names columns of a table, or has their numbers, whose fields come with each Example.
	Keep []string
	// In, if not nil, is a table to read instead of the file.
	In io.Reader
}

// Example is a raw row as the Schema describes it. It is overwritten by the next
// one.
type Example struct {
	X []float32
	// Label is the class or the number; NaN for a row without one.
	Label float64
	// File is the image's, "" for other data.
	File string
	// Kept are the fields of the columns that ExamplesOptions.Keep names. They are not
	// overwritten.
	Kept []string
}

// Examples reads rows for a trained model, one after another.
type Examples struct {
	// HasLabels says that the rows may have labels.
	HasLabels bool
	// Kept are the names of the columns in ExamplesOptions.Keep.
	Kept []string
	// Coerced counts the fields that were taken for missing, and FirstCoerced says
	// what was wrong with the first.
	Coerced      int
	FirstCoerced *Error

	schema *Schema
	opts   ExamplesOptions
	name   string
	errs   *Errors
	next   func(e *Example) error // *Error for a faulty row, *Errors for the end of reading, io.EOF
	close  []func() error
}

// OpenExamples opens the data called name, unless ctx is done before all files are
// found. Faults of the data are an [*Error] or [*Errors]. The caller must close
// the Examples.
func OpenExamples(ctx context.Context, name string, s *Schema, o ExamplesOptions) (*Examples, error) {
	e := &Examples{schema: s, opts: o, name: name, errs: &Errors{File: name}}
	if err := e.openPipe(); err != nil {
		return nil, err
	}
	format, err := e.format()
	if err != nil {
		return nil, err
	}
	if len(o.Keep) > 0 && (format.isArrays() || format == FormatTFRecord || format == FormatImages) {
		return nil, &Error{File: name, Reason: fmt.Sprintf("has no column %s: it is not a table", clip(o.Keep[0]))}
	}
	switch format {
	case FormatTFRecord:
		err = e.openRecords()
	case FormatIDX, FormatNumPy:
		err = e.openArrays(ctx)
	case FormatImages:
		err = e.openImages(ctx)
	default:
		err = e.openTable(format)
	}
	if err != nil {
		e.Close()
		return nil, withoutSettings(err)
	}
	return e, nil
}

// withoutSettings replaces hints that name settings of the training's data: those of
// a model that is trained are as they are.
func withoutSettings(err error) error {
	replace := func(e *Error) {
		if strings.Contains(e.Hint, "data.") && !strings.Contains(e.Hint, "in a config") {
			e.Hint = "give data of the kind that the model was trained with"
		}
	}
	switch err := err.(type) {
	case *Error:
		replace(err)
	case *Errors:
		for _, one := range err.Problems {
			replace(one)
		}
	}
	return err
}

// openPipe makes what cannot be read twice, such as a named pipe or the shell's
// <(command), the stream that is read.
func (e *Examples) openPipe() error {
	info, err := os.Stat(e.name)
	if err != nil || e.opts.In != nil || info.Mode().IsRegular() || info.IsDir() {
		return nil // what is not there is reported when it is opened
	}
	f, err := os.Open(e.name)
	if err != nil {
		return openError(e.name, err)
	}
	e.opts.In, e.close = f, append(e.close, f.Close)
	return nil
}

// format finds out what the data are.
func (e *Examples) format() (Format, error) {
	if e.opts.Format != "" || e.opts.In != nil {
		return e.opts.Format, nil
	}
	if e.schema.Format == FormatTFRecord {
		if _, err := os.Stat(e.name); err != nil {
			return FormatTFRecord, nil // it may be a pattern
		}
	}
	return DetectFormat(e.name)
}

// Each calls f with every row, in order. After the first faulty row the others
// are only checked, so that one call reports more than one fault; the error is
// an [*Errors]. An error of f ends it.
func (e *Examples) Each(f func(*Example) error) error {
	one := &Example{X: make([]float32, 0, e.schema.Width())}
	rows := 0
	for {
		one.X, one.Label, one.File, one.Kept = one.X[:0], math.NaN(), "", nil
		err := e.next(one)
		switch err := err.(type) {
		case nil:
			rows++
			if err := e.check(one); err != nil {
				e.errs.add(err)
			} else if len(e.errs.Problems) == 0 {
				if err := f(one); err != nil {
					return err
				}
			}
			continue
		case *Error:
			rows++
			e.errs.add(err)
			continue
		}
		if err != io.EOF {
			return withoutSettings(err)
		}
		if rows == 0 {
			e.errs.add(&Error{Reason: "holds no rows"})
		}
		return withoutSettings(e.errs.err())
	}
}

// check is for what all formats have in common.
func (e *Examples) check(one *Example) *Error {
	if width := e.schema.Width(); len(one.X) != width {
		return &Error{File: one.File, Reason: fmt.Sprintf("an example has %d features, but the model takes %d", len(one.X), width),
			Hint: "give data of the kind that the model was trained with"}
	}
	return nil
}

// Close closes the files.
func (e *Examples) Close() error {
	var errs []error
	for _, f := range e.close {
		errs = append(errs, f())
	}
	e.close = nil
	return errors.Join(errs...)
}

// labelError returns the fault of a label that the model cannot be compared
// with, nil for none, or if labels are not asked for.
func (e *Examples) labelError(reason string) *Error {
	if reason == "" || !e.opts.NeedLabel {
		return nil
	}
	return &Error{Reason: reason, Hint: "correct the label, or remove the row"}
}
