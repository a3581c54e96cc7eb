package trainerd

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Op is something that runs against a session: nodes of its graph, or a Go
// function. So a program without a graph uses the same options as one with.
//
// The zero Op means the default, which each option describes. [None] means
// explicitly nothing.
type Op struct {
	nodes []string
	fn    func(ctx context.Context, s session.Session) ([]*ckptfmt.Tensor, error)
	none  bool
}

// None returns the Op that does nothing; the zero Op would mean a default.
func None() Op { return Op{none: true} }

// Nodes returns the Op that runs the named nodes of the session's graph. A
// name with an output, as in "ready:0", is fetched; a name without one is run
// as a target, except where an option says that it needs the value.
func Nodes(names ...string) Op {
	if len(names) == 0 {
		return None()
	}
	return Op{nodes: names}
}

// Func returns the Op that calls f.
func Func(f func(ctx context.Context, s session.Session) error) Op {
	return Op{fn: func(ctx context.Context, s session.Session) ([]*ckptfmt.Tensor, error) { return nil, f(ctx, s) }}
}

// SummaryFunc returns an Op for Supervisor.SummaryOp that calls f.
func SummaryFunc(f func(ctx context.Context, s session.Session) (*tfpb.Summary, error)) Op {
	return Op{fn: func(ctx context.Context, s session.Session) ([]*ckptfmt.Tensor, error) {
		summary, err := f(ctx, s)
		if err != nil || summary == nil {
			return nil, err
		}
		b, err := proto.Marshal(summary)
		if err != nil {
			return nil, err
		}
		return []*ckptfmt.Tensor{{DType: tfpb.DataType_DT_STRING, Strings: [][]byte{b}}}, nil
	}}
}

// IsDefault reports whether o is the zero Op.
func (o Op) IsDefault() bool { return !o.none && o.fn == nil && len(o.nodes) == 0 }

// IsNone reports whether o does nothing: it is [None], or the zero Op.
func (o Op) IsNone() bool { return o.fn == nil && len(o.nodes) == 0 }

func (o Op) String() string {
	switch {
	case len(o.nodes) > 0:
		return strings.Join(o.nodes, ", ")
	case o.fn != nil:
		return "Go function"
	case o.none:
		return "none"
	}
	return "default"
}

// orDefault returns o, or the default if o is the zero Op.
func (o Op) orDefault(f func() Op) Op {
	if o.IsDefault() {
		return f()
	}
	return o
}

// run runs o and returns the values of its fetched outputs.
func (o Op) run(ctx context.Context, s session.Session, feeds map[string]*ckptfmt.Tensor) ([]*ckptfmt.Tensor, error) {
	if o.fn != nil {
		return o.fn(ctx, s)
	}
	if o.IsNone() {
		return nil, nil
	}
	var fetches, targets []string
	for _, name := range o.nodes {
		if strings.Contains(name, ":") {
			fetches = append(fetches, name)
		} else {
			targets = append(targets, name)
		}
	}
	return s.Run(ctx, feeds, fetches, targets)
}

// RunOps runs ops of a session's graph for their effects, such as a train op.
func RunOps(ctx context.Context, s session.Session, ops ...string) error {
	_, err := s.Run(ctx, nil, nil, ops)
	return err
}

// Fetch runs the named ops, if any, and returns the elements of a tensor from
// the same step, row by row.
func Fetch[T ckptfmt.Element](ctx context.Context, s session.Session, tensor string, ops ...string) ([]T, error) {
	out, err := s.Run(ctx, nil, []string{tensor}, ops)
	if err != nil {
		return nil, err
	}
	if len(out) != 1 || out[0] == nil {
		return nil, fmt.Errorf("fetching %s: the session gave %d values", tensor, len(out))
	}
	values, err := ckptfmt.Values[T](out[0])
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", tensor, err)
	}
	return values, nil
}

// FetchScalar is [Fetch] for a tensor with one element.
func FetchScalar[T ckptfmt.Element](ctx context.Context, s session.Session, tensor string, ops ...string) (T, error) {
	var zero T
	values, err := Fetch[T](ctx, s, tensor, ops...)
	if err != nil {
		return zero, err
	}
	if len(values) != 1 {
		return zero, fmt.Errorf("fetching %s: it has %d elements; want one", tensor, len(values))
	}
	return values[0], nil
}
