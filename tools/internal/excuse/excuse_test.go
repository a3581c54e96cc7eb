package excuse

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, text string) (*List, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "excused.txt")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return Read(name)
}

func TestList(t *testing.T) {
	l, err := read(t, "# comment\n\na/b f: x # 1 -> y # why\na/b g: z # because\na/bc f: w # other package\n")
	if err != nil {
		t.Fatal(err)
	}
	if !l.Excused("a/b f: x # 1 -> y") || l.Excused("a/b f: x") || l.Excused("a/b h: z") {
		t.Error("wrong excuses")
	}
	if got := l.Unused("a/b"); !slices.Equal(got, []string{"a/b g: z"}) {
		t.Errorf("unused: %q", got)
	}
}

func TestBadLists(t *testing.T) {
	for text, want := range map[string]string{
		"a f: x\n":                   ":1: no reason",
		"a f: x # y\n\na f: x # z\n": ":3: this excuse comes twice",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestText(t *testing.T) {
	if got := Text("if a {\n\t\treturn  b\n}"); got != "if a { return b }" {
		t.Errorf("%q", got)
	}
	if got := Text(strings.Repeat("x", 200) + "12345"); len(got) != 90 || !strings.HasSuffix(got, " ... 12345") {
		t.Errorf("%q", got)
	}
}

// TestLists reads the lists that there are: two branches may have excused the same.
func TestLists(t *testing.T) {
	for _, tool := range []string{"mutate", "uncovered"} {
		if _, err := Read(filepath.Join("..", "..", tool, "excused.txt")); err != nil {
			t.Error(err)
		}
	}
}
