package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/cover"

	"github.com/trainerd/trainerd/tools/internal/excuse"
)

// figures are those of a package.
type figures struct{ statements, uncovered, excused int }

// print writes the figures, and reports whether all excuses were needed.
func print(count map[string]*figures, excused *excuse.List) bool {
	fine := true
	for _, pkg := range slices.Sorted(maps.Keys(count)) {
		for _, key := range excused.Unused(pkg) {
			fine = false
			fmt.Printf("excused, but covered or gone: %s\n", key)
		}
		f := count[pkg]
		fmt.Printf("%s: %d statements: %d covered, %d not (%d of them excused)\n", pkg, f.statements, f.statements-f.uncovered, f.uncovered, f.excused)
	}
	return fine
}

// source is a file of a package.
type source struct {
	name, pkg string // within the module
	text      []byte
	file      *token.File
	syntax    *ast.File
}

func parse(root, name string) (*source, error) {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{name: name, pkg: path.Dir(name), text: text, file: fset.File(syntax.Pos()), syntax: syntax}, nil
}

// block returns the function of a block and its code, after the condition
// under which it runs.
func (s *source) block(b cover.ProfileBlock) (function, text string) {
	start, end := s.offset(b.StartLine, b.StartCol), s.offset(b.EndLine, b.EndCol)
	text = strings.Trim(string(s.text[start:end]), "{} \t\n")
	head := ""
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		if n == nil || s.at(n.Pos()) > start || s.at(n.End()) < end {
			return n != nil && n == ast.Node(s.syntax)
		}
		switch n := n.(type) {
		case *ast.FuncDecl:
			function = functionName(n)
		case *ast.IfStmt:
			if s.at(n.Body.Pos()) <= start && end <= s.at(n.Body.End()) {
				head = string(s.text[s.at(n.Pos()):s.at(n.Body.Pos())])
			} else if n.Else != nil && s.at(n.Else.Pos()) <= start {
				head = "else of " + string(s.text[s.at(n.Pos()):s.at(n.Body.Pos())])
			}
		case *ast.CaseClause:
			head = string(s.text[s.at(n.Pos()):s.at(n.Colon)])
		case *ast.CommClause:
			head = string(s.text[s.at(n.Pos()):s.at(n.Colon)])
		}
		return true
	})
	return function, excuse.Text(strings.TrimSpace(head + " { " + text + " }"))
}

func (s *source) at(p token.Pos) int { return s.file.Offset(p) }

func (s *source) offset(line, column int) int {
	return s.file.Offset(s.file.LineStart(line)) + column - 1
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	return "(" + types.ExprString(d.Recv.List[0].Type) + ")." + d.Name.Name
}
