package pickled

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLeaves has pickles of Python 3.11 and NumPy 2.4: of one value, whose array is the
// same object in two places, and of its like with two arrays.
func TestLeaves(t *testing.T) {
	for _, protocol := range []int{2, 4, 5} {
		var all []map[string]any
		var files [][]byte
		for _, name := range []string{"shared", "apart"} {
			b, err := os.ReadFile(fmt.Sprintf("testdata/%s-%d.pkl", name, protocol))
			if err != nil || !Is(b) {
				t.Fatalf("%v; it is a pickle: %v", err, Is(b))
			}
			leaves, err := Leaves(b)
			if err != nil {
				t.Fatalf("%s-%d: %v", name, protocol, err)
			}
			all, files = append(all, leaves), append(files, b)
		}
		if bytes.Equal(files[0], files[1]) {
			t.Error("the files are equal, and show nothing")
		}
		if diff := cmp.Diff(all[0], all[1]); diff != "" {
			t.Errorf("protocol %d (-shared +apart):\n%s", protocol, diff)
		}
		for name, want := range map[string]any{"step": 5.0, "lr": 0.5, "nan": "nan", "od/a": 1.0, "set/1": "x", "rng/bit_generator": "PCG64", "none": nil} {
			if got, ok := all[0][name]; !ok || got != want {
				t.Errorf("protocol %d: %s is %v, want %v", protocol, name, got, want)
			}
		}
		if state, ok := all[0]["rng/state/state"].(Whole); !ok || len(state) < 30 {
			t.Errorf("protocol %d: the state of the generator is %v", protocol, all[0]["rng/state/state"])
		}
		a, _ := all[0]["params/w"].(Array)
		if b, _ := all[0]["opt/S/1/0"].(Array); a.Type != "<f4" || a.Shape != "[2 3]" || len(a.Data) < 24 || b.Shape != "[2 3]" || b == a {
			t.Errorf("protocol %d: the arrays are %+v and %+v", protocol, a, b)
		}
	}
}

// TestJoblib has files of joblib 1.6 and NumPy 2.4: of one value with a text that is the same
// object in two places, and of its like with two texts.
func TestJoblib(t *testing.T) {
	var all []map[string]any
	for _, name := range []string{"shared", "apart"} {
		b, err := os.ReadFile("testdata/" + name + ".joblib")
		if err != nil || !Is(b) {
			t.Fatalf("%v; it is a pickle: %v", err, Is(b))
		}
		leaves, err := Leaves(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, leaves)
		for n := range len(b) - 1 {
			if _, err := Leaves(b[:n]); err == nil {
				t.Fatalf("the first %d of %d bytes are read", n, len(b))
			}
		}
	}
	if diff := cmp.Diff(all[0], all[1]); diff != "" {
		t.Errorf("-shared +apart:\n%s", diff)
	}
	for name, want := range map[string]any{
		"step":     5.0,
		"params/w": Array{"<f4", "[2 3]", "\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@"},
		"again":    all[0]["params/w"],
		"params/e": Array{"<f8", "[0 3]", ""},
		"classes":  Array{"<U3", "[2]", "a\x00\x00\x00b\x00\x00\x00\x00\x00\x00\x00c\x00\x00\x00d\x00\x00\x00e\x00\x00\x00"},
		"flag":     Array{"|b1", "[2]", "\x01\x00"},
		"names/1":  "layer",
	} {
		if got, ok := all[0][name]; !ok || got != want {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
	if f, _ := all[0]["params/f"].(Array); f.Shape != "[2 3] in Fortran's order" || len(f.Data) != 48 {
		t.Errorf("the array in Fortran's order is %+v", f)
	}
}

// TestCut has a pickle that ends anywhere: an error, and no panic.
func TestCut(t *testing.T) {
	b, err := os.ReadFile("testdata/shared-4.pkl")
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(b) - 1 {
		if _, err := Leaves(b[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are read", n, len(b))
		}
	}
}

// TestSelfReference has a list that is in itself.
func TestSelfReference(t *testing.T) {
	if _, err := Leaves([]byte("\x80\x04]\x94h\x00a.")); err == nil {
		t.Error("no error")
	}
}

// TestMoreThanAPickle has the file of an old torch.save, which begins with a pickle.
func TestMoreThanAPickle(t *testing.T) {
	if _, err := Leaves([]byte("\x80\x02K\x01.\x80\x02K\x02.")); err == nil {
		t.Error("no error")
	}
}
