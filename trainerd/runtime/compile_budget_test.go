package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

var exhausted = &session.OpError{Code: tfpb.Code_RESOURCE_EXHAUSTED}

// laughs is a graph of functions that call the next one twice each; the last
// one has the op at the bottom.
func laughs(op string, deep int) *tfpb.GraphDef {
	floats := []tfpb.DataType{tfpb.DataType_DT_FLOAT}
	def := &tfpb.GraphDef{Library: &tfpb.FunctionDefLibrary{}}
	def.Node = append(def.Node, constant("x", 1), calling("call", op, "x", "f0"))
	for i := range deep {
		sig := &tfpb.OpDef{Name: fmt.Sprintf("f%d", i), InputArg: []*tfpb.OpDef_ArgDef{{Name: "a", Type: floats[0]}}, OutputArg: []*tfpb.OpDef_ArgDef{{Name: "out", Type: floats[0]}}}
		nodes, ret := []*tfpb.NodeDef{nodeDef("one", "Neg", "a")}, "one:y:0"
		if i < deep-1 {
			next := fmt.Sprintf("f%d", i+1)
			nodes = []*tfpb.NodeDef{calling("left", op, "a", next), calling("right", op, "left:output:0", next)}
			ret = "right:output:0"
		}
		def.Library.Function = append(def.Library.Function, &tfpb.FunctionDef{Signature: sig, NodeDef: nodes, Ret: map[string]string{"out": ret}})
	}
	return def
}

// calling is a node that calls a function, in both branches if it has two.
func calling(name, op, input, f string) *tfpb.NodeDef {
	floats := []tfpb.DataType{tfpb.DataType_DT_FLOAT}
	if strings.HasSuffix(op, "If") {
		return &tfpb.NodeDef{Name: name, Op: op, Input: []string{input, input}, Attr: attrs("then_branch", function(f), "else_branch", function(f), "Tcond", floats[0], "Tin", floats, "Tout", floats)}
	}
	return &tfpb.NodeDef{Name: name, Op: op, Input: []string{input}, Attr: attrs("f", function(f), "Tin", floats, "Tout", floats)}
}

// TestFunctionsThatDouble refuses a graph whose functions stand for more nodes
// than a step may have, and names one of them and the limit.
func TestFunctionsThatDouble(t *testing.T) {
	for _, op := range []string{"PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf"} {
		s, err := runtime.New(laughs(op, 40), &runtime.Options{MaxNodes: 5000})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, err = s.Run(context.Background(), nil, []string{"call"}, nil)
		var e *session.OpError
		if !errors.As(err, &e) || e.Code != tfpb.Code_RESOURCE_EXHAUSTED || !strings.Contains(err.Error(), "function f") || !strings.Contains(err.Error(), "may add 5000") {
			t.Errorf("%s: got %v", op, err)
		}
		if checked := s.Check(nil, []string{"call"}, nil); fmt.Sprint(checked) != fmt.Sprint(err) || strings.Contains(err.Error(), "Options") {
			t.Errorf("%s: Check says %v, the run %v", op, checked, err)
		}
		if len(err.Error()) > 2000 {
			t.Errorf("the error has %d characters", len(err.Error()))
		}
	}
	s, err := runtime.New(laughs("PartitionedCall", 8), &runtime.Options{MaxNodes: 5000})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := run(t, s, []string{"call"})[0]; got != 1 {
		t.Errorf("negated 128 times: %v", got)
	}
}

// TestCheckOfExpansion lets Check accept what Run does, and refuse what it refuses.
func TestCheckOfExpansion(t *testing.T) {
	recursive := laughs("PartitionedCall", 3)
	recursive.Library.Function[2].NodeDef = append(recursive.Library.Function[2].NodeDef, calling("again", "PartitionedCall", "a", "f0"))
	recursive.Library.Function[2].Ret["out"] = "again:output:0"
	unused := laughs("PartitionedCall", 3)
	unused.Library.Function[2].NodeDef = append(unused.Library.Function[2].NodeDef, calling("again", "PartitionedCall", "a", "f0"))
	chain := func(deep int) *tfpb.GraphDef {
		def := laughs("PartitionedCall", deep)
		for _, f := range def.Library.Function[:deep-1] {
			f.NodeDef, f.Ret = f.NodeDef[:1], map[string]string{"out": "left:output:0"}
		}
		return def
	}
	// Each of two steps has room, both together have not.
	two := laughs("PartitionedCall", 8) // 637 nodes a call
	two.Node = append(two.Node, calling("other", "PartitionedCall", "x", "f0"))
	for _, tc := range []struct {
		name    string
		def     *tfpb.GraphDef
		fetches []string
		want    string
	}{
		{"calls itself", recursive, []string{"call"}, "nested deeper than 64"},
		{"does not need its call of itself", unused, []string{"call"}, ""},
		{"64 deep", chain(64), []string{"call"}, ""},
		{"65 deep", chain(65), []string{"call"}, "nested deeper than 64"},
		{"two steps", two, []string{"call", "other"}, ""},
	} {
		s, err := runtime.New(tc.def, &runtime.Options{MaxNodes: 700})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		checks := []error{s.Check(nil, tc.fetches, nil)}
		for _, name := range tc.fetches {
			_, err := s.Run(t.Context(), nil, []string{name}, nil)
			checks = append(checks, err)
		}
		for i, err := range checks {
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s, %d: got %v, want %q", tc.name, i, err, tc.want)
			}
		}
	}
}

// TestCompilingStops ends a run that compiles without end by its context, by
// the session's end, and by the time that compiling may take.
func TestCompilingStops(t *testing.T) {
	for how, want := range map[string]error{"context": session.ErrCancelled, "close": session.ErrCancelled, "time": session.ErrDeadlineExceeded} {
		t.Run(how, func(t *testing.T) {
			o := &runtime.Options{MaxNodes: 1 << 40}
			if how == "time" {
				o.CompileTimeout = 10 * time.Millisecond
			}
			s, err := runtime.New(laughs("StatefulPartitionedCall", 36), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			timer := time.AfterFunc(10*time.Millisecond, func() {
				switch how {
				case "context":
					cancel()
				case "close":
					s.Close()
				}
			})
			defer timer.Stop()
			if _, err := s.Run(ctx, nil, []string{"call"}, nil); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}

// TestConstantsOfFunctions counts the memory of a constant once for each call
// of its function, and the steps of a session together.
func TestConstantsOfFunctions(t *testing.T) {
	def := laughs("StatefulPartitionedCall", 10)
	last := def.Library.Function[9]
	last.NodeDef = append(last.NodeDef, constant("big", make([]float32, 1000)...), nodeDef("sum", "AddV2", "one:y:0", "big:output:0"), inner("axis", "Const", nil, "dtype", tfpb.DataType_DT_INT32,
		"value", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: &tfpb.TensorShapeProto{}, IntVal: []int32{0}}), &tfpb.NodeDef{Name: "s", Op: "Sum", Input: []string{"sum:z:0", "axis:output:0"}, Attr: attrs("T", tfpb.DataType_DT_FLOAT, "Tidx", tfpb.DataType_DT_INT32)})
	last.Ret["out"] = "s:output:0"
	s, err := runtime.New(def, &runtime.Options{MaxConstantBytes: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Run(context.Background(), nil, []string{"call"}, nil); !errors.Is(err, exhausted) || !strings.Contains(fmt.Sprint(err), "100000 bytes") {
		t.Errorf("got %v", err)
	}
	s, err = runtime.New(laughs("StatefulPartitionedCall", 3), &runtime.Options{MaxNodes: 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 200 {
		if _, err = s.Run(context.Background(), nil, slicesOf("call", i+1), nil); err != nil {
			break
		}
	}
	if !errors.Is(err, exhausted) || !strings.Contains(fmt.Sprint(err), "session") {
		t.Errorf("200 different steps: got %v", err)
	}
}

func slicesOf(s string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = s
	}
	return list
}
