// Package names gives the tensors of a checkpoint names that people recognise.
//
// tf.train.Checkpoint stores values under object paths, which depend on the
// program that saved them; its object graph has the program's names of the
// variables. A tensor has three kinds of names:
//
//	Object    optimizer/_trainable_variables/0/.ATTRIBUTES/VARIABLE_VALUE
//	Variable  net/d1/kernel
//	Keras     d1/kernel
//
// Object names are the stored keys, and the only names in other checkpoints. Variable names are the
// full names in the object graph, if they are unique. Keras names are meant for people, one for
// each tensor: the variable's name without the scope of the model if one model has all variables,
// or the object path if several variables share a name; a value that an optimizer keeps for a
// variable is below the optimizer and includes the variable's name, as in
// optimizer/d1/kernel/momentum.
//
// The object graph and its fields are described in TensorFlow's
// core/protobuf/trackable_object_graph.proto. A [Table] is safe for concurrent
// use.
package names

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
)

// Kind is a kind of names.
type Kind string

// The kinds. Auto is Keras for checkpoints of Keras models, Path for others with an
// object graph, otherwise Object.
const (
	Auto     Kind = "auto"
	Object   Kind = "object"
	Variable Kind = "variable"
	Keras    Kind = "keras"
	// KerasFile is Keras, but the optimizer's values are numbered, as in
	// optimizer/7: files of Keras 3 have no other names for them.
	KerasFile Kind = "keras file"
	// Path is Object without the part that the keys of all variables share:
	// net/layer/kernel.
	Path Kind = "path"
)

// attributes is in a key between the path of an object and what of it the
// value is.
const attributes = "/.ATTRIBUTES/"

// variableValue is what the value of a variable is called.
const variableValue = "VARIABLE_VALUE"

// Table has the names of all tensors of a checkpoint. Without an object graph
// it is empty: each name is its key.
type Table struct {
	variable, keras map[string]string // by key
	numbered        map[string]string // by key: names of kind KerasFile that are not those of Keras
	paths           map[string]string // by key
	places          map[string]string // by key: my_layer/0
	trained         map[string]bool   // keys that are paths through an optimizer to the model's own variables
	keys            map[string]string // by any other name
	order           map[string]int    // of keys, in layers' order
	isKeras         bool
}

// Of reads the object graph of a checkpoint or, in another format, the file's
// names for an optimizer's values.
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
	slots := g.slots()
	values := g.withScopes(g.values(stored), slots)
	t := &Table{
		variable: unique(values, stored, fullName), keras: g.kerasNames(values, slots, stored),
		order: make(map[string]int, len(values)), isKeras: g.isKeras(), numbered: g.numberedSlots(stored),
		paths: unique(values, stored, g.objectPath),
	}
	t.places = g.places(values, t.keras)
	t.trained = make(map[string]bool)
	for i, v := range values {
		t.order[v.key] = i
		if isTrainedPath(v.key) {
			t.trained[v.key] = true
		}
	}
	t.keys = make(map[string]string, 2*len(values))
	for key, name := range t.places {
		t.keys[name] = key
	}
	for _, v := range values { // the shorter names win
		if path, _, ok := strings.Cut(v.key, attributes); ok {
			t.keys[path] = v.key
		}
	}
	for key, name := range t.paths {
		t.keys[name] = key
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

// trainedList is where an optimizer has the variables of the model once more.
const trainedList = "_trainable_variables"

// isTrainedPath reports whether a name is a path to a variable of the model through its optimizer.
func isTrainedPath(name string) bool { return strings.Contains("/"+name, "/"+trainedList+"/") }

// localNames are names of objects as they are in paths.
var localNames = strings.NewReplacer(".", "..", "/", ".S")

// objectPath is the path of a variable's object, and of another value also what it is. The key of
// a variable of the model may be a shorter path through the optimizer, which is left out.
func (g *graph) objectPath(v value) string {
	path, attribute, ok := strings.Cut(v.key, attributes)
	if ok && isTrainedPath(path) && g.owner[v.node] < 0 {
		names := g.path(v.node)
		for i, name := range names {
			names[i] = localNames.Replace(name)
		}
		path = strings.Join(names, "/")
	}
	if ok && attribute != variableValue {
		path += "/" + attribute
	}
	return path
}

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

// Resolve returns the kind that Auto means for this checkpoint, and any other
// kind unchanged.
func (t *Table) Resolve(k Kind) Kind {
	switch {
	case k != Auto:
		return k
	case t.isKeras:
		return Keras
	case len(t.paths) > 0:
		return Path
	}
	return Object
}

// Name returns a key's name of a kind, or the key if it has none.
func (t *Table) Name(k Kind, key string) string {
	name := ""
	switch t.Resolve(k) {
	case Variable:
		name = t.variable[key]
	case Keras:
		name = t.keras[key]
	case Path:
		name = t.paths[key]
	case KerasFile:
		name = cmp.Or(t.numbered[key], t.keras[key])
	}
	if name == "" {
		return key
	}
	return name
}

// Key returns the key for a name of any kind, or name itself.
func (t *Table) Key(name string) string {
	if key, ok := t.keys[name]; ok {
		return key
	}
	return name
}

// All returns a key and all its other names.
func (t *Table) All(key string) []string {
	list := []string{key}
	for _, name := range []string{t.variable[key], t.keras[key], t.numbered[key], t.paths[key]} {
		if name != "" {
			list = append(list, name)
		}
	}
	return list
}

// Matched are the names of a key that patterns are matched with: [Table.All] without the
// key of a model's variable if it is a path through the optimizer, such as
// optimizer/_trainable_variables/0. A pattern for what begins with "optimizer" is not
// meant for the model.
func (t *Table) Matched(key string) []string {
	list := t.All(key)
	if !t.trained[key] || t.keras[key] == "" {
		return list
	}
	return slices.DeleteFunc(list, isTrainedPath)
}

// Aliases are [Table.All] and [Table.InFile].
func (t *Table) Aliases(key string) []string {
	list := t.All(key)
	if name := t.InFile(key); name != "" {
		list = append(list, name)
	}
	return list
}

// Numbered returns the name of kind [KerasFile] of an optimizer's value, such as optimizer/7, or ""
// if a key has none.
func (t *Table) Numbered(key string) string { return t.numbered[key] }

// InFile returns the name that a file of Keras 3 has for a variable of a layer whose
// class only the program knows, "" where it is not known: my_layer/0.
func (t *Table) InFile(key string) string { return t.places[key] }

// Place returns the position of a key in the order of the layers, and whether
// the object graph has it.
func (t *Table) Place(key string) (int, bool) {
	at, ok := t.order[key]
	return at, ok
}
