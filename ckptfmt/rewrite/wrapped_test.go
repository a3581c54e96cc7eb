package rewrite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
)

// objects is a checkpoint of variables at paths, with a graph of objects.
func objects(t *testing.T, paths string) *Source {
	t.Helper()
	g := &tfpb.TrackableObjectGraph{Nodes: []*tfpb.TrackableObjectGraph_TrackableObject{node("", nil)}}
	at := map[string]int32{"": 0}
	var keys []string
	for path := range strings.FieldsSeq(paths) {
		before := ""
		for name := range strings.SplitSeq(path, "/") {
			here := strings.TrimPrefix(before+"/"+name, "/")
			if _, ok := at[here]; !ok {
				at[here] = int32(len(g.Nodes))
				g.Nodes = append(g.Nodes, node("", nil))
				parent := g.Nodes[at[before]]
				parent.Children = append(parent.Children, node("", map[string]int32{name: at[here]}).Children...)
			}
			before = here
		}
		key := path + attributes + "VARIABLE_VALUE"
		keys = append(keys, key)
		g.Nodes[at[path]].Attributes = node(key, nil).Attributes
	}
	return sourceOf(t, keys, g)
}

// A program may save tf.train.Checkpoint(model), another one tf.train.Checkpoint(model=model).
func TestLikeOfAWrappedModel(t *testing.T) {
	for _, c := range []struct{ about, source, template, prefix, added, kept, left string }{
		{"wrapped", "l/0/w l/1/w n", "m/l/0/w m/l/1/w m/n", "", "m/", "", ""},
		{"no longer", "m/l/0/w m/l/1/w m/n", "l/0/w l/1/w n", "m/", "", "", ""},
		{"twice", "a/m/w a/m/b", "w b", "a/m/", "", "", ""},
		{"next to others", "l/w l/b", "step m/l/w m/l/b", "", "m/", "step", ""},
		{"next to others that both have", "step m/w m/b", "step w b", "m/", "", "", ""},
		{"the same names within", "n sub/n", "m/n m/sub/n", "", "m/", "", ""},
		{"a part of the model", "m/w m/b m/head", "w b", "m/", "", "", "m/head"},
		{"two of them", "a/w a/b c/w c/b", "w b", "", "", "w b", "a/b a/w c/b c/w"},
		{"two are wanted", "w b", "a/w a/b c/w c/b", "", "", "a/w a/b c/w c/b", "b w"},
		{"a name that is the same by chance", "net/w net/b n", "m/w m/b m/n", "", "", "m/w m/b m/n", "n net/b net/w"},
		{"another name", "net/w net/b", "m/w m/b", "", "", "m/w m/b", "net/b net/w"},
	} {
		s := objects(t, c.source)
		result, err := s.Like(objects(t, c.template), LikeOptions{KeepMissing: true})
		if err != nil {
			t.Errorf("%s: %v", c.about, err)
			continue
		}
		list := func(keys []string) string {
			return strings.ReplaceAll(strings.Join(keys, " "), attributes+"VARIABLE_VALUE", "")
		}
		got := []string{result.Prefix, result.Added, list(result.Kept), list(result.Left)}
		if diff := cmp.Diff([]string{c.prefix, c.added, c.kept, c.left}, got); diff != "" {
			t.Errorf("%s: %s", c.about, diff)
		}
	}
}

// trained is a checkpoint of two variables of one name at paths, with an optimizer: its list has the
// shorter paths to them.
func trained(t *testing.T, model string) *Source {
	t.Helper()
	value := func(full, key string) *tfpb.TrackableObjectGraph_TrackableObject {
		n := node(key+attributes+"VARIABLE_VALUE", nil)
		n.Attributes[0].FullName = full
		return n
	}
	nodes := []*tfpb.TrackableObjectGraph_TrackableObject{
		node("", map[string]int32{"optimizer": 1, model: 6}),
		node("", map[string]int32{"_variables": 2, "_trainable_variables": 3, "_iterations": 4, "_momentums": 5}),
		node("", map[string]int32{"0": 4, "1": 9, "2": 10}),
		node("", map[string]int32{"0": 7, "1": 8}),
		value("adam/iteration", "optimizer/_iterations"),
		node("", map[string]int32{"0": 9, "1": 10}),
		node("", map[string]int32{"a": 11, "b": 12}),
		value("w", "optimizer/_trainable_variables/0"), value("w", "optimizer/_trainable_variables/1"),
		value("adam/w_momentum", "optimizer/_variables/1"), value("adam/w_momentum", "optimizer/_variables/2"),
		node("", map[string]int32{"w": 7}), node("", map[string]int32{"w": 8}),
	}
	if model == "" {
		nodes[0] = node("", map[string]int32{"optimizer": 1, "a": 11, "b": 12})
	}
	var keys []string
	for _, n := range nodes {
		for _, a := range n.Attributes {
			keys = append(keys, a.CheckpointKey)
		}
	}
	return sourceOf(t, keys, &tfpb.TrackableObjectGraph{Nodes: nodes})
}

// What an optimizer keeps has the path of its variable within its name.
func TestLikeOfAWrappedModelWithItsOptimizer(t *testing.T) {
	for _, c := range []struct{ source, template, prefix, added string }{{"", "m", "", "m/"}, {"m", "", "m/", ""}} {
		result, err := trained(t, c.source).Like(trained(t, c.template), LikeOptions{})
		if err != nil || result.Prefix != c.prefix || result.Added != c.added || len(result.Left) > 0 {
			t.Errorf("%q like %q: %+v, %v", c.source, c.template, result, err)
		}
	}
	// Of a model alone nothing is in its optimizer.
	result, err := trained(t, "").Like(objects(t, "m/a/w m/b/w"), LikeOptions{})
	if err != nil || result.Added != "m/" || len(result.Left) != 3 {
		t.Errorf("the model alone: %+v, %v", result, err)
	}
}
