package main

import (
	"encoding/binary"
	"io"
	"unicode/utf8"
)

// table is text in columns, left-aligned, two blanks apart. The zero value is
// an empty one. It keeps its rows one behind the other, each as the number of
// its cells and then the length and the text of each: a list of a million
// tensors takes little more memory than its text, and few objects.
type table struct {
	pieces [][]byte // of whole rows
	widths []int
}

// tablePiece is how much text is kept or written at once.
const tablePiece = 256 << 10

func (t *table) add(cells ...string) { addRow(t, cells...) }

// addRow adds a row, of which it keeps a copy.
func addRow[T string | []byte](t *table, cells ...T) {
	last := len(t.pieces) - 1
	if last < 0 || len(t.pieces[last]) > tablePiece {
		t.pieces, last = append(t.pieces, make([]byte, 0, tablePiece+tablePiece/8)), last+1
	}
	for len(t.widths) < len(cells) {
		t.widths = append(t.widths, 0)
	}
	b := binary.AppendUvarint(t.pieces[last], uint64(len(cells)))
	for i, cell := range cells {
		b = binary.AppendUvarint(b, uint64(len(cell)))
		b = append(b, cell...)
		t.widths[i] = max(t.widths[i], utf8.RuneCount(b[len(b)-len(cell):]))
	}
	t.pieces[last] = b
}

// write writes all rows, each column as wide as its widest cell.
func (t *table) write(w io.Writer) error {
	var out []byte
	for _, piece := range t.pieces {
		out = out[:0]
		for len(piece) > 0 {
			out, piece = t.appendRow(out, piece)
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
	}
	return nil
}

// appendRow appends a piece's first row to out and returns the rows behind it.
func (t *table) appendRow(out, piece []byte) (longer, rest []byte) {
	cells, piece := takeUvarint(piece)
	for i := range cells {
		n, text := takeUvarint(piece)
		cell := text[:n]
		out, piece = append(out, cell...), text[n:]
		if i < cells-1 { // no blanks at the end of a line
			out = appendBlanks(out, t.widths[i]-utf8.RuneCount(cell)+2)
		}
	}
	return append(out, '\n'), piece
}

func takeUvarint(b []byte) (v int, rest []byte) {
	u, n := binary.Uvarint(b)
	return int(u), b[n:]
}

func appendBlanks(b []byte, n int) []byte {
	const blanks = "                                "
	for ; n > len(blanks); n -= len(blanks) {
		b = append(b, blanks...)
	}
	return append(b, blanks[:n]...)
}
