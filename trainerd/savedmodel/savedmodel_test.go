package savedmodel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadText reads a model in text form; damage names the file that has it.
func TestReadText(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, textFileName)
	if err := os.WriteFile(name, []byte("meta_graphs { meta_info_def { tags: \"serve\" meta_graph_version: \"v\" } }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if meta, err := Read(dir); err != nil || meta.GetMetaInfoDef().GetMetaGraphVersion() != "v" {
		t.Errorf("%v, %v", meta, err)
	}
	if err := os.WriteFile(name, []byte("meta_graphs {\n  nonsense"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), textFileName) {
		t.Errorf("damaged: %v, want it to name %s", err, textFileName)
	}
}
