package faultfs

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// However states follow each other, the directory holds the last one.
func TestTree(t *testing.T) {
	states := []State{
		{},
		{Files: map[string][]byte{"a": []byte("1"), "b": []byte("2")}},
		{Files: map[string][]byte{"a": []byte("1"), "b": []byte("22"), "c": nil}},
		{Files: map[string][]byte{"a": nil}, Dirs: []string{"d"}},
		{Files: map[string][]byte{"d/e/f": []byte("3"), "a": []byte("1")}, Dirs: []string{"d", "d/e"}},
		{Files: map[string][]byte{"d/e/f": []byte("4")}}, // directories that nobody made
		{Files: map[string][]byte{"d": []byte("a file")}},
	}
	dir := filepath.Join(t.TempDir(), "tree")
	tree := NewTree(dir)
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		n := rnd.IntN(len(states))
		if rnd.IntN(10) == 0 {
			if err := os.WriteFile(filepath.Join(dir, "stray"), nil, 0o666); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			tree.Forget()
		}
		if err := tree.LayOut(states[n]); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for name, data := range states[n].Files {
			want[name] = string(data)
		}
		if diff := cmp.Diff(filesBelow(t, dir), want); diff != "" {
			t.Fatalf("state %d (-got +want):\n%s", n, diff)
		}
	}
}

func filesBelow(t *testing.T, dir string) map[string]string {
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		found[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// States that differ in nothing but names with random numbers are the same.
func TestSumAlias(t *testing.T) {
	state := func(marked int64, names ...string) State {
		s := State{Marked: marked, Files: map[string][]byte{}}
		for _, name := range names {
			s.Files[name] = []byte(name[:1])
		}
		return s
	}
	alias := func(name string) string { return name[:1] }
	base := state(1, "a1", "b1").Sum(alias)
	for name, c := range map[string]struct {
		state State
		same  bool
	}{
		"other names":    {state(1, "a2", "b3"), true},
		"one more":       {state(1, "a2", "a3", "b3"), false},
		"another mark":   {state(2, "a1", "b1"), false},
		"another letter": {state(1, "a1", "c1"), false},
	} {
		if (c.state.Sum(alias) == base) != c.same {
			t.Errorf("%s: the same is %v; want %v", name, !c.same, c.same)
		}
		if c.state.Sum(nil) == state(1, "a1", "b1").Sum(nil) {
			t.Errorf("%s: the same without an alias", name)
		}
	}
}
