// Package names gives the tensors of a checkpoint names that people know.
//
// tf.train.Checkpoint stores values under the paths of objects, which depend on
// the program that saved them; its graph of objects says what the program called
// the variables. For one tensor there are three kinds of names:
//
//	Object    optimizer/_trainable_variables/0/.ATTRIBUTES/VARIABLE_VALUE
//	Variable  net/d1/kernel
//	Keras     d1/kernel
//
// Object names are the stored keys, and all that other checkpoints have.
// Variable names are the full names in the graph of objects, where they tell one
// variable from all others. Keras names are made for reading, one for each
// tensor: the variable's name without the scope of a model that has all
// variables, or the path of the object where several share a name; what an
// optimizer keeps for a variable is below the optimizer and has the variable's
// name in it, as in optimizer/d1/kernel/momentum.
//
// The graph of objects and its fields are described in TensorFlow's
// core/protobuf/trackable_object_graph.proto. A [Table] is safe for concurrent
// use.
package names

import (
	"cmp"
	"errors"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
)

// Kind is a kind of names.
type Kind string

// The kinds. Auto is Keras for checkpoints of Keras models, else Object.
const (
	Auto     Kind = "auto"
	Object   Kind = "object"
	Variable Kind = "variable"
	Keras    Kind = "keras"
	// KerasFile is Keras, but what an optimizer keeps is called by its number, as
	// in optimizer/7: files of Keras 3 know no other name.
	KerasFile Kind = "keras file"
)

// attributes is in a key between the path of an object and what of it the
// value is.
const attributes = "/.ATTRIBUTES/"

// Table has the names of all tensors of a checkpoint. That of a checkpoint
// without a graph of objects is empty: each name is its key.
type Table struct {
	variable, keras map[string]string // by key
	numbered        map[string]string // by key: names of kind KerasFile that are not those of Keras
	keys            map[string]string // by any other name
	order           map[string]int    // of keys, in layers' order
	isKeras         bool
}

// Of reads the graph of objects of a checkpoint, or takes the names that a file of
// another format has for what an optimizer keeps.
func Of(r ckptfmt.Reader) (*Table, error) {
	g, err := inspect.ObjectGraph(r)
	if errors.Is(err, ckptfmt.ErrNotFound) {
		return ofFile(r), nil
	}
	if err != nil {
		return nil, err
	}
	stored := make(map[string]bool)
	for info, err := range r.Tensors() {
		if err != nil && info.Name == "" {
			return nil, err
		}
		stored[info.Name] = true
	}
	return newTable(newGraph(g), stored), nil
}

// ofFile returns the names that a file without a graph of objects has, besides its
// keys, for the variables of an optimizer.
func ofFile(r ckptfmt.Reader) *Table {
	f, ok := r.(interface {
		OptimizerNames() (byVariable, byNumber map[string]string)
	})
	if !ok {
		return &Table{}
	}
	t := &Table{keys: make(map[string]string)}
	t.keras, t.numbered = f.OptimizerNames()
	for _, names := range []map[string]string{t.numbered, t.keras} {
		for key, name := range names {
			t.keys[name] = key
		}
	}
	return t
}

func newTable(g *graph, stored map[string]bool) *Table {
	values := g.values(stored)
	t := &Table{
		variable: unique(values, stored, fullName), keras: g.kerasNames(values, stored),
		order: make(map[string]int, len(values)), isKeras: g.isKeras(), numbered: g.numberedSlots(stored),
	}
	for i, v := range values {
		t.order[v.key] = i
	}
	t.keys = make(map[string]string, 2*len(values))
	for _, v := range values { // the shorter names win
		if path, _, ok := strings.Cut(v.key, attributes); ok {
			t.keys[path] = v.key
		}
	}
	for key, name := range t.numbered {
		t.keys[name] = key
	}
	for key, name := range t.variable {
		t.keys[name] = key
	}
	for key, name := range t.keras {
		t.keys[name] = key
	}
	for key := range stored {
		t.keys[key] = key
	}
	return t
}

func fullName(v value) string { return v.full }

// unique returns the names that name gives and that no other tensor has.
func unique(values []value, stored map[string]bool, name func(value) string) map[string]string {
	taken := make(map[string]int, len(values)+len(stored))
	for key := range stored {
		taken[key]++
	}
	named := make(map[string]string, len(values))
	for _, v := range values {
		if n := name(v); n != "" && n != v.key {
			named[v.key] = n
			taken[n]++
		}
	}
	for key, n := range named {
		if taken[n] > 1 {
			delete(named, key)
		}
	}
	return named
}

// Resolve returns the kind that Auto is for this checkpoint, and any other kind
// as it is.
func (t *Table) Resolve(k Kind) Kind {
	switch {
	case k != Auto:
		return k
	case t.isKeras:
		return Keras
	}
	return Object
}

// Name returns the name of a kind that a key has; the key where it has none.
func (t *Table) Name(k Kind, key string) string {
	name := ""
	switch t.Resolve(k) {
	case Variable:
		name = t.variable[key]
	case Keras:
		name = t.keras[key]
	case KerasFile:
		name = cmp.Or(t.numbered[key], t.keras[key])
	}
	if name == "" {
		return key
	}
	return name
}

// Key returns the key that a name of any kind means, or name itself.
func (t *Table) Key(name string) string {
	if key, ok := t.keys[name]; ok {
		return key
	}
	return name
}

// All returns a key and all other names that it has.
func (t *Table) All(key string) []string {
	list := []string{key}
	for _, name := range []string{t.variable[key], t.keras[key], t.numbered[key]} {
		if name != "" {
			list = append(list, name)
		}
	}
	return list
}

// Place returns where a key is in the order of the layers, and whether the
// graph of objects has it.
func (t *Table) Place(key string) (int, bool) {
	at, ok := t.order[key]
	return at, ok
}
