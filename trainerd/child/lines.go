package child

import (
	"bufio"
	"io"
)

// LineReader understands the lines of one start of a program that are not
// reports. It is used by several goroutines.
type LineReader interface {
	// Read returns the report that a line completes, nil for none. It may come
	// from an earlier line.
	Read(line string) *Report
	// Flush returns the reports left when the program has ended, one per call, then
	// nil.
	Flush() *Report
}

// kind is what a piece of a stream is.
type kind int

const (
	wholeLine   kind = iota
	drawnOver        // or to be drawn over by what follows, as a progress bar is
	shownLine        // was drawnOver before, and has turned out to be whole
	pieceOfLine      // of one that is longer than MaxLine
)

// lineReader cuts a stream into lines as a terminal would show them: a carriage return goes back to
// the beginning of the line. Text after a carriage return is also returned when the stream pauses,
// because a progress bar may stay the same for long.
type lineReader struct {
	in      *bufio.Reader
	buf     []byte
	cut     bool // the last line was cut at MaxLine
	drawing bool // a carriage return came before buf
	kept    bool // buf was returned, and what follows belongs to it
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(r, 32<<10)}
}

// next returns a line without its end. The bytes are valid until the next call. An error of the
// stream is returned after the last line.
func (l *lineReader) next() (line []byte, k kind, err error) {
	if k = wholeLine; l.cut {
		k = pieceOfLine
	}
	seen := -1 // how much of buf was returned
	if l.kept {
		seen = len(l.buf)
	} else {
		l.buf, l.drawing = l.buf[:0], l.drawing && k == wholeLine
	}
	l.cut, l.kept = false, false
	for returned := false; ; {
		if l.drawing && !returned && len(l.buf) > max(seen, 0) && l.in.Buffered() == 0 {
			l.kept = true
			return l.buf, drawnOver, nil
		}
		c, err := l.in.ReadByte()
		if err != nil && len(l.buf) == 0 {
			return nil, k, err
		}
		if err != nil || c == '\n' {
			l.drawing = false
			if seen == len(l.buf) {
				k = shownLine
			}
			return l.buf, k, nil // the error comes again
		}
		if c == '\r' {
			returned = true
			continue
		}
		if returned {
			returned, l.drawing = false, true
			l.in.UnreadByte()
			if k == wholeLine && len(l.buf) > max(seen, 0) {
				return l.buf, drawnOver, nil
			}
			l.buf, k, seen = l.buf[:0], wholeLine, -1
			continue
		}
		if len(l.buf) == MaxLine {
			l.in.UnreadByte()
			l.cut = true
			return l.buf, pieceOfLine, nil
		}
		l.buf = append(l.buf, c)
	}
}
