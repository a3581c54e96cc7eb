package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/tools/internal/excuse"
)

// finder walks one file and makes its mutants.
type finder struct {
	pkg      *pkg
	file     *file
	fset     *token.FileSet
	info     *types.Info
	types    *types.Package
	function string
	heads    []string // of the statements around: "if err != nil"
	simple   ast.Node // the statement or condition around
	failing  bool     // that statement returns an error
}

func (f *finder) find(syntax *ast.File) {
	for _, d := range syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.function = functionName(d)
			if d.Body != nil {
				f.block(d.Body.List, d.Type)
			}
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				f.function = "var"
				f.inside(d)
			}
		}
	}
}

// functionName returns the name of a function or method: "(*Saver).Write".
func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	receiver, star := d.Recv.List[0].Type, ""
	if p, ok := receiver.(*ast.StarExpr); ok {
		receiver, star = p.X, "*"
	}
	if g, ok := receiver.(*ast.IndexExpr); ok {
		receiver = g.X
	}
	return fmt.Sprintf("(%s%s).%s", star, types.ExprString(receiver), d.Name.Name)
}

// add makes a mutant of the code of n.
func (f *finder) add(n ast.Node, from, to string) int {
	m := &mutant{
		id: len(f.pkg.mutants) + 1, pkg: f.pkg.path, file: filepath.Base(f.file.name), line: f.fset.Position(n.Pos()).Line,
		function: f.function, from: excuse.Text(from), to: excuse.Text(to),
	}
	f.pkg.mutants = append(f.pkg.mutants, m)
	return m.id
}

func (f *finder) text(n ast.Node) string {
	return string(f.file.source[f.offset(n.Pos()):f.offset(n.End())])
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

// block makes the mutants of a list of statements of a function of this type.
func (f *finder) block(list []ast.Stmt, function *ast.FuncType) {
	simple, failing := f.simple, f.failing
	for _, s := range list {
		f.simple, f.failing = s, f.fails(s)
		f.statement(s, function)
		f.within(s, function)
	}
	f.simple, f.failing = simple, failing
}

// within makes the mutants inside a statement.
func (f *finder) within(s ast.Stmt, function *ast.FuncType) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			f.block(n.List, function)
			return false
		case *ast.IfStmt:
			f.nested("if "+f.headOf(n.Init)+f.text(n.Cond), function, n.Init, n.Cond, n.Body, n.Else)
			return false
		case *ast.ForStmt:
			if n.Cond != nil {
				f.condition(n.Cond)
			}
		case *ast.CaseClause:
			f.clause(n.List, n.Body, function)
			return false
		case *ast.CommClause:
			f.heads = append(f.heads, "case "+f.headOf(n.Comm))
			f.block(n.Body, function)
			f.heads = f.heads[:len(f.heads)-1]
			return false
		case *ast.FuncLit:
			f.block(n.Body.List, n.Type)
			return false
		case ast.Expr:
			return f.expression(n)
		case *ast.GenDecl:
			return n.Tok == token.VAR
		}
		return true
	})
}

func (f *finder) headOf(s ast.Stmt) string {
	if s == nil {
		return ""
	}
	return f.text(s) + "; "
}

// nested makes the mutants of the parts of an if statement.
func (f *finder) nested(head string, function *ast.FuncType, init ast.Stmt, cond ast.Expr, body *ast.BlockStmt, other ast.Stmt) {
	if init != nil {
		f.within(init, function)
	}
	f.simple = cond
	f.condition(cond)
	f.inside(cond)
	f.heads = append(f.heads, head)
	f.block(body.List, function)
	f.heads[len(f.heads)-1] = "else of " + head
	if other != nil {
		f.within(other, function)
	}
	f.heads = f.heads[:len(f.heads)-1]
}

func (f *finder) clause(list []ast.Expr, body []ast.Stmt, function *ast.FuncType) {
	var texts []string
	for _, e := range list {
		texts = append(texts, f.text(e))
		if v, ok := f.info.Types[e]; !ok || v.Value != nil || v.IsType() {
			continue // duplicate constants are found by the compiler only as constants
		}
		f.condition(e)
		f.inside(e)
	}
	f.heads = append(f.heads, "case "+strings.Join(texts, ", "))
	f.block(body, function)
	f.heads = f.heads[:len(f.heads)-1]
}

// inside makes the mutants of expressions below n, and of the functions in them.
func (f *finder) inside(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.block(n.Body.List, n.Type)
			return false
		case ast.Expr:
			return f.expression(n)
		}
		return true
	})
}
