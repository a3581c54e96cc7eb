package shardindex

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, text string, lists bool) (*Index, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "m.index.json")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return Read(name, lists)
}

func TestRead(t *testing.T) {
	for text, inOnePass := range map[string]bool{
		`{"metadata": {"total_size": 7, "a": "b"}, "weight_map": {"x": "2.bin", "y\n\u00e9": "1.bin", "z": "2.bin"}}`:       true,
		`{"weight_map": {"x": "2.bin", "y\n\u00e9": "1.bin", "z": "2.bin"}, "metadata": {"total_size": 7.5}, "more": null}`: false,
	} {
		if got := new(Index).scan([]byte(text)); got != inOnePass {
			t.Errorf("%s: read in one pass: %t", text, got)
		}
		x, err := read(t, text, false)
		if err != nil || !slices.Equal(x.Names, []string{"x", "y\né", "z"}) || len(x.Files) != 3 || x.Files[1][0] != "1.bin" {
			t.Errorf("%s: %v, %+v", text, err, x)
			continue
		}
		if all := x.All(); !slices.Equal(all, []string{"1.bin", "2.bin"}) {
			t.Errorf("%s: files are %q", text, all)
		}
	}
	for text, want := range map[string]int64{
		`{"weight_map": {}}`: -1, `{"weight_map": {}, "metadata": {"total_size": "7"}}`: -1, `{"weight_map": {}, "metadata": 1}`: -1,
		`{"weight_map": {}, "metadata": {"a": 1, "total_size": 7}}`: 7, `{"weight_map": {}, "metadata": {"total_size": 7.0, "a": null}}`: 7,
		`{"weight_map": {}, "metadata": {"total_size": 1e300}}`: -1,
	} {
		if x, err := read(t, text, false); err != nil || x.TotalSize != want {
			t.Errorf("%s: %v, total size of %+v, want %d", text, err, x, want)
		}
	}
	if x, err := read(t, `{"weight_map": {"/a": ["1.h5", "2.h5"]}}`, true); err != nil || len(x.Files[0]) != 2 {
		t.Errorf("lists: %v, %+v", err, x)
	}
	for _, text := range []string{
		`{}`, `[]`, `{"weight_map": {"x": "a/b"}}`, `{"weight_map": {"x": ".."}}`, `{"weight_map": {"x": ""}}`, `{"weight_map": {"x": 1}}`,
		`{"weight_map": {"x": "a", "x": "a"}}`, `{"weight_map": {}, "weight_map": {}}`, `{"weight_map": {"x": ["a"]}}`, `{"weight_map": {"x": "a"}`,
	} {
		if x, err := read(t, text, false); err == nil || !strings.Contains(err.Error(), "m.index.json") {
			t.Errorf("%s: %v, %+v", text, err, x)
		}
	}
}

// FuzzScan compares the reader in one pass with encoding/json.
func FuzzScan(f *testing.F) {
	f.Add(`{"metadata": {"total_size": 7, "a": "b"}, "weight_map": {"x": "2.bin", "y\n\u00e9": "1.bin"}}`)
	f.Add(`{"weight_map":{},"metadata":{}} `)
	f.Fuzz(func(t *testing.T, text string) {
		x := new(Index)
		if !x.scan([]byte(text)) {
			return
		}
		want := new(Index)
		err := want.parse([]byte(text), false)
		if err != nil || !slices.Equal(want.Names, x.Names) || !slices.EqualFunc(want.Files, x.Files, slices.Equal) {
			t.Errorf("%q: %v, got %q in %q, want %q in %q", text, err, x.Names, x.Files, want.Names, want.Files)
		}
	})
}
