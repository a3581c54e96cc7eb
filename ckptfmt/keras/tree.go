package keras

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
)

// Two models in a model may have layers of the same names. Then a checkpoint names their variables
// only by their paths, 1/2/kernel, with numbers for the layers of a model; a Keras file numbers the
// layers of each class, functional_1/dense/vars/0. Both are in the order of the layers.

// node is an object of a model, or a variable.
type node struct {
	name     string // of its segment of a path
	label    string // the name of the object, "" where only its segment is known
	variable string // name of the tensor; "" of an object
	isLayer  bool   // of the model itself, with variables
	below    []*node
	form     int // nodes that are alike have the same
}

// tree makes nodes of the paths of variables. Its nodes can be compared with those of others with
// the same forms.
type tree struct {
	root    *node
	objects map[string]*node // by path
	forms   map[string]int
}

func newTree(forms map[string]int) *tree {
	return &tree{root: new(node), objects: make(map[string]*node), forms: forms}
}

// mostObjects is how deep models are.
const mostObjects = 32

// add adds the variable of a tensor, whose name in its layer and whose shape say which others it is
// like.
func (t *tree) add(path []string, tensor, variable string, shape []int64) {
	if len(path) > mostObjects {
		return
	}
	at := t.object(path)
	at.isLayer = len(path) == 1
	at.below = append(at.below, &node{name: variable, variable: tensor, form: t.formOf(fmt.Sprint("variable ", variable, shape))})
}

// object returns the object at a path.
func (t *tree) object(path []string) *node {
	at := t.root
	for i := range path {
		key := strings.Join(path[:i+1], "/")
		next := t.objects[key]
		if next == nil {
			next = &node{name: path[i]}
			t.objects[key] = next
			at.below = append(at.below, next)
		}
		at = next
	}
	return at
}

// label records the names of the objects on a path: the segments of a variable's name before the
// last, if their number matches.
func (t *tree) label(path, names []string) {
	if len(names) != len(path)+1 || len(path) > mostObjects {
		return
	}
	for i := range path {
		t.objects[strings.Join(path[:i+1], "/")].label = names[i]
	}
}

func (t *tree) formOf(text string) int {
	form, known := t.forms[text]
	if !known {
		form = len(t.forms)
		t.forms[text] = form
	}
	return form
}

// sort puts what is below a node into the order of the numbers in its names, and finds its form.
func (t *tree) sort(n *node) {
	if n.variable != "" {
		return
	}
	forms := make([]int, len(n.below))
	for i, b := range n.below {
		t.sort(b)
		forms[i] = b.form
	}
	slices.Sort(forms)
	n.form = t.formOf(fmt.Sprint(forms))
	slices.SortStableFunc(n.below, func(a, b *node) int {
		baseA, numberA := cutNumber(a.name)
		baseB, numberB := cutNumber(b.name)
		return cmp.Or(cmp.Compare(baseA, baseB), cmp.Compare(numberA, numberB))
	})
}

// cutNumber cuts the number off the end of a name; it is -1 if there is none.
func cutNumber(name string) (base string, number int) {
	base = strings.TrimRight(name, "0123456789")
	number, err := strconv.Atoi(name[len(base):])
	if err != nil {
		return name, -1
	}
	return strings.TrimSuffix(base, "_"), number
}

// byTree matches models whose variables have the same places in them.
func (m *matcher) byTree(rest []ckptfmt.Part) map[string]*ckptfmt.Part {
	forms := make(map[string]int)
	places, tensors := newTree(forms), newTree(forms)
	for _, p := range m.vacant() {
		if strings.HasPrefix(pathOf(p), optimizer+"/") {
			continue // it has numbers alone
		}
		_, variable, _ := cutLast(p.Name)
		path := strings.Split(pathOf(p), "/")
		path = slices.DeleteFunc(path[:len(path)-1], func(s string) bool { return s == vars || isContainer(s) })
		places.add(path, p.Name, variable, p.Shape)
		places.label(path, strings.Split(p.Name, "/"))
	}
	for i := range rest {
		path := strings.Split(rest[i].Name, "/")
		last := len(path) - 1
		tensors.add(path[:last], rest[i].Name, path[last], rest[i].Shape)
	}
	places.sort(places.root)
	tensors.sort(tensors.root)
	pairs := make(map[string]string)
	if same := tensors.root.alike(places.root.form, nil); len(same) == 1 {
		places.root.pair(same[0], pairs)
	}
	found := make(map[string]*ckptfmt.Part, len(pairs))
	for tensor, name := range pairs {
		found[tensor] = m.byName[name]
	}
	return found
}

// alike appends the nodes of a form to a list.
func (n *node) alike(form int, list []*node) []*node {
	if n.form == form {
		return append(list, n)
	}
	for _, b := range n.below {
		list = b.alike(form, list)
	}
	return list
}

// pair records the places of the tensors below a node of the same form.
func (n *node) pair(tensors *node, pairs map[string]string) {
	if n.variable != "" {
		pairs[tensors.variable] = n.variable // and nothing is below it
	}
	places := byForm(n.below)
	for form, list := range byForm(tensors.below) {
		same := orderedAs(places[form], list)
		for i := range same {
			same[i].pair(list[i], pairs)
		}
	}
}

func byForm(list []*node) map[int][]*node {
	groups := make(map[int][]*node)
	for _, n := range list {
		groups[n.form] = append(groups[n.form], n)
	}
	return groups
}

// orderedAs returns places in the order of equal tensors, or nil if that is not known: by their
// names, by the directions of the two layers of a bidirectional one, or by numbers on both sides.
func orderedAs(places, tensors []*node) []*node {
	if len(places) == 1 {
		if !places[0].mayBe(tensors[0]) {
			return nil
		}
		return places
	}
	for _, key := range []func(n *node) string{(*node).given, (*node).segment, (*node).direction} {
		if list := orderedBy(key, places, tensors); list != nil {
			return list
		}
	}
	class := withoutNumber(places[0].name)
	otherClass := func(p *node) bool { return withoutNumber(p.name) != class }
	noNumber := func(t *node) bool { return strings.Trim(t.name, "0123456789") != "" }
	if slices.ContainsFunc(places, otherClass) || slices.ContainsFunc(tensors, noNumber) {
		return nil
	}
	return places
}

// orderedBy returns the places that have the keys of the tensors; nil if those are others, or not
// different.
func orderedBy(key func(n *node) string, places, tensors []*node) []*node {
	byKey := make(map[string]*node)
	for _, p := range places {
		byKey[key(p)] = p
	}
	if len(byKey) < len(tensors) {
		return nil
	}
	list := make([]*node, len(tensors))
	for i, t := range tensors {
		if list[i] = byKey[key(t)]; list[i] == nil {
			return nil
		}
		delete(byKey, key(t))
	}
	return list
}

// mayBe reports whether a place and what has its form may be the same: not two layers that have
// names of their own.
func (n *node) mayBe(tensors *node) bool {
	if !n.isLayer || n.label == "" || strings.Trim(tensors.name, "0123456789") == "" {
		return true
	}
	is := withoutNumber(tensors.direction())
	return is == withoutNumber(n.direction()) || is == withoutNumber(n.segment())
}

func (n *node) segment() string { return n.name }

// given is the name that a program gave an object, or that of its segment.
func (n *node) given() string { return cmp.Or(n.label, n.name) }

// direction is the word by which Bidirectional tells its two layers apart, forward_lstm_1 and
// backward_lstm_1 or forward_layer and backward_layer.
func (n *node) direction() string {
	before, _, _ := strings.Cut(n.given(), "_")
	if before != "forward" && before != "backward" {
		return n.given()
	}
	return before
}
