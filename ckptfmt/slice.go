package ckptfmt

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	tfpb "github.com/trainerd/trainerd/proto"
)

// full is the length of a slice's dimension that is taken whole.
const full = -1

// TensorSlice is a box cut out of a tensor: the first index and the number of
// indices in each dimension. A dimension taken whole has start 0 and length
// -1. The text form joins "start,length" or "-" for each dimension with
// colons: "0,10:-".
type TensorSlice struct {
	Start, Length []int64
}

// fullSlices has the full slice of each usual rank, shared by the parts of files: there
// may be a hundred thousand of them.
var fullSlices = sync.OnceValue(func() []TensorSlice {
	list := make([]TensorSlice, 9)
	for rank := range list {
		list[rank] = FullSlice(rank)
	}
	return list
})

// sharedFullSlice is a [FullSlice] that must not be changed.
func sharedFullSlice(rank int) TensorSlice {
	if all := fullSlices(); rank < len(all) {
		return all[rank]
	}
	return FullSlice(rank)
}

// FullSlice returns the slice that covers a whole tensor of the given rank.
func FullSlice(rank int) TensorSlice {
	both := make([]int64, 2*rank)
	s := TensorSlice{Start: both[:rank:rank], Length: both[rank:]}
	for i := range s.Length {
		s.Length[i] = full
	}
	return s
}

// ParseTensorSlice parses the text form of a slice. The empty text is the
// slice of a scalar.
func ParseTensorSlice(text string) (TensorSlice, error) {
	var s TensorSlice
	for part := range strings.SplitSeq(text, ":") {
		if part == "" {
			continue // TensorFlow skips empty parts
		}
		start, length := int64(0), int64(full)
		if part != "-" {
			var err error
			if start, length, err = parseExtent(part); err != nil {
				return TensorSlice{}, fmt.Errorf("ckptfmt: slice %q: %w", text, err)
			}
		}
		s.Start = append(s.Start, start)
		s.Length = append(s.Length, length)
	}
	return s, nil
}

func parseExtent(part string) (start, length int64, err error) {
	a, b, ok := strings.Cut(part, ",")
	if !ok {
		return 0, 0, fmt.Errorf("%q is neither a pair start,length nor -", part)
	}
	if start, err = strconv.ParseInt(a, 10, 64); err != nil {
		return 0, 0, err
	}
	if length, err = strconv.ParseInt(b, 10, 64); err != nil {
		return 0, 0, err
	}
	return start, length, checkExtent(start, length)
}

func checkExtent(start, length int64) error {
	if start < 0 || length <= 0 || start > math.MaxInt64-length {
		return fmt.Errorf("start %d and length %d are not a range", start, length)
	}
	return nil
}

// ParseShapeAndSlice parses the argument of save and restore ops for each
// tensor, such as "8 3 0,3:-": the full shape, then the slice of it. It also
// returns the slice's own shape. The empty text means a whole tensor, and
// gives no shape and no slice.
func ParseShapeAndSlice(text string) (shape []int64, s TensorSlice, sliceShape []int64, err error) {
	if text == "" {
		return nil, TensorSlice{}, nil, nil
	}
	parts := strings.Split(text, " ")
	dims, spec := parts[:len(parts)-1], parts[len(parts)-1]
	for _, p := range dims {
		d, err := strconv.ParseInt(p, 10, 64)
		if err != nil || d < 0 {
			return nil, TensorSlice{}, nil, fmt.Errorf("ckptfmt: shape and slice %q: bad dimension %q", text, p)
		}
		shape = append(shape, d)
	}
	if s, err = ParseTensorSlice(spec); err != nil {
		return nil, TensorSlice{}, nil, err
	}
	if sliceShape, err = s.Shape(shape); err != nil {
		return nil, TensorSlice{}, nil, fmt.Errorf("ckptfmt: shape and slice %q: %w", text, err)
	}
	return shape, s, sliceShape, nil
}

// String returns the text form.
func (s TensorSlice) String() string {
	var b strings.Builder
	for i, n := range s.Length {
		if i > 0 {
			b.WriteByte(':')
		}
		if n == full {
			b.WriteByte('-')
			continue
		}
		fmt.Fprintf(&b, "%d,%d", s.Start[i], n)
	}
	return b.String()
}

// Shape returns the shape of the slice s of a tensor with shape of. If s is
// not within that tensor, the error matches [ErrSlices].
func (s TensorSlice) Shape(of []int64) ([]int64, error) {
	if len(s.Start) != len(of) || len(s.Length) != len(of) {
		return nil, fmt.Errorf("%w: slice %q has rank %d, shape %v has %d", ErrSlices, s, len(s.Length), of, len(of))
	}
	shape := make([]int64, len(of))
	for i, n := range s.Length {
		if n == full {
			shape[i] = of[i]
			continue
		}
		if err := checkExtent(s.Start[i], n); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSlices, err)
		}
		if s.Start[i]+n > of[i] {
			return nil, fmt.Errorf("%w: slice %q is not within shape %v", ErrSlices, s, of)
		}
		shape[i] = n
	}
	return shape, nil
}

// isFull reports whether s, which lies within shape, is all of it.
func (s TensorSlice) isFull(shape []int64) bool {
	for i, n := range s.Length {
		if n != full && (s.Start[i] != 0 || n != shape[i]) {
			return false
		}
	}
	return true
}

// isWhole reports whether s is all of a tensor, whatever its shape.
func (s TensorSlice) isWhole() bool {
	return !slices.ContainsFunc(s.Length, func(n int64) bool { return n != full })
}

func (s TensorSlice) proto() *tfpb.TensorSliceProto {
	p := &tfpb.TensorSliceProto{}
	for i, n := range s.Length {
		e := &tfpb.TensorSliceProto_Extent{}
		if n != full {
			e.Start = s.Start[i]
			e.HasLengthHack = &tfpb.TensorSliceProto_Extent_Length{Length: n}
		}
		p.Extent = append(p.Extent, e)
	}
	return p
}

func sliceFromProto(p *tfpb.TensorSliceProto) (TensorSlice, error) {
	s := FullSlice(len(p.GetExtent()))
	for i, e := range p.GetExtent() {
		if e.GetHasLengthHack() == nil {
			continue
		}
		s.Start[i], s.Length[i] = e.GetStart(), e.GetLength()
		if err := checkExtent(s.Start[i], s.Length[i]); err != nil {
			return TensorSlice{}, err
		}
	}
	return s, nil
}

// sliceKey returns the key under which a slice of the named tensor is stored.
func sliceKey(name string, s TensorSlice) []byte {
	b := appendOrderedUint(nil, 0)
	b = appendOrderedString(b, name)
	b = appendOrderedUint(b, uint64(len(s.Length)))
	for i, n := range s.Length {
		b = appendOrderedInt(b, s.Start[i])
		b = appendOrderedInt(b, n)
	}
	return b
}

// isSliceKey reports whether a key is one that [sliceKey] gives: those begin
// with a zero byte, as no other key does.
func isSliceKey(key []byte) bool { return len(key) > 0 && key[0] == 0 }

// parseSliceKey is the inverse of [sliceKey].
func parseSliceKey(key []byte) (string, TensorSlice, error) {
	zero, b, err := cutOrderedUint(key)
	if err != nil || zero != 0 {
		return "", TensorSlice{}, errOrderedCode
	}
	name, b, err := cutOrderedString(b)
	if err != nil {
		return "", TensorSlice{}, err
	}
	rank, b, err := cutOrderedUint(b)
	if err != nil || rank > uint64(len(b)) {
		return "", TensorSlice{}, errOrderedCode
	}
	s := FullSlice(int(rank))
	for i := range s.Length {
		if s.Start[i], b, err = cutOrderedInt(b); err != nil {
			return "", TensorSlice{}, err
		}
		if s.Length[i], b, err = cutOrderedInt(b); err != nil {
			return "", TensorSlice{}, err
		}
		if s.Length[i] == full && s.Start[i] != 0 { // no slice is looked for there
			return "", TensorSlice{}, fmt.Errorf("%w: a whole dimension begins at %d", ErrSlices, s.Start[i])
		}
	}
	if len(b) > 0 {
		return "", TensorSlice{}, errOrderedCode
	}
	return name, s, nil
}
