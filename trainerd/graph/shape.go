package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// Shape is what is known about a tensor's shape before the graph runs. The
// zero Shape is a scalar's.
type Shape struct {
	Dims        []int64 // -1 if the size is unknown
	UnknownRank bool    // nothing is known; Dims is empty
}

// MakeShape returns the shape with the given dimensions, -1 for unknown ones.
func MakeShape(dims ...int64) Shape { return Shape{Dims: dims} }

// UnknownShape is a shape of unknown rank.
var UnknownShape = Shape{UnknownRank: true}

// ShapeFromProto converts a TensorShapeProto; nil is a shape of unknown rank.
func ShapeFromProto(p *tfpb.TensorShapeProto) Shape {
	if p == nil || p.GetUnknownRank() {
		return UnknownShape
	}
	s := Shape{Dims: make([]int64, len(p.Dim))}
	for i, d := range p.Dim {
		s.Dims[i] = d.GetSize()
	}
	return s
}

// Proto returns the shape as TensorFlow's messages carry it.
func (s Shape) Proto() *tfpb.TensorShapeProto {
	p := &tfpb.TensorShapeProto{UnknownRank: s.UnknownRank}
	for _, d := range s.Dims {
		p.Dim = append(p.Dim, &tfpb.TensorShapeProto_Dim{Size: d})
	}
	return p
}

// Rank returns the number of dimensions, or -1 if unknown.
func (s Shape) Rank() int {
	if s.UnknownRank {
		return -1
	}
	return len(s.Dims)
}

// NumElements returns the number of elements, or false if it is unknown or
// does not fit an int64.
func (s Shape) NumElements() (int64, bool) {
	if s.UnknownRank {
		return 0, false
	}
	n := int64(1)
	for _, d := range s.Dims {
		if d < 0 {
			return 0, false
		}
		if d != 0 && n > (1<<62)/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// Equal reports whether both shapes are equal, unknown sizes included.
func (s Shape) Equal(t Shape) bool {
	return s.UnknownRank == t.UnknownRank && slices.Equal(s.Dims, t.Dims)
}

// String returns the shape as messages show it: [?,64], [] for a scalar, <unknown>.
func (s Shape) String() string {
	if s.UnknownRank {
		return "<unknown>"
	}
	parts := make([]string, len(s.Dims))
	for i, d := range s.Dims {
		parts[i] = "?"
		if d >= 0 {
			parts[i] = strconv.FormatInt(d, 10)
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// isScalar reports whether the shape is known to be a scalar's.
func (s Shape) isScalar() bool { return !s.UnknownRank && len(s.Dims) == 0 }

// defined reports whether every dimension is known.
func (s Shape) defined() bool {
	_, ok := s.NumElements()
	return ok
}

// broadcast returns the shape of an element-wise operation on s and t.
func (s Shape) broadcast(t Shape) (Shape, error) {
	if s.UnknownRank || t.UnknownRank {
		return UnknownShape, nil
	}
	out := make([]int64, max(len(s.Dims), len(t.Dims)))
	for i := range out {
		d, err := broadcastDim(s.fromRight(len(out)-1-i), t.fromRight(len(out)-1-i))
		if err != nil {
			return UnknownShape, fmt.Errorf("shapes %v and %v cannot be broadcast: %w", s, t, err)
		}
		out[i] = d
	}
	return Shape{Dims: out}, nil
}

// fromRight returns the i-th dimension from the right, 1 beyond the left end.
func (s Shape) fromRight(i int) int64 {
	if i >= len(s.Dims) {
		return 1
	}
	return s.Dims[len(s.Dims)-1-i]
}

func broadcastDim(a, b int64) (int64, error) {
	switch {
	case a == b, b == 1:
		return a, nil
	case a == 1:
		return b, nil
	case a < 0:
		return b, nil
	case b < 0:
		return a, nil
	}
	return 0, fmt.Errorf("dimensions %d and %d", a, b)
}

// shapeTensor is a shape as a vector of DT_INT32, an op's input.
func shapeTensor(s Shape) *tfpb.TensorProto {
	vs := make([]int32, len(s.Dims))
	for i, d := range s.Dims {
		vs[i] = int32(d)
	}
	return literal.Int32s(vs...)
}
