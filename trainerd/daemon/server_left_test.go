package daemon

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/session"
)

// TestVariableOfAnotherModel has what TensorFlow's servers answer where a variable of an
// earlier model has another shape, or another type, than the one of this model.
func TestVariableOfAnotherModel(t *testing.T) {
	shape := &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Node: "w/Assign", Op: "Assign",
		Message: "Assign requires shapes of both tensors to match. lhs shape= [8,1] rhs shape= [8,8]"}
	dtype := &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Node: "w/Assign", Op: "AssignVariableOp",
		Message: "Trying to assign variable with wrong dtype. Expected float got double"}
	const hint = "; the server may still have a variable of this name from another model: restart the server"
	for _, tt := range []struct {
		name, master string
		err          error
		hinted       bool
	}{
		{"another shape", "grpc://localhost:2222", fmt.Errorf("init op init: %w", shape), true},
		{"another type", "grpc://localhost:2222", fmt.Errorf("init op init: %w", dtype), true},
		{"this process", "", fmt.Errorf("init op init: %w", shape), false},
		{"another op", "grpc://localhost:2222", &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Op: "MatMul"}, false},
		{"another code", "grpc://localhost:2222", &session.OpError{Code: tfpb.Code_UNAVAILABLE, Op: "Assign"}, false},
		{"no op", "grpc://localhost:2222", errors.New("disk full"), false},
	} {
		c := config.Default()
		c.Master = tt.master
		got := explainServer(c, tt.err)
		if !errors.Is(got, tt.err) || strings.HasSuffix(got.Error(), hint) != tt.hinted {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	if err := explainServer(config.Default(), nil); err != nil {
		t.Error(err)
	}
}
