package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Average returns the mean of several sources, which must hold the same tensors with the same types
// and shapes. Real and complex floating-point numbers are averaged in float64 and rounded to their
// type; all other tensors (integers such as the step, bools, strings, the object graph) are those
// of the last source, which also determines the layout. Tensors of types that TensorFlow lacks must
// be the same in all. The mean of equal numbers is exactly that number. The sources must stay open,
// and must not be changed.
//
// With weights, one for each source, it is the weighted mean. Their sum must not
// be 0.
func Average(sources []*Source, weights []float64) (*Source, error) {
	if len(sources) == 0 {
		return nil, errors.New("there is nothing to average")
	}
	at, err := meanOf(len(sources), weights)
	if err != nil {
		return nil, err
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
	out := last.layout()
	for i := range out.parts {
		p := &last.parts[i]
		if p.Foreign != "" {
			if out.parts[i], err = sameInAll(sources, p); err != nil {
				return nil, err
			}
		}
		if !isAveraged(p.DType) {
			continue
		}
		encode, err := encoder(p.DType)
		if err != nil {
			return nil, err
		}
		if _, err := alike(sources, p); err != nil {
			return nil, err
		}
		out.parts[i].Open = opener(sources, p, encode, func() combination { return at })
	}
	return out, nil
}

// layout returns a source like s, whose parts may be changed.
func (s *Source) layout() *Source {
	return &Source{
		name: s.name, kind: s.kind, parts: slices.Clone(s.parts), opened: s.opened, metadata: s.metadata, keys: s.keys,
		names: s.names, graph: s.graph, graphDropped: s.graphDropped, renamed: s.renamed, mapped: s.mapped, table: s.table,
	}
}

// meanOf returns what computes the mean, with weights that may be nil.
func meanOf(n int, weights []float64) (combination, error) {
	if weights == nil {
		return meanAt, nil
	}
	if len(weights) != n {
		return nil, fmt.Errorf("%d weights for %d checkpoints", len(weights), n)
	}
	total := 0.0
	for _, w := range weights {
		total += w
	}
	if total == 0 || math.IsNaN(total) || math.IsInf(total, 0) {
		return nil, fmt.Errorf("the sum of the weights is %v; want a number other than 0", total)
	}
	return func(numbers []*inspect.Numbers, i int) float64 {
		first, sum, same := numbers[0].At(i), 0.0, true
		for k, n := range numbers {
			v := n.At(i)
			same = same && v == first
			if weights[k] != 0 { // what has no weight may be infinite
				sum += v * weights[k]
			}
		}
		switch {
		case same:
			return first
		case math.IsInf(sum, 0) || math.IsNaN(sum):
			return sumOfShares(numbers, i, weights, total) // it may be the sum that is too large
		}
		return sum / total
	}, nil
}

// sumOfShares is a weighted mean whose parts are no larger than the numbers.
func sumOfShares(numbers []*inspect.Numbers, i int, weights []float64, total float64) float64 {
	sum := 0.0
	for k, n := range numbers {
		if weights[k] != 0 {
			sum += n.At(i) * (weights[k] / total)
		}
	}
	return sum
}

func isAveraged(d tfpb.DataType) bool {
	return dtype.IsFloat(d) || isComplex(d)
}

func isComplex(d tfpb.DataType) bool {
	return d == tfpb.DataType_DT_COMPLEX64 || d == tfpb.DataType_DT_COMPLEX128
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
	kind := func(p ckptfmt.Part) string { return p.TypeName() + " " + dtype.ShapeText(p.Full) }
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

// like returns the slice that p is, as s has it. If s has it in other slices, it is loaded when it
// is opened.
func (s *Source) like(p *ckptfmt.Part) (ckptfmt.Part, error) {
	for q := range s.named(p.Name) {
		if slices.Equal(q.Slice.Start, p.Slice.Start) && slices.Equal(q.Slice.Length, p.Slice.Length) || q.Slice.String() == p.Slice.String() {
			return *q, nil
		}
	}
	if s.opened == nil || s.renamed {
		return ckptfmt.Part{}, fmt.Errorf("%w: %q has other slices in %s", ckptfmt.ErrSlices, p.Name, s.name)
	}
	name, slice := p.Name, p.Slice
	q := *p
	q.DType = s.first(name).DType
	q.Open = func() (io.ReadCloser, error) {
		t, err := s.opened.LookupSlice(name, slice)
		if err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(t.Data)), nil
	}
	return q, nil
}

// alike returns the slice that p is in each source, or zeros if a source does not have the tensor.
// With very many tensors it is not kept.
func alike(sources []*Source, p *ckptfmt.Part) ([]ckptfmt.Part, error) {
	list := make([]ckptfmt.Part, len(sources))
	for i, s := range sources {
		if s.first(p.Name) == nil {
			list[i] = zeros(*p)
			continue
		}
		var err error
		if list[i], err = s.like(p); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// combination computes element i of a result from those of its operands.
type combination func(numbers []*inspect.Numbers, i int) float64

// combined reads several tensors side by side.
type combined struct {
	from   []io.ReadCloser
	dtypes []tfpb.DataType
	encode func([]byte, float64) []byte
	at     combination
	in     [][]byte
	out    []byte
}

// opener returns what opens a combination of what sources hold of the slice that p is, which
// must not be changed.
func opener(sources []*Source, p *ckptfmt.Part, encode func([]byte, float64) []byte, at func() combination) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		parts, err := alike(sources, p)
		if err != nil {
			return nil, err
		}
		return openCombined(parts, encode, at())
	}
}

// openCombined returns a reader of the results of a combination of parts with one shape.
func openCombined(parts []ckptfmt.Part, encode func([]byte, float64) []byte, at combination) (io.ReadCloser, error) {
	m := &combined{encode: encode, at: at}
	for _, p := range parts {
		r, err := p.Open()
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m.from = append(m.from, r)
		m.dtypes = append(m.dtypes, p.DType)
		m.in = append(m.in, pieceOf(&p))
	}
	return pieceReader(m, m.next), nil
}

func (m *combined) Close() error {
	var err error
	for _, r := range m.from {
		err = errors.Join(err, r.Close())
	}
	return err
}

// next reads a piece of each tensor and returns their combination.
func (m *combined) next() ([]byte, error) {
	numbers := make([]*inspect.Numbers, len(m.from))
	n := 0
	var ended error
	for i, r := range m.from {
		k, err := io.ReadFull(r, m.in[i])
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, err
		}
		size := int(dtype.Size(m.dtypes[i]))
		if i == 0 {
			n, ended = k/size, err
		}
		if k/size != n || k%size != 0 {
			return nil, io.ErrUnexpectedEOF
		}
		if numbers[i], err = numbersOf(m.in[i][:k], m.dtypes[i]); err != nil {
			return nil, err
		}
	}
	if n == 0 {
		return nil, ended
	}
	m.out = m.out[:0]
	for i := range numbers[0].Len() {
		m.out = m.encode(m.out, m.at(numbers, i))
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
