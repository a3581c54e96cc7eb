package model_test

import (
	"context"
	"math"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

var nan = math.NaN()

// testData has two numbers around a category of few words, one of many, and a
// date.
func testData(many int) *model.Data {
	words := make([]string, many)
	for i := range words {
		words[i] = string(rune('a'+i%26)) + string(rune('0'+i/26))
	}
	return &model.Data{
		Schema: dataset.Schema{
			Features: []dataset.Feature{
				{Name: "size", Kind: dataset.KindNumber}, {Name: "the colour", Kind: dataset.KindCategory, Vocabulary: []string{"red", "green"}},
				{Name: "größe", Kind: dataset.KindNumber}, {Name: "many", Kind: dataset.KindCategory, Vocabulary: words}, {Name: "day", Kind: dataset.KindDate},
			},
			Label: dataset.Feature{Name: "y", Kind: dataset.KindCategory, Vocabulary: []string{"no", "yes", "maybe"}}, Classes: 3,
		},
		Statistics: &dataset.Statistics{
			Features: []dataset.Moments{{Mean: 2, Variance: 4, Max: 5}, {}, {Mean: 10}, {}, {Mean: 100, Variance: 25, Min: 90, Max: 110}},
			Label:    dataset.Moments{Mean: 50, Variance: 100},
		},
		Normalize: dataset.NormalizeStandard,
	}
}

func floatTensor(shape []int64, vs ...float64) *ckptfmt.Tensor {
	out := make([]float32, len(vs))
	for i, v := range vs {
		out[i] = float32(v)
	}
	return floats(out, shape...)
}

// startModel returns a session with the initial values and the tables.
func startModel(t *testing.T, m *model.Model) *runtime.Session {
	t.Helper()
	sess, err := runtime.New(m.Meta.GetGraphDef(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sess.Close() })
	tables := graph.Collections{Meta: m.Meta}.Names(graph.TableInitializers)
	if _, err := sess.Run(context.Background(), nil, nil, append(tables, m.InitOp)); err != nil {
		t.Fatal(err)
	}
	return sess
}

func fetch(t *testing.T, sess *runtime.Session, feeds map[string]*ckptfmt.Tensor, name string) []float32 {
	t.Helper()
	out, err := sess.Run(context.Background(), feeds, []string{name}, nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return values(out[0])
}

// TestFeaturesOfWords holds what a model makes of raw rows: numbers with mean 0
// and deviation 1, 0 for a missing one, a one among zeros for a word, zeros for
// an unknown one.
func TestFeaturesOfWords(t *testing.T) {
	m, err := model.Spec{Config: model.Config{Family: "softmax", Inputs: 5, Classes: 3}, Data: testData(3)}.Build()
	if err != nil {
		t.Fatal(err)
	}
	sess := startModel(t, m)
	rows := floatTensor([]int64{2, 5}, 6, 1, 10, 2, 110, nan, -1, 11, 0, nan)
	got := fetch(t, sess, map[string]*ckptfmt.Tensor{"x:0": rows}, "features/concat:0")
	want := []float32{2, 0, 2, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// TestServingInputs holds that the signature's columns give what raw rows give,
// and that a model with an embedding learns through it.
func TestServingInputs(t *testing.T) {
	d := testData(200)
	m, err := model.Spec{Config: model.Config{Family: "mlp", Inputs: 5, Classes: 3, Hidden: []int{4}, Seed: 1}, Data: d}.Build()
	if err != nil {
		t.Fatal(err)
	}
	sess := startModel(t, m)
	sign := m.Meta.GetSignatureDef()[model.ServingKey]
	column := func(key string, v *tfpb.TensorProto) (string, *ckptfmt.Tensor) {
		t.Helper()
		in := sign.GetInputs()[key]
		value, err := ckptfmt.TensorFromProto(v)
		if in == nil || err != nil {
			t.Fatalf("input %q: %v, %v", key, in, err)
		}
		return in.GetName(), value
	}
	feeds := make(map[string]*ckptfmt.Tensor)
	for key, v := range map[string]*tfpb.TensorProto{
		"size": literal.Floats(6, float32(nan)), "größe": literal.Floats(10, 11), "day": literal.Floats(110, 95),
		"the colour": literal.Strings("green", "blue"), "many": literal.Strings(d.Schema.Features[3].Vocabulary[199], ""),
	} {
		name, value := column(key, v)
		feeds[name] = value
	}
	probabilities := sign.GetOutputs()[model.OutputProbabilities].GetName()
	byColumn := fetch(t, sess, feeds, probabilities)
	rows := map[string]*ckptfmt.Tensor{"x:0": floatTensor([]int64{2, 5}, 6, 1, 10, 199, 110, nan, -1, 11, -1, 95)}
	byRow := fetch(t, sess, rows, probabilities)
	for i := range byRow {
		if byRow[i] != byColumn[i] {
			t.Fatalf("by column %v, by row %v", byColumn, byRow)
		}
	}
	out, err := sess.Run(context.Background(), feeds, []string{sign.GetOutputs()[model.OutputClasses].GetName(), sign.GetOutputs()[model.OutputClassNames].GetName()}, nil)
	if err != nil || len(out) != 2 || out[1].DType != tfpb.DataType_DT_STRING {
		t.Fatalf("classes and their names: %v, %v", out, err)
	}
	labels, err := ckptfmt.TensorFromProto(literal.Int64s(2, 0))
	if err != nil {
		t.Fatal(err)
	}
	rows["y:0"] = labels
	before := fetch(t, sess, rows, m.Loss)[0]
	for range 20 {
		if _, err := sess.Run(context.Background(), rows, nil, []string{m.TrainOp}); err != nil {
			t.Fatal(err)
		}
	}
	if after := fetch(t, sess, rows, m.Loss)[0]; !(after < before) {
		t.Errorf("the loss was %v, and is %v", before, after)
	}
}

// TestLabelInUnits holds that a model that predicts numbers begins at the label's
// mean, and gives loss and prediction in the label's units.
func TestLabelInUnits(t *testing.T) {
	d := testData(3)
	d.Schema.Label = dataset.Feature{Kind: dataset.KindNumber}
	m, err := model.Spec{Config: model.Config{Family: "linear", Inputs: 5, Initializer: "zeros", LearningRate: 0.02}, Data: d}.Build()
	if err != nil {
		t.Fatal(err)
	}
	sess := startModel(t, m)
	feeds := map[string]*ckptfmt.Tensor{"x:0": floatTensor([]int64{1, 5}, 6, 1, 10, 2, 110), "y:0": floatTensor([]int64{1}, 80)}
	if p := fetch(t, sess, feeds, m.Predictions)[0]; p != 50 {
		t.Errorf("the first prediction is %v, want the mean, 50", p)
	}
	if loss := fetch(t, sess, feeds, m.Loss)[0]; loss != 900 {
		t.Errorf("the loss is %v, want the squared error, 900", loss)
	}
	for range 50 {
		if _, err := sess.Run(context.Background(), feeds, nil, []string{m.TrainOp}); err != nil {
			t.Fatal(err)
		}
	}
	if p := fetch(t, sess, feeds, m.Predictions)[0]; math.Abs(float64(p)-80) > 1 {
		t.Errorf("after training the prediction is %v, want about 80", p)
	}
}

// TestScaling compares the other ways to scale, as variables and as constants.
func TestScaling(t *testing.T) {
	data := func() *model.Data {
		return &model.Data{
			Schema: dataset.Schema{Features: []dataset.Feature{{Kind: dataset.KindNumber}, {Kind: dataset.KindNumber}}},
			Statistics: &dataset.Statistics{Features: []dataset.Moments{
				{Rows: 4, Missing: 1, Mean: 3, Variance: 4, Min: 1, Max: 5}, {Rows: 4, Mean: 7, Min: 7, Max: 7}}},
		}
	}
	for _, tt := range []struct {
		name, tensor string
		change       func(*model.Data)
		want         []float32
	}{
		{"standard", "normalization/SelectV2:0", func(d *model.Data) { d.Normalize = dataset.NormalizeStandard }, []float32{1, 0, 0, 1}},
		{"minmax", "normalization/truediv:0", func(d *model.Data) { d.Normalize = dataset.NormalizeMinMax }, []float32{1, 0, .5, 1}},
		{"imputed", "imputation/SelectV2:0", func(d *model.Data) {}, []float32{5, 7, 3, 8}},
		{"divided", "scale:0", func(d *model.Data) { d.Scale = 2 }, []float32{2.5, 3.5, 1.5, 4}},
	} {
		for _, constant := range []bool{false, true} {
			d := data()
			tt.change(d)
			d.Constant = constant
			m, err := model.Spec{Config: model.Config{Family: "softmax", Inputs: 2, Classes: 2}, Data: d}.Build()
			if err != nil {
				t.Fatal(err)
			}
			sess := startModel(t, m)
			got := fetch(t, sess, map[string]*ckptfmt.Tensor{"x:0": floatTensor([]int64{2, 2}, 5, 7, nan, 8)}, tt.tensor)
			for i := range tt.want {
				if got[i] != tt.want[i] {
					t.Errorf("%s, constant %v: got %v, want %v", tt.name, constant, got, tt.want)
					break
				}
			}
			names, err := model.StatisticVariables(m.Meta)
			if err != nil || (len(names) > 0) == constant {
				t.Errorf("%s, constant %v: variables %v, %v", tt.name, constant, names, err)
			}
		}
	}
}

// TestSchemaIsInTheGraph holds that a MetaGraph knows its columns.
func TestSchemaIsInTheGraph(t *testing.T) {
	m, err := model.Spec{Config: model.Config{Family: "softmax", Inputs: 5, Classes: 3}, Data: testData(3)}.Build()
	if err != nil {
		t.Fatal(err)
	}
	s, err := model.SchemaOf(m.Meta)
	if err != nil || s == nil || s.Features[1].Vocabulary[1] != "green" || s.ClassName(2) != "maybe" {
		t.Errorf("got %+v, %v", s, err)
	}
}

// A weight of 2 does what a second copy of the example does, a weight of 0 what
// leaving it out does; accuracy and the error of numbers know no weights.
func TestWeights(t *testing.T) {
	for _, cfg := range []model.Config{
		{Family: "softmax", Inputs: 2, Classes: 3, LearningRate: 0.5, L2: 0.1},
		{Family: "logistic", Inputs: 2, LearningRate: 0.5},
		{Family: "linear", Inputs: 2, LearningRate: 0.1, L2: 0.1},
		{Family: "mlp_regressor", Inputs: 2, LearningRate: 0.1, L2: 0.1, Hidden: []int{3}, Wide: true},
	} {
		t.Run(cfg.Family, func(t *testing.T) {
			x := [][]float32{{1, 2}, {-1, 0.5}, {0.25, -2}, {3, 3}}
			weighted := trainWeighted(t, cfg, x, []int{0, 1, 0, 1}, []float32{1, 2, 1, 0})
			copies := trainWeighted(t, cfg, [][]float32{x[0], x[1], x[1], x[2]}, []int{0, 1, 1, 0}, nil)
			for i := range copies {
				if math.Abs(float64(weighted[i]-copies[i])) > 1e-5 {
					t.Fatalf("with weights the kernel is %v, with copies %v", weighted, copies)
				}
			}
		})
	}
}

// trainWeighted returns the kernel after some steps on a batch.
func trainWeighted(t *testing.T, cfg model.Config, x [][]float32, y []int, weights []float32) []float32 {
	t.Helper()
	m, err := model.Spec{Config: cfg, Data: &model.Data{Weighted: weights != nil}}.Build()
	if err != nil {
		t.Fatal(err)
	}
	sess := startModel(t, m)
	var flat, numbers []float32
	var classes []int64
	for i := range x {
		flat, numbers, classes = append(flat, x[i]...), append(numbers, float32(y[i])), append(classes, int64(y[i]))
	}
	n := int64(len(x))
	feeds := map[string]*ckptfmt.Tensor{m.X.Name: floats(flat, n, 2), m.Y.Name: ints(classes)}
	kernel := "logits/kernel"
	if cfg.IsRegression() {
		feeds[m.Y.Name], kernel = floats(numbers, n), map[bool]string{true: "wide/kernel", false: "linear/kernel"}[cfg.Wide]
	}
	if weights != nil {
		feeds[m.Weight] = floats(weights, n)
	}
	ctx := context.Background()
	for range 20 {
		if _, err := sess.Run(ctx, feeds, nil, []string{m.TrainOp}); err != nil {
			t.Fatal(err)
		}
	}
	value, err := sess.Run(ctx, nil, []string{kernel + "/Read/ReadVariableOp:0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return values(value[0])
}
