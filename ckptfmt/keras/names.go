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
)

// nameParts gives the tensors the names that people use. config may be nil.
func (r *Reader) nameParts(config map[string]any) error {
	for _, key := range []string{"keras_version", "backend"} {
		if list, err := r.weights.Attr("", key); err == nil && len(list) == 1 {
			r.metadata[key] = list[0]
		}
	}
	var name func(path string) string
	isLegacy := r.isLegacy()
	if !isLegacy && r.archive == nil && len(r.rest) == 0 && !r.hasWeights() {
		return nil // a file of anyone, which may have very many tensors
	}
	r.parts = r.allParts()
	switch {
	case isLegacy:
		r.layout = Legacy
		names, ofOptimizer, err := r.legacyNames()
		if err != nil {
			return err
		}
		r.sortOptimizer(ofOptimizer)
		name = func(path string) string { return names[path] }
	case r.hasWeights():
		r.layout = Weights
		name = r.newNames(config).unique()
	default:
		return nil
	}
	r.rename(name)
	return nil
}

// allParts returns the datasets.
func (r *Reader) allParts() []ckptfmt.Part {
	parts := r.weights.Parts()
	for _, h := range r.rest {
		parts = append(parts, h.Parts()...)
	}
	for i := range parts {
		parts[i].Open = r.checkedOpen(parts[i].Open)
	}
	return parts
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

// isWeight reports whether a path is that of a variable of Keras 3.
func isWeight(path string) bool {
	return strings.HasPrefix(path, vars+"/") || strings.Contains(path, "/"+vars+"/")
}

// rename gives each tensor its name, unless another would have the same one.
func (r *Reader) rename(name func(path string) string) {
	names := make([]string, len(r.parts))
	count := make(map[string]int)
	for i, p := range r.parts {
		names[i] = name(p.Name)
		count[names[i]]++
		count[p.Name]++
	}
	for i := range r.parts {
		p := &r.parts[i]
		if names[i] != "" && names[i] != p.Name && count[names[i]] == 1 {
			p.Name, p.Stored = names[i], p.Name
		}
	}
}

// names finds the names of variables of Keras 3.
type names struct {
	r     *Reader
	types map[string][]tfpb.DataType // of variables, by the path of vars
	root  *layer
	known map[string]string // names of objects, by path
	// named is set in files that name every layer: a group without a name is then a
	// list or a dict, which Keras' own names do not have. lists keeps these.
	named, lists bool
}

func (r *Reader) newNames(config map[string]any) *names {
	n := &names{r: r, types: make(map[string][]tfpb.DataType), root: parseLayer(config), known: make(map[string]string)}
	for _, p := range r.parts {
		if at := strings.LastIndexByte(p.Name, '/'); at >= 0 {
			n.types[p.Name[:at]] = append(n.types[p.Name[:at]], p.DType)
		}
	}
	n.named = n.given("") != ""
	return n
}

// unique returns the names of paths, without lists of layers where that tells one
// variable from all others.
func (n *names) unique() func(path string) string {
	long := *n
	long.lists, long.known = true, make(map[string]string)
	count := make(map[string]int, len(n.r.parts))
	for _, p := range n.r.parts {
		count[n.of(p.Name)]++
	}
	return func(path string) string {
		if name := n.of(path); count[name] == 1 {
			return name
		}
		return long.of(path)
	}
}

// of returns the name of the variable at a path.
func (n *names) of(path string) string {
	group, key, ok := cutLast(path)
	object, last, _ := cutLast(group)
	if group == vars {
		object, last = "", vars
	}
	if !ok || last != vars {
		return ""
	}
	name, ok := n.known[object]
	if !ok {
		name = n.object(object)
		n.known[object] = name
	}
	variable := key
	if i, err := strconv.Atoi(key); err == nil {
		variable = n.variable(object, i, n.types[group])
	}
	if name == "" {
		return variable
	}
	return name + "/" + variable
}

func cutLast(path string) (before, last string, ok bool) {
	at := strings.LastIndexByte(path, '/')
	if at < 0 {
		return "", path, false
	}
	return path[:at], path[at+1:], true
}

// object returns the name of the object at a path: those of the layers that it is
// in, and its own. The groups "layers" are left out.
func (n *names) object(path string) string {
	if path == "" || path == optimizer { // the name of an optimizer is its class, or has a number after it
		return path
	}
	above, segment, _ := cutLast(path)
	name := segment
	if given := n.given(path); given != "" {
		name = given
	} else if isContainer(segment) {
		return n.object(above)
	} else if l := n.layer(path); l != nil && l.name != "" {
		name = l.name
	} else if n.named && !n.lists {
		return n.object(above)
	}
	if before := n.object(above); before != "" {
		return before + "/" + name
	}
	return name
}

func isContainer(segment string) bool { return segment == layers || segment == oldLayers }

// given is the name in the attribute of a layer's variables.
func (n *names) given(path string) string {
	for _, h := range append([]*hdf5.Reader{n.r.weights}, n.r.rest...) {
		if list, err := h.Attr(strings.TrimPrefix(path+"/"+vars, "/"), "name"); err == nil && len(list) == 1 {
			return list[0]
		}
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

// variable returns the name of the variable of that number, of those of such types
// that the object has.
func (n *names) variable(object string, number int, types []tfpb.DataType) string {
	_, segment, _ := cutLast(object)
	classes := []string{withoutNumber(segment), withoutNumber(n.given(object))}
	var config map[string]any
	if l := n.layer(object); l != nil && object != "" {
		classes, config = []string{l.class, classes[0]}, l.config
	}
	if object == optimizer || strings.HasPrefix(object, optimizer+"/") { // or the one in a LossScaleOptimizer
		return optimizerVariable(number)
	}
	for _, class := range classes {
		if list := variablesOf(class, config, types); number < len(list) {
			return list[number]
		}
	}
	return strconv.Itoa(number)
}

// optimizerVariable names the variables that every optimizer has first.
func optimizerVariable(number int) string {
	switch number {
	case 0:
		return "iteration"
	case 1:
		return "learning_rate"
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
	for _, group := range []string{"", modelWeights} {
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

// sortOptimizer gives the variables of an optimizer the order of its list, which is
// that of their numbers in files of Keras 3.
func (r *Reader) sortOptimizer(paths []string) {
	at := make(map[string]int, len(paths))
	for i, path := range paths {
		at[path] = i + 1
	}
	slices.SortStableFunc(r.parts, func(a, b ckptfmt.Part) int { return cmp.Compare(at[a.Name], at[b.Name]) })
}

// legacyNames names variables by the attributes of their layers, and has the paths of
// those of the optimizer, in order.
func (r *Reader) legacyNames() (names map[string]string, ofOptimizer []string, err error) {
	names = make(map[string]string)
	for group := range r.weights.Paths() {
		list, err := r.manyAttr(group, "weight_names")
		if err != nil {
			return nil, nil, err
		}
		_, layer, _ := cutLast(group)
		for _, weight := range list {
			names[group+"/"+weight] = legacyName(layer, weight)
			if group == legacyOptimizer {
				ofOptimizer = append(ofOptimizer, group+"/"+weight)
			}
		}
	}
	return names, ofOptimizer, nil
}

// manyAttr reads a list that may be cut into several attributes, NAME0, NAME1,
// because one is at most 64 KiB.
func (r *Reader) manyAttr(group, name string) ([]string, error) {
	list, err := r.weights.Attr(group, name)
	if err == nil {
		return list, nil
	}
	for i := 0; ; i++ {
		more, err := r.weights.Attr(group, fmt.Sprintf("%s%d", name, i))
		if err != nil {
			return list, nil // that was the last one, or it is not a list of names
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
