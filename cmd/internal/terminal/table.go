package terminal

import (
	"encoding/binary"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Table is text in columns, left-aligned, two blanks apart. The zero value is
// an empty one without titles. It keeps its rows one after the other, each as
// the number of its cells and then the length, the width and the text of each: a list
// of a million rows takes little more memory than its text, and few objects.
type Table struct {
	// MaxWidth is the width that a longer cell does not give to its column: the
	// cells after it are then out of line. 0: there is none.
	MaxWidth int

	titled bool
	pieces [][]byte // of whole rows
	widths []int
}

// NewTable returns a table whose first row are titles.
func NewTable(titles ...string) *Table {
	t := &Table{titled: true}
	t.Add(titles...)
	return t
}

// Add adds a row. Cells may be missing at its end.
func (t *Table) Add(cells ...string) {
	last := len(t.pieces) - 1
	if last < 0 || len(t.pieces[last]) > tablePiece {
		t.pieces, last = append(t.pieces, make([]byte, 0, tablePiece+tablePiece/8)), last+1
	}
	for len(t.widths) < len(cells) {
		t.widths = append(t.widths, 0)
	}
	b := binary.AppendUvarint(t.pieces[last], uint64(len(cells)))
	for i, cell := range cells {
		cell = asCell(cell)
		n := utf8.RuneCountInString(cell)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(len(cell))), uint64(n))
		b = append(b, cell...)
		if n <= t.MaxWidth || t.MaxWidth == 0 {
			t.widths[i] = max(t.widths[i], n)
		}
	}
	t.pieces[last] = b
}

// asCell returns a text as a cell that a terminal may have, in one line.
func asCell(text string) string {
	if !strings.ContainsFunc(text, isHarmfulInCell) {
		return text
	}
	return string(harmless([]byte(text), isHarmfulInCell))
}

func isHarmfulInCell(r rune) bool { return r == '\n' || r == '\t' || isHarmful(r) }

// tablePiece is how much text is kept or written at once.
const tablePiece = 256 << 10

// Print writes all rows, each column as wide as its widest cell. No line ends
// with blanks. A goroutine makes the next text while one is written; it has ended when
// Print returns.
func (t *Table) Print(w io.Writer, s Style) error {
	if len(t.pieces) == 0 {
		return nil
	}
	out := t.appendPiece(nil, 0, s)
	var spare []byte
	for i := range t.pieces {
		var ahead sync.WaitGroup
		if i+1 < len(t.pieces) {
			ahead.Go(func() { spare = t.appendPiece(spare[:0], i+1, s) })
		}
		_, err := w.Write(out)
		ahead.Wait()
		if err != nil {
			return err
		}
		out, spare = spare, out
	}
	return nil
}

// appendPiece appends the rows of a piece to out.
func (t *Table) appendPiece(out []byte, i int, s Style) []byte {
	piece := t.pieces[i]
	if i == 0 && t.titled {
		out, piece = t.appendRow(out, piece)
		out = append(out[:0], s.Heading(string(out))...)
		out = append(out, '\n')
	}
	for len(piece) > 0 {
		out, piece = t.appendRow(out, piece)
		out = append(out, '\n')
	}
	return out
}

// appendRow appends a piece's first row to out and returns the rows after it.
func (t *Table) appendRow(out, piece []byte) (longer, rest []byte) {
	cells, piece := takeUvarint(piece)
	begin, blanks := len(out), 0
	for i := range cells {
		n, text := takeUvarint(piece)
		width, text := takeUvarint(text)
		out = append(appendBlanks(out, blanks), text[:n]...)
		piece, blanks = text[n:], max(0, t.widths[i]-width)+2
	}
	for len(out) > begin && out[len(out)-1] == ' ' { // the last cells may be empty
		out = out[:len(out)-1]
	}
	return out, piece
}

func takeUvarint(b []byte) (v int, rest []byte) {
	if b[0] < 1<<7 { // as most are
		return int(b[0]), b[1:]
	}
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
