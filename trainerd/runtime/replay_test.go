package runtime_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/dtype"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

const graphsDir = "../../fixtures/graphs"

// manifest records what a program did in TensorFlow.
type manifest struct {
	Program     string               `json:"program"`
	Steps       int                  `json:"steps"`
	TrainOp     string               `json:"train_op"`
	Fetches     map[string]string    `json:"fetches"`
	Feeds       []string             `json:"feeds"`
	SummaryOp   string               `json:"summary_op"`
	InitOp      string               `json:"init_op"`
	LocalInitOp string               `json:"local_init_op"`
	RTol        float64              `json:"rtol"`
	ATol        float64              `json:"atol"`
	PerStep     []map[string]float64 `json:"per_step"`
}

// program is one recorded program with its session.
type program struct {
	manifest
	dir  string
	sess *runtime.Session
	meta *tfpb.MetaGraphDef
}

func load(t testing.TB, name string) *program {
	t.Helper()
	p := &program{dir: filepath.Join(graphsDir, name)}
	text, err := os.ReadFile(filepath.Join(p.dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &p.manifest); err != nil {
		t.Fatal(err)
	}
	p.meta = readMeta(t, filepath.Join(p.dir, "graph.meta"))
	p.sess, err = runtime.New(p.meta.GetGraphDef(), &runtime.Options{Dir: graphsDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.sess.Close() })
	return p
}

func readMeta(t testing.TB, name string) *tfpb.MetaGraphDef {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	meta := &tfpb.MetaGraphDef{}
	if err := proto.Unmarshal(data, meta); err != nil {
		t.Fatal(err)
	}
	return meta
}

// bundle returns all tensors of a checkpoint.
func bundle(t testing.TB, prefix string) []ckptfmt.NamedTensor {
	t.Helper()
	r, err := ckptfmt.OpenBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var list []ckptfmt.NamedTensor
	for info, err := range r.Tensors() {
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.Lookup(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, ckptfmt.NamedTensor{Name: info.Name, Tensor: v})
	}
	return list
}

// restore sets the variables to the recorded ones.
func (p *program) restore(t testing.TB) {
	t.Helper()
	p.run(t, nil, nil, p.InitOp, p.LocalInitOp)
	if err := p.sess.Restore(context.Background(), bundle(t, filepath.Join(p.dir, "init", "model.ckpt-0"))); err != nil {
		t.Fatal(err)
	}
}

func (p *program) run(t testing.TB, feeds map[string]*ckptfmt.Tensor, fetches []string, targets ...string) []*ckptfmt.Tensor {
	t.Helper()
	out, err := p.sess.Run(context.Background(), feeds, fetches, targets)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// feeds returns the recorded feeds, by step.
func (p *program) feeds(t testing.TB) []map[string]*ckptfmt.Tensor {
	t.Helper()
	list := make([]map[string]*ckptfmt.Tensor, p.Steps)
	for i := range list {
		list[i] = map[string]*ckptfmt.Tensor{}
	}
	if len(p.Feeds) == 0 {
		return list
	}
	for _, nt := range bundle(t, filepath.Join(p.dir, "feeds", "feeds")) {
		var step int
		var name string
		prefix, name, _ := strings.Cut(nt.Name, "/")
		if _, err := fmt.Sscanf(prefix, "step_%d", &step); err != nil {
			t.Fatalf("%q: %v", nt.Name, err)
		}
		list[step][name+":0"] = nt.Tensor
	}
	return list
}

func scalarOf(t testing.TB, v *ckptfmt.Tensor) float64 {
	t.Helper()
	if n, _ := dtype.NumElements(v.Shape); n != 1 {
		t.Fatalf("%v is no scalar", v.Shape)
	}
	return element(v, 0)
}

// element returns one element of a numeric tensor.
func element(v *ckptfmt.Tensor, i int) float64 {
	switch v.DType {
	case tfpb.DataType_DT_FLOAT:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.Data[4*i:])))
	case tfpb.DataType_DT_DOUBLE:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.Data[8*i:]))
	case tfpb.DataType_DT_INT32:
		return float64(int32(binary.LittleEndian.Uint32(v.Data[4*i:])))
	case tfpb.DataType_DT_INT64:
		return float64(int64(binary.LittleEndian.Uint64(v.Data[8*i:])))
	case tfpb.DataType_DT_INT16:
		return float64(int16(binary.LittleEndian.Uint16(v.Data[2*i:])))
	case tfpb.DataType_DT_UINT16:
		return float64(binary.LittleEndian.Uint16(v.Data[2*i:]))
	case tfpb.DataType_DT_INT8:
		return float64(int8(v.Data[i]))
	case tfpb.DataType_DT_UINT32:
		return float64(binary.LittleEndian.Uint32(v.Data[4*i:]))
	case tfpb.DataType_DT_UINT64:
		return float64(binary.LittleEndian.Uint64(v.Data[8*i:]))
	}
	return float64(v.Data[i])
}

func near(got, want, rtol, atol float64) bool {
	if math.IsNaN(want) || math.IsInf(want, 0) {
		return got == want || math.IsNaN(got) && math.IsNaN(want)
	}
	return math.Abs(got-want) <= atol+rtol*math.Abs(want)
}

// compare reports the first element that differs beyond the tolerance.
func compare(got, want *ckptfmt.Tensor, rtol, atol float64) error {
	if got.DType != want.DType {
		return fmt.Errorf("type %s, want %s", got.DType, want.DType)
	}
	if fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		return fmt.Errorf("shape %v, want %v", got.Shape, want.Shape)
	}
	for i := range want.Strings {
		if string(got.Strings[i]) != string(want.Strings[i]) {
			return fmt.Errorf("element %d is %q, want %q", i, got.Strings[i], want.Strings[i])
		}
	}
	got, want = widened(got), widened(want)
	n, _ := dtype.NumElements(want.Shape)
	for i := 0; i < int(n) && want.Strings == nil; i++ {
		if g, w := element(got, i), element(want, i); !near(g, w, rtol, atol) {
			return fmt.Errorf("element %d is %v, want %v", i, g, w)
		}
	}
	return nil
}

// checkFinal compares all variables with the recorded ones.
func (p *program) checkFinal(t *testing.T) {
	t.Helper()
	want := bundle(t, filepath.Join(p.dir, "final", fmt.Sprintf("model.ckpt-%d", p.Steps)))
	var names []string
	for _, nt := range want {
		names = append(names, nt.Name)
	}
	snap, err := p.sess.Snapshot(context.Background(), names)
	if err != nil {
		t.Fatal(err)
	}
	for i, nt := range want {
		if err := compare(snap.Tensors[i], nt.Tensor, p.RTol, p.ATol); err != nil {
			t.Errorf("variable %s: %v", nt.Name, err)
		}
	}
}

var fed = []string{"softmax_ref", "softmax_resource", "softmax_no_saver", "mlp_adam", "mlp_dropout", "embedding", "conv"}

// TestReplay runs the recorded programs on the recorded feeds.
func TestReplay(t *testing.T) {
	for _, name := range fed {
		t.Run(name, func(t *testing.T) {
			p := load(t, name)
			p.restore(t)
			for i, feeds := range p.feeds(t) {
				for key, fetch := range p.Fetches {
					want := p.PerStep[i][key]
					if key == "loss" {
						continue
					}
					got := scalarOf(t, p.run(t, feeds, []string{fetch})[0])
					if !near(got, want, p.RTol, p.ATol) {
						t.Errorf("step %d: %s is %v, want %v", i, key, got, want)
					}
				}
				got := scalarOf(t, p.run(t, feeds, []string{p.Fetches["loss"]}, p.TrainOp)[0])
				if want := p.PerStep[i]["loss"]; !near(got, want, p.RTol, p.ATol) {
					t.Fatalf("step %d: loss is %v, want %v", i, got, want)
				}
			}
			p.checkFinal(t)
		})
	}
}
