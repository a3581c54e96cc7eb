package ckptfmt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
)

// A MetaGraphDef that a Saver wrote is read, and written again byte for byte;
// its text form reads back the same.
func TestMetaGraphGolden(t *testing.T) {
	golden := filepath.Join(fixtures, v2Set, "saver_history", "model.ckpt-40.meta")
	m, err := ReadMetaGraph(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.GetSaverDef().GetRestoreOpName(); got != "save/restore_all" {
		t.Errorf("restore op %q", got)
	}
	dir := t.TempDir()
	binary, text := filepath.Join(dir, "binary.meta"), filepath.Join(dir, "text.meta")
	if err := errors.Join(WriteMetaGraph(binary, m, nil), WriteGraphText(text, m, nil)); err != nil {
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
	fromText, err := ReadMetaGraph(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, fromText, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestReadMetaGraphErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadMetaGraph(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	name := filepath.Join(dir, "bad.meta")
	if err := os.WriteFile(name, []byte("neither { form"), 0o666); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, err := ReadMetaGraph(name); !errors.As(err, &corrupt) || corrupt.Name != name {
		t.Errorf("damaged: %v", err)
	}
}
