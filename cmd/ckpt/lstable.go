package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	tfpb "github.com/trainerd/trainerd/proto"
)

// nameWidth is the width that a longer name does not give to its column.
const nameWidth = 160

var tensorColumns = [...]string{"NAME", "DTYPE", "SHAPE", "BYTES"}

// damagedMark is in the last column of a tensor that cannot be read.
const damagedMark = "<- damaged"

// markOf is damagedMark, or what is there where a tensor is intact, and of a
// kind that is not supported.
func markOf(err error) string {
	if isUnsupported(err) {
		return "<- not supported"
	}
	return damagedMark
}

// tensorRows returns a table with a row for each tensor of a checkpoint, what
// they hold together, and those that cannot be read.
func tensorRows(r ckptfmt.Reader) (t *terminal.Table, sum totals, damaged []ckptfmt.DamagedTensor, err error) {
	t = terminal.NewTable(tensorColumns[:]...)
	t.MaxWidth = nameWidth
	var text []byte
	for info, err := range r.Tensors() {
		if err != nil && info.Name == "" {
			return t, sum, damaged, err
		}
		if err != nil {
			damaged = append(damaged, ckptfmt.DamagedTensor{Name: info.Name, Err: err})
			t.Add(append(tensorRow(&info), markOf(err))...)
			continue
		}
		if err := sum.add(&info); err != nil {
			return t, sum, damaged, err
		}
		text = append(text[:0], printable(info.Name)...)
		name := len(text)
		text = append(text, info.TypeName()...)
		dtype := len(text)
		text = appendShape(text, info.Shape)
		shape := len(text)
		text = strconv.AppendInt(text, info.Bytes, 10)
		terminal.AddRow(t, text[:name], text[name:dtype], text[dtype:shape], text[shape:])
	}
	return t, sum, damaged, nil
}

// tensorRow has the cells of tensorColumns.
func tensorRow(info *ckptfmt.TensorInfo) []string {
	if info.DType == tfpb.DataType_DT_INVALID && info.Foreign == "" { // of a kind that has no type, shape or bytes of its own
		return []string{printable(info.Name), "-", "-", "-"}
	}
	return []string{printable(info.Name), info.TypeName(), shapeText(info.Shape), strconv.FormatInt(info.Bytes, 10)}
}

// totals is what tensors hold together.
type totals struct{ tensors, elements, bytes int64 }

func (t *totals) add(info *ckptfmt.TensorInfo) error {
	n, err := dtype.NumElements(info.Shape)
	if err != nil {
		return err
	}
	t.tensors++
	t.elements += n
	t.bytes += info.Bytes
	return nil
}

func (t *totals) summarise(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d tensors, %d elements, %s\n", t.tensors, t.elements, terminal.Size(t.bytes))
	return err
}
