package ckptfmt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Difference is what differs in a tensor between two checkpoints.
type Difference struct {
	Name string
	// A and B describe the tensor in each; nil where it is missing.
	A, B *TensorInfo
	// Elements is how many elements differ, where type and shape are the same;
	// of numbers also by how much at most, absolutely and relatively to the
	// larger of the two. NaN beside NaN does not differ.
	Elements       int64
	MaxAbs, MaxRel float64
	NotNumbers     bool // the elements have no distance
}

// Diff yields the tensors that differ between two checkpoints, ordered by
// name. An error ends the iteration.
func Diff(ctx context.Context, a, b Reader) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		infosA, err := allTensors(a)
		if err != nil {
			yield(Difference{}, err)
			return
		}
		infosB, err := allTensors(b)
		if err != nil {
			yield(Difference{}, err)
			return
		}
		for pair := range pairs(infosA, infosB) {
			if err := ctx.Err(); err != nil {
				yield(Difference{}, err)
				return
			}
			d, differs, err := compare(a, b, pair)
			if err != nil {
				yield(Difference{}, err)
				return
			}
			if differs && !yield(d, nil) {
				return
			}
		}
	}
}

func allTensors(r Reader) ([]TensorInfo, error) {
	var list []TensorInfo
	for info, err := range r.Tensors() {
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

// pairs walks two lists that are ordered by name side by side.
func pairs(a, b []TensorInfo) iter.Seq[Difference] {
	return func(yield func(Difference) bool) {
		for len(a) > 0 || len(b) > 0 {
			var d Difference
			switch {
			case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
				d = Difference{Name: a[0].Name, A: &a[0]}
			case len(a) == 0 || b[0].Name < a[0].Name:
				d = Difference{Name: b[0].Name, B: &b[0]}
			default:
				d = Difference{Name: a[0].Name, A: &a[0], B: &b[0]}
			}
			if d.A != nil {
				a = a[1:]
			}
			if d.B != nil {
				b = b[1:]
			}
			if !yield(d) {
				return
			}
		}
	}
}

// compare completes d, and reports whether there is a difference at all.
func compare(a, b Reader, d Difference) (Difference, bool, error) {
	if d.A == nil || d.B == nil || d.A.DType != d.B.DType || !slices.Equal(d.A.Shape, d.B.Shape) {
		return d, true, nil
	}
	ta, err := a.Lookup(d.Name)
	if err != nil {
		return d, false, err
	}
	tb, err := b.Lookup(d.Name)
	if err != nil {
		return d, false, err
	}
	if bytes.Equal(ta.Data, tb.Data) && slices.EqualFunc(ta.Strings, tb.Strings, bytes.Equal) {
		return d, false, nil
	}
	err = d.measure(ta, tb)
	return d, d.Elements > 0, err
}

// measure compares the elements of two tensors of one type and shape.
func (d *Difference) measure(a, b *Tensor) error {
	na, err := NumbersOf(a)
	if errors.Is(err, ErrType) {
		d.NotNumbers = true
		for i := range a.Strings {
			if !bytes.Equal(a.Strings[i], b.Strings[i]) {
				d.Elements++
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	nb, err := NumbersOf(b)
	if err != nil {
		return err
	}
	if na.Len() != nb.Len() {
		return fmt.Errorf("ckptfmt: %q has %d and %d numbers", d.Name, na.Len(), nb.Len())
	}
	for i := range na.Len() {
		at, end := i*na.size, (i+1)*na.size
		if x, y := a.Data[at:end], b.Data[at:end]; !bytes.Equal(x, y) {
			d.add(na.At(i), nb.At(i), distance(a.DType, x, y))
		}
	}
	return nil
}

// distance returns how far apart two numbers are.
func distance(d tfpb.DataType, x, y []byte) float64 {
	le := binary.LittleEndian
	switch d { // beyond a float64's 53 bits
	case tfpb.DataType_DT_INT64:
		i, j := int64(le.Uint64(x)), int64(le.Uint64(y))
		return float64(uint64(max(i, j)) - uint64(min(i, j)))
	case tfpb.DataType_DT_UINT64:
		i, j := le.Uint64(x), le.Uint64(y)
		return float64(max(i, j) - min(i, j))
	}
	get, _ := decoder(d)
	return math.Abs(get(x) - get(y))
}

// add counts a pair of numbers whose bytes differ.
func (d *Difference) add(x, y, abs float64) {
	if abs == 0 || math.IsNaN(x) && math.IsNaN(y) {
		return // 0 and -0, or two kinds of NaN
	}
	d.Elements++
	if math.IsNaN(abs) || math.IsInf(abs, 0) {
		d.MaxAbs, d.MaxRel = math.Inf(1), math.Inf(1)
		return
	}
	d.MaxAbs = max(d.MaxAbs, abs)
	d.MaxRel = max(d.MaxRel, abs/max(math.Abs(x), math.Abs(y)))
}
