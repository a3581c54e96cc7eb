package main

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"

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

// tensorTable has a row for each tensor of a checkpoint, what they hold together, and
// those that cannot be read.
type tensorTable struct {
	terminal.Table
	sum     totals
	damaged []ckptfmt.DamagedTensor
	err     error
}

// listedTensor is a tensor as its reader has it.
type listedTensor struct {
	info ckptfmt.TensorInfo
	err  error
}

// rowsAtOnce is how many rows a goroutine makes: those of 100,000 tensors take as long
// as reading most indexes.
const rowsAtOnce = 2048

// tensorRows makes the table, by a goroutine for each processor; these have ended when it
// returns.
func tensorRows(r ckptfmt.Reader) (*tensorTable, error) {
	all := &tensorTable{Table: *terminal.NewTable(tensorColumns[:]...)}
	all.MaxWidth = nameWidth
	var parts []*tensorTable
	var workers sync.WaitGroup
	defer workers.Wait()
	free := make(chan []listedTensor, runtime.GOMAXPROCS(0)) // of those that are not worked on
	for range cap(free) {
		free <- nil
	}
	var list []listedTensor
	for info, err := range r.Tensors() {
		if err != nil && info.Name == "" {
			return nil, err
		}
		if len(list) == rowsAtOnce {
			full, part := list, new(tensorTable)
			parts = append(parts, part)
			list = <-free
			workers.Go(func() {
				part.add(full)
				free <- full[:0]
			})
		}
		list = append(list, listedTensor{info, err})
	}
	workers.Wait()
	last := new(tensorTable)
	last.add(list)
	for _, part := range append(parts, last) {
		if err := all.join(part); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// add makes a row for each tensor of a list.
func (t *tensorTable) add(list []listedTensor) {
	t.MaxWidth = nameWidth
	var text []byte
	for i := range list {
		info := &list[i].info
		if err := list[i].err; err != nil {
			t.damaged = append(t.damaged, ckptfmt.DamagedTensor{Name: info.Name, Err: err})
			t.Add(append(tensorRow(info), markOf(err))...)
			continue
		}
		if t.err = t.sum.add(info); t.err != nil {
			return
		}
		text = append(text[:0], printable(info.Name)...)
		name := len(text)
		text = append(text, info.TypeName()...)
		dtype := len(text)
		text = appendShape(text, info.Shape)
		shape := len(text)
		text = strconv.AppendInt(text, info.Bytes, 10)
		terminal.AddRow(&t.Table, text[:name], text[name:dtype], text[dtype:shape], text[shape:])
	}
}

// join adds what another table has.
func (t *tensorTable) join(part *tensorTable) error {
	t.Append(&part.Table)
	t.damaged = append(t.damaged, part.damaged...)
	t.sum.tensors += part.sum.tensors
	t.sum.elements += part.sum.elements
	t.sum.bytes += part.sum.bytes
	return part.err
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
