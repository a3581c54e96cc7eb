package metagraph

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/membound"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// A MetaGraphDef that a Saver wrote is read, and written again byte for byte;
// its text form reads back the same.
func TestMetaGraphGolden(t *testing.T) {
	golden := filepath.Join("..", "..", "fixtures", "ckpt_v2", "saver_history", "model.ckpt-40.meta")
	m, err := Read(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.GetSaverDef().GetRestoreOpName(); got != "save/restore_all" {
		t.Errorf("restore op %q", got)
	}
	dir := t.TempDir()
	binary, text := filepath.Join(dir, "binary.meta"), filepath.Join(dir, "text.meta")
	if err := errors.Join(Write(binary, m, nil), WriteText(text, m, nil)); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(binary)
	if err != nil || string(got) != string(want) {
		t.Errorf("%d bytes differ from TensorFlow's %d, %v", len(got), len(want), err)
	}
	fromText, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, fromText, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestReadMetaGraphErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	name := filepath.Join(dir, "bad.meta")
	if err := os.WriteFile(name, []byte("neither { form"), 0o666); err != nil {
		t.Fatal(err)
	}
	var corrupt *ckptfmt.CorruptError
	if _, err := Read(name); !errors.As(err, &corrupt) || corrupt.Name != name {
		t.Errorf("damaged: %v", err)
	}
}

// FuzzMetaGraph reads any file as a MetaGraph, and again what it made of it.
func FuzzMetaGraph(f *testing.F) {
	const maxSeed = 8 << 10
	graphs, err := filepath.Glob(filepath.Join("..", "..", "fixtures", "graphs", "programs", "*", "graph.meta"))
	if err != nil || len(graphs) == 0 {
		f.Fatalf("no graphs among the fixtures: %v", err)
	}
	for _, name := range graphs {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) <= maxSeed {
			f.Add(b)
		}
	}
	f.Add([]byte(`graph_def { node { name: "a" op: "NoOp" } } collection_def { key: "k" value { node_list { value: "a" } } }`))
	name := filepath.Join(f.TempDir(), "m.meta") // of each process that fuzzes
	f.Fuzz(func(t *testing.T, b []byte) {
		defer membound.Check(t, len(b), 1024)()
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
		m, err := Read(name)
		if err != nil {
			if c := new(ckptfmt.CorruptError); !errors.As(err, &c) || c.Name != name {
				t.Fatalf("error %v does not name the file", err)
			}
			return
		}
		if err := Write(name, m, &ckptfmt.FileOptions{FS: atomicfile.NoSync(nil)}); err != nil {
			t.Fatal(err)
		}
		again, err := Read(name)
		if err != nil || !proto.Equal(m, again) {
			t.Fatalf("what was written reads differently: %v", err)
		}
	})
}
