package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// statement makes the mutants of a whole statement of a block.
func (f *finder) statement(s ast.Stmt, function *ast.FuncType) {
	switch s := s.(type) {
	case *ast.ReturnStmt:
		if len(s.Results) == 0 && function.Results == nil {
			f.leaveOut(s)
		}
		f.returned(s, function)
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); !ok || !f.skipped(call) {
			f.leaveOut(s)
		}
	case *ast.DeferStmt:
		if !f.skipped(s.Call) && !f.collected(s.Call) {
			f.leaveOut(s)
		}
	case *ast.BranchStmt:
		if s.Tok == token.BREAK || s.Tok == token.CONTINUE {
			f.leaveOut(s)
		}
	case *ast.AssignStmt:
		f.assigned(s)
	case *ast.IncDecStmt:
		f.counted(s)
	case *ast.SendStmt, *ast.GoStmt:
		f.leaveOut(s)
	}
}

// leaveOut makes the mutant without s.
func (f *finder) leaveOut(s ast.Stmt) {
	id := f.add(s, f.headed(s), "left out")
	f.wrap(s, fmt.Sprintf("if !mutantIs(%d) { ", id), " }")
}

// headed returns the text of a statement; that of a jump with its condition, since
// a function may have many alike.
func (f *finder) headed(s ast.Stmt) string {
	text := f.text(s)
	switch s.(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		if len(f.heads) > 0 {
			return f.heads[len(f.heads)-1] + " { " + text + " }"
		}
	}
	return text
}

// skipped reports calls without which the code does not compile, and calls that
// only write to a log.
func (f *finder) skipped(call *ast.CallExpr) bool {
	if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" {
		return true
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	t := f.info.TypeOf(method.X)
	return t != nil && (t.String() == "*log/slog.Logger" || strings.HasPrefix(t.String(), "*testing."))
}

// fails reports whether s returns an error, and so other results that nobody
// uses.
func (f *finder) fails(s ast.Stmt) bool {
	r, ok := s.(*ast.ReturnStmt)
	if !ok || len(r.Results) < 2 {
		return false
	}
	last := f.info.Types[r.Results[len(r.Results)-1]]
	return !last.IsNil() && last.Type != nil && last.Type.String() == "error"
}

// collected reports whether a deferred call does what the collector would do, if later:
// it closes something, or stops a timer. That a job leaves no file open is tested as a
// whole.
func (f *finder) collected(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	if method.Sel.Name == "Stop" {
		t := f.info.TypeOf(method.X)
		return t != nil && (t.String() == "*time.Timer" || t.String() == "*time.Ticker")
	}
	return method.Sel.Name == "Close"
}

// returned makes the mutant that returns nil for an error.
func (f *finder) returned(s *ast.ReturnStmt, function *ast.FuncType) {
	if function.Results == nil || len(s.Results) != function.Results.NumFields() {
		return
	}
	last := s.Results[len(s.Results)-1]
	if t := f.info.TypeOf(function.Results.List[len(function.Results.List)-1].Type); t == nil || t.String() != "error" {
		return
	}
	if v := f.info.Types[last]; v.IsNil() {
		return
	}
	others := string(f.file.source[f.offset(s.Results[0].Pos()):f.offset(last.Pos())])
	before := ""
	if _, call := last.(*ast.CallExpr); call && len(s.Results) == 1 {
		before = "_ = " + f.text(last) + "; " // it happens, but its error is ignored
	}
	id := f.add(s, f.headed(s), "return "+others+"nil")
	f.insert(s.Pos(), fmt.Sprintf("if mutantIs(%d) { %sreturn %snil }; ", id, before, others))
}

func (f *finder) assigned(s *ast.AssignStmt) {
	switch s.Tok {
	case token.DEFINE:
	case token.ASSIGN:
		if len(s.Lhs) == 1 && types.ExprString(s.Lhs[0]) == "_" {
			return
		}
		f.leaveOut(s)
	case token.ADD_ASSIGN:
		f.leaveOut(s)
		f.otherwise(s, token.SUB_ASSIGN)
	case token.SUB_ASSIGN:
		f.leaveOut(s)
		f.otherwise(s, token.ADD_ASSIGN)
	default:
		f.leaveOut(s)
	}
}

// otherwise makes the mutant with another operator.
func (f *finder) otherwise(s *ast.AssignStmt, op token.Token) {
	if !f.numeric(s.Lhs[0]) {
		return
	}
	mutated := fmt.Sprintf("%s %s %s", f.text(s.Lhs[0]), op, f.text(s.Rhs[0]))
	id := f.add(s, f.text(s), mutated)
	f.wrap(s, fmt.Sprintf("if mutantIs(%d) { %s } else { ", id, mutated), " }")
}

func (f *finder) counted(s *ast.IncDecStmt) {
	f.leaveOut(s)
	op := token.DEC
	if s.Tok == token.DEC {
		op = token.INC
	}
	mutated := f.text(s.X) + op.String()
	id := f.add(s, f.text(s), mutated)
	f.wrap(s, fmt.Sprintf("if mutantIs(%d) { %s } else { ", id, mutated), " }")
}

func (f *finder) numeric(e ast.Expr) bool {
	t := f.info.TypeOf(e)
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsInteger|types.IsFloat) != 0
}
