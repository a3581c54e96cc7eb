package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// endsLater is a context that ends without a signal when it was asked so many times:
// between two steps nothing is noticed, only within one.
type endsLater struct {
	context.Context
	asked atomic.Int64
	after int64
}

func (c *endsLater) Done() <-chan struct{} { return nil }

func (c *endsLater) Err() error {
	if c.asked.Add(1) > c.after {
		return context.Canceled
	}
	return nil
}

// TestInterruptedKernels stops kernels that fill a large tensor in the middle of it.
func TestInterruptedKernels(t *testing.T) {
	const f32, i32 = tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_INT32
	const size = 16 << 20 // elements, so that there are several pieces
	shape := ckptfmt.Scalar[int32](size)
	shape.Shape = []int64{1}
	programs := map[string]func(p *pipe, shape string) string{
		"RandomUniform": func(p *pipe, shape string) string {
			return p.node("RandomUniform", []string{shape}, "dtype", f32, "T", i32)
		},
		"RandomStandardNormal": func(p *pipe, shape string) string {
			return p.node("RandomStandardNormal", []string{shape}, "dtype", tfpb.DataType_DT_HALF, "T", i32)
		},
		"RandomUniformInt": func(p *pipe, shape string) string {
			return p.node("RandomUniformInt", []string{shape, p.scalar(0), p.scalar(5)}, "Tout", i32, "T", i32)
		},
		"RandomGamma": func(p *pipe, shape string) string {
			one := p.node("Cast", []string{p.scalar(1)}, "SrcT", i32, "DstT", f32)
			return p.node("RandomGamma", []string{shape, one}, "S", i32, "T", f32)
		},
		"Fill": func(p *pipe, shape string) string {
			return p.node("Fill", []string{shape, p.scalar(7)}, "T", i32, "index_type", i32)
		},
		"Range": func(p *pipe, shape string) string {
			limit := p.node("Squeeze", []string{shape}, "T", i32)
			return p.node("Range", []string{p.scalar(0), limit, p.scalar(1)}, "Tidx", i32)
		},
		"Tile": func(p *pipe, shape string) string {
			return p.node("Tile", []string{p.ints(1, 2, 3), shape}, "T", i32, "Tmultiples", i32)
		},
		"BroadcastTo": func(p *pipe, shape string) string {
			return p.node("BroadcastTo", []string{p.ints(1), shape}, "T", i32, "Tidx", i32)
		},
		"ScatterNd": func(p *pipe, shape string) string {
			index := p.node("ExpandDims", []string{p.ints(0), p.scalar(0)}, "T", i32, "Tdim", i32)
			return p.node("ScatterNd", []string{index, p.ints(1), shape}, "T", i32, "Tindices", i32)
		},
		"OneHot": func(p *pipe, shape string) string {
			depth := p.node("Squeeze", []string{shape}, "T", i32)
			return p.node("OneHot", []string{p.ints(0), depth, p.scalar(1), p.scalar(0)}, "T", i32, "TI", i32)
		},
	}
	for name, program := range programs {
		t.Run(name, func(t *testing.T) {
			p := newPipe(t)
			p.def.Node = append(p.def.Node, &tfpb.NodeDef{Name: "size", Op: "Placeholder", Attr: attrs("dtype", i32)})
			node := program(p, "size")
			s, err := runtime.New(p.def, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx := &endsLater{Context: t.Context(), after: 2}
			_, err = s.Run(ctx, map[string]*ckptfmt.Tensor{"size": shape}, nil, []string{node})
			var op *session.OpError
			if !errors.As(err, &op) || op.Code != tfpb.Code_CANCELLED || op.Op != name {
				t.Errorf("got %v, want CANCELLED by %s", err, name)
			}
		})
	}
}
