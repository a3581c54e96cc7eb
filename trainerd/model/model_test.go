package model

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// text shows a graph, one node a line: "name: Op(inputs) outputs".
func text(m *tfpb.MetaGraphDef) string {
	var s strings.Builder
	for _, n := range m.GetGraphDef().GetNode() {
		fmt.Fprintf(&s, "%s: %s(%s)", n.GetName(), n.GetOp(), strings.Join(n.GetInput(), ", "))
		for _, shape := range n.GetAttr()["_output_shapes"].GetList().GetShape() {
			fmt.Fprintf(&s, " %v", graph.ShapeFromProto(shape))
		}
		s.WriteByte('\n')
	}
	return s.String()
}

func TestGolden(t *testing.T) {
	tests := []struct {
		name string
		cfg  Config
	}{
		{"softmax_sgd", Config{Family: "softmax", Inputs: 4, Classes: 3}},
		{"mlp_adam_l2", Config{Family: "mlp", Inputs: 4, Classes: 3, Hidden: []int{5}, Optimizer: "adam", L2: .01}},
		{"logistic_momentum", Config{Family: "logistic", Inputs: 4, Optimizer: "momentum"}},
		{"linear_decay", Config{Family: "linear", Inputs: 4, DecaySteps: 10}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			m, err := Build(c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", c.name+".txt")
			got := text(m.Meta)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("graph (- want, + got):\n%s", diff)
			}
		})
	}
}

func TestVariableNames(t *testing.T) {
	tests := []struct {
		cfg  Config
		want []string
	}{
		{Config{Family: "linear", Inputs: 2}, []string{"linear/kernel [2,1]", "linear/bias [1]"}},
		{Config{Family: "logistic", Inputs: 2}, []string{"logits/kernel [2,1]", "logits/bias [1]"}},
		{Config{Family: "softmax", Inputs: 2, Classes: 3}, []string{"logits/kernel [2,3]", "logits/bias [3]"}},
		{Config{Family: "mlp", Inputs: 2, Classes: 3, Hidden: []int{4}},
			[]string{"hidden/kernel [2,4]", "hidden/bias [4]", "logits/kernel [4,3]", "logits/bias [3]"}},
		{Config{Family: "mlp", Inputs: 2, Classes: 3, Hidden: []int{4, 5}},
			[]string{"hidden_1/kernel [2,4]", "hidden_1/bias [4]", "hidden_2/kernel [4,5]", "hidden_2/bias [5]",
				"logits/kernel [5,3]", "logits/bias [3]"}},
		{Config{Family: "mlp", Inputs: 2, Classes: 3, Hidden: []int{4}, Wide: true},
			[]string{"hidden/kernel [2,4]", "hidden/bias [4]", "logits/kernel [4,3]", "logits/bias [3]", "wide/kernel [2,3]"}},
		{Config{Family: "mlp_regressor", Inputs: 2, Hidden: []int{4}, Wide: true},
			[]string{"hidden/kernel [2,4]", "hidden/bias [4]", "output/kernel [4,1]", "output/bias [1]", "wide/kernel [2,1]"}},
	}
	for _, c := range tests {
		t.Run(fmt.Sprint(c.cfg.Family, c.cfg.Hidden, c.cfg.Wide), func(t *testing.T) {
			m, err := Build(c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			g, err := graph.Parse(m.Meta)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range g.TrainableVariables() {
				got = append(got, v.Name()+" "+v.Shape.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if all := g.Variables(); len(all) != len(got)+1 || all[0].Name() != "global_step" || all[0].DType != tfpb.DataType_DT_INT64 {
				t.Errorf("beside them: %v", all[0])
			}
		})
	}
}

// everyConfig is each family with each optimizer.
func everyConfig() (all []Config) {
	for _, family := range Families {
		for _, optimizer := range Optimizers {
			c := Config{Family: family, Optimizer: optimizer, Inputs: 6, Seed: 3, L2: 1e-3, DecaySteps: 50, LearningRate: .05}
			switch family {
			case "mlp":
				c.Classes, c.Hidden, c.Activation = 3, []int{7, 5}, "tanh"
			case "mlp_regressor":
				c.Hidden, c.Wide = []int{7}, true
			case "softmax":
				c.Classes = 3
			case "convnet":
				c.Classes, c.Inputs, c.Image, c.Filters, c.BatchNorm = 3, 18, []int{3, 3, 2}, []int{6, 4}, true
			case "embedding_bag":
				c.Classes, c.Vocabulary, c.Hidden, c.Dropout = 3, 9, []int{12}, .2
			}
			all = append(all, c)
		}
	}
	return all
}

// TestNames checks that every name in a Model exists, that collections say the
// same, and that nothing is left for graph.Complete to add.
func TestNames(t *testing.T) {
	for _, cfg := range everyConfig() {
		t.Run(cfg.Family+"_"+cfg.Optimizer, func(t *testing.T) {
			m, err := Build(cfg)
			if err != nil {
				t.Fatal(err)
			}
			g, err := graph.Parse(m.Meta)
			if err != nil {
				t.Fatal(err)
			}
			names := []string{m.X.Name, m.Y.Name, m.Loss, m.Predictions, m.TrainOp, m.InitOp, m.LocalInitOp, m.ReadyOp, m.SummaryOp, m.GlobalStep}
			if cfg.IsRegression() {
				if m.Accuracy != "" || m.Logits != "" {
					t.Errorf("linear has accuracy %q, logits %q", m.Accuracy, m.Logits)
				}
			} else {
				names = append(names, m.Accuracy, m.Logits)
			}
			if m.Training != "" {
				names = append(names, m.Training)
			}
			for _, name := range names {
				if _, err := g.Node(name); err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff([]graph.Placeholder{m.X, m.Y}, g.Placeholders()); diff != "" {
				t.Errorf("placeholders: %s", diff)
			}
			step, _, _ := g.GlobalStep()
			got := []string{g.TrainOp(), g.InitOp(), g.LocalInitOp(), g.ReadyOp(), g.SummaryOp(), step}
			if want := []string{m.TrainOp, m.InitOp, m.LocalInitOp, m.ReadyOp, m.SummaryOp, m.GlobalStep}; !slices.Equal(got, want) {
				t.Errorf("collections name %v, the model %v", got, want)
			}
			full, err := graph.Complete(m.Meta)
			if err != nil || !proto.Equal(full, m.Meta) {
				t.Errorf("the model is not complete: %v", err)
			}
		})
	}
}

func TestSeeds(t *testing.T) {
	seeds := func(c Config) (all [][2]int64) {
		m, err := Build(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range m.Meta.GetGraphDef().GetNode() {
			if a := n.GetAttr()["seed"]; a != nil {
				all = append(all, [2]int64{a.GetI(), n.GetAttr()["seed2"].GetI()})
			}
		}
		return all
	}
	for _, initializer := range Initializers[:3] {
		c := Config{Family: "mlp", Inputs: 2, Classes: 2, Hidden: []int{2, 2}, Initializer: initializer, Seed: 9}
		if diff := cmp.Diff([][2]int64{{9, 1}, {9, 2}, {9, 3}}, seeds(c)); diff != "" {
			t.Errorf("%s: %s", initializer, diff)
		}
	}
	if got := seeds(Config{Family: "softmax", Inputs: 2, Classes: 2}); len(got) != 1 || got[0] == [2]int64{} {
		t.Errorf("seed 0 gives %v: two zeros would mean a random seed", got)
	}
}
