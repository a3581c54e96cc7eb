package ckptfmt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"slices"
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

// odd returns the parts of a file in another order than that of the names: one that is
// whole, one of strings, one that cannot be read, one that is damaged, one that is
// short, and one of a type without a size.
func odd() (parts []Part, file *countedFile, damage error) {
	damage = errors.New("damage")
	whole, file := slicePart(2, 2, [2]int64{0, 2}, [2]int64{0, 2})
	whole.Name, whole.Stored = "whole", "stored whole"
	words := stringsPart(0, nil)
	words.Full = words.Shape
	bytesOf := func(name string, n int, fails error) Part {
		return WholePart(name, tfpb.DataType_DT_UINT8, []int64{3}, (&countedFile{data: make([]byte, n), fails: fails}).open)
	}
	return []Part{whole, words, {Name: "lost", Shape: []int64{1}, Full: []int64{1}, Slice: FullSlice(1), Err: damage},
		bytesOf("damaged", 3, damage), bytesOf("short", 2, nil), bytesOf("long", 4, nil),
		WholePart("odd", tfpb.DataType_DT_RESOURCE, []int64{1}, nil)}, file, damage
}

// TestPartsReader reads a file of another format in all the ways there are.
func TestPartsReader(t *testing.T) {
	parts, file, damage := odd()
	closed := false
	r, err := NewPartsReader(parts, func() error { closed = true; return damage })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for info, err := range r.Tensors() {
		names = append(names, info.Name)
		if failed := info.Name == "lost" || info.Name == "odd"; (err != nil) != failed {
			t.Errorf("%s: %v", info.Name, err)
		}
	}
	if !slices.Equal(names, []string{"damaged", "long", "lost", "odd", "short", "whole", "words"}) || !slices.EqualFunc(r.Parts(), parts, func(a, b Part) bool { return a.Name == b.Name }) {
		t.Errorf("tensors %q", names)
	}
	for _, name := range []string{"whole", "stored whole"} {
		if info, err := r.Info(name); err != nil || info.Name != "whole" || info.Bytes != 4 {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
	for name, want := range map[string]error{"lost": damage, "damaged": damage, "short": io.ErrUnexpectedEOF, "odd": ErrType, "none": ErrNotFound} {
		if _, err := r.Lookup(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if _, err := r.LookupSlice(name, FullSlice(1)); !errors.Is(err, want) {
			t.Errorf("slice of %s: %v, want %v", name, err, want)
		}
	}
	if _, err := r.Lookup("long"); err == nil || !strings.Contains(err.Error(), "more bytes than the shape") {
		t.Errorf("long: %v", err)
	}
	column := TensorSlice{Start: []int64{0, 1}, Length: []int64{2, 1}}
	if got, err := r.LookupSlice("whole", column); err != nil || !bytes.Equal(got.Data, []byte{1, 3}) {
		t.Errorf("a column: %v, %v", got, err)
	}
	column.Start[1] = 2
	if got, err := r.LookupSlice("whole", column); err == nil {
		t.Errorf("a column too far right: %v, %v", got, err)
	}
	if file.opened != file.closed {
		t.Errorf("opened %d times, closed %d times", file.opened, file.closed)
	}
	if err := r.Close(); !closed || err != damage {
		t.Errorf("closed %v, %v", closed, err)
	}
}

// TestPartsReaderInOrder reads a file whose tensors are ordered by name, as its reader
// is to give them.
func TestPartsReaderInOrder(t *testing.T) {
	parts, _, _ := odd()
	slices.SortFunc(parts, func(a, b Part) int { return strings.Compare(a.Name, b.Name) })
	r, err := NewPartsReader(parts, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for info, err := range r.Tensors() {
		want, wantErr := parts[i].info()
		if !reflect.DeepEqual(info, want) || (err == nil) != (wantErr == nil) {
			t.Errorf("tensor %d is %+v, %v; want %+v, %v", i, info, err, want, wantErr)
		}
		if got, err := r.Info(info.Name); got.Name != info.Name || (err == nil) != (wantErr == nil) {
			t.Errorf("%s: %+v, %v", info.Name, got, err)
		}
		i++
	}
	if got, err := r.Info("stored whole"); i != len(parts) || err != nil || got.Name != "whole" {
		t.Errorf("%d tensors, then %+v, %v", i, got, err)
	}
}

// TestPartsReaderStreams reads tensors in pieces; each closes its file at its end.
func TestPartsReaderStreams(t *testing.T) {
	parts, file, damage := odd()
	r, err := NewPartsReader(parts, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, want := range map[string]error{"whole": nil, "damaged": damage, "lost": damage, "odd": ErrType, "none": ErrNotFound} {
		s, err := r.OpenTensor(name)
		if err == nil {
			_, err = io.ReadAll(s)
			if _, again := s.Read(make([]byte, 1)); err != nil && !errors.Is(again, err) {
				t.Errorf("%s: %v, then %v", name, err, again)
			}
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if s, err := r.OpenTensor("words"); err == nil {
		t.Errorf("strings have a stream: %v", s)
	}
	if file.opened != 1 || file.closed != 1 {
		t.Errorf("opened %d times, closed %d times", file.opened, file.closed)
	}
}

// TestVerifyParts names what is wrong with each tensor, ends with the loop, and with
// its context.
func TestVerifyParts(t *testing.T) {
	parts, file, _ := odd()
	r, err := NewPartsReader(parts, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var bad []string
	for name, err := range r.Verify(t.Context()) {
		if err != nil {
			bad = append(bad, name)
		}
	}
	if want := []string{"damaged", "long", "lost", "odd", "short"}; !slices.Equal(bad, want) {
		t.Errorf("damaged %q, want %q", bad, want)
	}
	if file.opened != file.closed {
		t.Errorf("opened %d times, closed %d times", file.opened, file.closed)
	}
	for range r.Verify(t.Context()) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range r.Verify(ctx) {
		if name != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of its context: %q, %v", name, err)
		}
	}
}

// otherFile is a file of another format.
type otherFile struct {
	*PartsReader
	closes error
}

func (otherFile) Metadata() map[string]string { return nil }
func (otherFile) Checks() string              { return "sizes" }
func (f otherFile) Close() error              { return f.closes }

func TestVerifyFile(t *testing.T) {
	parts, _, damage := odd()
	for name, c := range map[string]struct {
		parts  []Part
		closes error
		want   string
	}{
		"intact":       {parts[:2], nil, ""},
		"damaged":      {parts[3:4], nil, `tensor "damaged": damage`},
		"close fails":  {parts[:2], damage, "damage"},
		"both, joined": {parts[3:4], damage, "tensor \"damaged\": damage\ndamage"},
	} {
		r, err := NewPartsReader(c.parts, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		checks, err := VerifyFile(t.Context(), otherFile{r, c.closes})
		if err != nil {
			got = err.Error()
		}
		if got != c.want || checks != "sizes" {
			t.Errorf("%s: %q, %q; want %q", name, checks, got, c.want)
		}
	}
}

func TestPartsReaderRefuses(t *testing.T) {
	one := WholePart("a", tfpb.DataType_DT_UINT8, nil, nil)
	if _, err := NewPartsReader([]Part{one, one}, nil); !errors.Is(err, ErrExists) {
		t.Errorf("two of a name: %v", err)
	}
	slice, _ := slicePart(2, 2, [2]int64{0, 1}, [2]int64{0, 2})
	if _, err := NewPartsReader([]Part{slice}, nil); !errors.Is(err, ErrSlices) {
		t.Errorf("a slice: %v", err)
	}
}

// A file's Close may fail at the end of its reading, which is then no end; after
// damage, the damage is what is said.
func TestPartsReaderCloseFails(t *testing.T) {
	damage, unclosed := errors.New("damage"), errors.New("not closed")
	for end, want := range map[error]error{io.EOF: unclosed, damage: damage} {
		c := &closedAtEnd{from: struct {
			io.Reader
			io.Closer
		}{endsWith{end}, failingCloser{unclosed}}}
		for range 2 {
			if n, err := c.Read(make([]byte, 1)); n != 0 || err != want {
				t.Errorf("after %v: %d, %v; want %v", end, n, err, want)
			}
		}
	}
}

type failingCloser struct{ error }

func (f failingCloser) Close() error { return f.error }

// manyParts is a list of more tensors than are read; none may be asked for.
type manyParts struct{ PartList }

func (manyParts) Len() int { return math.MaxInt32 + 1 }

func TestTooManyParts(t *testing.T) {
	if _, err := NewPartListReader(manyParts{}, nil); err == nil || err.Error() != "there are 2147483648 tensors, at most 2147483647 are read" {
		t.Errorf("error %v", err)
	}
}

// Parts of other formats are given as they are, with what is wrong with each.
func TestIntactPartsOfAnotherFormat(t *testing.T) {
	parts, _, damage := odd()
	parts = append(parts, WholePart("unopened", tfpb.DataType_DT_UINT8, []int64{1}, func() (io.ReadCloser, error) { return nil, damage }),
		WholePart("scalar", tfpb.DataType_DT_UINT8, nil, (&countedFile{data: []byte{7}}).open),
		WholePart("deep", tfpb.DataType_DT_UINT8, slices.Repeat([]int64{1}, 12), (&countedFile{data: []byte{7}}).open))
	r, err := NewPartsReader(parts, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, damaged, err := IntactParts(r)
	if err != nil || len(got) != len(parts) || damaged != nil {
		t.Errorf("%d parts, %v, %v", len(got), damaged, err)
	}
	verdicts := map[string]error{}
	for name, err := range VerifyParts(t.Context(), parts) {
		verdicts[name] = err
	}
	for name, want := range map[string]error{"lost": damage, "damaged": damage, "unopened": damage, "odd": ErrType, "scalar": nil, "deep": nil, "whole": nil} {
		if err, some := verdicts[name]; !some || !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if _, err := r.OpenTensor("unopened"); err != damage {
		t.Errorf("a stream of what cannot be opened: %v", err)
	}
	if _, err := r.Info("none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("of a name that is not there: %v", err)
	}
	for info := range r.Tensors() {
		if info.Name == "scalar" && info.Shape != nil {
			t.Errorf("the scalar has shape %v", info.Shape)
		}
		if info.Name == "short" {
			break // as a caller may
		}
	}
	if p := got[len(got)-1]; !p.IsWhole() || len(p.Slice.Start) != 12 {
		t.Errorf("a whole part of rank 12 is %v", p.Slice)
	}
	vast := Part{Full: []int64{1 << 40, 1 << 40}, Slice: FullSlice(2)}
	if got, err := JoinSlices([]Part{vast}); err == nil || !strings.Contains(err.Error(), "more elements than an int64 can count") {
		t.Errorf("a shape beyond counting: %v, %v", got, err)
	}
	wide := WholePart("wide", tfpb.DataType_DT_DOUBLE, []int64{1 << 61}, nil)
	if size, err := wide.Size(); err == nil || !strings.Contains(err.Error(), "shape [2305843009213693952] of float64 is larger than any file") {
		t.Errorf("a size beyond counting: %d, %v", size, err)
	}
}

// What ends the reading of a file as a whole is said without a tensor.
func TestVerifyFileEndsWithItsContext(t *testing.T) {
	parts, _, _ := odd()
	r, err := NewPartsReader(parts[:2], nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if checks, err := VerifyFile(ctx, otherFile{PartsReader: r}); checks != "sizes" || !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v", checks, err)
	}
}
