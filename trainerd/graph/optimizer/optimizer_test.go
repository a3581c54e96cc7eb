package optimizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// softmax builds the variables of a softmax regression.
func softmax() (b *graph.Builder, step, w, bias *graph.Variable) {
	const float = tfpb.DataType_DT_FLOAT
	b = graph.NewBuilder()
	step = b.GlobalStep()
	w = b.Variable(graph.VariableSpec{Name: "w", DType: float, Shape: graph.MakeShape(64, 10), Initial: graph.Zeros(), Trainable: true})
	bias = b.Variable(graph.VariableSpec{Name: "b", DType: float, Shape: graph.MakeShape(10), Initial: graph.Zeros(), Trainable: true})
	return b, step, w, bias
}

func parse(t *testing.T, b *graph.Builder) *graph.Graph {
	t.Helper()
	meta, err := b.MetaGraph()
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.Parse(meta)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestOptimizers(t *testing.T) {
	slots := func(names ...string) []string {
		all := []string{"b", "global_step", "w"}
		for _, n := range names {
			all = append(all, "b/"+n, "w/"+n)
		}
		slices.Sort(all)
		return all
	}
	tests := []struct {
		optimizer Optimizer
		train     string
		op        string
		vars      []string
		attr      string // set in the update
	}{
		{SGD{}, "GradientDescent", "ResourceApplyGradientDescent", slots(), ""},
		{Momentum{Momentum: .9}, "Momentum", "ResourceApplyMomentum", slots("Momentum"), ""},
		{Momentum{Momentum: .9, Nesterov: true}, "Momentum", "ResourceApplyMomentum", slots("Momentum"), "use_nesterov"},
		{Adagrad{InitialAccumulator: .1}, "Adagrad", "ResourceApplyAdagrad", slots("Adagrad"), "update_slots"},
		{Adadelta{Rho: .95, Epsilon: 1e-8}, "Adadelta", "ResourceApplyAdadelta", slots("Adadelta", "Adadelta_1"), ""},
		{Ftrl{Power: -.5, InitialAccumulator: .1}, "Ftrl", "ResourceApplyFtrl", slots("Ftrl", "Ftrl_1"), ""},
		{RMSProp{Decay: .9, Epsilon: 1e-10}, "RMSProp", "ResourceApplyRMSProp", slots("RMSProp", "RMSProp_1"), ""},
		{Adam{.9, .999, 1e-8}, "Adam", "ResourceApplyAdam", slices.Sorted(slices.Values(append(slots("Adam", "Adam_1"), "beta1_power", "beta2_power"))), ""},
	}
	for _, c := range tests {
		t.Run(fmt.Sprintf("%T%+v", c.optimizer, c.optimizer), func(t *testing.T) {
			b, step, w, bias := softmax()
			loss := b.AddV2("loss", b.L2Loss("", b.Read("", w)), b.L2Loss("", b.Read("", bias)))
			train, rate := Minimize(b, loss, c.optimizer, LearningRate{Initial: .5}, step, []*graph.Variable{w, bias})
			if train.Name() != c.train || train.Op() != "AssignAddVariableOp" || rate.Name() != c.train+"/learning_rate:0" {
				t.Errorf("train op is %s (%s), rate %s", train.Name(), train.Op(), rate.Name())
			}
			var names []string
			for _, v := range b.Variables() {
				names = append(names, v.Name())
			}
			slices.Sort(names)
			if diff := cmp.Diff(c.vars, names); diff != "" {
				t.Errorf("variables (- want, + got):\n%s", diff)
			}
			checkUpdates(t, parse(t, b), c.train, c.op, c.attr)
		})
	}
}

// checkUpdates checks that the step is counted after all updates, and what the
// updates are.
func checkUpdates(t *testing.T, g *graph.Graph, train, op, attr string) {
	t.Helper()
	if g.TrainOp() != train {
		t.Errorf("collection train_op names %q", g.TrainOp())
	}
	one, _ := g.Node(train + "/Const")
	if one == nil || !slices.Equal(one.Input, []string{"^" + train + "/update"}) {
		t.Errorf("what is added to the step waits for %v", one.GetInput())
	}
	for _, v := range []string{"w", "b"} {
		name := train + "/update_" + v + "/" + op
		n, err := g.Node(name)
		if err != nil || n.GetInput()[0] != v {
			t.Errorf("update of %s: %v, %v", v, n, err)
			continue
		}
		if attr != "" && !n.GetAttr()[attr].GetB() {
			t.Errorf("%s: attribute %s is not set", name, attr)
		}
		if group, _ := g.Node(train + "/update"); !slices.Contains(group.GetInput(), "^"+name) {
			t.Errorf("%s/update does not wait for %s", train, name)
		}
	}
}

// TestSparseUpdates trains a table whose rows are gathered: the update is that
// of rows, after the gradients of equal rows were added up.
func TestSparseUpdates(t *testing.T) {
	tests := []struct {
		optimizer Optimizer
		op        string
	}{
		{SGD{}, "ResourceScatterAdd"},
		{Momentum{Momentum: .9}, "ResourceSparseApplyMomentum"},
		{Adagrad{InitialAccumulator: .1}, "ResourceSparseApplyAdagrad"},
		{Adadelta{Rho: .95, Epsilon: 1e-8}, "ResourceSparseApplyAdadelta"},
		{Ftrl{Power: -.5, InitialAccumulator: .1}, "ResourceSparseApplyFtrl"},
		{RMSProp{Decay: .9, Epsilon: 1e-10}, "ResourceSparseApplyRMSProp"},
		{Adam{.9, .999, 1e-8}, "ResourceApplyAdam"}, // changes all rows, as in TensorFlow
	}
	for _, c := range tests {
		t.Run(fmt.Sprintf("%T", c.optimizer), func(t *testing.T) {
			b, step, w, _ := softmax()
			rows := b.GatherVariable("rows", w, b.Placeholder("ids", tfpb.DataType_DT_INT64, graph.MakeShape(-1, 2)))
			Minimize(b, b.L2Loss("loss", rows), c.optimizer, LearningRate{Initial: .5}, step, []*graph.Variable{w})
			g := parse(t, b)
			name := c.optimizer.scopeName() + "/update_w/" + c.op
			if n, err := g.Node(name); err != nil || n.Input[0] != "w" {
				t.Errorf("%s: %v, %v", name, n, err)
			}
		})
	}
	b, step, w, _ := softmax()
	rows := b.GatherVariable("rows", w, b.Placeholder("ids", tfpb.DataType_DT_INT64, graph.MakeShape(-1)))
	loss := b.AddV2("loss", b.L2Loss("a", rows), b.L2Loss("b", b.Read("", w)))
	Minimize(b, loss, SGD{}, LearningRate{Initial: .5}, step, []*graph.Variable{w})
	if err := b.Err(); err == nil || !strings.Contains(err.Error(), "its rows are gathered and it also has other uses") {
		t.Errorf("rows and the whole of a variable: got %v", err)
	}
}

func TestMinimizeNeedsEveryVariable(t *testing.T) {
	b, step, w, bias := softmax()
	Minimize(b, b.L2Loss("loss", b.Read("", w)), SGD{}, LearningRate{Initial: 1}, step, []*graph.Variable{w, bias})
	if _, err := b.MetaGraph(); err == nil || !strings.Contains(err.Error(), "variable b: loss:0 does not depend on it") {
		t.Errorf("got %v", err)
	}
}

func TestExponentialDecay(t *testing.T) {
	for _, staircase := range []bool{false, true} {
		b, step, w, _ := softmax()
		lr := LearningRate{Initial: .1, DecaySteps: 100, DecayRate: .9, Staircase: staircase}
		_, rate := Minimize(b, b.L2Loss("loss", b.Read("", w)), SGD{}, lr, step, []*graph.Variable{w})
		if b.Err() != nil || rate.Name() != "ExponentialDecay:0" {
			t.Fatalf("rate is %s, %v", rate.Name(), b.Err())
		}
		g := parse(t, b)
		if _, err := g.Node("ExponentialDecay/Floor"); (err == nil) != staircase {
			t.Errorf("staircase %v: Floor: %v", staircase, err)
		}
		update, err := g.Node("GradientDescent/update_w/ResourceApplyGradientDescent")
		if err != nil || update.Input[1] != "ExponentialDecay" {
			t.Errorf("the update takes its rate from %v, %v", update.GetInput(), err)
		}
	}
}
