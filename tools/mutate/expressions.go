package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// expression makes the mutants of e itself and reports whether those of its
// parts are to be made as well.
func (f *finder) expression(e ast.Expr) bool {
	if v, ok := f.info.Types[e]; ok && (v.Value != nil || v.IsType()) {
		f.constant(e, v)
		return false
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		f.binary(e)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			f.condition(e.X)
		}
	case *ast.CompositeLit:
		return f.composite(e)
	case *ast.CallExpr:
		return f.call(e)
	case *ast.KeyValueExpr:
		f.inside(e.Value)
		return false
	case *ast.ArrayType, *ast.SelectorExpr, *ast.IndexListExpr:
		_, selector := e.(*ast.SelectorExpr)
		return selector
	}
	return true
}

// composite leaves out the keys of arrays, which must be constants.
func (f *finder) composite(e *ast.CompositeLit) bool {
	for _, element := range e.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			f.inside(pair.Value)
			continue
		}
		f.inside(element)
	}
	return false
}

// call leaves out the capacity of what is made, which nobody can observe, what
// is written to a log, and the bits of numbers that are parsed.
func (f *finder) call(e *ast.CallExpr) bool {
	if f.skipped(e) {
		return false
	}
	if method, ok := e.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(f.text(method), "strconv.Parse") {
		f.inside(e.Args[0])
		return false
	}
	if id, ok := e.Fun.(*ast.Ident); ok && id.Name == "make" {
		if _, builtin := f.info.Uses[id].(*types.Builtin); builtin {
			if _, slice := f.info.TypeOf(e).Underlying().(*types.Slice); slice && len(e.Args) > 1 {
				f.inside(e.Args[1])
			}
			return false
		}
	}
	return true
}

func (f *finder) binary(e *ast.BinaryExpr) {
	a, b := f.text(e.X), f.text(e.Y)
	switch e.Op {
	case token.LAND:
		id := f.add(e, f.text(e), a+" || "+b)
		f.wrap(e, fmt.Sprintf("(mutantIs(%d) && (%s || %s) || ", id, a, b), ")")
		f.condition(e.X)
		f.condition(e.Y)
	case token.LOR:
		id := f.add(e, f.text(e), a+" && "+b)
		f.wrap(e, fmt.Sprintf("((!mutantIs(%d) || (%s) && (%s)) && (", id, a, b), "))")
		f.condition(e.X)
		f.condition(e.Y)
	case token.LSS, token.GTR:
		id := f.add(e, f.text(e), fmt.Sprintf("%s %s= %s", a, e.Op, b))
		f.wrap(e, fmt.Sprintf("(mutantIs(%d) && %s == %s || ", id, a, b), ")")
	case token.LEQ, token.GEQ:
		id := f.add(e, f.text(e), fmt.Sprintf("%s %s %s", a, e.Op.String()[:1], b))
		f.wrap(e, fmt.Sprintf("(!(mutantIs(%d) && %s == %s) && ", id, a, b), ")")
	case token.ADD, token.SUB, token.MUL, token.QUO:
		f.arithmetic(e)
	}
}

var opposite = map[token.Token]struct {
	op     string
	helper string
}{
	token.ADD: {"-", "mutantAdd"}, token.SUB: {"+", "mutantSub"},
	token.MUL: {"/", "mutantMul"}, token.QUO: {"*", "mutantQuo"},
}

func (f *finder) arithmetic(e *ast.BinaryExpr) {
	if !f.numeric(e) {
		return
	}
	o := opposite[e.Op]
	id := f.add(e, f.text(e), fmt.Sprintf("%s %s %s", f.text(e.X), o.op, f.text(e.Y)))
	f.wrap(e, fmt.Sprintf("%s(%d, ", o.helper, id), ")")
	f.replace(e.OpPos, len(e.Op.String()), ",")
}

// condition makes the mutant with e negated, if it is a single condition.
func (f *finder) condition(e ast.Expr) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		f.condition(e.X)
		return
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return // its operand is negated
		}
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			return // its operands are
		}
	}
	v, ok := f.info.Types[e]
	if !ok || v.Value != nil || !isBool(v.Type) {
		return
	}
	id := f.add(e, f.text(e), "!("+f.text(e)+")")
	f.wrap(e, fmt.Sprintf("mutantNot(%d, ", id), ")")
}

func isBool(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

// constant makes the mutant of true, false or a literal number. Named constants
// are left out: one less than a flag or a kind is no likely mistake.
func (f *finder) constant(e ast.Expr, v types.TypeAndValue) {
	if v.Value == nil || v.IsType() {
		return
	}
	basic, ok := v.Type.(*types.Basic)
	if !ok || !literal(e) || f.failing {
		return
	}
	from := f.text(e)
	if f.simple != nil {
		from += " in " + f.text(f.simple)
	}
	switch v.Value.Kind() {
	case constant.Bool:
		id := f.add(e, from, fmt.Sprint(!constant.BoolVal(v.Value)))
		f.wrap(e, fmt.Sprintf("mutantNot(%d, ", id), ")")
	case constant.Int:
		if basic.Info()&types.IsInteger == 0 {
			return
		}
		name := types.Default(basic).String()
		to, helper := f.text(e)+" - 1", "mutantLess"
		if constant.Sign(v.Value) <= 0 {
			to, helper = f.text(e)+" + 1", "mutantMore"
		}
		id := f.add(e, from, to)
		f.wrap(e, fmt.Sprintf("%s(%d, %s(", helper, id, name), "))")
	}
}

// literal reports whether e is made of literals, true and false only.
func literal(e ast.Expr) bool {
	only := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			only = only && (n.Name == "true" || n.Name == "false")
		case *ast.BasicLit:
			only = only && n.Kind == token.INT
		case *ast.CallExpr, *ast.SelectorExpr:
			only = false
		}
		return only
	})
	return only
}
