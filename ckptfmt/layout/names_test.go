package layout

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/sstable"
)

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		IndexName("d/m-1"):                      "d/m-1.index",
		DataName("d/m-1", 2, 11):                "d/m-1.data-00002-of-00011",
		DataName("m", 123456, 1234567):          "m.data-123456-of-1234567",
		V1ShardName("d/m-1", 2, 11):             "d/m-1-00002-of-00011",
		MetaName("d/m-1"):                       "d/m-1.meta",
		MetaName("d/m-1-?????-of-00011"):        "d/m-1.meta",
		MetaName("d-?????-of-00011/m-1"):        "d-?????-of-00011/m-1.meta",
		MetaName("m-1-?????-of-00011.previous"): "m-1.meta",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for pattern, want := range map[string]struct {
		prefix string
		shards int
		ok     bool
	}{
		"d/m-1-?????-of-00011": {"d/m-1", 11, true}, "m-?????-of-00001": {"m", 1, true}, "m-1": {"m-1", 0, false},
		"m-?????-of-x": {"m", 0, false}, "d-?????-of-00002/m": {"d-?????-of-00002/m", 0, false},
	} {
		prefix, shards, ok := CutShards(pattern)
		if prefix != want.prefix || ok != want.ok || ok && shards != want.shards {
			t.Errorf("%s: %s, %d, %v", pattern, prefix, shards, ok)
		}
	}
	a, b := TempName("d/m-1.index"), TempName("d/m-1.index")
	if a == b || !strings.HasPrefix(a, "d/m-1.index.") || !IsTemp(filepath.Base(a)) {
		t.Errorf("temporary names %s, %s", a, b)
	}
	long := "d/" + strings.Repeat("m", 230) + ".index"
	if temp := filepath.Base(TempName(long)); len(temp) > 255 || !IsTemp(temp) {
		t.Errorf("the temporary name for a name of 236 bytes has %d: %s", len(temp), temp)
	}
}

// Data is published first, the manifest last, and nothing else is a part.
func TestPublishRank(t *testing.T) {
	for suffix, want := range map[string]int{
		".data-00000-of-00001": 0, ".data-123456-of-123457": 0, ".index": 1, ".meta": 2, ".manifest.json": 3,
		"": -1, ".index.tempstate1": -1, ".data-00000-of-00001.bak": -1, ".data-0-of-1": -1, "x.index": -1,
	} {
		if got := PublishRank(suffix); got != want {
			t.Errorf("%q: %d, want %d", suffix, got, want)
		}
	}
}

func TestExists(t *testing.T) {
	dir := touch(t, "m-1.index", "old-2", "s-3-00000-of-00002", "folder/x", "both-4.index/x", "both-4")
	for name, want := range map[string]bool{
		"m-1": true, "old-2": true, "s-3-?????-of-00002": true, "s-3-?????-of-00003": false, "s-3": false,
		"m": false, "folder": false, "both-4": true, "none": false, "m-1.index": true, "[": false,
	} {
		if got := Exists(filepath.Join(dir, name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// table makes files that end as a table does.
func table(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		magic := binary.LittleEndian.AppendUint64(nil, sstable.Magic)
		if err := os.WriteFile(filepath.Join(dir, name), magic, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestIsTable(t *testing.T) {
	dir := touch(t, "empty", "folder/x")
	table(t, dir, "table", "longer", "cut", "more")
	b, err := os.ReadFile(filepath.Join(dir, "table"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"longer": "x" + string(b), "cut": string(b[:7]), "more": string(b) + "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"table": true, "longer": true, "cut": false, "more": false, "empty": false, "folder": false, "none": false} {
		if got := IsTable(filepath.Join(dir, name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The pattern of the shards under a prefix is found if it is the only one.
func TestFindV1(t *testing.T) {
	dir := touch(t, "m-2-00000-of-00002", "m-2-00001-of-00002") // which are not tables
	table(t, dir, "m-1-00000-of-00002", "m-1-00001-of-00002", "m-10-00000-of-00001", "m-3-00000-of-00001", "m-3-00000-of-00002", "m-4")
	for prefix, want := range map[string]string{"m-1": "m-1-?????-of-00002", "m-10": "m-10-?????-of-00001", "m-2": "", "m-4": "", "none": ""} {
		got, err := FindV1(filepath.Join(dir, prefix))
		if want != "" && (err != nil || got != filepath.Join(dir, want)) || want == "" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s, %v", prefix, got, err)
		}
	}
	_, err := FindV1(filepath.Join(dir, "m-3"))
	if err == nil || !strings.Contains(err.Error(), "m-3-?????-of-00001, ") || !strings.Contains(err.Error(), "m-3-?????-of-00002") {
		t.Errorf("two sets: %v", err)
	}
	t.Chdir(dir)
	if got, err := FindV1("m-1"); err != nil || got != "m-1-?????-of-00002" {
		t.Errorf("relative: %s, %v", got, err)
	}
	for what, err := range map[string]error{"FindV1": second(FindV1("none/m-1")), "Files": second(Files("none/m-1"))} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s without the directory: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// The folder of a V1 checkpoint, and what its files begin with, may look like a
// pattern; without such a folder it is one.
func TestMatchShards(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"lr=[0.1]", "lr=0"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
		table(t, filepath.Join(dir, sub), "m[1]-00000-of-00002", "m[1]-00001-of-00002", "m1-00000-of-00002", "n")
	}
	for pattern, want := range map[string]int{
		"lr=[0.1]/m[1]-?????-of-00002": 2, "lr=[0.1]/m1-?????-of-00002": 1, "lr=[0.1]/?": 1, "lr=[0.1]/m-?????-of-00002": 0, "lr=?/m[1]-?????-of-00002": 1, "none/n": 0, "lr=0/n": 1,
	} {
		got, err := MatchShards(filepath.Join(dir, pattern))
		if err != nil || len(got) != want || Exists(filepath.Join(dir, pattern)) != (want > 0) {
			t.Errorf("%s: %q, %v; want %d", pattern, got, err, want)
		}
	}
	t.Chdir(filepath.Join(dir, "lr=[0.1]"))
	if got, err := MatchShards("m[1]-?????-of-00002"); err != nil || len(got) != 2 {
		t.Errorf("relative: %q, %v", got, err)
	}
}
