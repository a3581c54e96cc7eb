package cluster

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	tfpb "github.com/trainerd/trainerd/proto"
)

// tracesGraph has evaluated tensors that leave traces of every kind, or none.
const tracesGraph = `
node { name: "w" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shared_name" value { s: "w" } } }
node { name: "u" op: "VariableV2" device: "/job:ps/task:0" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "shape" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "read" op: "ReadVariableOp" input: "w" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "u/read" op: "Identity" input: "u" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "plain" op: "AddV2" input: "read" input: "u/read" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "noise" op: "RandomUniform" input: "shape" attr { key: "seed" value { i: 3 } } attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "T" value { type: DT_INT32 } } }
node { name: "noisy" op: "AddV2" input: "plain" input: "noise" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "after_noise" op: "Identity" input: "read" input: "^noise" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "add" op: "AssignAddVariableOp" input: "w" input: "u/read" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "after_add" op: "Identity" input: "read" input: "^add" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "counted" op: "AssignAdd" input: "u" input: "read" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "handle" op: "Identity" input: "w" attr { key: "T" value { type: DT_RESOURCE } } }
node { name: "by_handle" op: "ReadVariableOp" input: "handle" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "custom" op: "OpOfAPlugin" input: "handle" }
node { name: "reads" op: "PartitionedCall" input: "w" attr { key: "Tin" value { list { type: DT_RESOURCE } } } attr { key: "f" value { func { name: "reader" } } } }
node { name: "writes" op: "StatefulPartitionedCall" input: "w" attr { key: "Tin" value { list { type: DT_RESOURCE } } } attr { key: "f" value { func { name: "writer" } } } }
node { name: "draws" op: "StatefulPartitionedCall" attr { key: "f" value { func { name: "drawer" } } } }
node { name: "draws_too" op: "drawer" }
library {
  function {
    signature { name: "reader" input_arg { name: "v" type: DT_RESOURCE } }
    node_def { name: "r" op: "ReadVariableOp" input: "v" }
  }
  function {
    signature { name: "writer" input_arg { name: "v" type: DT_RESOURCE } }
    node_def { name: "again" op: "StatefulPartitionedCall" input: "same:output:0" attr { key: "Tin" value { list { type: DT_RESOURCE } } } attr { key: "f" value { func { name: "writer" } } } }
    node_def { name: "same" op: "Identity" input: "v" attr { key: "T" value { type: DT_RESOURCE } } }
    node_def { name: "a" op: "AssignVariableOp" input: "same:output:0" input: "x" }
  }
  function {
    signature { name: "drawer" }
    node_def { name: "deeper" op: "StatefulPartitionedCall" attr { key: "f" value { func { name: "normal" } } } }
  }
  function {
    signature { name: "normal" }
    node_def { name: "n" op: "RandomStandardNormal" }
  }
}`

func parseGraph(t *testing.T, text string) *tfpb.GraphDef {
	t.Helper()
	def := new(tfpb.GraphDef)
	if err := prototext.Unmarshal([]byte(text), def); err != nil {
		t.Fatal(err)
	}
	return def
}

func TestTraces(t *testing.T) {
	def := parseGraph(t, tracesGraph)
	for _, tt := range []struct {
		fetches         []string
		random, written string
	}{
		{[]string{"plain:0"}, "", ""},
		{[]string{"noisy"}, "noise", ""},
		{[]string{"after_noise:0"}, "noise", ""},
		{[]string{"after_add:0"}, "", "w"},
		{[]string{"counted:0", "after_add:0"}, "", "u w"},
		{[]string{"by_handle"}, "", ""},
		{[]string{"custom"}, "", "w"},
		{[]string{"reads"}, "", ""},
		{[]string{"writes"}, "", "w"},
		{[]string{"draws", "draws_too"}, "draws draws_too", ""},
		{[]string{"nothing:0"}, "", ""},
	} {
		found := findTraces(def, tt.fetches)
		slices.Sort(found.random)
		slices.Sort(found.written)
		if got := strings.Join(found.random, " "); got != tt.random {
			t.Errorf("%v: random %q; want %q", tt.fetches, got, tt.random)
		}
		if got := strings.Join(found.written, " "); got != tt.written {
			t.Errorf("%v: written %q; want %q", tt.fetches, got, tt.written)
		}
	}
}

// The graph of an evaluation has other seeds at each step, the same again at the
// same one, and changes copies of the variables.
func TestWithoutTrace(t *testing.T) {
	def := parseGraph(t, tracesGraph)
	found := findTraces(def, []string{"noisy", "counted", "after_add", "draws"})
	seeds := func(step int64) (seeds []int64) {
		made, copying := found.withoutTrace(def, "copies", step)
		if len(copying) != 2 {
			t.Errorf("copies by %v; want two ops", copying)
		}
		byName := map[string]*tfpb.NodeDef{}
		for _, n := range append(made.GetNode(), made.GetLibrary().GetFunction()[3].GetNodeDef()...) {
			byName[n.GetName()] = n
		}
		for _, v := range []string{"w", "u"} {
			if got := string(byName[v].GetAttr()["container"].GetS()); got != "copies" {
				t.Errorf("variable %s in container %q; want copies", v, got)
			}
		}
		for _, name := range copying {
			value := byName[byName[name].GetInput()[1]]
			origin := byName[value.GetInput()[0]]
			if v := byName[name].GetInput()[0]; string(origin.GetAttr()["shared_name"].GetS()) != v || len(origin.GetAttr()["container"].GetS()) > 0 || origin.GetDevice() != byName[v].GetDevice() {
				t.Errorf("%s copies %v to %s", name, origin, v)
			}
		}
		for _, n := range []string{"noise", "n"} {
			seeds = append(seeds, byName[n].GetAttr()["seed"].GetI(), byName[n].GetAttr()["seed2"].GetI())
		}
		return seeds
	}
	one, again, two := seeds(1), seeds(1), seeds(2)
	if !slices.Equal(one, again) || slices.Equal(one, two) || slices.Contains(one, 0) || slices.Min(one) < 0 {
		t.Errorf("seeds %v, again %v, and at another step %v", one, again, two)
	}
	if def.GetNode()[6].GetAttr()["seed"].GetI() != 3 || len(def.GetNode()[0].GetAttr()) != 2 {
		t.Error("the graph of the training has changed")
	}
}
