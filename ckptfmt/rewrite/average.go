package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Average returns the mean of several sources, which must hold the same
// tensors in the same types and shapes. Real and complex floating-point
// numbers are averaged in float64 and rounded to their type; all other tensors
// (integers such as the step, bools, strings, the graph of objects) are those
// of the last source, whose layout the result has. Equal numbers have exactly
// themselves as mean. The sources must stay open.
func Average(sources []*Source) (*Source, error) {
	if len(sources) == 0 {
		return nil, errors.New("there is nothing to average")
	}
	for _, s := range sources {
		if err := s.firstDamage(); err != nil {
			return nil, err
		}
	}
	last := sources[len(sources)-1]
	for _, s := range sources[:len(sources)-1] {
		if err := sameTensors(s, last); err != nil {
			return nil, err
		}
	}
	out := &Source{
		name: last.name, parts: slices.Clone(last.parts), reader: last.reader, metadata: last.metadata, keys: last.keys,
		names: last.names, graph: last.graph, graphDropped: last.graphDropped,
	}
	for i, p := range out.parts {
		if !isAveraged(p.DType) {
			continue
		}
		encode, err := encoder(p.DType)
		if err != nil {
			return nil, err
		}
		same := make([]ckptfmt.Part, len(sources))
		for k, s := range sources {
			if same[k], err = s.like(p); err != nil {
				return nil, err
			}
		}
		out.parts[i].Open = func() (io.ReadCloser, error) { return openMean(same, encode) }
	}
	return out, nil
}

func isAveraged(d tfpb.DataType) bool {
	return isFloat(d) || d == tfpb.DataType_DT_COMPLEX64 || d == tfpb.DataType_DT_COMPLEX128
}

// encoder returns what appends a number, or a part of a complex one.
func encoder(d tfpb.DataType) (func([]byte, float64) []byte, error) {
	switch d {
	case tfpb.DataType_DT_COMPLEX64:
		d = tfpb.DataType_DT_FLOAT
	case tfpb.DataType_DT_COMPLEX128:
		d = tfpb.DataType_DT_DOUBLE
	}
	if encode, ok := encoders[d]; ok {
		return encode, nil
	}
	return byteCodes(d)
}

// sameTensors reports the first tensor that two sources do not share.
func sameTensors(a, b *Source) error {
	kind := func(p ckptfmt.Part) string { return fmt.Sprintf("%s%v", ckptfmt.DTypeName(p.DType), p.Full) }
	left := make(map[string]string)
	for _, p := range a.parts {
		left[p.Name] = kind(p)
	}
	seen := make(map[string]bool)
	for _, p := range b.parts {
		have, ok := left[p.Name]
		if !ok {
			return fmt.Errorf("%w: %q of %s is not in %s", ckptfmt.ErrNotFound, p.Name, b.name, a.name)
		}
		if want := kind(p); have != want {
			return fmt.Errorf("%q is %s in %s and %s in %s", p.Name, have, a.name, want, b.name)
		}
		seen[p.Name] = true
	}
	for _, p := range a.parts {
		if !seen[p.Name] {
			return fmt.Errorf("%w: %q of %s is not in %s", ckptfmt.ErrNotFound, p.Name, a.name, b.name)
		}
	}
	return nil
}

// like returns what s holds of the slice that p is. It is loaded at once where
// s has it in other slices.
func (s *Source) like(p ckptfmt.Part) (ckptfmt.Part, error) {
	for _, q := range s.index()[p.Name] {
		if q.Slice.String() == p.Slice.String() {
			return q, nil
		}
	}
	if s.reader == nil || s.renamed {
		return ckptfmt.Part{}, fmt.Errorf("%w: %q has other slices in %s", ckptfmt.ErrSlices, p.Name, s.name)
	}
	name := p.Name
	q := p
	q.Open = func() (io.ReadCloser, error) {
		t, err := s.reader.LookupSlice(name, p.Slice)
		if err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(t.Data)), nil
	}
	return q, nil
}

// index returns the parts by the names of their tensors.
func (s *Source) index() map[string][]ckptfmt.Part {
	if s.byName == nil {
		s.byName = make(map[string][]ckptfmt.Part, len(s.parts))
		for _, p := range s.parts {
			s.byName[p.Name] = append(s.byName[p.Name], p)
		}
	}
	return s.byName
}

// mean reads several tensors side by side.
type mean struct {
	from   []io.ReadCloser
	dtype  tfpb.DataType
	encode func([]byte, float64) []byte
	in     [][]byte
	out    []byte
}

func openMean(parts []ckptfmt.Part, encode func([]byte, float64) []byte) (io.ReadCloser, error) {
	m := &mean{dtype: parts[0].DType, encode: encode}
	for _, p := range parts {
		r, err := p.Open()
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m.from = append(m.from, r)
		m.in = append(m.in, make([]byte, pieceElements*ckptfmt.ElementSize(p.DType)))
	}
	return pieceReader(m, m.next), nil
}

func (m *mean) Close() error {
	var err error
	for _, r := range m.from {
		err = errors.Join(err, r.Close())
	}
	return err
}

// next reads a piece of each tensor and returns their mean.
func (m *mean) next() ([]byte, error) {
	numbers := make([]*inspect.Numbers, len(m.from))
	n := 0
	var ended error
	for i, r := range m.from {
		k, err := io.ReadFull(r, m.in[i])
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, err
		}
		if i == 0 {
			n, ended = k, err
		}
		if k != n || k%int(ckptfmt.ElementSize(m.dtype)) != 0 {
			return nil, io.ErrUnexpectedEOF
		}
		if numbers[i], err = numbersOf(m.in[i][:k], m.dtype); err != nil {
			return nil, err
		}
	}
	if n == 0 {
		return nil, ended
	}
	m.out = m.out[:0]
	for i := range numbers[0].Len() {
		m.out = m.encode(m.out, meanAt(numbers, i))
	}
	return m.out, nil
}

func meanAt(numbers []*inspect.Numbers, i int) float64 {
	first := numbers[0].At(i)
	sum, same := first, true
	for _, n := range numbers[1:] {
		v := n.At(i)
		sum += v
		same = same && v == first
	}
	if same {
		return first
	}
	if math.IsInf(sum, 0) { // it may be the sum that is too large
		sum = 0
		for _, n := range numbers {
			sum += n.At(i) / float64(len(numbers))
		}
		return sum
	}
	return sum / float64(len(numbers))
}
