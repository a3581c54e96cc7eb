package daemon

import (
	"errors"
	"fmt"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/session"
)

// TestVariableOfAnotherModel has what TensorFlow's servers answer where a variable of an
// earlier model has another shape, or another type, than the one of this model, or where a
// checkpoint lacks one.
func TestVariableOfAnotherModel(t *testing.T) {
	shape := &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Node: "w/Assign", Op: "Assign",
		Message: "Assign requires shapes of both tensors to match. lhs shape= [8,1] rhs shape= [8,8]"}
	dtype := &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Node: "w/Assign", Op: "AssignVariableOp",
		Message: "Trying to assign variable with wrong dtype. Expected float got double"}
	lacks := &session.OpError{Code: tfpb.Code_NOT_FOUND, Node: "save/RestoreV2", Op: "RestoreV2", Message: "Key beta1_power not found in checkpoint"}
	const hint = "; the server may still have a variable of this name from another model: restart the server"
	const different = "; the checkpoint is of a different model: use a new logdir for the changed model, or change the model back"
	for _, tt := range []struct {
		name, master string
		err          error
		hint         string
	}{
		{"another shape", "grpc://localhost:2222", fmt.Errorf("init op init: %w", shape), hint},
		{"another type", "grpc://localhost:2222", fmt.Errorf("init op init: %w", dtype), hint},
		{"this process", "", fmt.Errorf("init op init: %w", shape), ""},
		{"another op", "grpc://localhost:2222", &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Op: "MatMul"}, ""},
		{"another code", "grpc://localhost:2222", &session.OpError{Code: tfpb.Code_UNAVAILABLE, Op: "Assign"}, ""},
		{"no such variable", "grpc://localhost:2222", fmt.Errorf("restoring model.ckpt-20: %w", lacks), different},
		{"no such file", "grpc://localhost:2222", &session.OpError{Code: tfpb.Code_NOT_FOUND, Message: "Failed to find any matching files"}, ""},
		{"no op", "grpc://localhost:2222", errors.New("disk full"), ""},
	} {
		c := config.Default()
		c.Master = tt.master
		got := explainServer(c, tt.err)
		if !errors.Is(got, tt.err) || got.Error() != tt.err.Error()+tt.hint {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	if err := explainServer(config.Default(), nil); err != nil {
		t.Error(err)
	}
}
