package inspect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Difference describes how a tensor differs between two checkpoints.
type Difference struct {
	Name string
	// A and B describe the tensor in each checkpoint; nil if it is missing.
	A, B *ckptfmt.TensorInfo
	// Elements is how many elements differ, if type and shape are the same;
	// for numbers, also the largest difference, absolute and relative to the
	// larger of the two. NaN equals NaN. Of a foreign type, it counts bytes.
	Elements       int64
	MaxAbs, MaxRel float64
	// MeanAbs is the mean distance over all elements, and MaxAt the index, in
	// row-major order, of the largest distance, where the numbers are MaxA and
	// MaxB; of complex numbers, their real or imaginary parts.
	MeanAbs    float64
	MaxAt      int64
	MaxA, MaxB float64
	// DigitsA and DigitsB are MaxA and MaxB of integers of 64 bits in all their digits,
	// which a float64 may lack; "" of other types.
	DigitsA, DigitsB string
	// Cosine is the cosine of the angle between the two tensors as vectors, if
	// DiffOptions.Cosine is set; NaN if either is zero or not finite.
	Cosine     float64
	NotNumbers bool // the elements have no distance

	within      DiffOptions
	sum         float64 // of distances
	dot, aa, bb float64 // products of the vectors
}

// DiffOptions say which numbers count as equal, as in numpy.isclose: those at
// most Abs + Rel·|b| apart. Neither they nor their distances are counted in a
// [Difference]. With the zero value, only equal numbers count as equal.
type DiffOptions struct {
	Abs, Rel float64
	// Cosine computes Difference.Cosine, for which equal elements count as well.
	Cosine bool
}

// Diff yields the tensors that differ between two checkpoints, ordered by name. The object graph is
// compared if both have one: it is about keys, which other formats lack. An error with a name
// concerns only that tensor; one without ends the iteration. Tensors of numbers are compared a
// piece at a time. Tensors of different types have no distance: convert one to the type of the
// other first, for example with Source.Cast of package rewrite. o may be nil.
func Diff(ctx context.Context, a, b ckptfmt.Reader, o *DiffOptions) iter.Seq2[Difference, error] {
	if o == nil {
		o = &DiffOptions{}
	}
	return func(yield func(Difference, error) bool) {
		infosA, damagedA, err := allTensors(a)
		if err != nil {
			yield(Difference{}, err)
			return
		}
		infosB, damagedB, err := allTensors(b)
		if err != nil {
			yield(Difference{}, err)
			return
		}
		for pair := range pairs(infosA, infosB) {
			if ctx.Err() != nil {
				break
			}
			if pair.Name == objectGraphKey && (pair.A == nil || pair.B == nil) {
				continue
			}
			err := cmp.Or(damagedA[pair.Name], damagedB[pair.Name])
			pair.within = *o
			d, differs := pair, false
			if err == nil {
				d, differs, err = compare(a, b, pair)
			}
			if ctx.Err() != nil {
				continue // what failed may have failed for that
			}
			if (differs || err != nil) && !yield(d, err) {
				return
			}
		}
		if ctx.Err() != nil {
			yield(Difference{}, ctx.Err())
		}
	}
}

// allTensors returns the tensors of a checkpoint, and the errors of single tensors, by name.
func allTensors(r ckptfmt.Reader) (list []ckptfmt.TensorInfo, damaged map[string]error, err error) {
	damaged = make(map[string]error)
	for info, err := range r.Tensors() {
		if err != nil && info.Name == "" {
			return nil, nil, err
		}
		if err != nil {
			damaged[info.Name] = err
		}
		list = append(list, info)
	}
	slices.SortStableFunc(list, func(a, b ckptfmt.TensorInfo) int { return cmp.Compare(a.Name, b.Name) }) // damaged slices come first
	return list, damaged, nil
}

// pairs walks two lists that are ordered by name side by side.
func pairs(a, b []ckptfmt.TensorInfo) iter.Seq[Difference] {
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
func compare(a, b ckptfmt.Reader, d Difference) (Difference, bool, error) {
	if d.A == nil || d.B == nil || d.A.TypeName() != d.B.TypeName() || !slices.Equal(d.A.Shape, d.B.Shape) {
		return d, true, nil
	}
	measure := d.measureNumbers
	if d.A.Foreign != "" {
		measure = d.measureBytes
	} else if dtype.Size(d.A.DType) == 0 { // strings or variants
		measure = d.measureStrings
	}
	err := measure(a, b)
	return d, d.Elements > 0, err
}

func (d *Difference) measureStrings(a, b ckptfmt.Reader) error {
	ta, err := a.Lookup(d.Name)
	if err != nil {
		return err
	}
	tb, err := b.Lookup(d.Name)
	if err != nil {
		return err
	}
	d.NotNumbers = true
	for i := range ta.Strings {
		if !bytes.Equal(ta.Strings[i], tb.Strings[i]) {
			d.Elements++
		}
	}
	return nil
}

// measureBytes counts the bytes that differ.
func (d *Difference) measureBytes(a, b ckptfmt.Reader) error {
	d.NotNumbers = true
	return d.eachPiece(a, b, func(x, y []byte) {
		for i := range x {
			if x[i] != y[i] {
				d.Elements++
			}
		}
	})
}

func (d *Difference) measureNumbers(a, b ckptfmt.Reader) error {
	numbers := newNumberDiff(d.A.DType)
	at := int64(0)
	err := d.eachPiece(a, b, func(x, y []byte) {
		if !bytes.Equal(x, y) {
			numbers.addTo(d, x, y, at)
		}
		if d.within.Cosine {
			numbers.addAngle(d, x, y)
		}
		at += int64(len(x) / numbers.whole)
	})
	d.finish(at)
	return err
}

// eachPiece calls f with each piece of a tensor in both checkpoints. It holds no more
// than one of either.
func (d *Difference) eachPiece(a, b ckptfmt.Reader, f func(x, y []byte)) error {
	ta, err := a.OpenTensor(d.Name)
	if err != nil {
		return err
	}
	tb, err := b.OpenTensor(d.Name)
	if err != nil {
		return err
	}
	x, y := pieces.Get().(*[pieceSize]byte), pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(x)
	defer pieces.Put(y)
	for {
		n, err := readPiece(ta, x[:])
		if err != nil {
			return err
		}
		m, err := readPiece(tb, y[:])
		if err != nil {
			return err
		}
		if n != m {
			return fmt.Errorf("ckptfmt: %q has more elements in one checkpoint than in the other", d.Name)
		}
		if n == 0 {
			return nil
		}
		f(x[:n], y[:n])
	}
}

// pieceSize is how many bytes of a tensor are looked at together.
const pieceSize = 256 << 10

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// readPiece fills b from a tensor, or with the rest of it; it returns 0 after the end.
func readPiece(t *ckptfmt.TensorReader, b []byte) (int, error) {
	n, err := io.ReadFull(t, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, err
}

// numberDiff compares elements of a type. Those of complex numbers are two
// numbers each.
type numberDiff struct {
	dtype         tfpb.DataType
	get           func([]byte) float64
	number, whole int // bytes
}

func newNumberDiff(d tfpb.DataType) *numberDiff {
	get, size := decoder(d)
	return &numberDiff{dtype: d, get: get, number: size, whole: int(dtype.Size(d))}
}

// addTo compares pieces whose first element is at a place in its tensor.
func (n *numberDiff) addTo(d *Difference, a, b []byte, first int64) {
	for at := 0; at < len(a); at += n.whole {
		x, y := a[at:at+n.whole], b[at:at+n.whole]
		if bytes.Equal(x, y) {
			continue
		}
		before := d.MaxAbs
		if part, differs := n.differ(d, x, y); differs {
			if d.Elements++; d.Elements == 1 || d.MaxAbs > before {
				d.MaxAt, d.MaxA, d.MaxB = first+int64(at/n.whole), n.get(x[part:]), n.get(y[part:])
				d.DigitsA, d.DigitsB = wholeOf(n.dtype).text(x), wholeOf(n.dtype).text(y)
			}
		}
	}
}

// addAngle adds to the products that make up the cosine.
func (n *numberDiff) addAngle(d *Difference, a, b []byte) {
	for at := 0; at < len(a); at += n.number {
		x, y := n.get(a[at:]), n.get(b[at:])
		d.dot += x * y
		d.aa += x * x
		d.bb += y * y
	}
}

// finish completes the figures of a tensor of n elements.
func (d *Difference) finish(n int64) {
	if n > 0 {
		d.MeanAbs = d.sum / float64(n)
	}
	if d.within.Cosine {
		d.Cosine = d.dot / math.Sqrt(d.aa) / math.Sqrt(d.bb)
	}
}

// differ records the distance of two elements, and reports whether they differ; part is the offset
// of the numbers that are farthest apart, which may be the imaginary parts of complex ones.
func (n *numberDiff) differ(d *Difference, a, b []byte) (part int, differ bool) {
	most := 0.0
	for at := 0; at < n.whole; at += n.number {
		x, y := a[at:at+n.number], b[at:at+n.number]
		abs := n.distance(x, y)
		if !d.add(n.get(x), n.get(y), abs) {
			continue
		}
		if !differ || abs > most {
			part, most = at, abs
		}
		differ = true
	}
	return part, differ
}

// distance returns how far apart two numbers are.
func (n *numberDiff) distance(x, y []byte) float64 {
	le := binary.LittleEndian
	switch n.dtype { // beyond a float64's 53 bits
	case tfpb.DataType_DT_INT64:
		i, j := int64(le.Uint64(x)), int64(le.Uint64(y))
		return float64(uint64(max(i, j)) - uint64(min(i, j)))
	case tfpb.DataType_DT_UINT64:
		i, j := le.Uint64(x), le.Uint64(y)
		return float64(max(i, j) - min(i, j))
	}
	return math.Abs(n.get(x) - n.get(y))
}

// add records the distance of two numbers, and reports whether they differ.
func (d *Difference) add(x, y, abs float64) bool {
	if abs == 0 || x == y && math.IsInf(x, 0) || math.IsNaN(x) && math.IsNaN(y) {
		return false // 0 and -0, the same infinity, or two kinds of NaN
	}
	if !math.IsInf(abs, 0) && abs <= d.within.Abs+d.within.Rel*math.Abs(y) {
		return false
	}
	if math.IsNaN(abs) || math.IsInf(abs, 0) {
		d.MaxAbs, d.MaxRel, d.sum = math.Inf(1), math.Inf(1), math.Inf(1)
		return true
	}
	d.sum += abs
	d.MaxAbs = max(d.MaxAbs, abs)
	d.MaxRel = max(d.MaxRel, abs/max(math.Abs(x), math.Abs(y)))
	return true
}
