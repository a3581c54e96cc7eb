package rewrite

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/inspect"
)

// Expression is arithmetic over checkpoints, such as "base + 0.5*(a - b)": names,
// numbers, + - * / and parentheses, with the usual precedence. Each element of the
// result is computed from the elements at the same position, in float64.
type Expression struct {
	// Names are those of the checkpoints, in the order in which they first occur.
	Names []string

	root expr
}

// expr is a part of an expression. operands are the elements of Names.
type expr func(operands []float64) float64

// maxExpression bounds a text, and so the depth of its parentheses.
const maxExpression = 4096

// ParseExpression parses an expression. It must name at least one checkpoint.
func ParseExpression(text string) (*Expression, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("the expression has %d characters; want at most %d", len(text), maxExpression)
	}
	e := &Expression{}
	p := &expressionParser{text: text, e: e, index: make(map[string]int)}
	root, err := p.sum()
	if err == nil && p.skip() != 0 {
		err = p.unexpected()
	}
	if err == nil && len(e.Names) == 0 {
		err = fmt.Errorf("%q names no checkpoint", text)
	}
	if err != nil {
		return nil, err
	}
	e.root = root
	return e, nil
}

// combination evaluates the expression.
func (e *Expression) combination() combination {
	operands := make([]float64, len(e.Names)) // a tensor is computed by one goroutine
	return func(numbers []*inspect.Numbers, i int) float64 {
		for k, n := range numbers {
			operands[k] = n.At(i)
		}
		return e.root(operands)
	}
}

type expressionParser struct {
	text  string
	at    int
	e     *Expression
	index map[string]int
}

// skip skips blanks and returns the next byte, 0 at the end.
func (p *expressionParser) skip() byte {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *expressionParser) unexpected() error {
	if p.at >= len(p.text) {
		return fmt.Errorf("%q ends where a checkpoint, a number or a parenthesis is wanted", p.text)
	}
	return fmt.Errorf("%q: unexpected %q at character %d", p.text, p.text[p.at], p.at+1)
}

func (p *expressionParser) sum() (expr, error) {
	return p.chain(p.product, map[byte]func(a, b float64) float64{
		'+': func(a, b float64) float64 { return a + b },
		'-': func(a, b float64) float64 { return a - b },
	})
}

func (p *expressionParser) product() (expr, error) {
	return p.chain(p.factor, map[byte]func(a, b float64) float64{
		'*': func(a, b float64) float64 { return a * b },
		'/': func(a, b float64) float64 { return a / b },
	})
}

// chain parses operands with operators of one precedence between them.
func (p *expressionParser) chain(operand func() (expr, error), operators map[byte]func(a, b float64) float64) (expr, error) {
	left, err := operand()
	if err != nil {
		return nil, err
	}
	for {
		apply, ok := operators[p.skip()]
		if !ok {
			return left, nil
		}
		p.at++
		right, err := operand()
		if err != nil {
			return nil, err
		}
		before := left
		left = func(v []float64) float64 { return apply(before(v), right(v)) }
	}
}

func (p *expressionParser) factor() (expr, error) {
	switch c := p.skip(); {
	case c == '-' || c == '+':
		p.at++
		operand, err := p.factor()
		if err != nil || c == '+' {
			return operand, err
		}
		return func(v []float64) float64 { return -operand(v) }, nil
	case c == '(':
		p.at++
		inner, err := p.sum()
		if err != nil {
			return nil, err
		}
		if p.skip() != ')' {
			return nil, p.unexpected()
		}
		p.at++
		return inner, nil
	case c >= '0' && c <= '9' || c == '.':
		return p.number()
	case isNameByte(c):
		return p.name(), nil
	}
	return nil, p.unexpected()
}

func (p *expressionParser) number() (expr, error) {
	from := p.at
	for p.at < len(p.text) {
		c := p.text[p.at]
		exponent := strings.ContainsRune("+-", rune(c)) && (p.text[p.at-1] == 'e' || p.text[p.at-1] == 'E')
		if !(c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || p.at > from && exponent) {
			break
		}
		p.at++
	}
	n, err := strconv.ParseFloat(p.text[from:p.at], 64)
	if err != nil || math.IsInf(n, 0) {
		return nil, fmt.Errorf("%q: %q is not a number", p.text, p.text[from:p.at])
	}
	return func([]float64) float64 { return n }, nil
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func (p *expressionParser) name() expr {
	from := p.at
	for p.at < len(p.text) && isNameByte(p.text[p.at]) {
		p.at++
	}
	name := p.text[from:p.at]
	i, ok := p.index[name]
	if !ok {
		i = len(p.e.Names)
		p.index[name] = i
		p.e.Names = append(p.e.Names, name)
	}
	return func(v []float64) float64 { return v[i] }
}
