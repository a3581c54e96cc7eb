package trainerd_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The examples of TensorFlow's guide take at most 1.6 times the lines that they
// take in Python, and doc/use-from-go.md shows them as they are run.
func TestGuideLines(t *testing.T) {
	source, err := os.ReadFile("example_supervisor_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "doc", "use-from-go.md"))
	if err != nil {
		t.Fatal(err)
	}
	functions := functionsOf(t, source)
	for _, c := range []struct {
		example, function string
		python            int // lines that are not empty, without making the graph
	}{
		{"very simple scenario", "verySimple", 6},
		{"larger model, summaries from the loop", "largerModel", 11},
		{"pre-trained model", "pretrained", 6},
		{"own services", "ownServices", 6},
		{"additional summaries", "additionalSummaries", 3},
		{"loss every 60 s", "lossLoop", 5},
		{"custom saver, every 30 s", "customSaver", 5},
		{"replicas", "replica", 6},
	} {
		text := functions[c.function]
		n := codeLines(text)
		if n == 0 || 10*n > 16*c.python {
			t.Errorf("%s: %d lines of Go for %d of Python", c.example, n, c.python)
		}
		if row := fmt.Sprintf("| %s | %d | %d |\n", c.example, c.python, n); !strings.Contains(string(page), row) {
			t.Errorf("use-from-go.md lacks %q", row)
		}
		if !strings.Contains(string(page), "```go\n"+text+"\n```") {
			t.Errorf("use-from-go.md does not show %s as it is:\n%s", c.function, text)
		}
	}
}

// functionsOf returns the text of each function of a file.
func functionsOf(t *testing.T, source []byte) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			found[fn.Name.Name] = string(source[files.Position(fn.Pos()).Offset:files.Position(fn.End()).Offset])
		}
	}
	return found
}

// codeLines counts the lines that are neither empty nor comments alone.
func codeLines(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
