package ckptfmt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

// countedFile is what a part is read from: how often it was opened and closed.
type countedFile struct {
	data           []byte
	opened, closed int
	fails          error // at the end
}

func (c *countedFile) open() (io.ReadCloser, error) {
	c.opened++
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(c.data), endsWith{c.fails}), c}, nil
}

func (c *countedFile) Close() error { c.closed++; return nil }

// endsWith gives an error, and io.EOF in place of none.
type endsWith struct{ error }

func (e endsWith) Read([]byte) (int, error) {
	if e.error == nil {
		return 0, io.EOF
	}
	return 0, e.error
}

// slicePart returns rows and columns of a matrix of bytes, which count from 0.
func slicePart(rows, columns int64, r, c [2]int64) (Part, *countedFile) {
	file := new(countedFile)
	for i := r[0]; i < r[0]+r[1]; i++ {
		for j := c[0]; j < c[0]+c[1]; j++ {
			file.data = append(file.data, byte(i*columns+j))
		}
	}
	return Part{Name: "m", DType: tfpb.DataType_DT_UINT8, Full: []int64{rows, columns}, Shape: []int64{r[1], c[1]},
		Slice: TensorSlice{Start: []int64{r[0], c[0]}, Length: []int64{r[1], c[1]}}, Open: file.open}, file
}

// TestJoinParts joins slices by rows, by columns, as tiles and with empty ones, in any
// order, and reads every file to its end.
func TestJoinParts(t *testing.T) {
	type cut = [2][2]int64
	want := make([]byte, 12)
	for i := range want {
		want[i] = byte(i)
	}
	for name, cuts := range map[string][]cut{
		"one":     {{{0, 3}, {0, 4}}},
		"rows":    {{{2, 1}, {0, 4}}, {{0, 2}, {0, 4}}},
		"empty":   {{{0, 3}, {0, 4}}, {{0, 0}, {0, 4}}},
		"columns": {{{0, 3}, {1, 3}}, {{0, 3}, {0, 1}}},
		"tiles":   {{{0, 1}, {0, 4}}, {{1, 2}, {0, 2}}, {{1, 2}, {2, 2}}},
	} {
		var list []Part
		var files []*countedFile
		for _, c := range cuts {
			p, file := slicePart(3, 4, c[0], c[1])
			list, files = append(list, p), append(files, file)
		}
		p := JoinParts(list)
		got, err := p.Load()
		if err != nil || !bytes.Equal(got.Data, want) || !p.IsWhole() {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		for i, f := range files {
			if f.opened != 1 || f.closed != 1 {
				t.Errorf("%s: file %d was opened %d times, closed %d times", name, i, f.opened, f.closed)
			}
		}
	}
}

// TestJoinPartsStreams: slices along the first dimension are read one after the other, none
// before it is needed; a part that is whole stays what it is.
func TestJoinPartsStreams(t *testing.T) {
	vector := func(at, n int64) (Part, *countedFile) {
		p, file := slicePart(12, 1, [2]int64{at, n}, [2]int64{0, 1})
		p.Full, p.Shape, p.Slice = p.Full[:1], p.Shape[:1], TensorSlice{Start: p.Slice.Start[:1], Length: p.Slice.Length[:1]}
		return p, file
	}
	rows := func(at, n int64) (Part, *countedFile) {
		return slicePart(3, 4, [2]int64{at / 4, n / 4}, [2]int64{0, 4})
	}
	for name, part := range map[string]func(at, n int64) (Part, *countedFile){"rows": rows, "a vector": vector} {
		first, _ := part(0, 8)
		second, file := part(8, 4)
		r, err := JoinParts([]Part{second, first}).Open()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		for i := range 12 {
			if n, err := r.Read(b); n != 1 || err != nil || int(b[0]) != i || i < 8 && file.opened > 0 {
				t.Fatalf("%s: byte %d: read %d, %v, %v; the second part was opened %d times", name, i, n, b, err, file.opened)
			}
		}
		if n, err := r.Read(b); n != 0 || err != io.EOF {
			t.Errorf("%s: at the end: %d, %v", name, n, err)
		}
	}
	whole, _ := rows(0, 12)
	whole.Shard = 3
	if got := JoinParts([]Part{whole}); got.Shard != 3 {
		t.Errorf("the only part is in shard %d, want 3", got.Shard)
	}
}

// TestJoinPartsWithoutElements has pieces without elements where they cannot be read one after
// another, and of a tensor without any, which is a whole one.
func TestJoinPartsWithoutElements(t *testing.T) {
	left, _ := slicePart(3, 4, [2]int64{0, 3}, [2]int64{0, 1})
	right, _ := slicePart(3, 4, [2]int64{0, 3}, [2]int64{1, 3})
	none, _ := slicePart(3, 4, [2]int64{0, 3}, [2]int64{1, 0})
	p := JoinParts([]Part{left, right, none})
	if got, err := p.Load(); err != nil || len(got.Data) != 12 {
		t.Errorf("columns: %v, %v", got, err)
	}
	empty, _ := slicePart(0, 4, [2]int64{0, 0}, [2]int64{0, 4})
	w, err := CreateBundle(filepath.Join(t.TempDir(), "m"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.AddPart(JoinParts([]Part{empty})); err != nil {
		t.Errorf("a tensor without elements: %v", err)
	}
}

// TestJoinPartsFails: slices that are damaged, missing, doubled or of other tensors are
// an error and close what was opened.
func TestJoinPartsFails(t *testing.T) {
	damage := errors.New("damage")
	top, _ := slicePart(3, 4, [2]int64{0, 2}, [2]int64{0, 4})
	left, _ := slicePart(3, 4, [2]int64{0, 3}, [2]int64{0, 1})
	for name, c := range map[string]struct {
		first  Part
		change func(p *Part, file *countedFile)
		want   error
	}{
		"damaged row":      {top, func(_ *Part, file *countedFile) { file.fails = damage }, damage},
		"damaged column":   {left, func(_ *Part, file *countedFile) { file.fails = damage }, damage},
		"unreadable":       {top, func(p *Part, _ *countedFile) { p.Open, p.Err = nil, damage }, damage},
		"cannot be opened": {top, func(p *Part, _ *countedFile) { p.Open = func() (io.ReadCloser, error) { return nil, damage } }, damage},
		"short":            {top, func(_ *Part, file *countedFile) { file.data = file.data[1:] }, io.ErrUnexpectedEOF},
		"of another type":  {top, func(p *Part, _ *countedFile) { p.DType = tfpb.DataType_DT_INT8 }, ErrSlices},
		"of another shape": {top, func(p *Part, _ *countedFile) { p.Full = []int64{4, 3} }, ErrSlices},
		"missing":          {top, func(p *Part, _ *countedFile) { *p = top }, ErrSlices},
	} {
		var second Part
		var file *countedFile
		if name == "damaged column" {
			second, file = slicePart(3, 4, [2]int64{0, 3}, [2]int64{1, 3})
		} else {
			second, file = slicePart(3, 4, [2]int64{2, 1}, [2]int64{0, 4})
		}
		c.change(&second, file)
		p := JoinParts([]Part{second, c.first})
		if got, err := p.Load(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
		if file.opened != file.closed {
			t.Errorf("%s: opened %d times, closed %d times", name, file.opened, file.closed)
		}
	}
	whole, _ := slicePart(3, 4, [2]int64{0, 3}, [2]int64{0, 4})
	for name, list := range map[string][]Part{"a part alone": {top}, "a part too much": {whole, top}} {
		p := JoinParts(list)
		if got, err := p.Load(); !errors.Is(err, ErrSlices) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := JoinSlices(nil); !errors.Is(err, ErrSlices) {
		t.Errorf("no slices: %v", err)
	}
}

// stringsPart returns a row of a list of strings.
func stringsPart(at int64, err error) Part {
	return Part{Name: "words", DType: tfpb.DataType_DT_STRING, Full: []int64{2}, Shape: []int64{1},
		Slice:   TensorSlice{Start: []int64{at}, Length: []int64{1}},
		Strings: func() ([][]byte, error) { return [][]byte{fmt.Append(nil, "word ", at)}, err }}
}

func TestJoinPartsOfStrings(t *testing.T) {
	p := JoinParts([]Part{stringsPart(1, nil), stringsPart(0, nil)})
	got, err := p.Load()
	if err != nil || string(bytes.Join(got.Strings, nil)) != "word 0word 1" {
		t.Errorf("got %v, %v", got, err)
	}
	damage := errors.New("damage")
	p = JoinParts([]Part{stringsPart(1, damage), stringsPart(0, nil)})
	if got, err := p.Load(); !errors.Is(err, damage) {
		t.Errorf("damaged: %v, %v", got, err)
	}
}

// Elements of a type that TensorFlow lacks are joined where it takes no knowledge of them.
func TestJoinForeignParts(t *testing.T) {
	slice := func(data string, start, length []int64) Part {
		return Part{
			Name: "s", Full: []int64{2, 2}, Slice: TensorSlice{Start: start, Length: length}, Shape: length, Foreign: "F8", Bytes: int64(len(data)),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(data)), nil },
		}
	}
	rows := JoinParts([]Part{slice("cd", []int64{1, 0}, []int64{1, 2}), slice("ab", []int64{0, 0}, []int64{1, 2})})
	if size, err := rows.Size(); rows.Foreign != "F8" || rows.Err != nil || size != 4 || err != nil {
		t.Fatalf("rows: %+v, %d bytes, %v", rows, size, err)
	}
	r, err := rows.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); string(b) != "abcd" || err != nil {
		t.Errorf("rows are %q, %v", b, err)
	}
	columns := JoinParts([]Part{slice("ac", []int64{0, 0}, []int64{2, 1}), slice("bd", []int64{0, 1}, []int64{2, 1})})
	if !errors.Is(columns.Err, ErrType) || columns.Foreign != "F8" || columns.Open != nil {
		t.Errorf("columns: %+v", columns)
	}
}
