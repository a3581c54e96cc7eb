package ckptfmt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

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
	verdicts := maps.Collect(VerifyParts(t.Context(), parts))
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

// failing is a reader whose tensors cannot be listed, or opened.
type failing struct {
	Reader
	err   error
	infos []TensorInfo
}

func (r *failing) Tensors() iter.Seq2[TensorInfo, error] {
	return func(yield func(TensorInfo, error) bool) {
		for _, info := range r.infos {
			if !yield(info, nil) {
				return
			}
		}
		if r.infos == nil {
			yield(TensorInfo{}, r.err)
		}
	}
}

func (r *failing) OpenTensor(string) (*TensorReader, error) { return nil, r.err }
func (r *failing) Lookup(string) (*Tensor, error)           { return nil, r.err }

// TestPartsOfFailingReader has a reader of no format of this package: its errors are those
// of its parts, and types that TensorFlow does not have keep their names and sizes.
func TestPartsOfFailingReader(t *testing.T) {
	damage := errors.New("damage")
	if _, _, err := wholeParts(&failing{err: damage}); err != damage {
		t.Errorf("a reader that cannot be listed: %v", err)
	}
	parts, damaged, err := wholeParts(&failing{err: damage, infos: []TensorInfo{
		{Name: "a", DType: tfpb.DataType_DT_UINT8, Shape: []int64{3}, Foreign: "F8_E8M0", Bytes: 3},
		{Name: "b", DType: tfpb.DataType_DT_STRING, Shape: []int64{1}},
	}})
	if err != nil || damaged != nil || len(parts) != 2 {
		t.Fatalf("%v, %v, %v", parts, damaged, err)
	}
	if _, err := parts[0].Open(); err != damage || parts[0].Foreign != "F8_E8M0" || parts[0].Bytes != 3 {
		t.Errorf("a part of a type that TensorFlow does not have: %+v, %v", parts[0], err)
	}
	if _, err := parts[1].Strings(); err != damage {
		t.Errorf("strings: %v", err)
	}
}

// TestCheckV1 has what a V1 checkpoint can hold, and what not.
func TestCheckV1(t *testing.T) {
	damage := errors.New("damage")
	for _, tc := range []struct {
		part Part
		want error
	}{
		{Part{Name: "w", DType: tfpb.DataType_DT_FLOAT}, nil}, {Part{Name: "w", DType: tfpb.DataType_DT_BFLOAT16}, ErrType},
		{Part{Name: "w", DType: tfpb.DataType_DT_FLOAT, Err: damage}, damage},
	} {
		if err := CheckV1(tc.part); !errors.Is(err, tc.want) {
			t.Errorf("%v: %v, want %v", tc.part.DType, err, tc.want)
		}
	}
}

// storedList is a list that knows under which names its file stores tensors.
type storedList struct{ partSlice }

func (l storedList) Stored(name string) (int, bool) { return 0, name == "stored" }

// TestPartListReader has a list whose file stores a tensor under a second name, and one
// that has no such names.
func TestPartListReader(t *testing.T) {
	parts := partSlice{WholePart("w", tfpb.DataType_DT_UINT8, []int64{3}, (&countedFile{data: make([]byte, 3)}).open)}
	for _, tc := range []struct {
		list PartList
		want error
	}{{storedList{parts}, nil}, {parts, ErrNotFound}} {
		r, err := NewPartListReader(tc.list, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Info("stored"); !errors.Is(err, tc.want) {
			t.Errorf("%T: %v, want %v", tc.list, err, tc.want)
		}
	}
}
