package keras

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	slabs "github.com/trainerd/trainerd/ckptfmt/internal/slab"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Names in Keras' files.
const (
	vars         = "vars"
	layers       = "layers"
	oldLayers    = "_layer_checkpoint_dependencies" // of Keras 2.13
	modelWeights = "model_weights"
	optimizer    = "optimizer"

	innerOptimizer  = "inner_optimizer" // of LossScaleOptimizer
	legacyOptimizer = "optimizer_weights"

	nameKey = "name" // of the attribute with that of a layer
)

// nameParts gives the tensors the names that people use. config may be nil.
func (r *Reader) nameParts(config map[string]any) {
	for _, key := range []string{"keras_version", "backend"} {
		if text := textIn(r.weights, "", key); text != "" {
			r.metadata[key] = text
		}
	}
	isLegacy := r.isLegacy()
	if !isLegacy && r.archive == nil && len(r.rest) == 0 && !r.hasWeights() {
		return // a file of anyone, which may have very many tensors
	}
	r.tensors = r.allTensors()
	switch {
	case isLegacy:
		r.layout = Legacy
		names, ofOptimizer := r.legacyNames()
		r.sortOptimizer(ofOptimizer)
		list := make([]string, len(r.tensors))
		for i := range list {
			list[i] = names[r.tensors[i].path()]
		}
		r.rename(list, false)
	case r.hasWeights():
		r.layout = Weights
		r.isUnnamed = config == nil && !r.hasNames()
		r.nameWeights(config)
	}
}

// allTensors returns the datasets.
func (r *Reader) allTensors() []tensor {
	list := make([]tensor, 0, r.weights.Len())
	for _, h := range append([]*hdf5.Reader{r.weights}, r.rest...) {
		for i := range h.Len() {
			list = append(list, tensor{in: h, at: i})
		}
	}
	return list
}

// checkedOpen verifies the archive's member before the first tensor is read.
func (r *Reader) checkedOpen(open func() (io.ReadCloser, error)) func() (io.ReadCloser, error) {
	if open == nil || r.archive == nil {
		return open
	}
	return func() (io.ReadCloser, error) {
		for _, f := range r.archive.File {
			if f.Name != weightsName {
				continue
			}
			if err := r.checkSums(f); err != nil {
				return nil, err
			}
		}
		return open()
	}
}

func (r *Reader) hasWeights() bool {
	for _, h := range append([]*hdf5.Reader{r.weights}, r.rest...) {
		for i := range h.Len() {
			if isWeight(h.Name(i)) {
				return true
			}
		}
	}
	return false
}

func (r *Reader) hasNames() bool {
	for _, h := range append([]*hdf5.Reader{r.weights}, r.rest...) {
		texts := h.Texts()
		for path := range h.Paths() {
			if len(texts.Find(path, nameKey)) > 0 {
				return true
			}
		}
	}
	return false
}

// IsUnnamed reports whether a file in the form of Keras 3 does not name its layers, as written by
// Keras 2.13 and later versions of Keras 2: in it dense_1 is the second layer of the class Dense,
// whatever the program called it.
func (r *Reader) IsUnnamed() bool { return r.isUnnamed }

// isWeight reports whether a path is a variable of Keras 3.
func isWeight(path string) bool {
	return strings.HasPrefix(path, vars+"/") || strings.Contains(path, "/"+vars+"/")
}

// names finds the names of variables of Keras 3.
type names struct {
	r      *Reader
	attrs  []*hdf5.Texts              // of each file
	parted map[string][]tfpb.DataType // types of variables, by the path of vars, which are in several places of the list
	root   *layer
	types  []tfpb.DataType   // of another group
	known  map[string]string // names of objects that others are in, by path
	lists  map[string][]string
	room   []byte
	texts  *slabs.Texts // names
	last   group
	// named is set in files that name every layer: a group without a name is then a
	// list or a dict, which Keras' own names do not have. withLists keeps these.
	named, withLists bool
}

// group is one of variables, which as a rule are next to each other.
type group struct {
	path      string
	isOne     bool
	name      string // of the object
	object    string
	variables []string
}

func (r *Reader) newNames(config map[string]any) *names {
	n := &names{r: r, parted: make(map[string][]tfpb.DataType), root: parseLayer(config)}
	n.noteTypes()
	n = n.apart()
	n.named = n.given("") != ""
	return n
}

// apart returns one that finds the same names, for another goroutine.
func (n *names) apart() *names {
	a := &names{r: n.r, parted: n.parted, root: n.root, named: n.named, withLists: n.withLists}
	a.texts, a.known, a.lists = new(slabs.Texts), make(map[string]string), make(map[string][]string)
	for _, h := range append([]*hdf5.Reader{n.r.weights}, n.r.rest...) {
		a.attrs = append(a.attrs, h.Texts())
	}
	return a
}

// of returns the name of the variable at a place.
func (n *names) of(at int) string {
	t := &n.r.tensors[at]
	before, key, ok := cutLast(t.path())
	if !ok {
		return ""
	}
	if before != n.last.path {
		n.last = n.group(before, at)
	}
	g := &n.last
	if !g.isOne {
		return ""
	}
	variable := key
	if i, err := strconv.Atoi(key); err == nil {
		if variable = g.variable(i); variable == learningRate && !t.isScalar() {
			variable = key // optimizers of Keras 2 have a slot there
		}
	}
	if g.name == "" {
		return variable
	}
	n.room = append(append(append(n.room[:0], g.name...), '/'), variable...)
	return n.texts.Keep(n.room)
}

// group returns what the names of the variables at a path are made of; at is the index of one of
// them in the list.
func (n *names) group(path string, at int) group {
	object, last, _ := cutLast(path) // vars, too, is one, of the model itself
	if last != vars {
		return group{path: path}
	}
	return group{path, true, n.object(object), object, n.variables(object, n.typesOf(path, at))}
}

func cutLast(path string) (before, last string, ok bool) {
	at := strings.LastIndexByte(path, '/')
	if at < 0 {
		return "", path, false
	}
	return path[:at], path[at+1:], true
}

// object returns the name of the object at a path: the names of the layers that it is in, and its
// own, without the groups "layers".
func (n *names) object(path string) string {
	if path == "" || path == optimizer { // the name of an optimizer is its class, or has a number after it
		return path
	}
	above, segment, _ := cutLast(path)
	name := segment
	if given := n.given(path); given != "" {
		name = given
	} else if isContainer(segment) {
		return n.above(above)
	} else if l := n.layer(path); l != nil && l.name != "" {
		name = l.name
	} else if n.named && !n.withLists {
		return n.above(above)
	} else if !n.named {
		name = n.part(above, segment)
	}
	if before := n.above(above); before != "" {
		return before + "/" + name
	}
	return name
}

// parts are the names of the parts of attention layers in files of Keras 2, by their attributes.
var parts = map[string]string{
	"_query_dense": "query", "_key_dense": "key", "_value_dense": "value", "_output_dense": "attention_output",
}

// part is the name of a part of a layer in a file of Keras 2, which has none.
func (n *names) part(above, segment string) string {
	if segment != "cell" {
		return cmp.Or(parts[segment], segment)
	}
	_, class, _ := cutLast(above)
	class = withoutNumber(class)
	if l := n.layer(above); l != nil {
		class = l.class
	}
	switch class {
	case "lstm", "gru", "simple_rnn":
		return class + "_cell"
	}
	return segment
}

// above is object of a path that others are below.
func (n *names) above(path string) string {
	name, ok := n.known[path]
	if !ok {
		name = n.object(path)
		n.known[path] = name
	}
	return name
}

func isContainer(segment string) bool { return segment == layers || segment == oldLayers }

// given is the name in the attribute of a layer's variables.
func (n *names) given(path string) string {
	if path != "" {
		path += "/"
	}
	path += vars
	for _, texts := range n.attrs {
		if name := texts.Find(path, nameKey); len(name) > 0 {
			return string(name)
		}
	}
	return ""
}

func givenIn(h *hdf5.Reader, path string) string { return textIn(h, path, nameKey) }

// textIn returns an attribute that is a single text, or "" if there is none.
func textIn(h *hdf5.Reader, path, name string) string {
	if list, err := h.Attr(path, name); err == nil && len(list) == 1 {
		return list[0]
	}
	return ""
}

// layer returns what config.json has at a path, or nil.
func (n *names) layer(path string) *layer {
	if n.root == nil || path == "" {
		return n.root
	}
	l := n.root
	for segment := range strings.SplitSeq(path, "/") {
		if isContainer(segment) {
			continue
		}
		if l = l.child(segment); l == nil {
			return nil
		}
	}
	return l
}

// variables returns the names of an object's variables, given their types, or nil if they are
// uncertain.
func (n *names) variables(object string, types []tfpb.DataType) []string {
	_, segment, _ := cutLast(object)
	if l := n.layer(object); l != nil && object != "" {
		if list := variablesOf(l.class, l.config, types); len(list) > 0 {
			return list
		}
		return variablesOf(withoutNumber(segment), l.config, types)
	}
	if list := n.listOf(withoutNumber(segment), types); len(list) > 0 {
		return list
	}
	return n.listOf(withoutNumber(n.given(object)), types)
}

// listOf is variablesOf of a layer without a config. There may be very many.
func (n *names) listOf(class string, types []tfpb.DataType) []string {
	key := make([]byte, 0, 64)
	for _, d := range types {
		key = append(key, byte(d)) // there are no 256
	}
	key = append(key, class...)
	list, ok := n.lists[string(key)]
	if !ok {
		list = variablesOf(class, nil, types)
		n.lists[string(key)] = list
	}
	return list
}

// variable returns the name of the variable of that number.
func (g *group) variable(number int) string {
	if g.object == optimizer || strings.HasPrefix(g.object, optimizer+"/") { // or the one in a LossScaleOptimizer
		return optimizerVariable(number)
	}
	if number >= 0 && number < len(g.variables) {
		return g.variables[number]
	}
	return strconv.Itoa(number)
}

const learningRate = "learning_rate"

// optimizerVariable names the variables that every optimizer has first.
func optimizerVariable(number int) string {
	switch number {
	case 0:
		return "iteration"
	case 1:
		return learningRate
	}
	return strconv.Itoa(number)
}

// withoutNumber removes the number that distinguishes layers of one class: "dense_2".
func withoutNumber(segment string) string {
	before, number, ok := strings.Cut(segment[max(strings.LastIndexByte(segment, '_'), 0):], "_")
	if _, err := strconv.Atoi(number); !ok || err != nil || before != "" {
		return segment
	}
	return segment[:strings.LastIndexByte(segment, '_')]
}

// isLegacy reports whether a file has the layout of Keras 2.
func (r *Reader) isLegacy() bool {
	for group := range r.weights.Paths() {
		if group != "" && group != modelWeights {
			continue
		}
		if _, err := r.weights.Attr(group, "layer_names"); err == nil {
			return true
		}
		if _, err := r.weights.Attr(group, "layer_names0"); err == nil {
			return true
		}
	}
	return false
}

// IsOptimizer reports whether a tensor of a Keras file is a variable of the
// optimizer.
func IsOptimizer(p *ckptfmt.Part) bool {
	path := pathOf(p)
	return strings.HasPrefix(path, optimizer+"/") || strings.HasPrefix(path, legacyOptimizer+"/")
}

// sortOptimizer puts the variables of an optimizer into the order of its list, which is the order
// of their numbers in Keras 3 files.
func (r *Reader) sortOptimizer(paths []string) {
	at := make(map[string]int, len(paths))
	for i, path := range paths {
		at[path] = i + 1 // others are before it
	}
	slices.SortStableFunc(r.tensors, func(a, b tensor) int { return cmp.Compare(at[a.path()], at[b.path()]) })
}

// legacyNames names variables by the attributes of their layers, and also returns the paths of the
// optimizer's variables, in order.
func (r *Reader) legacyNames() (names map[string]string, ofOptimizer []string) {
	names = make(map[string]string)
	for group := range r.weights.Paths() {
		list := r.manyAttr(group, "weight_names")
		_, layer, _ := cutLast(group)
		for _, weight := range list {
			names[group+"/"+weight] = legacyName(layer, weight)
			if group == legacyOptimizer {
				ofOptimizer = append(ofOptimizer, group+"/"+weight)
			}
		}
	}
	return names, ofOptimizer
}

// manyAttr reads a list that may be cut into several attributes, NAME0, NAME1,
// because one is at most 64 KiB.
func (r *Reader) manyAttr(group, name string) []string {
	list, err := r.weights.Attr(group, name)
	if err == nil {
		return list
	}
	for i := 0; ; i++ {
		more, err := r.weights.Attr(group, fmt.Sprintf("%s%d", name, i))
		if err != nil {
			return list // that was the last one, or it is not a list of names
		}
		list = append(list, more...)
	}
}

// legacyName is the name of a variable: it begins with that of its layer.
func legacyName(layer, weight string) string {
	name := strings.TrimSuffix(weight, ":0")
	if layer == legacyOptimizer {
		return name
	}
	segments := strings.Split(name, "/")
	if i := slices.Index(segments, layer); i >= 0 {
		return strings.Join(segments[i:], "/")
	}
	return layer + "/" + name
}
