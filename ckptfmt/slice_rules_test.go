package ckptfmt

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

// The full slices that files share are those of each rank.
func TestSharedFullSlices(t *testing.T) {
	for rank := range 12 {
		if got, want := sharedFullSlice(rank), FullSlice(rank); !slices.Equal(got.Start, want.Start) || !slices.Equal(got.Length, want.Length) {
			t.Errorf("of rank %d: %v", rank, got)
		}
	}
}

// What begins with a zero byte is the key of a slice, and what is none is refused.
func TestOtherKeysOfSlices(t *testing.T) {
	for key, want := range map[string]bool{"": false, "\x00": true, "\x00a": true, "a\x00": false} {
		if got := isSliceKey([]byte(key)); got != want {
			t.Errorf("%q is the key of a slice: %v", key, got)
		}
	}
	whole := sliceKey("a", TensorSlice{[]int64{1}, []int64{2}})
	for _, key := range [][]byte{{}, append([]byte{1, 5}, whole[1:]...)} {
		if name, s, err := parseSliceKey(key); !errors.Is(err, errOrderedCode) {
			t.Errorf("%q is %q, %v, %v", key, name, s, err)
		}
	}
}

// Slices side by side cover a vector; two of a scalar overlap.
func TestCoverOfFewDimensions(t *testing.T) {
	if err := checkCover([]box{{[]int64{0}, []int64{2}}, {[]int64{2}, []int64{1}}}, box{[]int64{0}, []int64{3}}); err != nil {
		t.Errorf("a vector: %v", err)
	}
	if err := checkCover([]box{{}, {}}, box{}); !errors.Is(err, ErrSlices) || !strings.Contains(err.Error(), "overlapping") {
		t.Errorf("a scalar: %v", err)
	}
}

// row returns so many boxes of one element, each so far from the one before.
func row(n, apart int) []box {
	boxes := make([]box, n)
	for i := range boxes {
		boxes[i] = box{[]int64{int64(i*apart + apart - 1)}, []int64{1}}
	}
	return boxes
}

// What is missing is said while the boxes, and the holes between them, are not too many.
func TestMissingAtTheLimit(t *testing.T) {
	for _, tt := range []struct {
		boxes []box
		whole int64
		want  string
	}{
		{row(maxMissing, 1), maxMissing + 1, "; missing: 1000,1"},
		{row(maxMissing+1, 1), maxMissing + 2, ""},
		{row(maxMissing-1, 2), 2*maxMissing - 1, "; missing: 0,1 and more"},
		{row(maxMissing, 2), 2*maxMissing + 1, ""},
		{row(2, 2), 5, "; missing: 0,1 and more"},
		{row(2, 1), 3, "; missing: 2,1"},
	} {
		if got := missingText(tt.boxes, box{[]int64{0}, []int64{tt.whole}}); got != tt.want {
			t.Errorf("%d boxes in %d elements: %q, want %q", len(tt.boxes), tt.whole, got, tt.want)
		}
	}
}

// What is left around a box has each element once.
func TestWithout(t *testing.T) {
	whole, hole := box{[]int64{0, 0}, []int64{4, 5}}, box{[]int64{1, 1}, []int64{2, 2}}
	left := whole.without(hole)
	n := hole.elements()
	for _, b := range left {
		n += b.elements()
	}
	if overlap(append(left, hole)) || n != whole.elements() {
		t.Errorf("left are %v", left)
	}
}

// A tensor of one slice may be a scalar, or have no elements.
func TestJoinOneSlice(t *testing.T) {
	none, err := FromValues([]int64{0, 2}, []int32{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []*Tensor{none, Scalar(int32(7))} {
		got, err := JoinSlices([]Part{want.Part("x")})
		if err != nil || !slices.Equal(got.Shape, want.Shape) || string(got.Data) != string(want.Data) {
			t.Errorf("%v: %v, %v", want, got, err)
		}
	}
}

// A part that cannot be says so, whatever is asked of it.
func TestPartsThatCannotBe(t *testing.T) {
	broken := errors.New("broken")
	words := Part{Name: "w", DType: tfpb.DataType_DT_STRING, Shape: []int64{-1}, Strings: func() ([][]byte, error) { return nil, broken }}
	if n, err := words.Size(); err == nil {
		t.Errorf("texts of shape [-1] take %d bytes", n)
	}
	for name, err := range VerifyParts(t.Context(), []Part{words}) {
		if name != "w" || !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckBundle(Part{Name: "f", Foreign: "F4"}); !errors.Is(err, ErrType) {
		t.Errorf("a type that TensorFlow lacks: %v", err)
	}
}

// longList is a list of so many tensors.
type longList struct {
	PartList
	n int
}

func (l longList) Len() int        { return l.n }
func (l longList) ByName() []int32 { return nil }

// A list has at most as many tensors as there are numbers for them, and no two of one name.
func TestPartListLimits(t *testing.T) {
	for n, ok := range map[int]bool{math.MaxInt32: true, math.MaxInt32 + 1: false} {
		if _, err := NewPartListReader(longList{n: n}, nil); (err == nil) != ok {
			t.Errorf("%d tensors: %v", n, err)
		}
	}
	part := func(name string) Part { return Scalar(int32(7)).Part(name) }
	for _, names := range [][]string{{"b", "b", "a"}, {"a", "a"}, {"b", "a", "b"}, {"b", "a", "a"}} {
		var parts []Part
		for _, name := range names {
			parts = append(parts, part(name))
		}
		if _, err := NewPartsReader(parts, nil); !errors.Is(err, ErrExists) {
			t.Errorf("%q: %v", names, err)
		}
	}
}

// Who changes the shape of a tensor that was listed changes that of no other.
func TestListedShapesAreTheCallers(t *testing.T) {
	x, err := FromValues([]int64{2}, []int32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewPartsReader([]Part{x.Part("x")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for info, err := range r.Tensors() {
			if err != nil || !slices.Equal(info.Shape, []int64{2}) {
				t.Errorf("%v, %v", info, err)
			}
			info.Shape[0] = 7
		}
	}
	if got, err := r.Lookup("x"); err != nil || len(got.Data) != 8 {
		t.Errorf("%v, %v", got, err)
	}
}

// halfTensor has the first half of x.
func halfTensor(t *testing.T) (half *Tensor, full []int64, s TensorSlice) {
	t.Helper()
	half, err := FromValues([]int64{2}, []int32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	return half, []int64{4}, TensorSlice{[]int64{0}, []int64{2}}
}

// A tensor whose other slices are not there is damaged, and nothing is read of it.
func TestHalfATensor(t *testing.T) {
	half, full, s := halfTensor(t)
	name := filepath.Join(t.TempDir(), "v1.ckpt")
	w1, err := CreateV1(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w1.Close()
	w2, prefix := newBundle(t, nil)
	if err := errors.Join(w1.AddSlice("x", full, s, half), w1.Finish(), w2.AddSlice("x", full, s, half), w2.Finish()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{name, prefix} {
		r, err := Open(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for info, err := range r.Tensors() {
			if info.Name != "x" || !errors.Is(err, ErrSlices) {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
		}
		if parts, damaged, err := IntactParts(r); len(parts) > 0 || len(damaged) != 1 || err != nil {
			t.Errorf("%s: intact are %v, damaged %v; %v", name, parts, damaged, err)
		}
	}
	if v, err := openBundle(t, prefix, &ReaderOptions{Mmap: true}).View("x"); !errors.Is(err, ErrSlices) {
		t.Errorf("viewed is %v, %v", v, err)
	}
}

// Variants that are cut, or followed by something, are not what their bytes say.
func TestDecodeVariants(t *testing.T) {
	whole, _ := encodeVariants([][]byte{{}, []byte("v"), {}})
	if vals, _, err := decodeVariants(whole, 3); err != nil || string(vals[1]) != "v" {
		t.Errorf("whole: %q, %v", vals, err)
	}
	for b, want := range map[string]string{
		string(whole) + "x":          "1 bytes after the last variant",
		string(whole[:len(whole)-1]): "variant 2 runs past the tensor's end",
		strings.Repeat("\x80", 9):    "variant 0 runs past the tensor's end",
		strings.Repeat("\xff", 12):   "variant 0 runs past the tensor's end",
		"\x7f" + string(whole[1:]):   "variant 0 runs past the tensor's end",
	} {
		if vals, _, err := decodeVariants([]byte(b), 3); err == nil || err.Error() != want {
			t.Errorf("%q: %q, %v; want %q", b, vals, err, want)
		}
	}
}

// A check whose context has ended says that, and not that the tensor is damaged.
func TestCheckTensorEndsWithItsContext(t *testing.T) {
	w, prefix := newBundle(t, nil)
	if err := errors.Join(w.Add("x", Scalar(int64(1))), w.Finish()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := openBundle(t, prefix, nil).CheckTensor(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A message whose few values fill a larger tensor takes no more memory than it may.
func TestMessagesThatClaimMuch(t *testing.T) {
	for d, n := range map[tfpb.DataType]int64{tfpb.DataType_DT_DOUBLE: maxFilled/8 + 1, tfpb.DataType_DT_INT8: maxFilled + 1, tfpb.DataType_DT_STRING: maxFilled + 1} {
		if _, err := TensorFromProto(&tfpb.TensorProto{Dtype: d, TensorShape: shapeProto([]int64{n})}); err == nil || !strings.Contains(err.Error(), "0 values are to fill") {
			t.Errorf("%d elements of %v: %v", n, d, err)
		}
	}
	if list, err := splitStrings(2, []byte("\x01\x80")); err == nil {
		t.Errorf("a length that does not end: %q", list)
	}
}
