package ckptfmt

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/dtype"

	tfpb "github.com/trainerd/trainerd/proto"
)

func TestParseShapeAndSlice(t *testing.T) {
	for _, tc := range []struct {
		text, shape, slice, sliceShape string // "error": refused
	}{
		{"", "[]", "", "[]"},
		{"8 3 0,3:-", "[8 3]", "0,3:-", "[3 3]"},
		{"8 3 -:-", "[8 3]", "-:-", "[8 3]"},
		{"4 6 2,2:0,3", "[4 6]", "2,2:0,3", "[2 3]"},
		{"2000000000 134217728,9", "[2000000000]", "134217728,9", "[9]"},
		{"8 3 0,3", "error", "", ""},
		{"8 0,9", "error", "", ""},
		{"8 -1,2", "error", "", ""},
		{"8 0,0", "error", "", ""},
		{"8 0,-1", "error", "", ""},
		{"8 1", "error", "", ""},
		{"8 a,b", "error", "", ""},
		{"8 0,b", "error", "", ""},
		{"x 0,1", "error", "", ""},
		{"-8 -", "error", "", ""},
		{"8 9223372036854775807,1", "error", "", ""},
		{"8 99999999999999999999,1", "error", "", ""},
		{"8  -", "error", "", ""},
	} {
		shape, s, sliceShape, err := ParseShapeAndSlice(tc.text)
		if tc.shape == "error" {
			if err == nil {
				t.Errorf("%q: %v %q, want an error", tc.text, shape, s)
			}
			continue
		}
		if err != nil || fmt.Sprint(shape) != tc.shape || s.String() != tc.slice || fmt.Sprint(sliceShape) != tc.sliceShape {
			t.Errorf("%q: %v %q %v %v", tc.text, shape, s, sliceShape, err)
		}
	}
}

// The codes of the numbers were read off keys that TensorFlow wrote.
func TestOrderedCode(t *testing.T) {
	for _, tc := range []struct {
		v    int64
		want string
	}{
		{-1, "\x7f"}, {0, "\x80"}, {1, "\x81"}, {63, "\xbf"}, {64, "\xc0\x40"}, {70, "\xc0\x46"}, {8191, "\xdf\xff"},
		{8192, "\xe0\x20\x00"}, {1048575, "\xef\xff\xff"}, {1048576, "\xf0\x10\x00\x00"},
		{134217727, "\xf7\xff\xff\xff"}, {134217728, "\xf8\x08\x00\x00\x00"},
	} {
		if got := string(appendOrderedInt(nil, tc.v)); got != tc.want {
			t.Errorf("%d: %x, want %x", tc.v, got, tc.want)
		}
	}
	for v, want := range map[uint64]string{0: "\x00", 2: "\x01\x02", 300: "\x02\x01\x2c"} {
		if got := string(appendOrderedUint(nil, v)); got != want {
			t.Errorf("%d: %x, want %x", v, got, want)
		}
	}
	if got := string(appendOrderedString(nil, "a\x00b\xff")); got != "a\x00\xffb\xff\x00\x00\x01" {
		t.Errorf("string: %x", got)
	}
}

// All lengths of codes, at the limits of each: they come back, and sort as
// the numbers do.
// Every number and name has one code, and no code begins with another.
func TestOrderedCodeLimits(t *testing.T) {
	for _, v := range []uint64{0, 1, 127, 128, 255, 256, 1 << 32, 1 << 56, math.MaxUint64} {
		code := appendOrderedUint(nil, v)
		if got, rest, err := cutOrderedUint(append(slices.Clone(code), 0xaa)); got != v || len(rest) != 1 || err != nil {
			t.Errorf("%d is read as %d, %x, %v", v, got, rest, err)
		}
		for n := range code {
			if _, _, err := cutOrderedUint(code[:n:n]); err == nil {
				t.Errorf("%d bytes of the code of %d: no error", n, v)
			}
		}
	}
	for _, s := range []string{"", "a", "a\x00b\xff"} {
		code := appendOrderedString(nil, s)
		for n := range code {
			if got, _, err := cutOrderedString(code[:n:n]); err == nil {
				t.Errorf("%d bytes of the code of %q: %q", n, s, got)
			}
		}
	}
	for _, v := range []int64{0, -1, 64, 1 << 20, math.MinInt64, math.MaxInt64} {
		code := appendOrderedInt(nil, v)
		for n := range code {
			if _, _, err := cutOrderedInt(code[:n:n]); err == nil {
				t.Errorf("%d bytes of the code of %d: no error", n, v)
			}
		}
	}
	if v, _, err := cutOrderedInt([]byte{0xc0, 1}); err == nil {
		t.Errorf("a longer code than needed is %d", v)
	}
}

// What is not a slice is refused, and the largest one is read.
func TestParseTensorSliceRefuses(t *testing.T) {
	for _, text := range []string{"x", "1", "a,1", "1,b", "-1,1", "1,0", "-:1,", "1,9223372036854775807"} {
		if s, err := ParseTensorSlice(text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
		if _, _, _, err := ParseShapeAndSlice("9 9 -:" + text); err == nil {
			t.Errorf("the shape and slice of %q: no error", text)
		}
	}
	if s, err := ParseTensorSlice("1,9223372036854775806"); err != nil || s.Length[0] != math.MaxInt64-1 {
		t.Errorf("%v, %v", s, err)
	}
	if shape, _, _, err := ParseShapeAndSlice("0 1 -:-"); err != nil || !slices.Equal(shape, []int64{0, 1}) {
		t.Errorf("a shape of no elements: %v, %v", shape, err)
	}
	for _, s := range []TensorSlice{{Start: []int64{0}, Length: []int64{1, 1}}, {Start: []int64{0, 0}, Length: []int64{1}}} {
		if _, err := s.Shape([]int64{2, 2}); !errors.Is(err, ErrSlices) {
			t.Errorf("%d starts and %d lengths: %v", len(s.Start), len(s.Length), err)
		}
	}
	backwards := &tfpb.TensorSliceProto{Extent: []*tfpb.TensorSliceProto_Extent{{Start: -1, HasLengthHack: &tfpb.TensorSliceProto_Extent_Length{Length: 1}}}}
	if s, err := sliceFromProto(backwards); err == nil {
		t.Errorf("a slice that begins before its tensor: %v", s)
	}
}

func TestOrderedIntLimits(t *testing.T) {
	var values []int64
	for bit := range 63 {
		for d := int64(-1); d <= 1; d++ {
			values = append(values, int64(1)<<bit+d, -int64(1)<<bit+d)
		}
	}
	values = append(values, math.MinInt64, math.MaxInt64, 0)
	slices.Sort(values)
	var last []byte
	for _, v := range slices.Compact(values) {
		code := appendOrderedInt(nil, v)
		got, rest, err := cutOrderedInt(append(slices.Clone(code), 0xaa))
		if err != nil || got != v || len(rest) != 1 {
			t.Errorf("%d: %x came back as %d, %v", v, code, got, err)
		}
		if bytes.Compare(last, code) >= 0 {
			t.Errorf("%d: %x does not sort behind %x", v, code, last)
		}
		last = code
	}
}

func FuzzSliceSpec(f *testing.F) {
	for _, s := range []string{"", "-", "0,3:-", "8 3 0,3:-", "2000000000 134217728,9", "4 6 -:3,3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shape, s, sliceShape, err := ParseShapeAndSlice(text)
		if err != nil {
			return
		}
		if got, err := s.Shape(shape); err != nil || !slices.Equal(got, sliceShape) {
			t.Fatalf("shape %v, %v", got, err)
		}
		again, err := ParseTensorSlice(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q came back as %q, %v", s, again, err)
		}
		name, parsed, err := parseSliceKey(sliceKey(text, s))
		if err != nil || name != text || parsed.String() != s.String() {
			t.Fatalf("key of %q %q came back as %q %q, %v", text, s, name, parsed, err)
		}
	})
}

func FuzzSliceKey(f *testing.F) {
	f.Add([]byte("\x00emb/table\x00\x01\x01\x02\x80\x83\x80\x7f"))
	f.Add(sliceKey("a\x00\xff", TensorSlice{[]int64{1 << 40}, []int64{1 << 50}}))
	f.Fuzz(func(t *testing.T, key []byte) {
		name, s, err := parseSliceKey(key)
		if err != nil {
			return
		}
		if again := sliceKey(name, s); !bytes.Equal(again, key) {
			t.Fatalf("%x came back as %x", key, again)
		}
	})
}

// A tensor cut into slices at random comes back whole and in any part.
func TestSlicesMetamorphic(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	for n := range 20 {
		shape := make([]int64, 1+r.IntN(3))
		for i := range shape {
			shape[i] = 1 + r.Int64N(6)
		}
		elements, err := dtype.NumElements(shape)
		if err != nil {
			t.Fatal(err)
		}
		whole := &Tensor{DType: tfpb.DataType_DT_INT32, Shape: shape, Data: splitmix64(uint64(n), int(4*elements))}
		if n%4 == 0 {
			whole = &Tensor{DType: tfpb.DataType_DT_STRING, Shape: shape}
			for i := range elements {
				whole.Strings = append(whole.Strings, []byte(strings.Repeat("s", int(i))))
			}
		}
		prefix := filepath.Join(t.TempDir(), "model.ckpt")
		v1 := filepath.Join(t.TempDir(), "model.ckpt")
		saveSlices(t, r, prefix, v1, whole)
		for _, p := range []string{prefix, v1} {
			checkSlices(t, r, p, whole)
		}
	}
}

// saveSlices stores a tensor as slices along its first dimension, in any
// order.
func saveSlices(t *testing.T, r *rand.Rand, prefix, v1 string, whole *Tensor) {
	t.Helper()
	w, err := CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w1, err := CreateV1(v1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w1.Close()
	var cuts []TensorSlice
	for start := int64(0); start < whole.Shape[0]; {
		s := FullSlice(len(whole.Shape))
		s.Start[0], s.Length[0] = start, 1+r.Int64N(whole.Shape[0]-start)
		start += s.Length[0]
		cuts = append(cuts, s)
	}
	r.Shuffle(len(cuts), func(i, j int) { cuts[i], cuts[j] = cuts[j], cuts[i] })
	for _, s := range cuts {
		part := cutSlice(whole, s)
		if err := errors.Join(w.AddSlice("x", whole.Shape, s, part), w1.AddSlice("x", whole.Shape, s, part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Finish(), w1.Finish()); err != nil {
		t.Fatal(err)
	}
}

func checkSlices(t *testing.T, r *rand.Rand, prefix string, whole *Tensor) {
	t.Helper()
	c, err := Open(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.Lookup("x")
	if err != nil || tensorHash(got) != tensorHash(whole) {
		t.Fatalf("the whole differs, %v", err)
	}
	for range 5 {
		s := FullSlice(len(whole.Shape))
		for i, d := range whole.Shape {
			if r.IntN(2) == 0 {
				s.Start[i] = r.Int64N(d)
				s.Length[i] = 1 + r.Int64N(d-s.Start[i])
			}
		}
		want := cutSlice(whole, s)
		got, err := c.LookupSlice("x", s)
		if err != nil || tensorHash(got) != tensorHash(want) || !slices.Equal(got.Shape, want.Shape) {
			t.Errorf("slice %q of %v differs, %v", s, whole.Shape, err)
		}
	}
}

func TestSlicesThatDoNotFit(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cuts  []string
		wants error
	}{
		{"a gap", []string{"0,2", "3,1"}, ErrSlices},
		{"an overlap", []string{"0,3", "2,2"}, ErrSlices},
		{"whole", []string{"2,2", "0,2"}, nil},
	} {
		prefix := filepath.Join(t.TempDir(), "model.ckpt")
		w, err := CreateBundle(prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for _, c := range tc.cuts {
			s, err := ParseTensorSlice(c)
			if err != nil {
				t.Fatal(err)
			}
			part, err := FromValues([]int64{s.Length[0]}, make([]float32, s.Length[0]))
			if err != nil {
				t.Fatal(err)
			}
			if err := w.AddSlice("x", []int64{4}, s, part); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		r, err := OpenBundle(prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Lookup("x"); !errors.Is(err, tc.wants) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.wants)
		}
		bad := false
		for _, err := range r.Verify(t.Context()) {
			bad = bad || err != nil
		}
		if bad != (tc.wants != nil) {
			t.Errorf("%s: Verify says %v", tc.name, bad)
		}
	}
}

// A slice made by hand, not parsed, is checked where it is used.
func TestSliceThatIsNoRange(t *testing.T) {
	for _, s := range []TensorSlice{{[]int64{-1}, []int64{2}}, {[]int64{0}, []int64{0}}, {[]int64{1}, []int64{math.MaxInt64}}} {
		if shape, err := s.Shape([]int64{4}); !errors.Is(err, ErrSlices) || !strings.Contains(err.Error(), "are not a range") {
			t.Errorf("%v: %v, %v", s, shape, err)
		}
	}
}

// What is missing of a tensor in very many slices is not looked for.
func TestMissingOfMany(t *testing.T) {
	boxes := make([]box, maxMissing+1)
	for i := range boxes {
		boxes[i] = box{[]int64{int64(2 * i)}, []int64{1}}
	}
	whole := box{[]int64{0}, []int64{int64(2 * len(boxes))}}
	if text := missingText(boxes, whole); text != "" {
		t.Errorf("of %d: %s", len(boxes), text)
	}
	if text := missingText(boxes[:maxMissing-1], whole); text != "; missing: 1,1 and more" {
		t.Errorf("of %d: %s", maxMissing-1, text)
	}
}

// Slices of a tensor without elements, and of a scalar.
func TestSliceOfNothingAndOfOne(t *testing.T) {
	w, prefix := newBundle(t, &BundleWriterOptions{NoSync: true})
	none, err := FromValues([]int64{0, 5}, []string{})
	if err := errors.Join(err, w.Add("none", none), w.Add("one", Scalar("x")), w.Finish()); err != nil {
		t.Fatal(err)
	}
	r := openBundle(t, prefix, nil)
	if got, err := r.LookupSlice("none", TensorSlice{[]int64{0, 1}, []int64{full, 2}}); err != nil || !slices.Equal(got.Shape, []int64{0, 2}) || len(got.Strings) > 0 {
		t.Errorf("of no elements: %v, %v", got, err)
	}
	if got, err := r.LookupSlice("one", FullSlice(0)); err != nil || len(got.Shape) > 0 || string(got.Strings[0]) != "x" {
		t.Errorf("of a scalar: %v, %v", got, err)
	}
}
