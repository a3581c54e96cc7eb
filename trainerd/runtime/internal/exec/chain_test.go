package exec_test

import (
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// negations returns a session of z = -(-x), whose kernels count their calls.
func negations(t *testing.T, calls *int) *exec.Session {
	t.Helper()
	float := map[string]*tfpb.AttrValue{"dtype": {Value: &tfpb.AttrValue_Type{Type: exec.Float32}}, "T": {Value: &tfpb.AttrValue_Type{Type: exec.Float32}}}
	def := &tfpb.GraphDef{Node: []*tfpb.NodeDef{
		{Name: "x", Op: "Placeholder", Attr: float},
		{Name: "y", Op: "Neg", Input: []string{"x"}, Attr: float},
		{Name: "z", Op: "Neg", Input: []string{"y"}, Attr: float},
	}}
	negate := func(d, x []float32) {
		for i := range d {
			d[i] = -x[i]
		}
	}
	kernel := func(c *exec.KernelContext) error {
		*calls++
		x := c.In(0)
		negate(exec.Elems[float32](c.OutOver(0, 0)), exec.Elems[float32](x))
		return nil
	}
	s, err := exec.New(exec.OpTable{
		"Placeholder": {Build: exec.WithoutAttrs(kernel)},
		"Neg": {Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
			b.Elementwise(&exec.Elements{V: negate})
			return kernel, nil
		}},
	}, def, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestChainOfSteps has a chain take the place of steps from the second run on, where
// the shapes are those of the first.
func TestChainOfSteps(t *testing.T) {
	calls := 0
	s := negations(t, &calls)
	for _, tt := range []struct {
		what   string
		size   int
		level  tfpb.RunOptions_TraceLevel
		kernel int
	}{
		{"first run", 70000, tfpb.RunOptions_NO_TRACE, 2},
		{"second run", 70000, tfpb.RunOptions_NO_TRACE, 0},
		{"traced", 70000, tfpb.RunOptions_FULL_TRACE, 2},
		{"another shape", 4097, tfpb.RunOptions_NO_TRACE, 2},
		{"the first shape", 70000, tfpb.RunOptions_NO_TRACE, 0},
		{"no elements", 0, tfpb.RunOptions_NO_TRACE, 2},
	} {
		values := make([]float32, tt.size)
		for i := range values {
			values[i] = float32(i) - 100
		}
		x, err := ckptfmt.FromValues([]int64{int64(tt.size)}, values)
		if err != nil {
			t.Fatal(err)
		}
		calls = 0
		out, _, err := s.RunWithOptions(t.Context(), &tfpb.RunOptions{TraceLevel: tt.level}, map[string]*ckptfmt.Tensor{"x:0": x}, []string{"z:0"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if calls != tt.kernel {
			t.Errorf("%s: %d calls of the kernel, want %d", tt.what, calls, tt.kernel)
		}
		got, err := ckptfmt.Values[float32](out[0])
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if got[i] != v {
				t.Fatalf("%s: element %d is %v, want %v", tt.what, i, got[i], v)
			}
		}
	}
}
