package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

var tensorColumns = [...]string{"NAME", "DTYPE", "SHAPE", "BYTES"}

// tensorRows returns a table with a row for each tensor of a checkpoint, and
// what they hold together.
func tensorRows(r ckptfmt.Reader) (t *terminal.Table, sum totals, err error) {
	t = terminal.NewTable(tensorColumns[:]...)
	var text []byte
	for info, err := range r.Tensors() {
		if err != nil {
			return t, sum, err
		}
		if err := sum.add(&info); err != nil {
			return t, sum, err
		}
		text = append(text[:0], printable(info.Name)...)
		name := len(text)
		text = append(text, ckptfmt.DTypeName(info.DType)...)
		dtype := len(text)
		text = appendShape(text, info.Shape)
		shape := len(text)
		text = strconv.AppendInt(text, info.Bytes, 10)
		terminal.AddRow(t, text[:name], text[name:dtype], text[dtype:shape], text[shape:])
	}
	return t, sum, nil
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
