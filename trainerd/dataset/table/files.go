package table

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// files reads the tables in several files as one.
type files struct {
	names   []string // of the files
	at      int      // the one that is read
	table   *Table   // in it
	columns []string
}

// OpenAll opens the tables in several files as one, in their order. They have the same columns,
// and are written as the first one is.
func OpenAll(names []string, o Options) (*Table, error) {
	if len(names) == 1 {
		return Open(names[0], o)
	}
	first, err := Open(names[0], o)
	if err != nil {
		return nil, inFile(names[0], err)
	}
	f := &files{names: names, table: first, columns: first.Columns}
	return &Table{Columns: first.Columns, Line: first.Line, Options: first.Options, next: f.next, close: []func() error{f.close}}, nil
}

// inFile says in which of several files a fault is.
func inFile(name string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.File = name
		return e
	}
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		err = cause.Err
	}
	return &Error{File: name, Reason: "cannot be opened", Err: err}
}

func (f *files) next() (*Row, error) {
	for {
		row, err := f.table.next()
		switch {
		case err == nil:
			row.file = f.names[f.at]
			return row, nil
		case err != io.EOF:
			return nil, inFile(f.names[f.at], err)
		case f.at+1 == len(f.names):
			return nil, io.EOF
		}
		if err := f.open(f.at + 1); err != nil {
			return nil, inFile(f.names[f.at], err)
		}
	}
}

// open continues with another file.
func (f *files) open(at int) error {
	o := f.table.Options
	if err := f.close(); err != nil {
		return err
	}
	f.at = at
	t, err := Open(f.names[at], o)
	if err != nil {
		return err
	}
	f.table = t
	if !slices.Equal(t.Columns, f.columns) {
		return &Error{Reason: fmt.Sprintf("has the columns %s; want those of %s: %s", listed(t.Columns), f.names[0], listed(f.columns)),
			Hint: "the files of one table need the same columns in one order"}
	}
	return nil
}

func (f *files) close() error { return f.table.Close() }

// listed returns names for a message.
func listed(names []string) string {
	const most = 20
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
