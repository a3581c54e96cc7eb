package mapping

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Tensor is a tensor that a map is applied to.
type Tensor struct {
	Name  string
	Path  string // its name in the file; "" if that is Name
	DType tfpb.DataType
	Shape []int64
}

func (t *Tensor) path() string { return cmp.Or(t.Path, t.Name) }

// Output is a tensor that a map makes.
type Output struct {
	Tensor
	Inputs []string // the names of its inputs
	// Plain says that the elements are those of the only input, converted to
	// DType.
	Plain bool

	rule  *compiled
	piece int // of a split; -1: zeros
}

// Result is the result of applying a map to a list of tensors.
type Result struct {
	Outputs []Output
	Dropped []string // by a rule, or by Rest
	Left    []string // not matched by any rule, which is an error
	Unused  []string // rules that match nothing
}

// A RuleError says that a rule cannot be applied to a tensor that it matches.
type RuleError struct {
	Map    string
	Rule   int // from 1
	Tensor string
	Err    error
}

// Error implements error.
func (e *RuleError) Error() string {
	return fmt.Sprintf("map %s: rule %d: %q: %v", e.Map, e.Rule, e.Tensor, e.Err)
}

// Unwrap returns the cause.
func (e *RuleError) Unwrap() error { return e.Err }

// A LeftError names the tensors that no rule of a map matches.
type LeftError struct {
	Map   string
	Names []string
}

// Error implements error.
func (e *LeftError) Error() string {
	const most = 5
	shown := e.Names[:min(most, len(e.Names))]
	text := strings.Join(shown, ", ")
	if more := len(e.Names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("map %s: no rule matches %s", e.Map, text)
}

// Err returns a [*LeftError] if any tensor is left over.
func (r *Result) Err(m *Map) error {
	if len(r.Left) == 0 {
		return nil
	}
	return &LeftError{m.name, r.Left}
}

// Plan applies the rules. The error is a [*RuleError] if one cannot be applied;
// two results with the same name are an error too.
func (m *Map) Plan(tensors []Tensor) (*Result, error) {
	all := make(map[string]*Tensor, len(tensors))
	for i := range tensors {
		all[tensors[i].Name] = &tensors[i]
	}
	rules := m.choose(tensors, all)
	joined := make(map[string]bool) // further inputs, which need no rule of their own
	for _, t := range tensors {
		if c := rules[t.Name]; c != nil {
			for _, name := range c.inputs(t.Name)[1:] {
				joined[name] = true
			}
		}
	}
	out := &Result{}
	used := make(map[int]bool)
	for i := range tensors {
		t := &tensors[i]
		c := rules[t.Name]
		switch {
		case joined[t.Name]:
			continue
		case c == nil && m.Rest == RestKeep:
			out.Outputs = append(out.Outputs, Output{Tensor: *t, Inputs: []string{t.Name}, Plain: true})
		case c == nil && m.Rest == RestDrop:
			out.Dropped = append(out.Dropped, t.Name)
		case c == nil:
			out.Left = append(out.Left, t.Name)
		case c.Drop:
			used[c.number] = true
			out.Dropped = append(out.Dropped, t.Name)
		default:
			used[c.number] = true
			made, err := m.apply(c, t, all)
			if err != nil {
				return nil, &RuleError{m.name, c.number, t.Name, err}
			}
			out.Outputs = append(out.Outputs, made...)
		}
	}
	for _, c := range m.rules {
		if !used[c.number] {
			out.Unused = append(out.Unused, fmt.Sprintf("rule %d (%s)", c.number, c.From[0]))
		}
	}
	return out, m.checkNames(out)
}

// choose returns the first rule that is for each tensor.
func (m *Map) choose(tensors []Tensor, all map[string]*Tensor) map[string]*compiled {
	rules := make(map[string]*compiled, len(tensors))
	for i := range tensors {
		for _, c := range m.rules {
			if c.fits(&tensors[i], all) {
				rules[tensors[i].Name] = c
				break
			}
		}
	}
	return rules
}

func (m *Map) checkNames(r *Result) error {
	from := make(map[string]string, len(r.Outputs))
	for _, o := range r.Outputs {
		if before, ok := from[o.Name]; ok {
			return fmt.Errorf("map %s: %q and %q would both be %q", m.name, before, o.Inputs[0], o.Name)
		}
		if o.Name == "" {
			return fmt.Errorf("map %s: %q would have an empty name", m.name, o.Inputs[0])
		}
		from[o.Name] = o.Inputs[0]
	}
	return nil
}

// apply returns the results of a rule for a tensor, and the tensors that it joins.
func (m *Map) apply(c *compiled, t *Tensor, all map[string]*Tensor) ([]Output, error) {
	inputs := c.inputs(t.Name)
	shapes := make([][]int64, len(inputs))
	for i, name := range inputs {
		in := all[name]
		if in == nil {
			return nil, fmt.Errorf("it is joined with %q, which does not exist", name)
		}
		if in.DType != t.DType {
			return nil, fmt.Errorf("%w: it is %s, and %q is %s", ckptfmt.ErrType, dtype.Name(t.DType), name, dtype.Name(in.DType))
		}
		shapes[i] = in.Shape
	}
	shape, err := c.shape(shapes)
	if err != nil {
		return nil, err
	}
	plain := c.Join == nil && len(c.steps) == 0 && c.Split == nil
	if !plain && dtype.Size(t.DType) == 0 {
		return nil, fmt.Errorf("%w: elements of %s can only be renamed", ckptfmt.ErrType, dtype.Name(t.DType))
	}
	dt := t.DType
	if c.dtype != tfpb.DataType_DT_INVALID && dtype.IsFloat(t.DType) {
		dt = c.dtype
	}
	shapesOut, err := c.splitShapes(shape)
	if err != nil {
		return nil, err
	}
	var out []Output
	for i, name := range c.results(c.To, t.Name, m.separator) {
		out = append(out, Output{Tensor: Tensor{Name: name, DType: dt, Shape: shapesOut[i]}, Inputs: inputs, Plain: plain, rule: c, piece: i})
	}
	for _, name := range c.results(c.Zeros, t.Name, m.separator) {
		out = append(out, Output{Tensor: Tensor{Name: name, DType: dt, Shape: shapesOut[0]}, Inputs: inputs, rule: c, piece: -1})
	}
	return out, nil
}

// shape returns the shape before a split.
func (c *compiled) shape(inputs [][]int64) ([]int64, error) {
	shape := inputs[0]
	var err error
	switch {
	case c.Join == nil:
	case c.Join.Add:
		for _, s := range inputs[1:] {
			if !slices.Equal(s, shape) {
				return nil, fmt.Errorf("join: shapes %v and %v cannot be added", shape, s)
			}
		}
	default:
		shape, err = joined(inputs, c.Join.Axis)
	}
	for _, s := range c.steps {
		if err != nil {
			break
		}
		shape, err = s.shape(shape)
	}
	return shape, err
}

// splitShapes returns the shapes of the results.
func (c *compiled) splitShapes(shape []int64) ([][]int64, error) {
	if c.Split == nil {
		return [][]int64{shape}, nil
	}
	axis := *c.Split
	if axis < 0 || axis >= len(shape) {
		return nil, fmt.Errorf("split: there is no axis %d in shape %v", axis, shape)
	}
	sizes, err := cuts(shape[axis], len(c.To), c.Sizes)
	if err != nil {
		return nil, err
	}
	var out [][]int64
	for _, n := range sizes {
		s := slices.Clone(shape)
		s[axis] = n
		if c.Squeeze {
			if n != 1 {
				return nil, fmt.Errorf("split: axis %d of a part is %d; squeeze leaves out only 1", axis, n)
			}
			s = slices.Delete(s, axis, axis+1)
		}
		out = append(out, s)
	}
	return out, nil
}

// Adds reports whether the inputs are to be added; Make then takes their sum.
func (o *Output) Adds() bool { return o.rule != nil && o.rule.Join != nil && o.rule.Join.Add }

// Make computes the elements of an output that is not plain, in the type of
// its inputs, which must have the types and shapes of the plan.
func (o *Output) Make(inputs []*ckptfmt.Tensor) *ckptfmt.Tensor {
	size := dtype.Size(inputs[0].DType)
	if o.piece < 0 {
		n, _ := dtype.NumElements(o.Shape) // as many as an input has
		return &ckptfmt.Tensor{DType: inputs[0].DType, Shape: o.Shape, Data: make([]byte, n*size)}
	}
	t := *inputs[0]
	if len(inputs) > 1 {
		t = *join(inputs, o.rule.Join.Axis, size)
	}
	for _, s := range o.rule.steps {
		shape, _ := s.shape(t.Shape) // it was planned
		switch {
		case s.Reorder != nil:
			t.Data = reorder(t.Data, t.Shape, s.Reorder, size)
		case s.Perm != nil:
			t.Data = permute(t.Data, t.Shape, s.Perm, size)
		}
		t.Shape = shape
	}
	if o.rule.Split != nil {
		axis := *o.rule.Split
		sizes, _ := cuts(t.Shape[axis], len(o.rule.To), o.rule.Sizes)
		from := int64(0)
		for _, n := range sizes[:o.piece] {
			from += n
		}
		t.Data = part(t.Data, t.Shape, axis, from, from+sizes[o.piece], size)
	}
	t.Shape = o.Shape
	return &t
}
