package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// TestSaveDuringSteps writes checkpoints while a program with dropout continues.
// Each holds the bits, and the positions of random streams, of a copy that was
// made in the moment of the cut.
func TestSaveDuringSteps(t *testing.T) {
	p := load(t, "mlp_dropout")
	p.restore(t)
	feeds := p.feeds(t)[0]
	p.run(t, feeds, nil, p.TrainOp) // the random stream is in use
	names := initialized(t, p.sess)
	var h hammer
	h.start(2, func() { p.run(t, feeds, nil, p.TrainOp) })
	defer h.end()
	for name, saver := range map[string]*checkpoint.Saver{
		"one file":         {},
		"shards":           {Shards: 3},
		"the first format": {Format: checkpoint.FormatV1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for n := range int64(4) {
				h.gate.Lock()
				want, err := p.sess.Snapshot(t.Context(), names)
				if err != nil {
					t.Fatal(err)
				}
				cut, err := saver.Snapshot(t.Context(), p.sess, "global_step")
				h.gate.Unlock()
				if err != nil {
					t.Fatal(err)
				}
				prefix, err := saver.Write(t.Context(), cut, filepath.Join(dir, "m"), n)
				if err != nil {
					t.Fatal(err)
				}
				checkSaved(t, prefix, names, want)
			}
		})
	}
}

func checkSaved(t *testing.T, prefix string, names []string, want *session.Snapshot) {
	t.Helper()
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := slices.Clone(want.State)
	for i, name := range names {
		all = append(all, ckptfmt.NamedTensor{Name: name, Tensor: want.Tensors[i]})
	}
	if len(want.State) == 0 {
		t.Error("no state of random streams")
	}
	for _, nt := range all {
		got, err := r.Lookup(nt.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Data, nt.Tensor.Data) {
			t.Errorf("%s in the checkpoint is not as it was at the cut", nt.Name)
		}
	}
}

// TestFreezeMemory counts the memory that a step of two variables takes during
// snapshots: each variable's own size, once, and only if the snapshot still
// needs it.
func TestFreezeMemory(t *testing.T) {
	const size = 1 << 20 // elements
	const bytesOf = 4 * size
	names := []string{"a", "b", "c"}
	cases := []struct {
		name   string
		before func(t *testing.T, s *runtime.Session)
		want   int // variables that move to new memory
	}{
		{"no snapshot", func(t *testing.T, s *runtime.Session) {}, 0},
		{"snapshot", func(t *testing.T, s *runtime.Session) { freeze(t, s, names) }, 2},
		{"snapshot of others", func(t *testing.T, s *runtime.Session) { freeze(t, s, []string{"c"}) }, 0},
		{"one is written", func(t *testing.T, s *runtime.Session) {
			f := freeze(t, s, names)
			for i := range 2 {
				if _, err := f.Tensor(i); err != nil {
					t.Fatal(err)
				}
			}
		}, 1},
		{"closed", func(t *testing.T, s *runtime.Session) { freeze(t, s, names).Close() }, 0},
		{"second step", func(t *testing.T, s *runtime.Session) { freeze(t, s, names); target(t, s, "step") }, 0},
		{"second snapshot", func(t *testing.T, s *runtime.Session) {
			duringFreeze(t, s, func() { target(t, s, "step") })
			freeze(t, s, names)
		}, 0},
		{"two snapshots of one moment", func(t *testing.T, s *runtime.Session) { freeze(t, s, names); freeze(t, s, names) }, 2},
		{"one of them closed", func(t *testing.T, s *runtime.Session) { freeze(t, s, names); freeze(t, s, names).Close() }, 2},
		{"save that fails", func(t *testing.T, s *runtime.Session) {
			saver := new(checkpoint.Saver)
			cut, err := saver.Snapshot(t.Context(), s, "")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := saver.Write(ctx, cut, filepath.Join(t.TempDir(), "m"), 1); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, want the cancellation", err)
			}
		}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, vectors(size)...)
			target(t, s, "all/init")
			target(t, s, "step")
			c.before(t, s)
			var from, to goruntime.MemStats
			goruntime.ReadMemStats(&from)
			target(t, s, "step")
			goruntime.ReadMemStats(&to)
			if got := int(to.TotalAlloc-from.TotalAlloc+bytesOf/2) / bytesOf; got != c.want {
				t.Errorf("the step took new memory for %d variables, want %d", got, c.want)
			}
		})
	}
}

// TestAllocsBesideFreeze holds the allocations of a warm step whose variables
// have moved.
func TestAllocsBesideFreeze(t *testing.T) {
	p := load(t, "softmax_ref")
	p.restore(t)
	c, err := p.sess.MakeCallable(t.Context(), []string{p.Feeds[0], p.Feeds[1]}, nil, []string{p.TrainOp})
	if err != nil {
		t.Fatal(err)
	}
	byName := p.feeds(t)[0]
	feeds := []*ckptfmt.Tensor{byName[p.Feeds[0]], byName[p.Feeds[1]]}
	freeze(t, p.sess, initialized(t, p.sess))
	if got := testing.AllocsPerRun(20, func() {
		if _, err := c.Run(context.Background(), feeds); err != nil {
			t.Fatal(err)
		}
	}); got > 0 {
		t.Errorf("%v allocations a step, want none", got)
	}
}

// manyVectors is a graph of variables that one step increments, or a step each.
func manyVectors(count, size int) []*tfpb.NodeDef {
	nodes := []*tfpb.NodeDef{vectorOf(constant("zero", 0), size), vectorOf(constant("one", 1), size)}
	init, step := nodeDef("init", "NoOp"), nodeDef("step", "NoOp")
	for i := range count {
		v := fmt.Sprintf("v%d", i)
		nodes = append(nodes, vectorOf(variableDef(v, "VarHandleOp"), size),
			nodeDef(v+"/init", "AssignVariableOp", v, "zero"), nodeDef(v+"/add", "AssignAddVariableOp", v, "one"))
		init.Input = append(init.Input, "^"+v+"/init")
		step.Input = append(step.Input, "^"+v+"/add")
	}
	return append(nodes, init, step)
}

// BenchmarkCut measures how long a session of 256 MiB is held up by the
// beginning of a save, and by the first step after it, which changes one
// variable of 16.
func BenchmarkCut(b *testing.B) {
	s := newSession(b, manyVectors(16, 4<<20)...)
	target(b, s, "init")
	saver := new(checkpoint.Saver)
	ctx := context.Background()
	b.Run("cut", func(b *testing.B) {
		for b.Loop() {
			cut, err := saver.Snapshot(ctx, s, "")
			if err != nil {
				b.Fatal(err)
			}
			cut.Close()
		}
	})
	b.Run("cut and step", func(b *testing.B) {
		for b.Loop() {
			cut, err := saver.Snapshot(ctx, s, "")
			if err != nil {
				b.Fatal(err)
			}
			target(b, s, "v0/add")
			cut.Close()
		}
	})
	b.Run("cut and step of all", func(b *testing.B) {
		for b.Loop() {
			cut, err := saver.Snapshot(ctx, s, "")
			if err != nil {
				b.Fatal(err)
			}
			target(b, s, "step")
			cut.Close()
		}
	})
	b.Run("step of all", func(b *testing.B) {
		for b.Loop() {
			target(b, s, "step")
		}
	})
}
