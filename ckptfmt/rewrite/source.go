// Package rewrite makes new checkpoints from checkpoints and from NumPy and
// safetensors files: partial copies, other names or types, averages of
// several, moving averages in place of the variables.
//
// A [Source] is a list of parts that are read while they are written, a piece
// at a time. Its methods change the list; [Write] runs it. So memory does not
// grow with the tensors, except for strings, for partitioned tensors that are
// written whole and are cut along a dimension other than the first, for arrays
// in Fortran order, and for V1 checkpoints, whose elements are within
// messages.
//
// Checkpoints of tf.train.Checkpoint hold an object graph that has the key of
// each value. It is adapted: renamed values are found under their new names,
// and those that were left out are no longer expected.
//
//	s, err := rewrite.Open("logdir/model.ckpt-900")
//	if err != nil { ... }
//	defer s.Close()
//	s.Keep(func(name string) bool { return !strings.HasPrefix(name, "debug/") })
//	s.Cast(tfpb.DataType_DT_BFLOAT16)
//	err = rewrite.Write(ctx, s, "small/model.ckpt-900", nil)
//
// [FromTensors] makes a source of tensors in memory, which a program writes to a file
// of any format in this way.
package rewrite

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/names"
)

// Source is a list of tensors to be written. It is not safe for concurrent use.
type Source struct {
	name     string
	kind     formats.Kind
	parts    []ckptfmt.Part
	opened   ckptfmt.Reader // of any format
	metadata map[string]string
	close    []func() error
	keys     []func(string) string // what happened to the names, "": left out
	byName   *placesByName
	// damaged are the tensors that should be among the parts and cannot be.
	damaged []ckptfmt.DamagedTensor
	// names are the names of all tensors when the source was opened, and graph is the object graph
	// that it had then.
	names        []string
	graph        *ckptfmt.Part
	graphDropped bool
	renamed      bool // the reader knows other names
	mapped       bool // and those that there are were made by a map
	table        *names.Table
}

// Open opens what [formats.Find] finds under a name: a checkpoint of either
// version by its prefix, a folder, or a file of one of the other formats. It
// also opens a checkpoint with single damaged tensors in its index; [Write]
// refuses to leave them out silently, so each has to be left out by
// [Source.Keep] or [Source.Salvage].
func Open(name string) (*Source, error) {
	f, err := formats.Find(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return OpenFile(f)
}

// OpenFile is [Open] for a file that was already found.
func OpenFile(f formats.File) (*Source, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	parts, damaged, err := ckptfmt.IntactParts(r.Reader)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	parts, damaged = apart(parts, damaged)
	s := &Source{name: f.Path, kind: f.Kind, parts: parts, opened: r, damaged: damaged, metadata: r.Metadata, close: []func() error{r.Close}}
	return newSource(s), nil
}

// FromTensors returns a source of tensors in memory, whose elements it shares. [Write]
// makes a checkpoint or a file of any format of them, after [Source.AddObjects] a
// checkpoint for tf.train.Checkpoint.
func FromTensors(tensors []ckptfmt.NamedTensor) (*Source, error) {
	s := &Source{name: "the tensors"}
	seen := make(map[string]bool, len(tensors))
	for _, x := range tensors {
		err := x.Tensor.Validate()
		if err == nil && seen[x.Name] {
			err = ckptfmt.ErrExists
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", x.Name, err)
		}
		seen[x.Name] = true
		s.parts = append(s.parts, x.Tensor.Part(x.Name))
	}
	return newSource(s), nil
}

// newSource records what a source held when it was opened.
func newSource(s *Source) *Source {
	s.names = make([]string, 0, len(s.parts)+len(s.damaged))
	for i := range s.parts {
		s.names = append(s.names, s.parts[i].Name)
		if s.parts[i].Name == ObjectGraph {
			graph := s.parts[i]
			s.graph = &graph
		}
	}
	for _, d := range s.damaged {
		s.names = append(s.names, d.Name)
	}
	return s
}

// Close closes the files.
func (s *Source) Close() error {
	var err error
	for _, f := range s.close {
		err = errors.Join(err, f())
	}
	s.close = nil
	return err
}

// Names returns the names that the object graph gave to the tensors when the
// source was opened. A damaged graph gives none.
func (s *Source) Names() *names.Table {
	if s.table == nil && s.opened != nil {
		if table, err := names.Of(s.opened); err == nil {
			s.table = table
		}
	}
	if s.table == nil {
		s.table = &names.Table{}
	}
	return s.table
}

// UseNames gives the tensors that were not renamed their names of a kind in
// [Source.Names], and leaves out the object graph if any name changes:
// tf.train.Checkpoint finds values only under their keys. For a file of Keras it also leaves out
// what is no variable of the model.
func (s *Source) UseNames(kind names.Kind) error {
	table := s.Names()
	if kind == names.KerasFile {
		s.parts = ofModel(s.parts)
	}
	kind = table.Resolve(kind)
	if kind == names.Object || kind == names.Path { // Path is for showing: a copy keeps its graph
		return nil
	}
	s.DropGraph()
	for i, p := range s.parts {
		if name := table.InFile(p.Name); kind == names.KerasFile && name != "" {
			s.parts[i].Stored = name
		}
	}
	return s.Rename(func(key string) string { return table.Name(kind, key) })
}

// Metadata returns the texts about the tensors, which only some formats have.
func (s *Source) Metadata() map[string]string {
	metadata := make(map[string]string, len(s.metadata))
	maps.Copy(metadata, s.metadata)
	return metadata
}

// SetMetadata replaces those texts.
func (s *Source) SetMetadata(metadata map[string]string) { s.metadata = maps.Clone(metadata) }

// Parts returns the parts that would be written.
func (s *Source) Parts() []ckptfmt.Part { return s.parts }

// Keep leaves out the tensors whose names do not satisfy keep. The object
// graph is kept as long as any of its values is.
func (s *Source) Keep(keep func(name string) bool) error {
	var kept []ckptfmt.Part
	graph := -1
	for _, p := range s.parts {
		if p.Name == ObjectGraph {
			graph = len(kept)
		} else if !keep(p.Name) {
			continue
		}
		kept = append(kept, p)
	}
	s.keepDamaged(keep)
	if len(s.damaged) == 0 && (len(kept) == 0 || graph >= 0 && len(kept) == 1 && len(s.parts) > 1) {
		return fmt.Errorf("%w: no tensor of %s is left", ckptfmt.ErrNotFound, s.name)
	}
	s.parts = kept
	s.keys = append(s.keys, keptKey(keep))
	return nil
}

// keptKey returns what says what becomes of a key.
func keptKey(keep func(name string) bool) func(string) string {
	return func(key string) string {
		if keep(key) {
			return key
		}
		return ""
	}
}

// attributes is in the keys of values of objects, between the object and
// what of it the value is.
const attributes = "/.ATTRIBUTES/"

// checkKey refuses a new key under which tf.train.Checkpoint would not find
// the value: it takes the object's part of the key from the graph of objects,
// and knows the rest.
func (s *Source) checkKey(old, key string) error {
	object, rest, ok := strings.Cut(old, attributes)
	if _, newRest, is := strings.Cut(key, attributes); !ok || is && rest == newRest {
		return nil
	}
	return fmt.Errorf("%q would be %q: tf.train.Checkpoint finds a value only by a name that ends in %q; rename %q alone, or leave %s out",
		old, key, attributes+rest, object, ObjectGraph)
}

// Rename gives the tensors other names. The object graph keeps its own.
func (s *Source) Rename(rename func(name string) string) error {
	old := make(map[string]string, len(s.parts)) // new name to old
	hasGraph := slices.ContainsFunc(s.parts, func(p ckptfmt.Part) bool { return p.Name == ObjectGraph })
	for i, d := range s.damaged {
		s.damaged[i].Name = rename(d.Name)
	}
	for i, name := range s.names {
		s.names[i] = rename(name)
	}
	for i, p := range s.parts {
		name := p.Name
		if name != ObjectGraph {
			name = rename(name)
		}
		if hasGraph {
			if err := s.checkKey(p.Name, name); err != nil {
				return err
			}
		}
		if before, ok := old[name]; ok && before != p.Name {
			return fmt.Errorf("%w: %q and %q of %s would both be %q", ckptfmt.ErrExists, before, p.Name, s.name, name)
		}
		old[name] = p.Name
		s.parts[i].Name = name
	}
	s.keys = append(s.keys, rename)
	s.renamed = true
	return nil
}
