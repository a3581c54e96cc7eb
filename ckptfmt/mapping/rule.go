package mapping

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Rule is a rule of a map, as it is written.
type Rule struct {
	// From matches the names of tensors, To names the results.
	From Names `toml:"from" json:"from"`
	To   Names `toml:"to" json:"to"`
	// Drop leaves out what From matches.
	Drop bool `toml:"drop" json:"drop"`
	// Rank is the number of dimensions that a tensor must have. By default, if
	// Perm is the first change, it is the length of Perm.
	Rank *int `toml:"rank" json:"rank"`
	// If is about another tensor, or the shape of this one.
	If *Condition `toml:"if" json:"if"`

	// Join puts several tensors together: along an axis, or "add".
	Join *Join `toml:"join" json:"join"`
	Step
	Steps []Step `toml:"steps" json:"steps"`
	// Split cuts along an axis, into parts of equal size or of Sizes, one of
	// which may be -1. Squeeze removes that axis, which must then be 1.
	Split   *int    `toml:"split" json:"split"`
	Sizes   []int64 `toml:"sizes" json:"sizes"`
	Squeeze bool    `toml:"squeeze" json:"squeeze"`
	// Zeros names further results: zeros, in the type and shape of the first.
	Zeros Names `toml:"zeros" json:"zeros"`
	// DType is the type of floating-point results; other types do not change.
	DType string `toml:"dtype" json:"dtype"`
}

// Step is a change of the layout of elements, one of three.
type Step struct {
	// Reorder cuts an axis into parts of one size and puts them into another order.
	Reorder *Reorder `toml:"reorder" json:"reorder"`
	// Perm has the old dimensions in their new order, as in numpy.transpose.
	Perm []int `toml:"perm" json:"perm"`
	// Shape is the new shape: numbers, dimensions of the present one as "d0",
	// products of these as "d0*d1", and at most one -1 for the rest.
	Shape Dims `toml:"shape" json:"shape"`
}

// Reorder says which of the parts of an axis comes first, second and so on.
type Reorder struct {
	Axis  int   `toml:"axis" json:"axis"`
	Order []int `toml:"order" json:"order"`
}

// Condition is about a tensor: Name, in which $1 is what From matched, or otherwise
// the matched tensor itself. It must exist, have that rank, that shape (-1 is any
// number), and Ratio times as many rows as columns. Path is an expression for a part of its path in the file,
// which shows the class of a layer in files of Keras 3.
type Condition struct {
	Name  string  `toml:"name" json:"name"`
	Path  string  `toml:"path" json:"path"`
	Rank  *int    `toml:"rank" json:"rank"`
	Shape []int64 `toml:"shape" json:"shape"`
	Ratio int64   `toml:"ratio" json:"ratio"`
}

// compiled is a rule that can be applied.
type compiled struct {
	Rule
	number  int // of the rule in its map, from 1
	pattern *regexp.Regexp
	path    *regexp.Regexp // of the condition, or nil
	steps   []Step
	dtype   tfpb.DataType // DT_INVALID: as it is
}

func compile(r Rule, number int) (*compiled, error) {
	c := &compiled{Rule: r, number: number}
	if err := c.compileNames(); err != nil {
		return nil, err
	}
	c.steps = c.allSteps()
	if err := c.checkResults(); err != nil {
		return nil, err
	}
	for _, s := range c.steps {
		if err := s.check(); err != nil {
			return nil, err
		}
	}
	if c.DType != "" {
		var ok bool
		if c.dtype, ok = dtype.Parse(c.DType); !ok || !slices.Contains(castTypes, c.dtype) {
			return nil, fmt.Errorf("dtype is %q; want float64, float32, float16 or bfloat16", c.DType)
		}
	}
	if c.Rank == nil && c.Join == nil && len(c.steps) > 0 && c.steps[0].Perm != nil {
		rank := len(c.steps[0].Perm)
		c.Rank = &rank
	}
	return c, nil
}

// compileNames compiles the expression and the templates.
func (c *compiled) compileNames() error {
	if len(c.From) == 0 {
		return fmt.Errorf("from is missing")
	}
	var err error
	if c.pattern, err = regexp.Compile("^(?:" + c.From[0] + ")$"); err != nil {
		return fmt.Errorf("from: %w", err)
	}
	for _, list := range []Names{c.From[1:], c.To, c.Zeros} {
		for i := range list {
			if list[i], err = c.template(list[i]); err != nil {
				return err
			}
		}
	}
	if c.If != nil {
		of := *c.If
		if of.Name, err = c.template(of.Name); err != nil {
			return err
		}
		c.If = &of
		if of.Path != "" {
			if c.path, err = regexp.Compile(of.Path); err != nil {
				return fmt.Errorf("if: path: %w", err)
			}
		}
	}
	return nil
}

// reference is $1 in a template, as opposed to $1x: Go's has a longer name.
var reference = lazyregexp.New(`\$\$|\$\{?[0-9]+\}?`)

// template returns a template in which each reference is ${1}, and insists that
// there are such groups.
func (c *compiled) template(text string) (string, error) {
	var missing string
	text = reference().ReplaceAllStringFunc(text, func(r string) string {
		if r == "$$" {
			return r
		}
		number := strings.Trim(r, "${}")
		if n, err := strconv.Atoi(number); err != nil || n > c.pattern.NumSubexp() {
			missing = r
		}
		rest := ""
		if strings.HasSuffix(r, "}") && !strings.HasPrefix(r, "${") {
			rest = "}"
		}
		return "${" + number + "}" + rest
	})
	if missing != "" {
		return "", fmt.Errorf("%s: from has no such group", missing)
	}
	return text, nil
}

// castTypes are those that a rule may give its results.
var castTypes = []tfpb.DataType{tfpb.DataType_DT_DOUBLE, tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16}

// allSteps returns the single change and the changes in the list as one list.
func (c *compiled) allSteps() []Step {
	var steps []Step
	for _, s := range []Step{{Reorder: c.Reorder}, {Perm: c.Perm}, {Shape: c.Shape}} {
		if s.Reorder != nil || s.Perm != nil || s.Shape != nil {
			steps = append(steps, s)
		}
	}
	return append(steps, c.Steps...)
}

// checkResults holds what from, to, join and split say against each other.
func (c *compiled) checkResults() error {
	switch {
	case c.Drop && (len(c.To) > 0 || len(c.steps) > 0 || c.Join != nil || c.Split != nil):
		return fmt.Errorf("drop is all that a rule with it does")
	case c.Drop:
		return nil
	case len(c.To) == 0:
		return fmt.Errorf("to is missing; drop = true leaves tensors out")
	case len(c.From) > 1 && c.Join == nil:
		return fmt.Errorf(`from has %d names; join = 0 puts them together along axis 0, join = "add" adds them`, len(c.From))
	case len(c.From) == 1 && c.Join != nil:
		return fmt.Errorf("join takes several names in from")
	case len(c.To) > 1 && c.Split == nil:
		return fmt.Errorf("to has %d names; split = 0 cuts along axis 0", len(c.To))
	case c.Split == nil && (c.Sizes != nil || c.Squeeze):
		return fmt.Errorf("sizes and squeeze are about split")
	case c.Sizes != nil && len(c.Sizes) != len(c.To):
		return fmt.Errorf("sizes has %d numbers for %d names in to", len(c.Sizes), len(c.To))
	}
	return nil
}

func (s Step) check() error {
	given := 0
	for _, is := range []bool{s.Reorder != nil, s.Perm != nil, s.Shape != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return fmt.Errorf("a step has one of reorder, perm and shape")
	}
	if s.Perm != nil && !isPermutation(s.Perm) {
		return fmt.Errorf("perm %v is not an order of the dimensions 0 to %d", s.Perm, len(s.Perm)-1)
	}
	if s.Reorder != nil && !isPermutation(s.Reorder.Order) {
		return fmt.Errorf("reorder: %v is not an order of the parts 0 to %d", s.Reorder.Order, len(s.Reorder.Order)-1)
	}
	return nil
}

func isPermutation(p []int) bool {
	sorted := slices.Sorted(slices.Values(p))
	for i, v := range sorted {
		if v != i {
			return false
		}
	}
	return len(p) > 0
}

// expand replaces $1 and the like by what a name matched.
func (c *compiled) expand(template, name string) string {
	return string(c.pattern.ExpandString(nil, template, name, c.pattern.FindStringSubmatchIndex(name)))
}

// fits reports whether the rule is for a tensor.
func (c *compiled) fits(t *Tensor, all map[string]*Tensor) bool {
	if !c.pattern.MatchString(t.Name) || c.Rank != nil && len(t.Shape) != *c.Rank {
		return false
	}
	if c.If == nil {
		return true
	}
	of := t
	if c.If.Name != "" {
		of = all[c.expand(c.If.Name, t.Name)]
	}
	switch {
	case of == nil, c.path != nil && !c.path.MatchString(of.path()), c.If.Rank != nil && len(of.Shape) != *c.If.Rank:
		return false
	case c.If.Shape != nil && !slices.EqualFunc(of.Shape, c.If.Shape, isDim):
		return false
	case c.If.Ratio != 0:
		return len(of.Shape) == 2 && of.Shape[0] == c.If.Ratio*of.Shape[1]
	}
	return true
}

// isDim reports whether a dimension is the one of a condition.
func isDim(dim, want int64) bool { return want == -1 || dim == want }

// inputs returns the names of the tensors that the rule takes, given the first.
func (c *compiled) inputs(name string) []string {
	list := []string{name}
	for _, template := range c.From[1:] {
		list = append(list, c.expand(template, name))
	}
	return list
}

// results returns the names of the rule's results.
func (c *compiled) results(names Names, of string, separator []string) []string {
	var list []string
	for _, template := range names {
		name := c.expand(template, of)
		if len(separator) == 2 {
			name = strings.ReplaceAll(name, separator[0], separator[1])
		}
		list = append(list, name)
	}
	return list
}
