package variables

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

var errFailed = errors.New("the step failed")

func TestVariablesSaveRestore(t *testing.T) {
	type model struct {
		vars   Variables
		f      []float32
		d      []float64
		i      []int64
		source *rand.PCG
	}
	makeModel := func(seed uint64) *model {
		m := &model{f: make([]float32, 6), d: make([]float64, 2), i: make([]int64, 1), source: rand.NewPCG(seed, seed)}
		sessiontest.MustNoErr(t, errors.Join(m.vars.Float32("f", m.f, 2, 3), m.vars.Float64("d", m.d), m.vars.Int64("i", m.i), m.vars.State("random", m.source)))
		return m
	}
	a := makeModel(1)
	step, err := a.vars.Step(func() error {
		a.f[5], a.d[1], a.i[0] = 1.5, -2, 1<<40
		a.source.Uint64()
		return nil
	})
	sessiontest.MustNoErr(t, err)
	if step != 1 {
		t.Errorf("Step = %d; want 1", step)
	}
	prefix, err := new(checkpoint.Saver).Save(t.Context(), &a.vars, filepath.Join(t.TempDir(), "m"), step)
	sessiontest.MustNoErr(t, err)
	b := makeModel(2)
	sessiontest.MustNoErr(t, new(checkpoint.Saver).Restore(t.Context(), &b.vars, prefix))
	if !slices.Equal(b.f, a.f) || !slices.Equal(b.d, a.d) || !slices.Equal(b.i, a.i) || b.vars.GlobalStep() != 1 {
		t.Errorf("restored %v %v %v step %d", b.f, b.d, b.i, b.vars.GlobalStep())
	}
	if x, y := a.source.Uint64(), b.source.Uint64(); x != y {
		t.Errorf("random numbers continue with %d; want %d", y, x)
	}
}

func TestVariablesRegister(t *testing.T) {
	var v Variables
	sessiontest.MustNoErr(t, v.Float32("w", make([]float32, 2)))
	sessiontest.MustNoErr(t, v.State("s", rand.NewPCG(1, 1)))
	for name, err := range map[string]error{
		"twice":       v.Int64("w", []int64{1}),
		"no name":     v.Int64("", []int64{1}),
		"global step": v.Int64("global_step", []int64{1}),
		"reserved":    v.Int64(session.StatePrefix+"x", []int64{1}),
		"shape":       v.Int64("x", []int64{1}, 2),
		"state twice": v.State("s", rand.NewPCG(1, 1)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestVariablesStepFails(t *testing.T) {
	var v Variables
	if step, err := v.Step(func() error { return errFailed }); err != errFailed || step != 0 {
		t.Errorf("Step = %d, %v; want 0 and the error", step, err)
	}
}

func TestVariablesRestoreAllOrNone(t *testing.T) {
	tests := []struct {
		name   string
		values []ckptfmt.NamedTensor
	}{
		{"unknown variable", []ckptfmt.NamedTensor{{Name: "w", Tensor: sessiontest.Vector[float32](1, 2)}, {Name: "x", Tensor: sessiontest.Vector[float32](1)}}},
		{"wrong shape", []ckptfmt.NamedTensor{{Name: "global_step", Tensor: ckptfmt.Scalar(int64(5))}, {Name: "w", Tensor: sessiontest.Vector[float32](1)}}},
		{"wrong type", []ckptfmt.NamedTensor{{Name: "w", Tensor: sessiontest.Vector(1.0, 2)}}},
		{"invalid tensor", []ckptfmt.NamedTensor{{Name: "w", Tensor: &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2}}}}},
		{"bad state", []ckptfmt.NamedTensor{{Name: "w", Tensor: sessiontest.Vector[float32](1, 2)},
			{Name: session.StatePrefix + "a", Tensor: ckptfmt.Scalar("pcg:0123456789abcdef")}, {Name: session.StatePrefix + "b", Tensor: ckptfmt.Scalar("x")}}},
		{"state of wrong type", []ckptfmt.NamedTensor{{Name: session.StatePrefix + "a", Tensor: sessiontest.Vector[float32](1)}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var v Variables
			w := []float32{7, 8}
			a, b := rand.NewPCG(1, 1), rand.NewPCG(2, 2)
			sessiontest.MustNoErr(t, errors.Join(v.Float32("w", w), v.State("a", a), v.State("b", b)))
			before, _ := a.MarshalBinary()
			if err := v.Restore(t.Context(), tt.values); err == nil {
				t.Fatal("no error")
			}
			after, _ := a.MarshalBinary()
			if diff := cmp.Diff(after, before); diff != "" || w[0] != 7 || v.GlobalStep() != 0 {
				t.Errorf("changed: w %v, step %d, state %s", w, v.GlobalStep(), diff)
			}
		})
	}
}

func TestVariablesRun(t *testing.T) {
	var v Variables
	sessiontest.MustNoErr(t, v.Float32("w", []float32{3}))
	out, err := v.Run(t.Context(), nil, []string{"w:0", "global_step"}, nil)
	sessiontest.MustNoErr(t, err)
	if diff := cmp.Diff(out[0].Data, sessiontest.Vector[float32](3).Data); diff != "" {
		t.Errorf("w (-got +want):\n%s", diff)
	}
	if _, err := v.Run(t.Context(), nil, []string{"x"}, nil); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("fetch of an unknown variable: %v; want ErrNotFound", err)
	}
	if _, err := v.Run(t.Context(), nil, nil, []string{"w"}); !errors.Is(err, session.ErrUnimplemented) {
		t.Errorf("target: %v; want ErrUnimplemented", err)
	}
}

// TestGlobalStepWithinStep reads the step from within one, as a schedule of the learning
// rate does, and from elsewhere while one is under way.
func TestGlobalStepWithinStep(t *testing.T) {
	v := new(Variables)
	for want := range int64(3) {
		_, err := v.Step(func() error {
			read := make(chan int64)
			go func() { read <- v.GlobalStep() }()
			if here, elsewhere := v.GlobalStep(), <-read; here != want || elsewhere != want {
				t.Errorf("steps %d and %d within step %d", here, elsewhere, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
