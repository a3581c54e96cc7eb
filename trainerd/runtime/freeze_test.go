package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// vectorOf gives a node that makes one float another shape.
func vectorOf(n *tfpb.NodeDef, size int) *tfpb.NodeDef {
	shape := &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: int64(size)}}}
	if value := n.Attr["value"].GetTensor(); value != nil {
		value.TensorShape = shape
		return n
	}
	n.Attr["shape"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Shape{Shape: shape}}
	return n
}

// vectors is counters with vectors, and a third one, to which each step assigns
// what the first has become.
func vectors(size int) []*tfpb.NodeDef {
	nodes := counters()
	for _, n := range nodes[:4] {
		vectorOf(n, size)
	}
	return append(nodes,
		vectorOf(variableDef("c", "VariableV2"), size), nodeDef("c/init", "Assign", "c", "zero"),
		nodeDef("all/init", "NoOp", "^init", "^c/init"),
		nodeDef("c/set", "Assign", "c", "a", "^a/add"),
		nodeDef("all/step", "NoOp", "^step", "^c/set"))
}

func target(t testing.TB, s *runtime.Session, name string) {
	t.Helper()
	if _, err := s.Run(context.Background(), nil, nil, []string{name}); err != nil {
		t.Error(err)
	}
}

func snapshot(t testing.TB, s *runtime.Session, names []string) []*ckptfmt.Tensor {
	t.Helper()
	snap, err := s.Snapshot(context.Background(), names)
	if err != nil {
		t.Fatal(err)
	}
	return snap.Tensors
}

func freeze(t testing.TB, s *runtime.Session, names []string) session.LazySnapshot {
	t.Helper()
	f, err := s.Freeze(context.Background(), names)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// checkFrozen compares what a lazy snapshot gives out with what it should.
func checkFrozen(t testing.TB, f session.LazySnapshot, names []string, want []*ckptfmt.Tensor) {
	t.Helper()
	for i, name := range names {
		got, err := f.Tensor(i)
		if err != nil {
			t.Fatal(err)
		}
		if got.DType != want[i].DType || !slices.Equal(got.Shape, want[i].Shape) || !bytes.Equal(got.Data, want[i].Data) ||
			!slices.EqualFunc(got.Strings, want[i].Strings, bytes.Equal) {
			t.Errorf("variable %s is not as it was when it was frozen", name)
		}
	}
}

func initialized(t *testing.T, s *runtime.Session) (names []string) {
	t.Helper()
	all, err := s.Variables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Initialized {
			names = append(names, v.Name)
		}
	}
	return names
}

// duringFreeze does a step during a lazy snapshot of all variables.
func duringFreeze(t *testing.T, s *runtime.Session, step func()) {
	t.Helper()
	names := initialized(t, s)
	want := snapshot(t, s, names)
	f := freeze(t, s, names)
	defer f.Close()
	step()
	checkFrozen(t, f, names, want)
}

// sameVariables compares the variables of two sessions bit by bit.
func sameVariables(t *testing.T, got, want *runtime.Session) {
	t.Helper()
	names := initialized(t, want)
	a, b := snapshot(t, got, names), snapshot(t, want, names)
	for i, name := range names {
		if !bytes.Equal(a[i].Data, b[i].Data) {
			t.Errorf("variable %s differs from that of a session nobody froze", name)
		}
	}
}

// TestFreezeOptimizers runs the programs of all optimizers during snapshots:
// they hold what was, and the steps do what they do without.
func TestFreezeOptimizers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(kernelsDir, "train.txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, s := loadGraph(t, "train.pb")
	_, plain := loadGraph(t, "train.pb")
	target(t, s, "init")
	target(t, plain, "init")
	for range 3 {
		for op := range strings.FieldsSeq(string(text)) {
			duringFreeze(t, s, func() { target(t, s, op) })
			target(t, plain, op)
		}
	}
	sameVariables(t, s, plain)
}

// TestFreezePrograms does the same with whole programs.
func TestFreezePrograms(t *testing.T) {
	for _, name := range fed {
		t.Run(name, func(t *testing.T) {
			p, plain := load(t, name), load(t, name)
			p.restore(t)
			plain.restore(t)
			for _, feeds := range p.feeds(t) {
				duringFreeze(t, p.sess, func() { p.run(t, feeds, nil, p.TrainOp) })
				plain.run(t, feeds, nil, p.TrainOp)
			}
			sameVariables(t, p.sess, plain.sess)
		})
	}
}

// TestFreezeReadOrder has reads and writes of one run during a snapshot: they
// see what they see without it.
func TestFreezeReadOrder(t *testing.T) {
	s, plain := newSession(t, counters()...), newSession(t, counters()...)
	target(t, s, "init")
	target(t, plain, "init")
	fetches := []string{"a/read", "b/read", "b/after", "a", "sum"}
	for range 3 {
		var got []float64
		duringFreeze(t, s, func() { got = run(t, s, fetches, "step") })
		if want := run(t, plain, fetches, "step"); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// TestFreezeChanges changes variables in the other ways during a snapshot.
func TestFreezeChanges(t *testing.T) {
	index := constant("index", 0)
	index.Attr["dtype"] = typeAttr(tfpb.DataType_DT_INT32)
	index.Attr["value"].GetTensor().Dtype = tfpb.DataType_DT_INT32
	scatter := func(name, op, variable string) *tfpb.NodeDef {
		n := nodeDef(name, op, variable, "index", "scalar")
		n.Attr["Tindices"] = typeAttr(tfpb.DataType_DT_INT32)
		return n
	}
	text := variableDef("text", "VariableV2")
	text.Attr["dtype"] = typeAttr(tfpb.DataType_DT_STRING)
	word := feedable("word", tfpb.DataType_DT_STRING)
	setText := nodeDef("text/set", "Assign", "text", "word")
	setText.Attr["T"] = typeAttr(tfpb.DataType_DT_STRING)
	const size = 70_000 // more than is copied in one part
	s := newSession(t, append(vectors(size), index, constant("scalar", 1000), constant("longer", 1, 2, 3), text, word, setText,
		scatter("a/scatter", "ScatterUpdate", "a"), scatter("b/scatter", "ResourceScatterAdd", "b"),
		nodeDef("b/destroy", "DestroyResourceOp", "b"), nodeDef("a/self", "Assign", "a", "a/read"))...)
	target(t, s, "all/init")
	feedText := func(v []byte) {
		fed := &ckptfmt.Tensor{DType: tfpb.DataType_DT_STRING, Strings: [][]byte{v}}
		if _, err := s.Run(context.Background(), map[string]*ckptfmt.Tensor{"word": fed}, nil, []string{"text/set"}); err != nil {
			t.Fatal(err)
		}
	}
	mine := []byte("mine")
	feedText(mine)
	mine[0] = 'f' // the run is over, so this is the caller's again
	if got := string(snapshot(t, s, []string{"text"})[0].Strings[0]); got != "mine" {
		t.Errorf("the variable has %q; want what was fed", got)
	}
	restored := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{size}, Data: bytes.Repeat([]byte{0, 0, 128, 63}, size)}
	for name, change := range map[string]func(){
		"step":             func() { target(t, s, "all/step") },
		"two steps":        func() { target(t, s, "all/step"); target(t, s, "all/step") },
		"assigned itself":  func() { target(t, s, "a/self") },
		"scatter":          func() { target(t, s, "a/scatter") },
		"resource scatter": func() { target(t, s, "b/scatter") },
		"destroyed":        func() { target(t, s, "b/destroy"); target(t, s, "b/init") },
		"string":           func() { feedText([]byte("another")) },
		"restore": func() {
			if err := s.Restore(t.Context(), []ckptfmt.NamedTensor{{Name: "a", Tensor: restored}, {Name: "b", Tensor: restored}}); err != nil {
				t.Error(err)
			}
		},
		"adopt": func() {
			mine := &ckptfmt.Tensor{DType: restored.DType, Shape: restored.Shape, Data: bytes.Clone(restored.Data)}
			if err := s.Adopt(t.Context(), []ckptfmt.NamedTensor{{Name: "a", Tensor: mine}}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			duringFreeze(t, s, change)
			duringFreeze(t, s, change) // into memory that is there by now
		})
	}
}

// The memory of a large value is taken over by Adopt and copied by Restore, that of a small
// one, or of half a word, is copied by both. Steps change only the variable.
func TestAdopt(t *testing.T) {
	for _, size := range []int{1, 1 << 15, 1<<15 + 1} {
		s := newSession(t, vectors(size)...)
		target(t, s, "all/init")
		value := func() *ckptfmt.Tensor {
			return &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{int64(size)}, Data: bytes.Repeat([]byte{0, 0, 128, 63}, size)}
		}
		for name, restore := range map[string]func(context.Context, []ckptfmt.NamedTensor) error{"restored": s.Restore, "adopted": s.Adopt} {
			a, b := value(), value()
			if err := restore(t.Context(), []ckptfmt.NamedTensor{{Name: "a", Tensor: a}, {Name: "b", Tensor: b}}); err != nil {
				t.Fatal(err)
			}
			f := freeze(t, s, []string{"a", "b"})
			checkFrozen(t, f, []string{"a", "b"}, []*ckptfmt.Tensor{value(), value()})
			f.Close()
			target(t, s, "all/step")
			shared := !bytes.Equal(a.Data, value().Data)
			if want := name == "adopted" && size == 1<<15; shared != want {
				t.Errorf("%s with %d numbers: its memory is shared: %v, want %v", name, size, shared, want)
			}
		}
	}
}

// TestFreezeFunction changes a variable in a function that a step calls.
func TestFreezeFunction(t *testing.T) {
	call := nodeDef("call", "StatefulPartitionedCall", "b", "one")
	call.Attr["f"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Func{Func: &tfpb.NameAttrList{Name: "raise"}}}
	for key, types := range map[string][]tfpb.DataType{"Tin": {tfpb.DataType_DT_RESOURCE, tfpb.DataType_DT_FLOAT}, "Tout": nil} {
		call.Attr[key] = &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: types}}}
	}
	raise := &tfpb.FunctionDef{
		Signature: &tfpb.OpDef{Name: "raise", InputArg: []*tfpb.OpDef_ArgDef{
			{Name: "v", Type: tfpb.DataType_DT_RESOURCE}, {Name: "by", Type: tfpb.DataType_DT_FLOAT}}, ControlOutput: []string{"done"}},
		ControlRet: map[string]string{"done": "add"},
		NodeDef:    []*tfpb.NodeDef{nodeDef("add", "AssignAddVariableOp", "v", "by")},
	}
	s, err := runtime.New(&tfpb.GraphDef{Node: append(counters(), call), Library: &tfpb.FunctionDefLibrary{Function: []*tfpb.FunctionDef{raise}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	target(t, s, "init")
	for want := range 3 {
		duringFreeze(t, s, func() { target(t, s, "call") })
		if got := run(t, s, []string{"b/read"})[0]; got != float64(want+1) {
			t.Errorf("the variable is %v after call %d", got, want+1)
		}
	}
}

// TestFreezeErrors asks for what cannot be frozen, and for what is not any more.
func TestFreezeErrors(t *testing.T) {
	s := newSession(t, counters()...)
	if _, err := s.Freeze(t.Context(), []string{"a"}); !errors.Is(err, session.ErrFailedPrecondition) {
		t.Errorf("variable without a value: %v, want FAILED_PRECONDITION", err)
	}
	target(t, s, "init")
	if _, err := s.Freeze(t.Context(), []string{"a", "x"}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("unknown variable: %v, want NOT_FOUND", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Freeze(ctx, []string{"a"}); !errors.Is(err, session.ErrCancelled) {
		t.Errorf("cancelled: %v, want CANCELLED", err)
	}
	f := freeze(t, s, []string{"a"})
	f.Close()
	f.Close()
	for _, i := range []int{-1, 0, 1} {
		if _, err := f.Tensor(i); !errors.Is(err, session.ErrFailedPrecondition) {
			t.Errorf("tensor %d of a closed snapshot: %v, want FAILED_PRECONDITION", i, err)
		}
	}
}

// hammer makes steps until it is told to stop, with a lock that holds them off.
type hammer struct {
	gate  sync.RWMutex
	stop  atomic.Bool
	wg    sync.WaitGroup
	steps atomic.Int64
}

func (h *hammer) start(goroutines int, step func()) {
	for range goroutines {
		h.wg.Go(func() {
			for !h.stop.Load() {
				h.gate.RLock()
				step()
				h.gate.RUnlock()
				h.steps.Add(1)
			}
		})
	}
}

func (h *hammer) end() { h.stop.Store(true); h.wg.Wait() }

// TestFreezeHammer takes snapshots, up to three at a time, while steps continue,
// reads them in any order, wholly or in part, and compares them with copies
// that were made in the same moment.
func TestFreezeHammer(t *testing.T) {
	const size = 70_000
	s := newSession(t, vectors(size)...)
	target(t, s, "all/init")
	names := []string{"a", "b", "c"}
	var h hammer
	h.start(2, func() { target(t, s, "all/step") })
	h.start(1, func() {
		if out := run2(t, s, "a/read", "b/read"); !bytes.Equal(out[0], out[1]) {
			t.Error("a run between steps")
		}
	})
	var savers sync.WaitGroup
	for range 3 {
		savers.Go(func() {
			for range 25 {
				h.gate.Lock()
				want := snapshot(t, s, names)
				f := freeze(t, s, names)
				h.gate.Unlock()
				for _, i := range rand.Perm(len(names))[:1+rand.IntN(len(names))] {
					got, err := f.Tensor(i)
					if err != nil {
						t.Error(err)
						break
					}
					for range 3 {
						if !bytes.Equal(got.Data, want[i].Data) {
							t.Errorf("variable %s is not as it was when it was frozen", names[i])
						}
						goruntime.Gosched()
					}
				}
				f.Close()
			}
		})
	}
	savers.Wait()
	h.end()
	out := snapshot(t, s, names)
	for i := range names {
		if !bytes.Equal(out[i].Data, out[0].Data) {
			t.Errorf("%s and %s have made different steps", names[0], names[i])
		}
	}
}

func run2(t testing.TB, s *runtime.Session, fetches ...string) [][]byte {
	t.Helper()
	out, err := s.Run(context.Background(), nil, fetches, nil)
	if err != nil {
		t.Fatal(err)
	}
	var data [][]byte
	for _, v := range out {
		data = append(data, v.Data)
	}
	return data
}
