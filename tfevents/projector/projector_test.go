package projector

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
)

func TestWriteEmbedding(t *testing.T) {
	dir := t.TempDir()
	info, err := Write(dir, &Embedding{
		Name:    "layer/emb:0",
		Vectors: [][]float32{{1, 2.5, -3}, {0.125, 0, 4}},
		Header:  []string{"id", "label"},
		Labels:  [][]string{{"1", "a\tb"}, {"2", "c\nd"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		info.GetTensorPath():   "1\t2.5\t-3\n0.125\t0\t4\n",
		info.GetMetadataPath(): "id\tlabel\n1\ta b\n2\tc d\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
	for name, e := range map[string]*Embedding{
		"no name":       {},
		"dots":          {Name: ".."},
		"events file":   {Name: "a.tfevents"},
		"uneven":        {Name: "e", Vectors: [][]float32{{1}, {1, 2}}},
		"labels":        {Name: "e", Vectors: [][]float32{{1}}, Labels: [][]string{{"a"}, {"b"}}},
		"columns":       {Name: "e", Vectors: [][]float32{{1}}, Labels: [][]string{{"a", "b"}}},
		"single header": {Name: "e", Vectors: [][]float32{{1}}, Header: []string{"h"}, Labels: [][]string{{"a"}}},
	} {
		if _, err := Write(dir, e); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := ReadConfig(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no configuration: %v, want %v", err, fs.ErrNotExist)
	}
}

// FuzzProjectorConfig reads any text as the configuration of the projector.
func FuzzProjectorConfig(f *testing.F) {
	f.Add([]byte("embeddings { tensor_name: \"a\" metadata_path: \"m.tsv\" sprite { image_path: \"s.png\" single_image_dim: 2 } }"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "projector_config.pbtxt"), text, 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := ReadConfig(dir)
		if err != nil {
			return
		}
		if _, err := proto.Marshal(c); err != nil {
			t.Fatalf("accepted what cannot be written: %v", err)
		}
	})
}
