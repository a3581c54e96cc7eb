package runtime_test

import (
	"context"
	"math"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// TestIdle leaves out what others only run after, but nothing with an effect.
// That a node was computed shows by its error.
func TestIdle(t *testing.T) {
	vector := func(n int) *ckptfmt.Tensor {
		return &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{int64(n)}, Data: make([]byte, 4*n)}
	}
	s := newSession(t, constant("one", 1), constant("zero", 0), variableDef("v", "VariableV2"), nodeDef("init", "Assign", "v", "zero"),
		feedable("x", tfpb.DataType_DT_FLOAT), feedable("y", tfpb.DataType_DT_FLOAT),
		nodeDef("bad", "AddV2", "x", "y"),
		nodeDef("after bad", "Identity", "one", "^bad"),
		nodeDef("uses bad", "Neg", "bad"),
		nodeDef("after user", "NoOp", "^uses bad"),
		nodeDef("count", "AssignAdd", "v", "one"),
		nodeDef("of count", "AddV2", "count", "one"),
		nodeDef("after count", "Identity", "one", "^of count"),
		nodeDef("check", "CheckNumerics", "x"),
		nodeDef("after check", "Identity", "one", "^check"))
	run(t, s, nil, "init")
	misfit := map[string]*ckptfmt.Tensor{"x:0": vector(2), "y:0": vector(3)}
	for _, c := range []struct {
		name    string
		feeds   map[string]*ckptfmt.Tensor
		fetch   string
		target  string
		invalid bool
	}{
		{"only waited for", misfit, "after bad", "", false},
		{"used by what is only waited for", misfit, "", "after user", false},
		{"target", misfit, "", "bad", true},
		{"used by a target", misfit, "", "uses bad", true},
		{"used by a fetch", misfit, "uses bad", "", true},
		{"a check", map[string]*ckptfmt.Tensor{"x:0": ckptfmt.Scalar(float32(math.NaN()))}, "after check", "", true},
	} {
		var fetches, targets []string
		if c.fetch != "" {
			fetches = []string{c.fetch}
		}
		if c.target != "" {
			targets = []string{c.target}
		}
		if _, err := s.Run(context.Background(), c.feeds, fetches, targets); (err != nil) != c.invalid {
			t.Errorf("%s: error %v, want one: %t", c.name, err, c.invalid)
		}
	}
	run(t, s, []string{"after count"})
	if got := run(t, s, []string{"v"})[0]; got != 1.0 {
		t.Errorf("an update below a node that is left out made %v, want 1", got)
	}
}
