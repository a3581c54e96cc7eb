package dataset

import (
	"fmt"
	"strings"
)

// Error is one fault of the data. It has the position, the cause, and what to
// do about it.
type Error struct {
	File   string
	Line   int    // 1 is the first; 0 for the whole file
	Column int    // 1 is the first; 0 if no single column is concerned
	Record int    // of a TFRecord file, an IDX file or such, 1 is the first; 0 if no single record is concerned
	Name   string // the column's name, if the file has a header; the feature's in a tf.Example
	Reason string // what is wrong
	Hint   string // what to do, may be empty
	Err    error  // cause, may be nil
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Record > 0 {
		fmt.Fprintf(&b, "record %d: ", e.Record)
	}
	switch {
	case e.Column > 0 && e.Name != "":
		fmt.Fprintf(&b, "column %d (%q): ", e.Column, e.Name)
	case e.Column > 0:
		fmt.Fprintf(&b, "column %d: ", e.Column)
	case e.Name != "":
		fmt.Fprintf(&b, "feature %q: ", e.Name)
	}
	b.WriteString(e.Reason)
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// maxProblems is how many faults of a file are described one by one.
const maxProblems = 10

// Errors holds all faults that [Load] found in one file: the first ones in
// full, and the number of the rest.
type Errors struct {
	File     string
	Problems []*Error
	More     int
}

func (e *Errors) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.Error())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("%s: %d more problems like these", e.File, e.More))
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first [Error].
func (e *Errors) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

func (e *Errors) add(p *Error) {
	if len(e.Problems) == maxProblems {
		e.More++
		return
	}
	if p.File == "" {
		p.File = e.File
	}
	e.Problems = append(e.Problems, p)
}

// err returns e, or nil when nothing is wrong.
func (e *Errors) err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}
