package daemon

import (
	"slices"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// TestCurveWithoutSummaries trains a graph that has a loss and no summaries, in two lives:
// TensorBoard shows the loss all the same, unless there are to be no summaries.
func TestCurveWithoutSummaries(t *testing.T) {
	b := graph.NewBuilder()
	w := b.Variable(graph.VariableSpec{Name: "w", DType: tfpb.DataType_DT_FLOAT, Initial: graph.Value(literal.Float(8)), Trainable: true})
	b.Add(graph.NodeSpec{Op: "AssignSubVariableOp", Name: "lower", Inputs: []graph.Output{w.Handle(), b.Const("one", literal.Float(1))},
		Attrs: graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_FLOAT)}})
	b.Mul("miss", b.Read("value", w), b.Const("two", literal.Float(2)))
	file := modelFile(t, b)
	for _, tt := range []struct {
		name, line string
		want       []int64
	}{
		{"by default", `loss = "miss"`, []int64{1, 2, 4, 5, 6}},
		{"switched off", "loss = \"miss\"\nsummary_op = \"none\"", nil},
		{"no loss", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := graphConfig(t, file, `train_op = "lower"`, tt.line, "[train]", "steps = 5", "[supervisor]", "save_summaries_steps = 2")
			var report strings.Builder
			if err := Check(t.Context(), c.File(), nil, &report); err != nil || strings.Contains(report.String(), "the loss is a curve") != (tt.want != nil) {
				t.Errorf("check: %v\n%s", err, &report)
			}
			for _, c.Train.Steps = range []int64{5, 6} {
				runJob(t, t.Context(), c)
			}
			if got := stepsOf(t, c.Logdir, "loss"); !slices.Equal(got, tt.want) {
				t.Errorf("points of the loss at %v, want %v", got, tt.want)
			}
		})
	}
}

// stepsOf returns the steps of a tag in the events files of a folder, in the files' order.
func stepsOf(t *testing.T, dir, tag string) (steps []int64) {
	t.Helper()
	for _, e := range sessiontest.Events(t, dir) {
		for _, v := range e.GetSummary().GetValue() {
			if v.GetTag() == tag {
				steps = append(steps, e.GetStep())
			}
		}
	}
	return steps
}
