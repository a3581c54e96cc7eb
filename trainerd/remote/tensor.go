package remote

import (
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// encode returns t as it is fed. The message shares the memory of t: a feed is
// only read, and copied once, into the call's buffer.
func encode(name string, t *ckptfmt.Tensor) (*tfpb.TensorProto, error) {
	if t == nil {
		return nil, invalid("feed %q: no tensor", name)
	}
	if err := t.Validate(); err != nil {
		return nil, invalid("feed %q: %v", name, err)
	}
	if t.DType == tfpb.DataType_DT_VARIANT {
		return t.Proto(), nil
	}
	p := &tfpb.TensorProto{Dtype: t.DType, TensorShape: &tfpb.TensorShapeProto{}, TensorContent: t.Data, StringVal: t.Strings}
	for _, size := range t.Shape {
		p.TensorShape.Dim = append(p.TensorShape.Dim, &tfpb.TensorShapeProto_Dim{Size: size})
	}
	return p, nil
}

// decode returns a fetched tensor. It takes over the memory of p.
func decode(name string, p *tfpb.TensorProto) (*ckptfmt.Tensor, error) {
	if t := adopt(p); t != nil {
		return t, nil
	}
	t, err := ckptfmt.TensorFromProto(p)
	if err != nil {
		return nil, invalid("fetch %q: %v", name, err)
	}
	return t, nil
}

// adopt makes a tensor of a message that has the elements in the tensor's own layout. It returns
// nil if it does not.
func adopt(p *tfpb.TensorProto) *ckptfmt.Tensor {
	if len(p.GetTensorContent()) == 0 || p.GetTensorShape().GetUnknownRank() {
		return nil
	}
	t := &ckptfmt.Tensor{DType: p.GetDtype(), Shape: make([]int64, len(p.GetTensorShape().GetDim())), Data: p.GetTensorContent()}
	for i, d := range p.GetTensorShape().GetDim() {
		t.Shape[i] = d.GetSize()
	}
	if t.Validate() != nil {
		return nil
	}
	return t
}

func invalid(format string, args ...any) error {
	return &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: fmt.Sprintf(format, args...)}
}

// clone returns a copy of t that the caller of a run may own.
func clone(t *ckptfmt.Tensor) *ckptfmt.Tensor {
	c := &ckptfmt.Tensor{DType: t.DType, Shape: append([]int64(nil), t.Shape...), Data: append([]byte(nil), t.Data...)}
	for _, s := range t.Strings {
		c.Strings = append(c.Strings, append([]byte{}, s...))
	}
	return c
}
