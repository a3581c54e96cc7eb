package tomlguard

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

func TestDecode(t *testing.T) {
	deep := strings.Repeat
	for _, c := range []struct {
		name, text string
		line       int // of the error; 0 for none
	}{
		{"plain", "a = 1\n[b.c]\nd = [0.1, 0.2, 0.3]\n", 0},
		{"numbers", "a = [" + deep("0.25, ", 5000) + "]", 0},
		{"strings", "a = \"" + deep("[.", 5000) + "\"\nb = '" + deep("{.", 500) + "'\n", 0},
		{"long strings", "a = \"\"\"\n" + deep("[.\n", 5000) + "\"\"\"\n", 0},
		{"an escaped quote", `a = "\"` + deep("[", 500) + `"`, 0},
		{"comments", "# " + deep("[.", 5000) + "\na = 1 # " + deep("[", 500), 0},
		{"tables one after another", deep("[[a]]\nb = {c = [1]}\n", 1000), 0},
		{"a deep header", "x = 1\n[" + deep("a.", 300000) + "a]", 2},
		{"a deep key", deep("a.", 300) + "a = 1", 1},
		{"a deep inline key", "x = {" + deep("a.", 300) + "a = 1}", 1},
		{"deep arrays", "x = \"\"\"\n\n\"\"\"\na = " + deep("[", 300) + deep("]", 300), 4},
		{"deep tables", "a = " + deep("{a = ", 300), 1},
		{"long", deep("# much\n", 1<<18), 1},
	} {
		var got map[string]any
		_, err := Decode(c.text, &got)
		var parse toml.ParseError
		errors.As(err, &parse)
		if (err != nil) != (c.line > 0) || parse.Position.Line != c.line {
			t.Errorf("%s: error in line %d: %v, want one in line %d", c.name, parse.Position.Line, err, c.line)
		}
	}
}

// A file without an end is an error like one that is too long.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	exact := filepath.Join(dir, "exact")
	if err := os.WriteFile(exact, []byte(strings.Repeat("#", MaxBytes)), 0o666); err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	for name, want := range map[string]bool{exact: true, "/dev/zero": false} {
		if _, err := os.Stat(name); err != nil {
			continue // not on Windows
		}
		text, err := ReadFile(name)
		if err != nil || len(text) > MaxBytes+1 {
			t.Fatalf("%s: %d bytes, %v", name, len(text), err)
		}
		if _, err := Decode(string(text), &v); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// What it lets through is decoded as without it.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"a = 1", "[a.b]\nc = '''x'''\n", `a = "\\"`, "a = [[1], [2.5]] # x", "'", `"""`, `a = """\"""""`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if check(text) != nil {
			return
		}
		var guarded, plain map[string]any
		_, err := Decode(text, &guarded)
		_, want := toml.Decode(text, &plain)
		if (err == nil) != (want == nil) {
			t.Errorf("error %v, without limits %v", err, want)
		}
	})
}
