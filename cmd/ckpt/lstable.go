package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/trainerd/trainerd/ckptfmt"
)

// tensorTable prints a row for each tensor of a checkpoint, in columns. It goes
// through them twice, the first time for the widths, and so keeps nothing of a
// checkpoint with millions of tensors.
type tensorTable struct {
	totals
	name, dtype, shape int // widths
	cell               []byte
}

var tensorColumns = [...]string{"NAME", "DTYPE", "SHAPE", "BYTES"}

func printTensorTable(w io.Writer, r ckptfmt.Reader) (*tensorTable, error) {
	t := &tensorTable{name: len(tensorColumns[0]), dtype: len(tensorColumns[1]), shape: len(tensorColumns[2])}
	for info, err := range r.Tensors() {
		if err != nil {
			return nil, err
		}
		if err := t.measure(&info); err != nil {
			return nil, err
		}
	}
	buf := bufio.NewWriter(w)
	t.row(buf, tensorColumns[0], tensorColumns[1], []byte(tensorColumns[2]))
	buf.WriteString(tensorColumns[3])
	buf.WriteByte('\n')
	for info, err := range r.Tensors() {
		if err != nil {
			return nil, err
		}
		t.row(buf, printable(info.Name), ckptfmt.DTypeName(info.DType), t.shapeOf(&info))
		t.cell = strconv.AppendInt(t.cell[:0], info.Bytes, 10)
		buf.Write(append(t.cell, '\n'))
	}
	return t, buf.Flush()
}

// measure counts a tensor in.
func (t *tensorTable) measure(info *ckptfmt.TensorInfo) error {
	if err := t.add(info); err != nil {
		return err
	}
	t.name = max(t.name, utf8.RuneCountInString(printable(info.Name)))
	t.dtype = max(t.dtype, len(ckptfmt.DTypeName(info.DType)))
	t.shape = max(t.shape, len(t.shapeOf(info)))
	return nil
}

// shapeOf is valid until the next call.
func (t *tensorTable) shapeOf(info *ckptfmt.TensorInfo) []byte {
	t.cell = appendShape(t.cell[:0], info.Shape)
	return t.cell
}

// row writes all but the last column.
func (t *tensorTable) row(w *bufio.Writer, name, dtype string, shape []byte) {
	w.WriteString(name)
	pad(w, t.name-utf8.RuneCountInString(name))
	w.WriteString(dtype)
	pad(w, t.dtype-len(dtype))
	w.Write(shape)
	pad(w, t.shape-len(shape))
}

// totals is what tensors hold together.
type totals struct{ tensors, elements, bytes int64 }

func (t *totals) add(info *ckptfmt.TensorInfo) error {
	n, err := ckptfmt.NumElements(info.Shape)
	if err != nil {
		return err
	}
	t.tensors++
	t.elements += n
	t.bytes += info.Bytes
	return nil
}

func (t *totals) summarise(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d tensors, %d elements, %s\n", t.tensors, t.elements, sizeText(t.bytes))
	return err
}

// pad writes so many blanks and the two between columns.
func pad(w *bufio.Writer, n int) {
	for range n + 2 {
		w.WriteByte(' ')
	}
}
