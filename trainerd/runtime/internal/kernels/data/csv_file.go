package data

import (
	"errors"
	"fmt"
	"io"
)

// csvFile reads the records of a file of comma-separated values: lines, but for line
// breaks between quotes. What is in a record is not looked at before it is split.
type csvFile struct {
	*lineFile
	format csvFormat
	record []byte
	broken error // of the header; what comes next
}

// csvFormat says how records are separated and split.
type csvFormat struct {
	delim  byte
	quotes bool
	header bool
}

func (f csvFormat) opener(compression string, limit int64) func(path, work string) (recordSource, error) {
	lines := lineOpener(compression, 0, limit)
	return func(path, work string) (recordSource, error) {
		source, err := lines(path, work)
		if err != nil {
			return nil, err
		}
		file := &csvFile{lineFile: source.(*lineFile), format: f}
		if !f.header {
			return file, nil
		}
		if _, err = file.next(); err == io.EOF {
			err = invalidRecord("%s has no header", work)
		}
		file.broken = err
		return file, nil
	}
}

// csvState is where in a record a byte is.
type csvState int

const (
	csvStart  csvState = iota // of a field
	csvPlain                  // in a field without quotes
	csvQuoted                 // between quotes
	csvClosed                 // after what may be the last quote
)

// after returns the state after a byte, and whether that ends the record.
func (f csvFormat) after(state csvState, b byte) (next csvState, ended bool) {
	switch {
	case state == csvQuoted && b == '"':
		return csvClosed, false
	case state == csvQuoted:
		return csvQuoted, false
	case b == f.delim:
		return csvStart, false
	case b == '\n' || b == '\r':
		return csvStart, true
	case state == csvStart && b == '"' && f.quotes:
		return csvQuoted, false
	case state == csvClosed:
		return csvQuoted, false
	}
	return csvPlain, false
}

func (f *csvFile) next() ([]byte, error) {
	if err := f.broken; err != nil {
		f.broken = nil
		return nil, err
	}
	f.record = f.record[:0]
	state, read := csvStart, int64(0)
	for {
		b, err := f.r.ReadByte()
		if err == io.EOF && read > 0 {
			break
		}
		if err != nil {
			return nil, damaged(f.work, err)
		}
		read++
		var ended bool
		if state, ended = f.format.after(state, b); ended {
			read += f.skipLineFeed(b)
			break
		}
		if f.record = append(f.record, b); read > f.limit {
			return nil, tooLong(fmt.Sprintf("record %d of %s", f.line+1, f.work), f.limit)
		}
	}
	f.line++
	f.offset += read
	return f.record, nil
}

// skipLineFeed reads the second byte of a line break, and returns how many bytes those are.
func (f *csvFile) skipLineFeed(first byte) int64 {
	if first != '\r' {
		return 0
	}
	if next, err := f.r.Peek(1); err != nil || next[0] != '\n' {
		return 0
	}
	_, _ = f.r.Discard(1)
	return 1
}

func (f *csvFile) moveTo(to filePlace) error {
	if !f.plain {
		return pass(f, to)
	}
	return f.lineFile.moveTo(to)
}

// split appends the fields of a record. After an error in one of them it continues with the
// next one, as TensorFlow does, and returns the first error.
func (f csvFormat) split(fields [][]byte, record []byte) ([][]byte, error) {
	var first error
	for {
		field, rest, more, err := f.cut(record)
		if first == nil {
			first = err
		}
		fields = append(fields, field)
		if !more {
			return fields, first
		}
		record = rest
	}
}

// cut returns the first field of a record, what follows, and whether that is another field.
func (f csvFormat) cut(record []byte) (field, rest []byte, more bool, err error) {
	state := csvStart
	quoted := f.quotes && len(record) > 0 && record[0] == '"'
	for i, b := range record {
		before := state
		state, _ = f.after(state, b)
		switch {
		case state == csvStart:
			return unescaped(field, quoted), record[i+1:], true, err
		case quoted && before == csvClosed && b != '"' && err == nil:
			err = errors.New("a quote inside a string has to be escaped by another quote")
		case !quoted && f.quotes && b == '"' && err == nil:
			err = errors.New("fields without quotes cannot have quotes inside")
		}
		field = record[:i+1]
	}
	if state == csvQuoted {
		err = errors.New("a quoted field is not closed at the end of the file")
	}
	return unescaped(field, quoted), nil, false, err
}

// unescaped returns what a field says.
func unescaped(field []byte, quoted bool) []byte {
	if !quoted {
		return field
	}
	field = field[1:]
	out := make([]byte, 0, len(field))
	for i := 0; i < len(field); i++ {
		if field[i] == '"' {
			if i++; i >= len(field) {
				break
			}
		}
		out = append(out, field[i])
	}
	return out
}
