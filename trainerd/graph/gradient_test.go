package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
)

// lines shows the nodes from the given one on: "name: Op(inputs)".
func lines(b *Builder, from int) []string {
	var out []string
	for _, n := range b.nodes[from:] {
		out = append(out, fmt.Sprintf("%s: %s(%s)", n.Name(), n.Op(), strings.Join(n.def.Input, ", ")))
	}
	return out
}

// TestGradientStructure checks which nodes are added, and that none are for
// gradients that nobody asked for.
func TestGradientStructure(t *testing.T) {
	tests := []struct {
		name  string
		build func(b *Builder) (y Output, xs []Output)
		want  []string // after gradients/grad_ys_0
		grads []string
	}{
		{
			name: "one use",
			build: func(b *Builder) (Output, []Output) {
				x := b.Placeholder("x", float, MakeShape(3))
				return b.L2Loss("loss", x), []Output{x}
			},
			want:  []string{"gradients/loss_grad/mul: Mul(x, gradients/grad_ys_0)"},
			grads: []string{"gradients/loss_grad/mul:0"},
		},
		{
			name: "two uses are summed",
			build: func(b *Builder) (Output, []Output) {
				x := b.Placeholder("x", float, Shape{})
				return b.AddV2("y", b.Relu("r", x), b.Tanh("t", x)), []Output{x}
			},
			want: []string{
				"gradients/y_grad/tuple/group_deps: NoOp(^gradients/grad_ys_0)",
				"gradients/y_grad/tuple/control_dependency: Identity(gradients/grad_ys_0, ^gradients/y_grad/tuple/group_deps)",
				"gradients/y_grad/tuple/control_dependency_1: Identity(gradients/grad_ys_0, ^gradients/y_grad/tuple/group_deps)",
				"gradients/t_grad/TanhGrad: TanhGrad(t, gradients/y_grad/tuple/control_dependency_1)",
				"gradients/r_grad/ReluGrad: ReluGrad(gradients/y_grad/tuple/control_dependency, r)",
				"gradients/AddN: AddN(gradients/t_grad/TanhGrad, gradients/r_grad/ReluGrad)",
			},
			grads: []string{"gradients/AddN:0"},
		},
		{
			name: "not of what is not wanted",
			build: func(b *Builder) (Output, []Output) {
				x := b.Placeholder("x", float, MakeShape(-1, 3))
				w := b.Placeholder("w", float, MakeShape(3, 2))
				return b.Sum("y", b.MatMul("m", x, w, false, false)), []Output{w}
			},
			want: []string{
				"gradients/y_grad/Shape: Shape(m)",
				"gradients/y_grad/Reshape/shape: Const()",
				"gradients/y_grad/Reshape: Reshape(gradients/grad_ys_0, gradients/y_grad/Reshape/shape)",
				"gradients/y_grad/Tile: Tile(gradients/y_grad/Reshape, gradients/y_grad/Shape)",
				"gradients/m_grad/MatMul_1: MatMul(x, gradients/y_grad/Tile)",
			},
			grads: []string{"gradients/m_grad/MatMul_1:0"},
		},
		{
			name: "a variable read twice",
			build: func(b *Builder) (Output, []Output) {
				v := b.Variable(VariableSpec{Name: "v", DType: float, Initial: Zeros(), Trainable: true})
				return b.Mul("y", b.Read("r", v), b.Read("s", v)), []Output{v.Handle()}
			},
			want: []string{
				"gradients/y_grad/Mul: Mul(gradients/grad_ys_0, s)",
				"gradients/y_grad/Mul_1: Mul(gradients/grad_ys_0, r)",
				"gradients/y_grad/tuple/group_deps: NoOp(^gradients/y_grad/Mul, ^gradients/y_grad/Mul_1)",
				"gradients/y_grad/tuple/control_dependency: Identity(gradients/y_grad/Mul, ^gradients/y_grad/tuple/group_deps)",
				"gradients/y_grad/tuple/control_dependency_1: Identity(gradients/y_grad/Mul_1, ^gradients/y_grad/tuple/group_deps)",
				"gradients/AddN: AddN(gradients/y_grad/tuple/control_dependency_1, gradients/y_grad/tuple/control_dependency)",
			},
			grads: []string{"gradients/AddN:0"},
		},
		{
			name: "no dependence",
			build: func(b *Builder) (Output, []Output) {
				x, y := b.Placeholder("x", float, Shape{}), b.Placeholder("y", float, Shape{})
				return b.Square("s", x), []Output{y}
			},
			grads: []string{""},
		},
		{
			name: "nothing flows through integers",
			build: func(b *Builder) (Output, []Output) {
				x := b.Placeholder("x", tfpb.DataType_DT_INT64, Shape{})
				return b.Cast("c", x, float), []Output{x}
			},
			grads: []string{""},
		},
		{
			name: "itself",
			build: func(b *Builder) (Output, []Output) {
				x := b.Placeholder("x", float, Shape{})
				return x, []Output{x}
			},
			grads: []string{"gradients/grad_ys_0:0"},
		},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			b := NewBuilder()
			y, xs := c.build(b)
			from := len(b.nodes) + 1
			grads := b.Gradients(y, xs)
			if b.Err() != nil {
				t.Fatal(b.Err())
			}
			if diff := cmp.Diff(c.want, lines(b, from)); diff != "" {
				t.Errorf("nodes (- want, + got):\n%s", diff)
			}
			for i, g := range grads {
				if g.Name() != c.grads[i] {
					t.Errorf("gradient %d is %q, want %q", i, g.Name(), c.grads[i])
				}
			}
		})
	}
}

// TestGradientShapes checks that a gradient has the shape of what it is the
// gradient of, for every op and where broadcasting or transposing matters.
func TestGradientShapes(t *testing.T) {
	unary := func(f func(b *Builder, x Output) Output) func(*Builder, Output, Output) Output {
		return func(b *Builder, x, _ Output) Output { return f(b, x) }
	}
	tests := []struct {
		op   string
		x, y Shape
		make func(b *Builder, x, y Output) Output
	}{
		{"AddV2", MakeShape(-1, 3), MakeShape(3), func(b *Builder, x, y Output) Output { return b.AddV2("", x, y) }},
		{"Sub", MakeShape(2, 3), Shape{}, func(b *Builder, x, y Output) Output { return b.Sub("", x, y) }},
		{"Mul", MakeShape(2, 1), MakeShape(3), func(b *Builder, x, y Output) Output { return b.Mul("", x, y) }},
		{"Mul", MakeShape(2, 3), MakeShape(2, 3), func(b *Builder, x, y Output) Output { return b.Mul("", x, y) }},
		{"AddN", MakeShape(2), MakeShape(2), func(b *Builder, x, y Output) Output { return b.AddN("", x, y, x) }},
		{"BiasAdd", MakeShape(-1, 4), MakeShape(4), func(b *Builder, x, y Output) Output { return b.BiasAdd("", x, y) }},
		{"MatMul", MakeShape(2, 3), MakeShape(3, 4), func(b *Builder, x, y Output) Output { return b.MatMul("", x, y, false, false) }},
		{"MatMul", MakeShape(3, 2), MakeShape(3, 4), func(b *Builder, x, y Output) Output { return b.MatMul("", x, y, true, false) }},
		{"MatMul", MakeShape(2, 3), MakeShape(4, 3), func(b *Builder, x, y Output) Output { return b.MatMul("", x, y, false, true) }},
		{"MatMul", MakeShape(3, 2), MakeShape(4, 3), func(b *Builder, x, y Output) Output { return b.MatMul("", x, y, true, true) }},
		{"Relu", MakeShape(-1, 2), Shape{}, unary(func(b *Builder, x Output) Output { return b.Relu("", x) })},
		{"Sigmoid", MakeShape(-1, 2), Shape{}, unary(func(b *Builder, x Output) Output { return b.Sigmoid("", x) })},
		{"Tanh", MakeShape(-1, 2), Shape{}, unary(func(b *Builder, x Output) Output { return b.Tanh("", x) })},
		{"Softplus", MakeShape(-1), Shape{}, unary(func(b *Builder, x Output) Output { return b.Softplus("", x) })},
		{"Square", MakeShape(-1), Shape{}, unary(func(b *Builder, x Output) Output { return b.Square("", x) })},
		{"Neg", MakeShape(-1), Shape{}, unary(func(b *Builder, x Output) Output { return b.Neg("", x) })},
		{"Identity", MakeShape(-1), Shape{}, unary(func(b *Builder, x Output) Output { return b.Identity("", x) })},
		{"Cast", MakeShape(5), Shape{}, unary(func(b *Builder, x Output) Output { return b.Cast("", x, float) })},
		{"Reshape", MakeShape(4, 3), Shape{}, unary(func(b *Builder, x Output) Output { return b.Reshape("", x, MakeShape(2, -1)) })},
		{"L2Loss", MakeShape(4, 3), Shape{}, unary(func(b *Builder, x Output) Output { return b.L2Loss("", x) })},
		{"Mean", MakeShape(-1, 3), Shape{}, unary(func(b *Builder, x Output) Output { return b.Mean("", x) })},
		{"Sum", Shape{}, Shape{}, unary(func(b *Builder, x Output) Output { return b.Sum("", x) })},
		{"SparseSoftmaxCrossEntropyWithLogits", MakeShape(-1, 3), Shape{}, unary(func(b *Builder, x Output) Output {
			labels := b.Placeholder("labels", tfpb.DataType_DT_INT64, MakeShape(-1))
			return b.SparseSoftmaxCrossEntropyWithLogits("", x, labels)
		})},
		{"Rsqrt", MakeShape(-1), Shape{}, unary(func(b *Builder, x Output) Output { return b.Rsqrt("", x) })},
		{"SquaredDifference", MakeShape(-1, 3), MakeShape(3), func(b *Builder, x, y Output) Output { return b.SquaredDifference("", x, y) }},
		{"SelectV2", MakeShape(-1, 3), MakeShape(-1, 3), func(b *Builder, x, y Output) Output {
			return b.SelectV2("", b.Placeholder("condition", tfpb.DataType_DT_BOOL, Shape{}), x, y)
		}},
		{"Mean", MakeShape(-1, 3), Shape{}, unary(func(b *Builder, x Output) Output { return b.MeanOver("Mean", x, 0) })},
		{"Sum", MakeShape(-1, 3, 2), Shape{}, unary(func(b *Builder, x Output) Output { return b.SumOver("Sum", x, 1) })},
		{"Conv2D", MakeShape(-1, 5, 5, 2), MakeShape(3, 3, 2, 4), func(b *Builder, x, y Output) Output { return b.Conv2D("", x, y) }},
		{"ConcatV2", MakeShape(-1, 3), MakeShape(-1, 2), func(b *Builder, x, y Output) Output { return b.ConcatColumns("concat", x, y) }},
		{"MaxPool", MakeShape(-1, 5, 5, 2), Shape{}, unary(func(b *Builder, x Output) Output { return b.MaxPool("", x, 2) })},
	}
	untested := differentiableOps()
	for _, c := range tests {
		t.Run(fmt.Sprintf("%s %v %v", c.op, c.x, c.y), func(t *testing.T) {
			b := NewBuilder()
			x, y := b.Placeholder("x", float, c.x), b.Placeholder("y", float, c.y)
			z := c.make(b, x, y)
			if z.Node.Op() != c.op {
				t.Fatalf("made a %s", z.Node.Op())
			}
			for _, in := range []Output{x, y} {
				if g := b.Gradients(b.Sum("", z), []Output{in})[0]; g.Valid() && !g.Shape().Equal(in.Shape()) {
					t.Errorf("gradient of %s has shape %v, want %v", in.Name(), g.Shape(), in.Shape())
				} else if !g.Valid() && in == x {
					t.Error("no gradient")
				}
			}
			if b.Err() != nil {
				t.Error(b.Err())
			}
		})
		untested = slices.DeleteFunc(untested, func(op string) bool { return op == c.op })
	}
	// Variables are tested with the optimizers; a StopGradient lets nothing back.
	if !slices.Equal(untested, []string{"ReadVariableOp", "ResourceGather", "StopGradient"}) {
		t.Errorf("ops with a gradient and without a test: %v", untested)
	}
}
