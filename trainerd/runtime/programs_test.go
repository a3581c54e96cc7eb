package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// recording is a program of interop/graphs as TensorFlow ran it: loops, arrays
// of tensors, data sets, accumulators.
type recording struct {
	Steps     int               `json:"steps"`
	TrainOp   string            `json:"train_op"`
	InitOps   []string          `json:"init_ops"`
	Start     []string          `json:"start"` // run once, one after the other
	Fetches   map[string]string `json:"fetches"`
	Variables []string          `json:"variables"`
	RTol      float64           `json:"rtol"`
	ATol      float64           `json:"atol"`

	values map[string]*ckptfmt.Tensor // by "init/", "feeds/", "fetches/", "final/" and a name
}

func loadRecording(t *testing.T, dir string) *recording {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "program.json"))
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{values: map[string]*ckptfmt.Tensor{}}
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	for _, nt := range bundle(t, filepath.Join(dir, "record")) {
		r.values[nt.Name] = nt.Tensor
	}
	return r
}

// with returns the values whose key begins with a prefix, without it.
func (r *recording) with(prefix string) map[string]*ckptfmt.Tensor {
	out := map[string]*ckptfmt.Tensor{}
	for key, v := range r.values {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			out[name] = v
		}
	}
	return out
}

func TestPrograms(t *testing.T) {
	dirs, err := filepath.Glob(graphsDir + "/programs/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			r := loadRecording(t, dir)
			s, err := runtime.New(readMeta(t, filepath.Join(dir, "graph.meta")).GetGraphDef(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r.replay(t, s)
		})
	}
}

func (r *recording) replay(t *testing.T, s *runtime.Session) {
	ctx := context.Background()
	if _, err := s.Run(ctx, nil, nil, r.InitOps); err != nil {
		t.Fatal(err)
	}
	for _, op := range r.Start {
		if _, err := s.Run(ctx, nil, nil, []string{op}); err != nil {
			t.Fatal(err)
		}
	}
	var init []ckptfmt.NamedTensor
	for name, v := range r.with("init/") {
		init = append(init, ckptfmt.NamedTensor{Name: name, Tensor: v})
	}
	if err := s.Restore(ctx, init); err != nil {
		t.Fatal(err)
	}
	for n := range r.Steps {
		want := r.with(fmt.Sprintf("fetches/step_%03d/", n))
		var keys, names []string
		for key := range want {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			names = append(names, r.Fetches[key])
		}
		got, err := s.Run(ctx, r.with(fmt.Sprintf("feeds/step_%03d/", n)), names, []string{r.TrainOp})
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		for i, key := range keys {
			if err := compare(got[i], want[key], r.RTol, r.ATol); err != nil {
				t.Errorf("step %d, %s: %v", n, key, err)
			}
		}
	}
	snap, err := s.Snapshot(ctx, r.Variables)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range r.Variables {
		if err := compare(snap.Tensors[i], r.values["final/"+name], r.RTol, r.ATol); err != nil {
			t.Errorf("in the end, %s: %v", name, err)
		}
	}
}
