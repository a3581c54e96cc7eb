package layers_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateAPI = flag.Bool("update", false, "write doc/api.txt again")

const apiFile = "doc/api.txt"

// TestAPI holds what the public packages export against doc/api.txt, a line for
// each name, so that a change of it is a decision that shows in review.
func TestAPI(t *testing.T) {
	got := api(t)
	if *updateAPI {
		if err := os.WriteFile(apiFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the API differs from %s; if that is wanted, go test . -run API -update, and a line in CHANGELOG.md:\n%s", apiFile, diff)
	}
}

// api lists the exported names of all packages that other modules can import and
// are meant to.
func api(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, dir := range publicPackages(t) {
		fset := token.NewFileSet()
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		lines := map[string]bool{}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range exported(t, fset, file) {
				lines[line] = true // systems may each have a file with the same
			}
		}
		for _, line := range slices.Sorted(maps.Keys(lines)) {
			out.WriteString(filepath.ToSlash(dir) + ": " + line + "\n")
		}
	}
	return out.String()
}

// publicPackages are the folders of the packages, but for commands, examples,
// tests, generated messages and what is internal.
func publicPackages(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, root := range []string{"ckptfmt", "tfevents", "trainerd"} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "internal" || d.Name() == "testdata" {
				return fs.SkipDir
			}
			dirs = append(dirs, name)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}

// exported returns a line for each exported name of a file.
func exported(t *testing.T, fset *token.FileSet, file *ast.File) []string {
	t.Helper()
	if !ast.FileExports(file) {
		return nil
	}
	var lines []string
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Doc, d.Body = nil, nil; isMethodOfExported(d) {
				lines = append(lines, oneLine(t, fset, d))
			}
		case *ast.GenDecl:
			lines = append(lines, ofSpecs(t, fset, d)...)
		}
	}
	return lines
}

// isMethodOfExported reports whether a function has no receiver, or one of a type
// that is exported.
func isMethodOfExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	of := d.Recv.List[0].Type
	for {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr:
			of = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// ofSpecs returns a line for each constant, variable and type, and for each field
// and method of a type.
func ofSpecs(t *testing.T, fset *token.FileSet, d *ast.GenDecl) []string {
	t.Helper()
	var lines []string
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range s.Names {
				line := d.Tok.String() + " " + name.Name
				if s.Type != nil {
					line += " " + oneLine(t, fset, s.Type)
				}
				lines = append(lines, line)
			}
		case *ast.TypeSpec:
			lines = append(lines, ofType(t, fset, s)...)
		}
	}
	return lines
}

func ofType(t *testing.T, fset *token.FileSet, s *ast.TypeSpec) []string {
	t.Helper()
	head := "type " + s.Name.Name
	if s.TypeParams != nil {
		head += "[...]"
	}
	switch x := s.Type.(type) {
	case *ast.StructType:
		return append([]string{head + " struct"}, members(t, fset, head, x.Fields)...)
	case *ast.InterfaceType:
		return append([]string{head + " interface"}, members(t, fset, head, x.Methods)...)
	}
	if s.Assign.IsValid() {
		head += " ="
	}
	return []string{head + " " + oneLine(t, fset, s.Type)}
}

func members(t *testing.T, fset *token.FileSet, head string, list *ast.FieldList) []string {
	t.Helper()
	var lines []string
	for _, f := range list.List {
		what := oneLine(t, fset, f.Type)
		if len(f.Names) == 0 {
			lines = append(lines, head+", "+what)
		}
		for _, name := range f.Names {
			lines = append(lines, head+", "+name.Name+" "+strings.TrimPrefix(what, "func"))
		}
	}
	return lines
}

// oneLine prints a node without line breaks.
func oneLine(t *testing.T, fset *token.FileSet, node any) string {
	t.Helper()
	var b bytes.Buffer
	if err := format.Node(&b, fset, node); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
