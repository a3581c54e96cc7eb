package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/formats"
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

// tensors are a list that can be gone through several times, by several goroutines.
type tensors interface {
	Len() int
	At(i int) (ckptfmt.TensorInfo, error)
}

// listOf returns the tensors of a checkpoint. An index, which would have to be decoded
// again each time, is kept.
func listOf(r ckptfmt.Reader) (tensors, error) {
	if f, ok := r.(*formats.Reader); ok {
		r = f.Reader
	}
	if list, ok := r.(tensors); ok {
		return list, nil
	}
	list := new(tensorList)
	for info, err := range r.Tensors() {
		if err != nil && info.Name == "" {
			return nil, err
		}
		list.add(&info, err)
	}
	return list, nil
}

// tensorLines are a line for each tensor of a checkpoint, what they hold together, and
// those that cannot be read. The tensors are gone through twice, for the widths of the
// columns and to print: to keep the lines of 100,000 would take as much memory as all else.
type tensorLines struct {
	tensors tensors
	widths  [len(tensorColumns)]int
	odd     bool // a name is not plain
	sum     totals
	damaged []ckptfmt.DamagedTensor
}

func newTensorLines(r ckptfmt.Reader) (*tensorLines, error) {
	list, err := listOf(r)
	if err != nil {
		return nil, err
	}
	t := &tensorLines{tensors: list}
	for i, title := range tensorColumns {
		t.widths[i] = len(title)
	}
	return t, t.measureAll()
}

// measureAll takes all tensors into account, by a goroutine for each processor; these have
// ended when it returns.
func (t *tensorLines) measureAll() error {
	parts := make([]tensorLines, min(runtime.GOMAXPROCS(0), t.tensors.Len()/rowsAtOnce+1))
	failed := make([]error, len(parts))
	var apart sync.WaitGroup
	for i := range parts {
		from, to := t.tensors.Len()*i/len(parts), t.tensors.Len()*(i+1)/len(parts)
		measure := func() {
			var part tensorLines // which shares no line of a cache with another one
			for at := from; at < to && failed[i] == nil; at++ {
				info, err := t.tensors.At(at)
				if err := part.measure(&info, err); err != nil {
					failed[i] = err
				}
			}
			parts[i] = part
		}
		if i+1 == len(parts) {
			measure()
		} else {
			apart.Go(measure)
		}
	}
	apart.Wait()
	for i := range parts {
		t.join(&parts[i])
	}
	return cmp.Or(failed...)
}

// join takes what was measured apart.
func (t *tensorLines) join(part *tensorLines) {
	for i, width := range part.widths {
		t.widen(i, width)
	}
	t.odd = t.odd || part.odd
	t.damaged = append(t.damaged, part.damaged...)
	t.sum.tensors += part.sum.tensors
	t.sum.elements += part.sum.elements
	t.sum.bytes += part.sum.bytes
}

// measure takes a tensor into account.
func (t *tensorLines) measure(info *ckptfmt.TensorInfo, err error) error {
	if err != nil {
		t.damaged = append(t.damaged, ckptfmt.DamagedTensor{Name: info.Name, Err: err})
		for i, cell := range tensorRow(info) {
			t.widen(i, utf8.RuneCountInString(cell))
		}
		return nil
	}
	if isPlain(info.Name) {
		t.widen(0, len(info.Name))
	} else {
		t.odd = true
		t.widen(0, utf8.RuneCountInString(printable(info.Name)))
	}
	t.widen(1, len(info.TypeName()))
	shape := len("[]") + max(len(info.Shape)-1, 0)
	for _, d := range info.Shape {
		shape += widthOf(d)
	}
	t.widen(2, shape)
	t.widen(3, widthOf(info.Bytes))
	return t.sum.add(info)
}

func (t *tensorLines) widen(column, width int) {
	if width <= nameWidth {
		t.widths[column] = max(t.widths[column], width)
	}
}

// widthOf returns how many characters a number has.
func widthOf(v int64) int {
	n := 1
	if v < 0 {
		n++
	}
	for ; v <= -10 || v >= 10; v /= 10 {
		n++
	}
	return n
}

// rowsAtOnce is how many lines are made at once.
const rowsAtOnce = 4096

// print writes all lines, after one of titles. Another goroutine makes every second piece
// of them; it has ended when print returns.
func (t *tensorLines) print(w io.Writer, s terminal.Style) error {
	titles := t.appendRow(nil, tensorColumns[:])
	own := append([]byte(s.Heading(string(titles))), '\n')
	made, spare, stop := make(chan []byte), make(chan []byte, 2), make(chan bool)
	spare <- nil
	spare <- nil
	var apart sync.WaitGroup
	defer apart.Wait()
	defer close(stop)
	apart.Go(func() {
		for i := 1; i*rowsAtOnce < t.tensors.Len(); i += 2 {
			select {
			case made <- t.appendPiece((<-spare)[:0], i):
			case <-stop:
				return
			}
		}
	})
	for i := 0; i == 0 || i*rowsAtOnce < t.tensors.Len(); i++ {
		b := own
		if i%2 == 0 {
			own = t.appendPiece(own, i)
			b, own = own, own[:0]
		} else {
			b = <-made
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		if i%2 != 0 {
			spare <- b
		}
	}
	return nil
}

// appendPiece appends the lines of piece i.
func (t *tensorLines) appendPiece(b []byte, i int) []byte {
	b = slices.Grow(b, rowsAtOnce*t.lineWidth()) // at once: memory that is touched for the first time takes long
	for at := i * rowsAtOnce; at < min((i+1)*rowsAtOnce, t.tensors.Len()); at++ {
		info, err := t.tensors.At(at)
		if err != nil {
			b = t.appendRow(b, append(tensorRow(&info), markOf(err)))
		} else {
			b = t.appendTensor(b, &info)
		}
		b = append(b, '\n')
	}
	return b
}

// lineWidth is how many bytes a plain line has.
func (t *tensorLines) lineWidth() int {
	n := len("\n")
	for _, width := range t.widths {
		n += width + 2
	}
	return n
}

// appendRow appends the cells of a line.
func (t *tensorLines) appendRow(b []byte, cells []string) []byte {
	for i, cell := range cells {
		b = append(b, cell...)
		if i+1 < len(cells) {
			b = t.pad(b, i, utf8.RuneCountInString(cell))
		}
	}
	return b
}

// appendTensor is appendRow of tensorRow.
func (t *tensorLines) appendTensor(b []byte, info *ckptfmt.TensorInfo) []byte {
	width := len(info.Name)
	if !t.odd || isPlain(info.Name) {
		b = append(b, info.Name...)
	} else {
		name := printable(info.Name)
		b, width = append(b, name...), utf8.RuneCountInString(name)
	}
	kind := info.TypeName()
	b = append(t.pad(b, 0, width), kind...)
	b = t.pad(b, 1, len(kind))
	begin := len(b)
	b = appendShape(b, info.Shape)
	return strconv.AppendInt(t.pad(b, 2, len(b)-begin), info.Bytes, 10)
}

// pad ends a cell of a width, after which there is another one.
func (t *tensorLines) pad(b []byte, column, width int) []byte {
	const blanks = "                                "
	n := max(0, t.widths[column]-width) + 2
	for ; n > len(blanks); n -= len(blanks) {
		b = append(b, blanks...)
	}
	return append(b, blanks[:n]...)
}

// tensorList keeps what a line shows of tensors, and their errors.
type tensorList struct {
	n      int
	pieces [][]listedTensor
	errors map[int]error
}

// listedTensor is a part of a TensorInfo that takes half the memory.
type listedTensor struct {
	name, foreign string
	shape         []int64
	bytes         int64
	dtype         tfpb.DataType
}

const listedAtOnce = 1024

func (l *tensorList) add(info *ckptfmt.TensorInfo, err error) {
	if err != nil && l.errors == nil {
		l.errors = make(map[int]error)
	}
	if err != nil {
		l.errors[l.n] = err
	}
	if l.n%listedAtOnce == 0 {
		l.pieces = append(l.pieces, make([]listedTensor, 0, listedAtOnce))
	}
	l.n++
	last := &l.pieces[len(l.pieces)-1]
	*last = append(*last, listedTensor{info.Name, info.Foreign, info.Shape, info.Bytes, info.DType})
}

func (l *tensorList) Len() int { return l.n }

func (l *tensorList) At(i int) (ckptfmt.TensorInfo, error) {
	x := &l.pieces[i/listedAtOnce][i%listedAtOnce]
	return ckptfmt.TensorInfo{Name: x.name, Foreign: x.foreign, DType: x.dtype, Shape: x.shape, Bytes: x.bytes}, l.errors[i]
}

// tensorRow has the cells of tensorColumns.
func tensorRow(info *ckptfmt.TensorInfo) []string {
	if info.DType == tfpb.DataType_DT_INVALID && info.Shape == nil { // of a kind that has no shape or bytes of its own
		return []string{printable(info.Name), cmp.Or(info.Foreign, "-"), "-", "-"}
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
