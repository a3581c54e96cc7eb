package main

import (
	"fmt"
	"go/ast"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

// pkg is a package with its mutants.
type pkg struct {
	root    string
	name    string // of the package clause
	path    string // within the module, as "trainerd/child"
	dir     string
	files   []*file
	mutants []*mutant
}

// file is a source file and the edits that put the mutants into it.
type file struct {
	name   string
	source []byte
	edits  []edit
}

// mutant is one mistake.
type mutant struct {
	id       int // from 1; 0 selects no mutant
	pkg      string
	file     string // within the package
	line     int
	function string
	from, to string
	tests    []*test // that reach it
	verdict  verdict
}

type verdict int

const (
	uncovered verdict = iota
	pending
	excused
	survived
	killed
)

// key is how an excuse names the mutant.
func (m *mutant) key() string {
	return fmt.Sprintf("%s %s: %s -> %s", m.pkg, m.function, m.from, m.to)
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s/%s:%d: %s: %s -> %s", m.pkg, m.file, m.line, m.function, m.from, m.to)
}

// load reads a package, as it is built for this system, and finds its mutants.
func load(root, pattern string) (*pkg, error) {
	loaded, err := packages.Load(&packages.Config{
		Dir: root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedExportFile | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule,
	}, pattern)
	if err != nil {
		return nil, err
	}
	if len(loaded) != 1 {
		return nil, fmt.Errorf("%d packages; want one", len(loaded))
	}
	l := loaded[0]
	if len(l.Errors) > 0 {
		return nil, l.Errors[0]
	}
	p := &pkg{root: root, name: l.Name, path: strings.TrimPrefix(l.PkgPath, l.Module.Path+"/"), dir: l.Dir}
	for i, syntax := range l.Syntax {
		if ast.IsGenerated(syntax) {
			continue
		}
		source, err := os.ReadFile(l.CompiledGoFiles[i])
		if err != nil {
			return nil, err
		}
		f := &file{name: l.CompiledGoFiles[i], source: source}
		p.files = append(p.files, f)
		(&finder{pkg: p, file: f, fset: l.Fset, info: l.TypesInfo, types: l.Types}).find(syntax)
	}
	return p, nil
}
