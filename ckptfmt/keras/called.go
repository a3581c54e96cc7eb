package keras

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/numbered"
)

// called is what tensors of another file are called in this one.
type called struct {
	m        *matcher
	here     map[string]string // by their own names; those that mean another layer here are left out
	ownNames map[string]string // by the names here
	byNames  bool              // the names are those of all variables: paths may be in another order
	isMoved  bool              // they are: what an optimizer has by numbers is that of other variables
}

func (m *matcher) namesHere(parts []ckptfmt.Part) *called {
	c := &called{m: m, here: make(map[string]string, len(parts)), ownNames: make(map[string]string, len(parts))}
	var own, here []string
	for i := range parts {
		if name := parts[i].Name; isWeight(name) {
			c.here[name] = name
		} else {
			own = append(own, name)
		}
	}
	for i := range m.like.Parts() {
		here = append(here, m.like.Parts()[i].Name)
	}
	named := make(map[string]bool, len(own))
	for _, name := range own {
		named[name] = true
	}
	same := numbered.Compare(own, here, IsClass)
	for _, name := range own {
		if at, known := same.Same(modern(name, named)); known {
			c.here[name], c.ownNames[at] = at, name
		}
	}
	c.byNames, c.isMoved = c.areComplete(parts)
	return c
}

// modern is what Keras 3 calls a variable: the kernel of a depthwise convolution had the name in
// Keras 2 that one of the two kernels of a separable one has.
func modern(name string, named map[string]bool) string {
	layer, is := strings.CutSuffix(name, "/depthwise_kernel")
	if !is || named[layer+"/pointwise_kernel"] {
		return name
	}
	return layer + "/kernel"
}

// own is a tensor's own name.
func (c *called) own(here string) string { return cmp.Or(c.ownNames[here], here) }

// place returns the variable that a tensor is by its path or its name, and otherwise whether
// its name may say more.
func (c *called) place(p *ckptfmt.Part) (at *ckptfmt.Part, known bool) {
	name, known := c.here[p.Name]
	var byPath *ckptfmt.Part
	if p.Stored != "" || isWeight(p.Name) {
		byPath = c.m.byName[pathOf(p)]
	}
	switch {
	case c.isMoved && isNumberOfOptimizer(pathOf(p)):
		return nil, false
	case isWeight(pathOf(p)) && byPath != nil && (!c.byNames || isOfOptimizer(pathOf(p))):
		return byPath, true // the surest
	case !known || c.m.like.isUnnamed && HasClass(p.Name):
		return nil, known
	}
	return cmp.Or(c.m.byName[name], byPath), true
}

// areComplete reports whether the model's variables and the tensors have the same names, with the
// same shapes, and whether any of the tensors is at another path.
func (c *called) areComplete(parts []ckptfmt.Part) (complete, moved bool) {
	if c.m.like.isUnnamed {
		return false, false
	}
	found := make(map[string]bool)
	for i := range parts {
		p := &parts[i]
		at := c.m.byName[c.here[p.Name]]
		if at == nil || !isOfLayer(at) {
			continue
		}
		if at.Name != c.here[p.Name] || !slices.Equal(at.Shape, p.Shape) {
			return false, false
		}
		found[at.Name] = true
		moved = moved || isWeight(p.Stored) && p.Stored != pathOf(at)
	}
	for i := range c.m.like.Parts() {
		if p := &c.m.like.Parts()[i]; isOfLayer(p) && !found[p.Name] {
			return false, false
		}
	}
	return true, moved
}

func isOfOptimizer(path string) bool { return strings.HasPrefix(path, optimizer+"/") }

func isNumberOfOptimizer(path string) bool {
	return isOfOptimizer(path) && numbered.IsNumber(path)
}

func isOfLayer(p *ckptfmt.Part) bool {
	return !isOfOptimizer(pathOf(p)) && !strings.HasPrefix(pathOf(p), "metrics/")
}

// HasClass reports whether the name of a tensor has a layer name as Keras generates it for one of
// its classes, such as dense_1/kernel: in a file that is [Reader.IsUnnamed], another layer may have
// that name.
func HasClass(tensor string) bool {
	segments := strings.Split(tensor, "/")
	return slices.ContainsFunc(segments[:len(segments)-1], func(s string) bool { return s != "cell" && IsClass(numbered.Base(s)) })
}

// byShape matches the variables of a file that does not name its layers but numbers those of each
// class, if a class has only one variable with a name and a shape.
func (m *matcher) byShape(rest []ckptfmt.Part) map[string]*ckptfmt.Part {
	key := func(p *ckptfmt.Part) string {
		segments := strings.Split(p.Name, "/")
		for i, s := range segments[:len(segments)-1] {
			segments[i] = numbered.Base(s)
		}
		return fmt.Sprint(segments, p.Shape)
	}
	places, tensors := make(map[string][]*ckptfmt.Part), make(map[string][]string)
	for _, p := range m.vacant() {
		places[key(p)] = append(places[key(p)], p)
	}
	for i := range rest {
		tensors[key(&rest[i])] = append(tensors[key(&rest[i])], rest[i].Name)
	}
	return onlyPairs(places, tensors)
}

// IsClass reports whether Keras calls layers of one of its classes so, before it numbers them.
func IsClass(name string) bool { return classes[name] != nil || slices.Contains(holders, name) }

// holders are classes whose variables belong to the layers in them.
var holders = []string{
	"sequential", "functional", "model", "lstm", "gru", "simple_rnn", "rnn", "conv_lstm1d", "conv_lstm2d", "conv_lstm3d",
	"bidirectional", "time_distributed", "multi_head_attention", "group_query_attention",
}
