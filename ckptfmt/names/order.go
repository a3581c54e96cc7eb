package names

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// mangle returns the form that a variable's name has in the names of its slots.
func mangle(full string) string { return strings.ReplaceAll(full, "/", "_") }

// withScopes returns values under the names that Keras 3 has for them where their full
// names lack a scope that those of slots have. In a subclassed model all variables have
// the name of the model alone, sub/kernel; the slot adam/sub_dense_1_kernel_momentum
// shows that it is sub/dense_1/kernel. Layers in lists have no objects at all. slots get
// the names that are left, such as momentum.
func (g *graph) withScopes(values []value, slots map[int]slot) []value {
	full := make(map[int]string, len(values)) // by node
	for _, v := range values {
		full[v.node] = v.full
	}
	scoped := make(map[int]string) // names, by node
	layers := make(map[int]string) // scopes of objects, by node
	for at, s := range slots {
		scope, last := cutScope(full[s.variable])
		_, own, _ := strings.Cut(full[at], "/")
		rest, ok := strings.CutPrefix(own, mangle(scope))
		i := strings.LastIndex(rest, "_"+last+"_")
		if !ok || i <= 0 || last == "" {
			continue
		}
		inner := scope + rest[:i] + "/"
		scoped[s.variable] = inner + last
		s.name = rest[i+len(last)+2:]
		slots[at] = s
		if parent := g.parents[s.variable]; parent >= 0 && !g.inOptimizer(parent) {
			layers[parent] = inner
		}
	}
	out := slices.Clone(values)
	for i, v := range out {
		scope, last := cutScope(v.full)
		inner := layers[max(g.parents[v.node], 0)]
		switch name := scoped[v.node]; {
		case name != "":
			out[i].full = name
		case g.parents[v.node] >= 0 && inner != "" && scope != inner && strings.HasPrefix(inner, scope):
			out[i].full = inner + last // one of the layer that no optimizer trains
		}
	}
	return out
}

func (g *graph) inOptimizer(i int) bool { return g.owner[i] >= 0 || g.optimizers[i] }

// cutScope cuts a name behind its last slash.
func cutScope(name string) (scope, last string) {
	i := strings.LastIndexByte(name, '/') + 1
	return name[:i], name[i:]
}

// statistics are the variables that BatchNormalization has after those that are trained.
var statistics = []string{"moving_mean", "moving_variance"}

// places returns the names of variables by their numbers in their layers, by key:
// my_layer/0. Files of Keras 3 have no others for layers of a program's own. The
// numbers are known where an optimizer trains all that a layer has, since its list has
// them in the order in which the layer made them; the statistics of BatchNormalization
// follow. named are the Keras names.
func (g *graph) places(values []value, named map[string]string) map[string]string {
	at := make(map[int]int) // places in the list of trained variables, by node
	for i, is := range g.optimizers {
		list, ok := g.child(i, "_trainable_variables")
		if !is || !ok {
			continue
		}
		for _, c := range g.children(list) {
			if n, err := strconv.Atoi(c.name); err == nil {
				at[c.node] = n
			}
		}
	}
	layers := make(map[string][]value)
	unknown := make(map[string]bool)
	for _, v := range g.ofModel(values) {
		layer, last := cutScope(named[v.key])
		layers[layer] = append(layers[layer], v)
		if _, ok := at[v.node]; ok {
			continue
		}
		if i := slices.Index(statistics, last); i >= 0 {
			at[v.node] = math.MaxInt - len(statistics) + i
		} else {
			unknown[layer] = true
		}
	}
	out := make(map[string]string)
	for layer, list := range layers {
		if unknown[layer] {
			continue
		}
		slices.SortFunc(list, func(a, b value) int { return cmp.Compare(at[a.node], at[b.node]) })
		for i, v := range list {
			out[v.key] = layer + strconv.Itoa(i)
		}
	}
	return out
}
