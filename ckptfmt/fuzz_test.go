package ckptfmt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/membound"
)

// seedFiles gives the fuzzer small fixtures that a pattern matches.
func seedFiles(f *testing.F, pattern string, add func(b []byte)) {
	f.Helper()
	names, err := filepath.Glob(filepath.Join(fixtures, pattern))
	if err != nil || len(names) == 0 {
		f.Fatalf("no fixtures are %s: %v", pattern, err)
	}
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil && len(b) < 8<<10 {
			add(b)
		}
	}
}

// FuzzBundle reads a checkpoint whose index and data may hold anything.
func FuzzBundle(f *testing.F) {
	seedFiles(f, filepath.Join(v2Set, "*", "*.index"), func(index []byte) {
		f.Add(index, []byte("some bytes of data"))
	})
	w, err := CreateBundle(filepath.Join(f.TempDir(), "m"), nil)
	if err != nil {
		f.Fatal(err)
	}
	for name, v := range map[string]*Tensor{"a": Scalar(int64(1)), "b": Scalar("text")} {
		if err := w.Add(name, v); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		f.Fatal(err)
	}
	index, _ := os.ReadFile(layout.IndexName(w.prefix))
	data, _ := os.ReadFile(layout.DataName(w.prefix, 0, 1))
	f.Add(index, data)
	f.Fuzz(func(t *testing.T, index, data []byte) {
		prefix := filepath.Join(t.TempDir(), "m")
		writeTestFile(t, layout.IndexName(prefix), index)
		writeTestFile(t, layout.DataName(prefix, 0, 1), data)
		defer membound.Check(t, len(index)+len(data), 256)()
		r, err := OpenBundle(prefix, nil)
		if err != nil {
			return
		}
		defer r.Close()
		checkTensors(t, r)
		for range r.Verify(t.Context()) {
			continue
		}
	})
}

func writeTestFile(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// checkTensors reads every tensor that can be read, and checks what it gets.
func checkTensors(t *testing.T, r Reader) {
	t.Helper()
	for info, err := range r.Tensors() {
		if err != nil {
			continue
		}
		v, err := r.Lookup(info.Name)
		if err != nil {
			continue
		}
		if err := v.Validate(); err != nil {
			t.Fatalf("Lookup gave a bad tensor: %v", err)
		}
	}
}
