package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// NoStep marks a missing step number: such a checkpoint has no number in
// its name, such a summary no step.
const NoStep int64 = -1

// DefaultGlobalStep is the default name of the variable that counts the steps.
const DefaultGlobalStep = "global_step"

// ReadStep reads the global step, or returns NoStep if there is none.
func ReadStep(ctx context.Context, s Session, name string) (int64, error) {
	if name == "" {
		return NoStep, nil
	}
	t, err := ReadVariable(ctx, s, name)
	if err != nil {
		return NoStep, err
	}
	step, err := ScalarInt(t)
	if err != nil {
		return NoStep, fmt.Errorf("global step %s: %w", name, err)
	}
	return step, nil
}

// ReadVariable returns the value of a variable.
func ReadVariable(ctx context.Context, s Session, name string) (*ckptfmt.Tensor, error) {
	var out []*ckptfmt.Tensor
	if store, ok := s.(VariableStore); ok {
		snapshot, err := store.Snapshot(ctx, []string{name})
		if err != nil {
			return nil, err
		}
		out = snapshot.Tensors
	} else {
		var err error
		if out, err = s.Run(ctx, nil, []string{name + ":0"}, nil); err != nil {
			return nil, err
		}
	}
	if len(out) != 1 {
		return nil, fmt.Errorf("session gave %d values for %s", len(out), name)
	}
	return out[0], nil
}

// ScalarInt returns the value of an integer tensor with one element.
func ScalarInt(t *ckptfmt.Tensor) (int64, error) {
	if t == nil {
		return 0, errors.New("no value")
	}
	if n, err := dtype.NumElements(t.Shape); err != nil || n != 1 {
		return 0, fmt.Errorf("shape %v; want one element", t.Shape)
	}
	switch t.DType {
	case tfpb.DataType_DT_INT32:
		v, err := ckptfmt.Values[int32](t)
		if err != nil {
			return 0, err
		}
		return int64(v[0]), nil
	case tfpb.DataType_DT_INT64:
		v, err := ckptfmt.Values[int64](t)
		if err != nil {
			return 0, err
		}
		return v[0], nil
	}
	return 0, fmt.Errorf("%s; want int32 or int64", dtype.Name(t.DType))
}
