package rewrite

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/mapping"
	"github.com/trainerd/trainerd/ckptfmt/names"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Map applies a map: its results replace the tensors. They have no object graph;
// [Source.Like] and [Source.AddObjects] give them one. If tensors are left over,
// the error is a [*mapping.LeftError], and the source must not be written. A tensor
// that is not merely renamed is in memory, with those that it is joined with, while
// it is written.
func (s *Source) Map(m *mapping.Map) (*mapping.Result, error) {
	if err := s.firstDamage(); err != nil {
		return nil, err
	}
	s.DropGraph()
	if err := s.UseNames(m.Names); err != nil {
		return nil, err
	}
	parts := whole(s.parts)
	byName := make(map[string]ckptfmt.Part, len(parts))
	tensors := make([]mapping.Tensor, len(parts))
	for i, p := range parts {
		tensors[i] = mapping.Tensor{Name: p.Name, Path: p.Stored, DType: p.DType, Shape: p.Full}
		byName[p.Name] = p
	}
	result, err := m.Plan(tensors)
	if err != nil {
		return nil, err
	}
	if err := result.Err(m); err != nil {
		return result, err
	}
	if len(result.Outputs) == 0 {
		return result, fmt.Errorf("%w: the map leaves nothing of %s", ckptfmt.ErrNotFound, s.name)
	}
	made := make([]ckptfmt.Part, len(result.Outputs))
	for i := range result.Outputs {
		if made[i], err = mapped(&result.Outputs[i], byName); err != nil {
			return nil, err
		}
	}
	s.setParts(made)
	s.mapped = true
	return result, nil
}

// setParts puts other whole tensors into the place of all that there is.
func (s *Source) setParts(parts []ckptfmt.Part) {
	s.parts, s.byName, s.keys, s.renamed = parts, nil, nil, true
	s.names = s.names[:0]
	for _, p := range parts {
		s.names = append(s.names, p.Name)
	}
}

// mapped returns the part that an output is, of parts by their names.
func mapped(o *mapping.Output, parts map[string]ckptfmt.Part) (ckptfmt.Part, error) {
	first := parts[o.Inputs[0]]
	p := first
	p.Name = o.Name
	if !o.Plain {
		inputs := make([]ckptfmt.Part, len(o.Inputs))
		for i, name := range o.Inputs {
			inputs[i] = parts[name]
		}
		p = ckptfmt.WholePart(o.Name, first.DType, o.Shape, func() (io.ReadCloser, error) {
			t, err := makeOutput(o, inputs)
			if err != nil {
				return nil, err
			}
			return io.NopCloser(bytes.NewReader(t.Data)), nil
		})
	}
	if o.DType == first.DType {
		return p, nil
	}
	encode, err := encoder(o.DType)
	if err != nil {
		return p, err
	}
	return castPart(p, o.DType, encode), nil
}

func makeOutput(o *mapping.Output, inputs []ckptfmt.Part) (*ckptfmt.Tensor, error) {
	loaded := make([]*ckptfmt.Tensor, len(inputs))
	for i, p := range inputs {
		var err error
		if loaded[i], err = p.Load(); err != nil {
			return nil, err
		}
	}
	if o.Adds() {
		sum, err := addTensors(loaded)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", o.Name, err)
		}
		loaded = []*ckptfmt.Tensor{sum}
	}
	return o.Make(loaded), nil
}

// addTensors adds numbers of one type in float64.
func addTensors(list []*ckptfmt.Tensor) (*ckptfmt.Tensor, error) {
	first := list[0]
	if !isAveraged(first.DType) {
		return nil, fmt.Errorf("%w: elements of %s are not added", ckptfmt.ErrType, dtype.Name(first.DType))
	}
	encode, err := encoder(first.DType)
	if err != nil {
		return nil, err
	}
	out := &ckptfmt.Tensor{DType: first.DType, Shape: first.Shape, Data: make([]byte, 0, len(first.Data))}
	readers := make([]func(i int) float64, len(list))
	n := 0
	for i, t := range list {
		numbers, err := numbersOf(t.Data, t.DType)
		if err != nil {
			return nil, err
		}
		readers[i], n = numbers.At, numbers.Len()
	}
	for i := range n {
		sum := 0.0
		for _, at := range readers {
			sum += at(i)
		}
		out.Data = encode(out.Data, sum)
	}
	return out, nil
}

// Reader returns a reader of the tensors that would be written, whole and
// without the object graph; of those that are damaged it knows why. It is valid until the
// source is closed or changed.
func (s *Source) Reader() (*ckptfmt.PartsReader, error) {
	lost := map[string]bool{ObjectGraph: true}
	for _, d := range s.damaged {
		lost[d.Name] = true
	}
	parts := slices.DeleteFunc(slices.Clone(whole(s.parts)), func(p ckptfmt.Part) bool { return lost[p.Name] })
	for _, d := range s.damaged {
		p := ckptfmt.WholePart(d.Name, tfpb.DataType_DT_INVALID, nil, nil)
		p.Err = d.Err
		parts = append(parts, p)
	}
	return ckptfmt.NewPartsReader(parts, nil)
}

// LikeOptions are the choices of [Source.Like].
type LikeOptions struct {
	// KeepMissing uses the template's own values for tensors that the source does
	// not have. Otherwise they are an error.
	KeepMissing bool
}

// LikeResult says what [Source.Like] did.
type LikeResult struct {
	Prefix string   // what was taken off the names, as [Source.TakeOffPrefix] does or of paths of objects
	Added  string   // what was put before the paths of objects: the template has a wrapped model
	Used   int      // how many tensors of the source have a place in the template
	Kept   []string // keys whose values are the template's
	Left   []string // tensors of the source that the template does not have
}

// Like gives a source the form of another checkpoint, the template: its keys, types and object
// graph, so that the program that saved the template can restore the values. A tensor is found
// under the template's key, or any other name that the template has for it, or under another of its
// own names, or, if one of the programs saved the model within another object, by the rest of its
// path. Numbers are converted if both types are floating-point. The template must stay open.
func (s *Source) Like(template *Source, o LikeOptions) (*LikeResult, error) {
	if err := errors.Join(s.firstDamage(), template.firstDamage()); err != nil {
		return nil, err
	}
	table := template.Names()
	result := &LikeResult{}
	var err error
	if result.Prefix, err = s.TakeOffPrefix(template.allNames()); err != nil {
		return nil, err
	}
	have := make(map[string]ckptfmt.Part)
	for _, p := range whole(s.parts) {
		have[p.Name] = p
	}
	wanted, by, err := s.wantedNames(template, have)
	if err != nil {
		return nil, err
	}
	result.Prefix, result.Added = cmp.Or(result.Prefix, by.own), by.wanted
	var parts []ckptfmt.Part
	var missing []string
	used := make(map[string]bool)
	for _, want := range whole(template.parts) {
		name := wanted[want.Name]
		switch {
		case want.Name == ObjectGraph:
			parts = append(parts, want)
		case name != "":
			p, err := fill(want, have[name])
			if err != nil {
				return nil, err
			}
			used[name] = true
			parts = append(parts, p)
		case o.KeepMissing:
			result.Kept = append(result.Kept, want.Name)
			parts = append(parts, want)
		default:
			missing = append(missing, table.Name(names.Auto, want.Name))
		}
	}
	if len(missing) > 0 {
		return nil, &MissingError{s.name, template.name, missing, s.IsUnnamed()}
	}
	result.Used = len(used)
	result.Left, err = s.leftOver(have, used)
	if err != nil {
		return nil, err
	}
	s.setParts(parts)
	return result, nil
}

// leftOver returns the tensors that were not used, sorted.
func (s *Source) leftOver(have map[string]ckptfmt.Part, used map[string]bool) ([]string, error) {
	var left []string
	for name := range have {
		if !used[name] && name != ObjectGraph {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return s.withoutTwins(left, used)
}

// A MissingError names the tensors of a template that a source does not have.
type MissingError struct {
	Source, Template string
	Names            []string
	// IsUnnamed says that the source is a file of Keras without names of layers.
	IsUnnamed bool
}

// Error implements error.
func (e *MissingError) Error() string {
	text := fmt.Sprintf("%s has no values for %d tensors of %s, such as %q", e.Source, len(e.Names), e.Template, e.Names[0])
	if e.IsUnnamed {
		text += "; it has no names of layers, its dense_1 is the second Dense: convert it to .weights.h5 first, --like one of the model that Keras 3 saved"
	}
	return text
}

// fill returns a part under the name and in the type of a template's.
func fill(want, have ckptfmt.Part) (ckptfmt.Part, error) {
	if !slices.Equal(want.Full, have.Full) {
		return have, fmt.Errorf("%q has shape %v; want %v as %q of the template", have.Name, have.Full, want.Full, want.Name)
	}
	name := have.Name
	have.Name = want.Name
	if have.TypeName() == want.TypeName() {
		return have, nil
	}
	if !dtype.IsFloat(have.DType) || !dtype.IsFloat(want.DType) {
		return have, fmt.Errorf("%w: %q is %s; want %s as %q of the template",
			ckptfmt.ErrType, name, have.TypeName(), want.TypeName(), want.Name)
	}
	encode, err := encoder(want.DType)
	if err != nil {
		return have, err
	}
	return castPart(have, want.DType, encode), nil
}
