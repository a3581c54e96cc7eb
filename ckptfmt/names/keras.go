package names

import (
	"slices"
	"strings"
)

// kerasNames makes the Keras names of all values that can have one.
func (g *graph) kerasNames(values []value, slots map[int]slot, stored map[string]bool) map[string]string {
	scope := g.modelScope(values)
	n := &namer{g: g, slots: slots, public: make(map[string]int), names: make(map[int]string), mangled: make(map[string]string)}
	trim := func(full string) string {
		if rest, ok := strings.CutPrefix(full, scope); ok && scope != "" {
			return rest
		}
		return full
	}
	for _, v := range values {
		n.count(v, trim(v.full))
	}
	for _, v := range values {
		if g.owner[v.node] < 0 || n.g.isTrained(v.node) {
			n.names[v.node] = n.variable(v, trim(v.full))
			n.addMangled(v.full, n.names[v.node])
		}
	}
	named := unique(values, stored, func(v value) string {
		if name, ok := n.names[v.node]; ok {
			return n.withAttribute(v, name)
		}
		return n.withAttribute(v, n.optimizerName(v))
	})
	for _, v := range values { // the path stays for those that share a name
		path, _, ok := strings.Cut(v.key, attributes)
		if g.owner[v.node] >= 0 {
			path = strings.Replace(path, "/_variables/", "/", 1) // files of Keras 3 have its numbers alone
		}
		if ok && named[v.key] == "" && !stored[path] {
			named[v.key] = n.withAttribute(v, path)
		}
	}
	return dropShared(named)
}

// dropShared leaves out the names that several keys have.
func dropShared(named map[string]string) map[string]string {
	count := make(map[string]int, len(named))
	for _, name := range named {
		count[name]++
	}
	for key, name := range named {
		if count[name] > 1 {
			delete(named, key)
		}
	}
	return named
}

// namer makes Keras names.
type namer struct {
	g      *graph
	slots  map[int]slot
	public map[string]int // of each variable name, how many objects are on a path of public names
	all    map[string]int
	names  map[int]string // of variables, by node

	mangled map[string]string // names of variables by what they are in those of slots
}

func (n *namer) addMangled(full, name string) {
	key := mangle(full)
	if _, twice := n.mangled[key]; twice {
		name = "" // a_b/c and a/b_c
	}
	n.mangled[key] = name
}

func (n *namer) count(v value, name string) {
	if n.all == nil {
		n.all = make(map[string]int)
	}
	n.all[name]++
	if !isPrivate(n.g.path(v.node)) {
		n.public[name]++
	}
}

func isPrivate(path []string) bool {
	for _, p := range path {
		if strings.HasPrefix(p, "_") {
			return true
		}
	}
	return false
}

// isTrained reports whether a variable that only an optimizer refers to is one
// of the model.
func (g *graph) isTrained(node int) bool {
	parent := g.parents[node]
	return parent >= 0 && g.local[parent] == trainedList
}

// variable returns the name of a variable of the model.
func (n *namer) variable(v value, name string) string {
	path := n.g.path(v.node)
	if name != "" && (n.all[name] == 1 || n.public[name] == 1 && !isPrivate(path)) {
		return name
	}
	return cleanPath(path)
}

// cleanPath leaves out of a path what only Keras' implementation knows.
func cleanPath(path []string) string {
	var kept []string
	for i, p := range path {
		switch {
		case p == "_functional", p == "_operations", p == "_layers", p == "_self_tracked_trackables", p == "_variables":
			continue
		case i == len(path)-1:
			p = strings.TrimPrefix(p, "_") // Dense keeps its kernel as _kernel
		}
		kept = append(kept, strings.ReplaceAll(p, "/", "_"))
	}
	return strings.Join(kept, "/")
}

// longestSlot bounds the names of slots that are taken apart: those of hostile
// checkpoints may have as many parts as bytes.
const longestSlot = 1 << 10

// optimizerName returns the name of what an optimizer keeps.
func (n *namer) optimizerName(v value) string {
	if s, ok := n.slots[v.node]; ok {
		if of := n.names[s.variable]; of != "" {
			return n.g.optimizerPath(s.optimizer) + "/" + of + "/" + s.name
		}
	}
	o := n.g.owner[v.node]
	if v.full == "" {
		return cleanPath(n.g.path(v.node))
	}
	of, name := n.slotOf(v.full)
	if of != "" {
		return n.g.optimizerPath(o) + "/" + of + "/" + name
	}
	return n.g.optimizerPath(o) + "/" + name
}

// slotOf takes the full name of what an optimizer keeps apart: the name of the variable
// that it is for, "" for none, and its own. Keras 2.11 and later have Adam/m/d1/kernel,
// Keras 3 has adafactor/d1_kernel_velocity.
func (n *namer) slotOf(full string) (of, name string) {
	_, own, _ := strings.Cut(full, "/")
	if slot, variable, ok := strings.Cut(own, "/"); ok && len(own) <= longestSlot {
		if of := n.mangled[mangle(variable)]; of != "" {
			return of, slot
		}
	}
	_, own = cutScope(full)
	for at := strings.LastIndexByte(own, '_'); at > 0 && len(own) <= longestSlot; at = strings.LastIndexByte(own[:at], '_') {
		if of := n.mangled[own[:at]]; of != "" {
			return of, own[at+1:]
		}
	}
	return "", own
}

// optimizerPath returns an optimizer's own name if it has one, because several objects may refer to
// it, or else its path.
func (g *graph) optimizerPath(i int) string {
	name := g.local[i]
	if parent := g.parents[i]; parent >= 0 && g.optimizers[parent] { // in a LossScaleOptimizer
		return g.optimizerPath(parent) + "/" + g.class(i)
	}
	for other, is := range g.optimizers {
		if is && other != i && g.local[other] == name {
			return cleanPath(g.path(i))
		}
	}
	if name == "" {
		return "optimizer" // the root
	}
	return cleanPath([]string{name})
}

// class is the scope of an optimizer's own variables.
func (g *graph) class(i int) string {
	if node, ok := g.child(i, "_iterations"); ok {
		for _, a := range g.nodes[node].GetAttributes() {
			if scope, _, ok := strings.Cut(a.GetFullName(), "/"); ok {
				return scope
			}
		}
	}
	return g.local[i]
}

// withAttribute adds what of an object a value is, unless it is a variable's.
func (n *namer) withAttribute(v value, name string) string {
	if name == "" || v.attribute == variableValue || v.attribute == "" {
		return name
	}
	return name + "/" + v.attribute
}

// slot is what an optimizer keeps for a variable.
type slot struct {
	optimizer, variable int
	name                string
}

// slots finds the slots of all optimizers: those that the graph names, as Keras
// 2 and TensorFlow's optimizers have them, and the lists of Keras 3, which run
// parallel to the list of variables.
func (g *graph) slots() map[int]slot {
	found := make(map[int]slot)
	for i, is := range g.optimizers {
		if !is {
			continue
		}
		for _, s := range g.nodes[i].GetSlotVariables() {
			of, at := int(s.GetOriginalVariableNodeId()), int(s.GetSlotVariableNodeId())
			if of >= 0 && of < len(g.nodes) {
				found[at] = slot{i, of, s.GetSlotName()}
			}
		}
		g.listedSlots(i, found)
	}
	return found
}

func (g *graph) listedSlots(optimizer int, found map[int]slot) {
	list, ok := g.child(optimizer, "_trainable_variables")
	if !ok {
		return
	}
	trained := make(map[string]int)
	for _, c := range g.children(list) {
		trained[c.name] = c.node
	}
	for _, field := range g.children(optimizer) {
		if field.name == "_variables" || field.node == list {
			continue
		}
		for _, c := range g.children(field.node) {
			of, ok := trained[c.name]
			if _, known := found[c.node]; !ok || known || len(g.nodes[c.node].GetAttributes()) != 1 {
				continue
			}
			found[c.node] = slot{optimizer, of, g.slotName(c.node, of, field.name)}
		}
	}
}

// numberedSlots returns the names that files of Keras 3 have for what optimizers
// keep: their places in the list of all variables of the optimizer.
func (g *graph) numberedSlots(stored map[string]bool) map[string]string {
	named := make(map[string]string)
	for i, is := range g.optimizers {
		list, ok := g.child(i, "_variables")
		if !is || !ok {
			continue
		}
		own := make(map[int]bool) // they have names
		for _, name := range []string{"_iterations", "_learning_rate"} {
			if node, ok := g.child(i, name); ok {
				own[node] = true
			}
		}
		for _, c := range g.children(list) {
			a := g.nodes[c.node].GetAttributes()
			if len(a) == 1 && !own[c.node] && stored[a[0].GetCheckpointKey()] {
				named[a[0].GetCheckpointKey()] = g.optimizerPath(i) + "/" + c.name
			}
		}
	}
	return dropShared(named)
}

// slotName returns what Keras 3 puts after the variable's name, or the name of the list if the
// variable's name is another.
func (g *graph) slotName(at, of int, list string) string {
	full := g.nodes[at].GetAttributes()[0].GetFullName()
	if a := g.nodes[of].GetAttributes(); len(a) == 1 {
		mangled := "/" + mangle(a[0].GetFullName()) + "_"
		if _, name, ok := strings.Cut(full, mangled); ok && name != "" {
			return name
		}
	}
	return strings.TrimPrefix(list, "_")
}

// modelScope returns the scope, with its slash, that the variables of the layers
// of a model have in common: the name of the model itself, which Keras 3 gives to
// those of a Sequential. It is before the name of a layer that has variables of its
// own. Where all variables belong to layers in layers, two of them must have it: one
// cannot show that it is not the layer's. A layer that was built before the model, as
// Normalization is when it adapts to data, has none.
func (g *graph) modelScope(values []value) string {
	full := make(map[int]string, len(values))
	for _, v := range values {
		full[v.node] = v.full
	}
	layers := g.layers()
	if len(layers) == 0 {
		return commonScope(g.ofModel(values))
	}
	scope, sure := "", false
	filled := 0 // layers
	for _, layer := range layers {
		found, own := g.scopeOf(layer, full)
		if found == "" {
			continue
		}
		if scope != "" && found != scope || found == "/" {
			return ""
		}
		scope, sure = found, sure || own
		filled++
	}
	if filled < 2 && !sure {
		return ""
	}
	return scope
}

// scopeOf returns the scope before the name of a layer, by the variables that it has
// itself; where it has none, or they disagree, the first scope of those below it.
func (g *graph) scopeOf(layer int, full map[int]string) (scope string, own bool) {
	for _, c := range g.children(layer) {
		name, ok := full[c.node]
		if !ok || g.optimizers[c.node] {
			continue
		}
		words := strings.Split(name, "/")
		const scoped = 3 // words: scope, layer, variable
		found := ""
		if len(words) == scoped {
			found = words[0] + "/"
		}
		if own && found != scope || len(words) > scoped {
			return g.scopeBelow(layer, full), false
		}
		scope, own = found, true
	}
	if !own {
		scope = g.scopeBelow(layer, full)
	}
	return scope, own
}

// ofModel returns the values of a Keras model's variables, without those that only
// optimizers and tf.train.Checkpoint have.
func (g *graph) ofModel(values []value) []value {
	if !g.isKeras() {
		return values
	}
	return slices.DeleteFunc(slices.Clone(values), func(v value) bool {
		return g.owner[v.node] >= 0 && !g.isTrained(v.node) || !strings.Contains(v.full, "/")
	})
}

// commonScope is modelScope where there is no list of layers, as in an export of a Keras
// model and in a subclassed one: the common scope is the model's where there are several
// in it that a wrapper of one layer, such as Bidirectional, does not have.
func commonScope(values []value) string {
	scope := ""
	within := make(map[string]bool)
	for _, v := range values {
		first, rest, _ := strings.Cut(v.full, "/")
		second, _, deep := strings.Cut(rest, "/")
		if scope != "" && scope != first+"/" || strings.HasPrefix(second, "forward_") || strings.HasPrefix(second, "backward_") {
			return ""
		}
		scope = first + "/"
		if deep { // else it is the model's own
			within[second] = true
		}
	}
	if len(within) < 2 {
		return ""
	}
	return scope
}

// scopeBelow returns the first scope of the variables below an object, "" where
// there are none, and "/" where they differ or would have no scope left.
func (g *graph) scopeBelow(root int, full map[int]string) string {
	seen := map[int]bool{root: true}
	todo := []int{root}
	scope := ""
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if name, ok := full[i]; ok {
			first, rest, _ := strings.Cut(name, "/")
			if !strings.Contains(rest, "/") || scope != "" && scope != first+"/" {
				return "/"
			}
			scope = first + "/"
		}
		for _, c := range g.children(i) {
			if !seen[c.node] && !g.optimizers[c.node] {
				seen[c.node] = true
				todo = append(todo, c.node)
			}
		}
	}
	return scope
}
