package keras

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
)

// matcher finds the places of tensors in a file of Keras. Each name that the file has
// for a variable will do; then what only one variable and one tensor can be.
type matcher struct {
	like    *Reader
	byName  map[string]*ckptfmt.Part
	missing map[string]bool   // names of the variables that have no tensor yet
	taken   map[string]string // paths of the variables of tensors, by the names of these
}

// Places returns the paths in a file of the variables that tensors of the same model are, by
// the names of the tensors.
func (r *Reader) Places(tensors []ckptfmt.Part) map[string]string {
	m := newMatcher(r)
	_, _, _ = m.match(tensors) // of one that does not match nothing is known
	return m.taken
}

func newMatcher(like *Reader) *matcher {
	m := &matcher{like: like, byName: make(map[string]*ckptfmt.Part), missing: make(map[string]bool), taken: make(map[string]string)}
	for i := range like.Parts() {
		p := &like.Parts()[i]
		m.missing[p.Name] = true
		// If the class of a layer is not known, its variables have numbers.
		layer, _, _ := cutLast(p.Name)
		_, number, _ := cutLast(pathOf(p))
		if alias := layer + "/" + number; m.byName[alias] == nil {
			m.byName[alias] = p
		}
	}
	for i := range like.Parts() {
		p := &like.Parts()[i]
		m.byName[p.Name], m.byName[pathOf(p)] = p, p
	}
	return m
}

// match gives tensors the paths of their places, and returns the names of those that
// have none.
func (m *matcher) match(parts []ckptfmt.Part) (placed []ckptfmt.Part, unknown []string, err error) {
	called := m.namesHere(parts)
	put := func(p ckptfmt.Part, at *ckptfmt.Part) error {
		name := called.own(p.Name)
		switch {
		case !m.missing[at.Name]:
			return fmt.Errorf("%w: %w: %q, %s is another tensor of that place", ErrModel, ckptfmt.ErrExists, at.Name, name)
		case !slices.Equal(at.Shape, p.Shape):
			return fmt.Errorf("%w: %q has shape %v, the model's %s has %v", ErrModel, name, p.Shape, at.Name, at.Shape)
		}
		delete(m.missing, at.Name)
		m.taken[name] = pathOf(at)
		p.Name, p.Stored = pathOf(at), ""
		placed = append(placed, p)
		return nil
	}
	var rest []ckptfmt.Part
	for _, p := range parts {
		switch at, known := called.place(&p); {
		case at != nil:
			if err := put(p, at); err != nil {
				return nil, nil, err
			}
		case known:
			p.Name = called.here[p.Name]
			rest = append(rest, p)
		default:
			unknown = append(unknown, p.Name)
		}
	}
	for _, find := range m.finders() {
		found := find(rest)
		left := rest
		rest = nil
		for _, p := range left {
			if at := found[p.Name]; at == nil || !slices.Equal(at.Shape, p.Shape) {
				rest = append(rest, p)
			} else if err := put(p, at); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, p := range rest {
		unknown = append(unknown, called.own(p.Name))
	}
	return append(placed, m.twins(placed)...), unknown, nil
}

// finders find the places of tensors that have none of the names, the surest first.
func (m *matcher) finders() []func([]ckptfmt.Part) map[string]*ckptfmt.Part {
	list := []func([]ckptfmt.Part) map[string]*ckptfmt.Part{m.byOptimizer}
	for n := mostSegments; n > 1; n-- {
		list = append(list, func(rest []ckptfmt.Part) map[string]*ckptfmt.Part { return m.byTail(rest, n) })
	}
	list = append(list, m.byWords, m.byClass, m.byTree)
	if !m.like.isUnnamed {
		return list
	}
	for i, find := range list {
		list[i] = func(rest []ckptfmt.Part) map[string]*ckptfmt.Part {
			return find(slices.DeleteFunc(slices.Clone(rest), func(p ckptfmt.Part) bool { return HasClass(p.Name) }))
		}
	}
	return append(list, m.byShape)
}

// twins returns copies of tensors for the places that [Reader.Twins] has, either way: a
// checkpoint has those of the inner optimizer, a file of Keras 2 those of the outer one.
func (m *matcher) twins(placed []ckptfmt.Part) []ckptfmt.Part {
	given := make(map[string]ckptfmt.Part, len(placed))
	for _, p := range placed {
		given[p.Name] = p
	}
	var list []ckptfmt.Part
	also := func(from, to string) {
		p, ok := given[from]
		if at := m.byName[to]; ok && m.missing[at.Name] {
			delete(m.missing, at.Name)
			p.Name = to
			list = append(list, p)
		}
	}
	for twin, first := range m.like.Twins() {
		also(first, twin)
		also(twin, first)
	}
	return list
}

// Twins returns the paths at which a LossScaleOptimizer has the variables of the optimizer in
// it once more, which are the last in its own list, with the paths of the first ones.
func (r *Reader) Twins() map[string]string {
	own, inner := make(map[int]*ckptfmt.Part), make(map[int]*ckptfmt.Part)
	for i := range r.Parts() {
		group, number, _ := cutLast(pathOf(&r.Parts()[i]))
		n, err := strconv.Atoi(number)
		switch {
		case err != nil:
		case group == optimizer+"/"+vars:
			own[n] = &r.Parts()[i]
		case group == optimizer+"/"+innerOptimizer+"/"+vars:
			inner[n] = &r.Parts()[i]
		}
	}
	twins := make(map[string]string, len(inner))
	for n, first := range inner {
		if twin := own[len(own)-len(inner)+n]; twin != nil && slices.Equal(twin.Shape, first.Shape) {
			twins[pathOf(twin)] = pathOf(first)
		}
	}
	return twins
}

// vacant are the variables that have no tensor yet, in the order of the file.
func (m *matcher) vacant() []*ckptfmt.Part {
	var list []*ckptfmt.Part
	for i := range m.like.Parts() {
		if p := &m.like.Parts()[i]; m.missing[p.Name] {
			list = append(list, p)
		}
	}
	return list
}

// byOptimizer matches the optimizer's variables in a Keras 2 file, which are in Keras 3's order, if
// their number and shapes are the same.
func (m *matcher) byOptimizer(rest []ckptfmt.Part) map[string]*ckptfmt.Part {
	places := make(map[int]*ckptfmt.Part)
	for _, p := range m.vacant() {
		group, number, _ := cutLast(pathOf(p))
		if n, err := strconv.Atoi(number); err == nil && group == optimizer+"/"+vars {
			places[n] = p
		}
	}
	found := make(map[string]*ckptfmt.Part)
	n := 0
	for _, p := range rest {
		if !strings.HasPrefix(p.Stored, legacyOptimizer+"/") {
			continue
		}
		at := places[n]
		if n++; at == nil || !slices.Equal(at.Shape, p.Shape) {
			return nil
		}
		found[p.Name] = at
	}
	if n != len(places) {
		return nil
	}
	return found
}

// mostSegments is how much of the ends of two names is compared.
const mostSegments = 6

// byTail matches by the last n segments of the names, if these are unique. Two segments are the
// layer and the variable: Keras 2 files do not have the scopes of a layer, and Keras may have put a
// model into another one.
func (m *matcher) byTail(rest []ckptfmt.Part, n int) map[string]*ckptfmt.Part {
	places, tensors := make(map[string][]*ckptfmt.Part), make(map[string][]string)
	for _, p := range m.vacant() {
		if end := tail(p.Name, n); end != "" {
			places[end] = append(places[end], p)
		}
	}
	for _, p := range rest {
		if end := tail(p.Name, n); end != "" {
			tensors[end] = append(tensors[end], p.Name)
		}
	}
	return onlyPairs(places, tensors)
}

// byWords matches names that differ in slashes and underscores, or in what precedes them: a
// checkpoint may not show how layers in a list of layers are nested.
func (m *matcher) byWords(rest []ckptfmt.Part) map[string]*ckptfmt.Part {
	words := func(name string) string { return strings.ReplaceAll(name, "/", "_") }
	places, tensors := make(map[string][]*ckptfmt.Part), make(map[string][]string)
	for _, p := range m.vacant() {
		places[words(p.Name)] = append(places[words(p.Name)], p)
	}
	for _, p := range rest {
		end, ok := words(p.Name), len(p.Name) <= longestName
		for ok && places[end] == nil {
			_, end, ok = strings.Cut(end, "_")
		}
		tensors[end] = append(tensors[end], p.Name)
	}
	return onlyPairs(places, tensors)
}

// onlyPairs returns the places of tensors for the keys that only one place and only one tensor
// have.
func onlyPairs(places map[string][]*ckptfmt.Part, tensors map[string][]string) map[string]*ckptfmt.Part {
	found := make(map[string]*ckptfmt.Part)
	for key, list := range places {
		if same := tensors[key]; len(list) == 1 && len(same) == 1 {
			found[same[0]] = list[0]
		}
	}
	return found
}

// tail returns the last n segments of a name, or "" if it has fewer.
func tail(name string, n int) string {
	segments := strings.Split(name, "/")
	if len(segments) < n {
		return ""
	}
	return strings.Join(segments[len(segments)-n:], "/")
}

// byClass matches the tensors of a layer whose variables have numbers: they are in
// the order that the class of the layer has.
func (m *matcher) byClass(rest []ckptfmt.Part) map[string]*ckptfmt.Part {
	places := make(map[string][]*ckptfmt.Part)
	for _, p := range m.vacant() {
		layer, _, _ := cutLast(p.Name)
		places[layer] = append(places[layer], p)
	}
	tensors := make(map[string][]string) // names of variables, by layer
	for _, p := range rest {
		layer, variable, _ := cutLast(p.Name)
		tensors[layer] = append(tensors[layer], variable)
	}
	found := make(map[string]*ckptfmt.Part)
	for layer, list := range places {
		sorted := sortedByClass(classOfPath(pathOf(list[0])), tensors[layer])
		if len(sorted) != len(list) {
			continue
		}
		for i, variable := range sorted {
			found[layer+"/"+variable] = list[i]
		}
	}
	return found
}

// classOfPath is the class of the layer whose variable is at a path.
func classOfPath(path string) string {
	group, _, _ := cutLast(path)
	object, _, _ := cutLast(group)
	_, segment, _ := cutLast(object)
	return withoutNumber(segment)
}

// sortedByClass sorts the names of variables as their class does; nil if one of them
// does not belong to the class.
func sortedByClass(class string, variables []string) []string {
	for _, s := range specs(class) {
		var sorted []string
		for _, v := range s.list {
			if slices.Contains(variables, v.name) {
				sorted = append(sorted, v.name)
			}
		}
		if len(sorted) == len(variables) {
			return sorted
		}
	}
	return nil
}
