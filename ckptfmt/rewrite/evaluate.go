package rewrite

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
)

// MissingPolicy says what happens to a tensor that not all checkpoints of an expression
// have.
type MissingPolicy string

// What becomes of it.
const (
	FailMissing MissingPolicy = "error"
	SkipMissing MissingPolicy = "skip" // the result does not have it
	ZeroMissing MissingPolicy = "zero" // it counts as zeros where it is missing
)

// A DifferError names the tensors that not all checkpoints have.
type DifferError struct{ Names []string }

// Error implements error.
func (e *DifferError) Error() string {
	const most = 5
	shown := e.Names[:min(most, len(e.Names))]
	text := fmt.Sprintf("%d tensors are not in all checkpoints: %s", len(e.Names), strings.Join(shown, ", "))
	if len(shown) < len(e.Names) {
		text += ", ..."
	}
	return text
}

// Evaluate evaluates an expression over sources, one for each of its names.
// Elements of floating-point types are computed in float64, complex ones in complex128,
// and rounded to the type in the first source that has the tensor; all other tensors are those of that
// source, and so is the layout. Tensors with the same name must have the same
// shape. The sources must stay open, and must not be changed.
func Evaluate(e *Expression, sources []*Source, missing MissingPolicy) (*Source, error) {
	for _, s := range sources {
		if err := s.firstDamage(); err != nil {
			return nil, err
		}
	}
	lacking := lackingNames(sources)
	if len(lacking) > 0 && missing == FailMissing {
		return nil, &DifferError{lacking}
	}
	isLacking := make(map[string]bool, len(lacking))
	for _, name := range lacking {
		isLacking[name] = true
	}
	out := sources[0].layout()
	out.parts = make([]ckptfmt.Part, 0, len(sources[0].parts))
	for i, s := range sources {
		for j := range s.parts {
			p := &s.parts[j]
			if missing == SkipMissing && isLacking[p.Name] || inAny(sources[:i], p.Name) {
				continue
			}
			made, err := evaluatePart(e, sources, p)
			if err != nil {
				return nil, err
			}
			out.parts = append(out.parts, made)
		}
	}
	if len(out.parts) == 0 {
		return nil, fmt.Errorf("%w: no tensor is in all checkpoints", ckptfmt.ErrNotFound)
	}
	if missing == SkipMissing {
		out.keys = append(slices.Clone(out.keys), keptKey(func(name string) bool { return !isLacking[name] }))
	}
	return out, nil
}

func inAny(sources []*Source, name string) bool {
	return slices.ContainsFunc(sources, func(s *Source) bool { return s.first(name) != nil })
}

func inAll(sources []*Source, name string) bool {
	return !slices.ContainsFunc(sources, func(s *Source) bool { return s.first(name) == nil })
}

// lackingNames returns the tensors that not all sources have, except the object graph.
func lackingNames(sources []*Source) []string {
	var list []string
	for i, s := range sources {
		for name := range s.index().first {
			if name != ObjectGraph && !inAny(sources[:i], name) && !inAll(sources, name) {
				list = append(list, name)
			}
		}
	}
	slices.Sort(list)
	return list
}

// evaluatePart returns what an expression makes of a part, which must not be changed, and
// its equals.
func evaluatePart(e *Expression, sources []*Source, p *ckptfmt.Part) (ckptfmt.Part, error) {
	if p.Foreign != "" {
		return sameInAll(sources, p)
	}
	made := *p
	if !isAveraged(p.DType) {
		return made, nil
	}
	encode, err := encoder(p.DType)
	if err != nil {
		return made, err
	}
	for _, s := range sources {
		q := s.first(p.Name)
		if q != nil && (!slices.Equal(q.Full, p.Full) || !isAveraged(q.DType) || isComplex(q.DType) != isComplex(p.DType)) {
			return made, fmt.Errorf("%q is %s in one checkpoint and %s in another", p.Name, dtype.Text(p.DType, p.Full), dtype.Text(q.DType, q.Full))
		}
	}
	if _, err := alike(sources, p); err != nil {
		return made, err
	}
	made.Open = opener(sources, p, encode, func() combination { return e.combination(isComplex(p.DType)) })
	return made, nil
}

// zeros returns a part like p without any other number.
func zeros(p ckptfmt.Part) ckptfmt.Part {
	size, err := p.Size()
	p.Open = func() (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(zeroReader{}, size)), err }
	return p
}

type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
