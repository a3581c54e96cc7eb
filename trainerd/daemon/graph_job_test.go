package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/dtype"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

const graphsDir = "../../fixtures/graphs"

// TestGraphJobs trains the programs that TensorFlow has recorded as jobs that
// say nothing but where graph and feeds are, and compares the last checkpoint
// with TensorFlow's.
func TestGraphJobs(t *testing.T) {
	manifests, err := filepath.Glob(filepath.Join(graphsDir, "*", "manifest.json"))
	if err != nil || len(manifests) == 0 {
		t.Fatal("no recorded graphs", err)
	}
	for _, name := range manifests {
		dir := filepath.Dir(name)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var manifest struct {
				Steps      int
				Feeds      []string
				RTol, ATol float64
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &manifest); err != nil {
				t.Fatal(err)
			}
			c := graphConfig(t, filepath.Join(dir, "graph.meta"))
			c.Graph.Dir = graphsDir
			if len(manifest.Feeds) > 0 {
				c.Graph.Bundle = filepath.Join(dir, "feeds", "feeds")
			}
			if _, stderr := runJob(t, t.Context(), c); !strings.Contains(stderr, fmt.Sprintf("the input ended at step %d\n", manifest.Steps)) {
				t.Errorf("the log is\n%s", stderr)
			}
			last := fmt.Sprintf("model.ckpt-%d", manifest.Steps)
			compare(t, filepath.Join(dir, "final", last), filepath.Join(c.Logdir, last), manifest.RTol, manifest.ATol)
		})
	}
}

// graphConfig is a job of a graph with all defaults.
func graphConfig(t *testing.T, meta string, lines ...string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	meta, err := filepath.Abs(meta)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("logdir = %q\n[graph]\nmeta = %q\n%s\n", filepath.Join(dir, "logs"), meta, strings.Join(lines, "\n"))
	name := filepath.Join(dir, "job.toml")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// compare checks that a checkpoint has all variables of another.
func compare(t *testing.T, want, got string, rtol, atol float64) {
	t.Helper()
	w, err := ckptfmt.OpenBundle(want, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	g, err := ckptfmt.OpenBundle(got, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for info, err := range w.Tensors() {
		if err != nil {
			t.Fatal(err)
		}
		x, errX := w.Lookup(info.Name)
		y, errY := g.Lookup(info.Name)
		if errX != nil || errY != nil {
			t.Fatal(errX, errY)
		}
		a, errA := inspect.NumbersOf(x)
		b, errB := inspect.NumbersOf(y)
		n, err := dtype.NumElements(x.Shape)
		if errA != nil || errB != nil || err != nil || len(x.Data) != len(y.Data) {
			t.Fatalf("%s: %v, %v, %v, %d and %d bytes", info.Name, errA, errB, err, len(x.Data), len(y.Data))
		}
		for i := range int(n) {
			if v, u := a.At(i), b.At(i); math.Abs(v-u) > atol+rtol*math.Abs(v) {
				t.Errorf("%s[%d]: got %v, TensorFlow has %v", info.Name, i, u, v)
				break
			}
		}
	}
}

// modelFile writes the MetaGraph of a builder, with a saver and an init op.
func modelFile(t *testing.T, b *graph.Builder) string {
	t.Helper()
	b.AddSaver()
	b.AddInit()
	meta, err := b.MetaGraph()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "model.meta")
	if err := os.WriteFile(file, tfproto.Marshal(meta), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestUncounted trains a graph that does not count its steps: the job counts
// them, and continues where it was.
func TestUncounted(t *testing.T) {
	b := graph.NewBuilder()
	w := b.Variable(graph.VariableSpec{Name: "w", DType: tfpb.DataType_DT_FLOAT, Initial: graph.Zeros(), Trainable: true})
	one := b.Const("one", literal.Float(1))
	b.Add(graph.NodeSpec{Op: "AssignAddVariableOp", Name: "raise", Inputs: []graph.Output{w.Handle(), one},
		Attrs: graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_FLOAT)}})
	file := modelFile(t, b)
	c := graphConfig(t, file, `train_op = "raise"`, "[train]", "steps = 5")
	runJob(t, t.Context(), c)
	c.Train.Steps = 8
	if _, stderr := runJob(t, t.Context(), c); !strings.Contains(stderr, "step=5 steps=8") {
		t.Errorf("the log is\n%s", stderr)
	}
	r, err := ckptfmt.OpenBundle(filepath.Join(c.Logdir, "model.ckpt-8"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	v, err := r.Lookup("w")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := program.ScalarFloat(v); err != nil || got != 8 {
		t.Errorf("w is %v, %v, want 8", got, err)
	}
}

// TestStepNotRaised runs a train op that leaves the graph's own counter alone.
func TestStepNotRaised(t *testing.T) {
	c := graphConfig(t, filepath.Join(graphsDir, "softmax_ref", "graph.meta"), `train_op = "init"`, "[train]", "steps = 5")
	c.Graph.Bundle = filepath.Join(graphsDir, "softmax_ref", "feeds", "feeds")
	var out, log bytes.Buffer
	err := Run(t.Context(), c, RunOptions{Stdout: &out, Stderr: &log})
	if err == nil || !strings.Contains(err.Error(), "graph.train_op: init has left the global step at 0, but a step must raise it") {
		t.Errorf("got %v", err)
	}
}
