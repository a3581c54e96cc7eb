package model_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

func floats(vs []float32, shape ...int64) *ckptfmt.Tensor {
	t := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: shape}
	for _, v := range vs {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return t
}

func ints(vs []int64) *ckptfmt.Tensor {
	t := &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT64, Shape: []int64{int64(len(vs))}}
	for _, v := range vs {
		t.Data = binary.LittleEndian.AppendUint64(t.Data, uint64(v))
	}
	return t
}

// values returns the elements of a tensor of DT_FLOAT.
func values(t *ckptfmt.Tensor) []float32 {
	vs := make([]float32, len(t.Data)/4)
	for i := range vs {
		vs[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
	}
	return vs
}

// trainee is a model in a session, with a batch to learn.
type trainee struct {
	*testing.T
	model *model.Model
	sess  *runtime.Session
	feeds map[string]*ckptfmt.Tensor
}

const batch = 32

// start builds a model, initialises it, and makes a batch whose labels depend
// on the inputs.
func start(t *testing.T, cfg model.Config) *trainee {
	t.Helper()
	m, err := model.Build(cfg)
	if err != nil {
		t.Fatal(err)
	}
	sess, err := runtime.New(m.Meta.GraphDef, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sess.Close() })
	tr := &trainee{T: t, model: m, sess: sess}
	tr.feeds = map[string]*ckptfmt.Tensor{}
	tr.feeds[m.X.Name], tr.feeds[m.Y.Name] = examples(cfg, max(cfg.Classes, 2))
	tr.run(nil, m.InitOp)
	tr.run(nil, m.LocalInitOp)
	if missing := tr.run([]string{m.ReadyOp})[0]; len(missing.Strings) != 0 {
		t.Fatalf("after initialisation these have no value: %q", missing.Strings)
	}
	return tr
}

func examples(cfg model.Config, classes int) (x, y *ckptfmt.Tensor) {
	rng := rand.New(rand.NewPCG(1, 2))
	if cfg.Family == "embedding_bag" {
		return bags(rng, cfg, classes)
	}
	features := make([]float32, batch*cfg.Inputs)
	for i := range features {
		features[i] = rng.Float32()*2 - 1
	}
	labels, sums := make([]int64, batch), make([]float32, batch)
	for i := range batch {
		row := features[i*cfg.Inputs : (i+1)*cfg.Inputs]
		labels[i] = int64(slices.Index(row[:classes], slices.Max(row[:classes])))
		for _, v := range row {
			sums[i] += v
		}
	}
	x = floats(features, append([]int64{batch}, shapeOf(cfg)...)...)
	if cfg.IsRegression() {
		return x, floats(sums, batch)
	}
	return x, ints(labels)
}

// shapeOf is the shape of an example.
func shapeOf(cfg model.Config) []int64 {
	if cfg.Family != "convnet" {
		return []int64{int64(cfg.Inputs)}
	}
	return []int64{int64(cfg.Image[0]), int64(cfg.Image[1]), int64(cfg.Image[2])}
}

// bags makes bags of ids, some of them with less than all, whose class is the
// first id's.
func bags(rng *rand.Rand, cfg model.Config, classes int) (x, y *ckptfmt.Tensor) {
	var ids, labels []int64
	for range batch {
		first := rng.Int64N(int64(cfg.Vocabulary))
		ids, labels = append(ids, first), append(labels, first%int64(classes))
		for range cfg.Inputs - 1 {
			ids = append(ids, rng.Int64N(int64(cfg.Vocabulary)+2)-2)
		}
	}
	x = ints(ids)
	x.Shape = []int64{batch, int64(cfg.Inputs)}
	return x, ints(labels)
}

func (t *trainee) run(fetches []string, targets ...string) []*ckptfmt.Tensor {
	t.Helper()
	out, err := t.sess.Run(context.Background(), t.feeds, fetches, targets)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (t *trainee) loss() float64 {
	t.Helper()
	return float64(values(t.run([]string{t.model.Loss})[0])[0])
}

// configs is each family with each optimizer, at rates that suit them.
func configs() (all []model.Config) {
	for _, family := range model.Families {
		for _, optimizer := range model.Optimizers {
			c := model.Config{Family: family, Optimizer: optimizer, Inputs: 6, Seed: 3, LearningRate: .02}
			switch family {
			case "mlp":
				c.Classes, c.Hidden = 3, []int{16}
			case "mlp_regressor":
				c.Hidden, c.Wide = []int{16}, true
			case "softmax":
				c.Classes = 3
			case "convnet":
				c.Classes, c.Inputs, c.Image, c.Filters, c.BatchNorm = 3, 18, []int{3, 3, 2}, []int{6, 4}, true
			case "embedding_bag":
				c.Classes, c.Vocabulary, c.Embedding, c.Hidden, c.Inputs = 3, 9, 8, []int{12}, 3
			}
			if family == "embedding_bag" && (optimizer == "sgd" || optimizer == "ftrl") {
				c.LearningRate = .5 // few rows move in each step
			}
			if optimizer == "adadelta" {
				c.LearningRate = 10 // its steps begin tiny, whatever the slope
			}
			all = append(all, c)
		}
	}
	return all
}

func TestLearns(t *testing.T) {
	const steps = 60
	for _, cfg := range configs() {
		t.Run(cfg.Family+"_"+cfg.Optimizer, func(t *testing.T) {
			tr := start(t, cfg)
			first := tr.loss()
			for range steps {
				tr.run(nil, tr.model.TrainOp)
			}
			if last := tr.loss(); !(last < .985*first) {
				t.Errorf("loss went from %v to %v", first, last)
			}
			step := tr.run([]string{tr.model.GlobalStep})[0]
			if n := binary.LittleEndian.Uint64(step.Data); n != steps {
				t.Errorf("global step is %d, want %d", n, steps)
			}
		})
	}
}

// TestLossOfAStep checks that a loss fetched together with a step is the loss
// before that step, whatever the order in which the session works: the L2 term
// reads the weights and does not lie on the way to their updates.
func TestLossOfAStep(t *testing.T) {
	for _, optimizer := range model.Optimizers {
		t.Run(optimizer, func(t *testing.T) {
			tr := start(t, model.Config{Family: "mlp", Inputs: 6, Classes: 3, Hidden: []int{16}, L2: .5,
				Optimizer: optimizer, LearningRate: .1})
			for step := range 5 {
				before := tr.loss()
				got := float64(values(tr.run([]string{tr.model.Loss}, tr.model.TrainOp)[0])[0])
				if got != before {
					t.Fatalf("step %d: loss with the step is %v, alone it was %v", step, got, before)
				}
			}
		})
	}
}

// TestRecordedLosses trains from the seed's initial values and compares every
// loss with the one that TensorFlow had at that step.
func TestRecordedLosses(t *testing.T) {
	data, err := os.ReadFile("testdata/losses.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Config model.Config
		Losses []float64
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Config.Family+"_"+c.Config.Optimizer, func(t *testing.T) {
			tr := start(t, c.Config)
			tr.feeds[tr.model.X.Name], tr.feeds[tr.model.Y.Name] = recordedBatch(c.Config)
			if len(c.Losses) == 0 {
				t.Fatal("no losses are recorded")
			}
			for step, want := range c.Losses {
				got := float64(values(tr.run([]string{tr.model.Loss}, tr.model.TrainOp)[0])[0])
				if math.Abs(got-want) > 1e-5*math.Abs(want)+1e-6 {
					t.Errorf("step %d: loss %v, TensorFlow's was %v", step, got, want)
				}
			}
		})
	}
}

// recordedBatch is the batch that TensorFlow was given; the script that
// recorded its losses makes it by the same rule.
func recordedBatch(cfg model.Config) (x, y *ckptfmt.Tensor) {
	const batch = 16
	var features, numbers []float32
	var classes []int64
	for i := range batch {
		for j := range cfg.Inputs {
			features = append(features, float32((i*7+j*3+i*j)%11)/11)
		}
		numbers = append(numbers, float32(i%3))
		classes = append(classes, int64(i*3%max(cfg.Classes, 2)))
	}
	x = floats(features, append([]int64{batch}, shapeOf(cfg)...)...)
	if cfg.IsRegression() {
		return x, floats(numbers, batch)
	}
	return x, ints(classes)
}

// TestGradients compares what one step of plain descent takes from the weights
// with the slope of the loss, measured by moving one weight at a time.
func TestGradients(t *testing.T) {
	tests := []struct {
		name string
		cfg  model.Config
	}{
		{"linear", model.Config{Family: "linear"}},
		{"linear l2", model.Config{Family: "linear", L2: .5}},
		{"logistic", model.Config{Family: "logistic"}},
		{"logistic zeros", model.Config{Family: "logistic", Initializer: "zeros"}},
		{"softmax", model.Config{Family: "softmax", Classes: 3, Initializer: "truncated_normal"}},
		{"softmax l2", model.Config{Family: "softmax", Classes: 3, L2: .1}},
		{"mlp relu", model.Config{Family: "mlp", Classes: 3, Hidden: []int{8}}},
		{"mlp tanh", model.Config{Family: "mlp", Classes: 3, Hidden: []int{8, 5}, Activation: "tanh", L2: .1}},
		{"mlp of batch norm", model.Config{Family: "mlp", Classes: 3, Hidden: []int{8}, Activation: "tanh", BatchNorm: true, Dropout: .3}},
		{"convnet", model.Config{Family: "convnet", Classes: 3, Image: []int{5, 4, 2}, Filters: []int{4, 3}, Activation: "tanh", L2: .1}},
		{"convnet of batch norm", model.Config{Family: "convnet", Classes: 3, Image: []int{4, 4, 1}, Filters: []int{3}, Pool: 1, Activation: "sigmoid", BatchNorm: true}},
		{"embedding bag", model.Config{Family: "embedding_bag", Classes: 3, Vocabulary: 7, Embedding: 4}},
		{"embedding bag summed", model.Config{Family: "embedding_bag", Classes: 3, Vocabulary: 7, Combiner: "sum", Hidden: []int{5}, Activation: "tanh", L2: .1}},
		{"mlp sigmoid", model.Config{Family: "mlp", Classes: 3, Hidden: []int{8}, Activation: "sigmoid", Initializer: "glorot_normal"}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			cfg := c.cfg
			cfg.Inputs, cfg.Seed, cfg.LearningRate = 5, 12, 1
			if cfg.Family == "convnet" {
				cfg.Inputs = cfg.Image[0] * cfg.Image[1] * cfg.Image[2]
			}
			tr := start(t, cfg)
			if tr.model.Training != "" {
				tr.feeds[tr.model.Training] = &ckptfmt.Tensor{DType: tfpb.DataType_DT_BOOL, Data: []byte{1}}
			}
			g, err := graph.Parse(tr.model.Meta)
			if err != nil {
				t.Fatal(err)
			}
			before := tr.snapshot(g)
			slopes := map[string][]float64{}
			for name, v := range before {
				slopes[name] = tr.slopes(name, v)
			}
			tr.run(nil, tr.model.TrainOp)
			after := tr.snapshot(g)
			for name, want := range slopes {
				old, now := values(before[name]), values(after[name])
				for i := range want {
					// The rate is 1: what the step took is the gradient.
					if got := float64(old[i] - now[i]); math.Abs(got-want[i]) > 2e-3*max(1, math.Abs(want[i])) {
						t.Errorf("%s[%d]: gradient %v, measured slope %v", name, i, got, want[i])
					}
				}
			}
		})
	}
}

// TestTraining checks what differs between a training step and a prediction:
// dropout is a function of seed and step, and none in predictions; batch norm
// moves its averages in training alone.
func TestTraining(t *testing.T) {
	cfg := model.Config{Family: "mlp", Inputs: 6, Classes: 3, Hidden: []int{16}, Dropout: .5, BatchNorm: true, LearningRate: .1}
	on := &ckptfmt.Tensor{DType: tfpb.DataType_DT_BOOL, Data: []byte{1}}
	a, b := start(t, cfg), start(t, cfg)
	quiet := a.loss()
	if again := a.loss(); again != quiet {
		t.Errorf("two predictions differ: %v and %v", quiet, again)
	}
	a.feeds[a.model.Training], b.feeds[b.model.Training] = on, on
	if noisy := a.loss(); noisy == quiet || noisy != a.loss() {
		t.Errorf("in training the loss is %v, then %v, in predictions %v", noisy, a.loss(), quiet)
	}
	for step := range 4 {
		if step%2 == 0 {
			a.loss() // looking must not change what comes
		}
		x := a.run([]string{a.model.Loss}, a.model.TrainOp)[0]
		y := b.run([]string{b.model.Loss}, b.model.TrainOp)[0]
		if values(x)[0] != values(y)[0] {
			t.Fatalf("step %d: %v and %v", step, values(x), values(y))
		}
	}
	mean := a.run([]string{"hidden/batch_normalization/moving_mean/Read/ReadVariableOp:0"})[0]
	if slices.Max(values(mean)) == 0 {
		t.Error("the moving mean has not moved")
	}
}

// TestSchedules compares learning rates with the formulas, step by step.
func TestSchedules(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
	tests := []struct {
		name string
		cfg  model.Config
		want func(n float64) float64
	}{
		{"exponential", model.Config{DecaySteps: 3, DecayRate: .5}, func(n float64) float64 { return math.Pow(.5, n/3) }},
		{"staircase", model.Config{Schedule: "exponential", DecaySteps: 3, DecayRate: .5, Staircase: true},
			func(n float64) float64 { return math.Pow(.5, math.Floor(n/3)) }},
		{"polynomial", model.Config{Schedule: "polynomial", DecaySteps: 4, EndLearningRate: .2, Power: 2},
			func(n float64) float64 { return .8*math.Pow(1-min(n, 4)/4, 2) + .2 }},
		{"piecewise", model.Config{Schedule: "piecewise", Boundaries: []int64{1, 3}, Rates: []float64{1, .5, .25}},
			func(n float64) float64 { return []float64{1, 1, .5, .5, .25, .25, .25, .25}[int(n)] }},
		{"cosine", model.Config{Schedule: "cosine", DecaySteps: 4, EndLearningRate: .1},
			func(n float64) float64 { return .9*.5*(1+math.Cos(math.Pi*min(n, 4)/4)) + .1 }},
		{"inverse time", model.Config{Schedule: "inverse_time", DecaySteps: 2, DecayRate: 3}, func(n float64) float64 { return 1 / (1 + 3*n/2) }},
		{"warm-up", model.Config{WarmupSteps: 4}, func(n float64) float64 { return min(1, (n+1)/4) }},
		{"warm-up and cosine", model.Config{WarmupSteps: 2, Schedule: "cosine", DecaySteps: 6},
			func(n float64) float64 { return min(1, (n+1)/2) * .5 * (1 + math.Cos(math.Pi*min(n, 6)/6)) }},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			cfg := c.cfg
			cfg.Family, cfg.Inputs, cfg.LearningRate = "linear", 6, 1
			tr := start(t, cfg)
			for n := range 8 {
				s := new(tfpb.Summary)
				if err := proto.Unmarshal(tr.run([]string{tr.model.SummaryOp})[0].Strings[0], s); err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(s.Value, func(v *tfpb.Summary_Value) bool { return v.GetTag() == "learning_rate" })
				if i < 0 {
					t.Fatal("there is no summary of the learning rate")
				}
				if got := float64(s.Value[i].GetSimpleValue()); !near(got, c.want(float64(n))) {
					t.Errorf("step %d: %v, want %v", n, got, c.want(float64(n)))
				}
				tr.run(nil, tr.model.TrainOp)
			}
		})
	}
}

// snapshot returns the trainable variables.
func (t *trainee) snapshot(g *graph.Graph) map[string]*ckptfmt.Tensor {
	t.Helper()
	out := map[string]*ckptfmt.Tensor{}
	for _, v := range g.TrainableVariables() {
		s, err := t.sess.Snapshot(context.Background(), []string{v.Name()})
		if err != nil {
			t.Fatal(err)
		}
		out[v.Name()] = s.Tensors[0]
	}
	return out
}

// slopes measures how the loss changes with each element of a variable.
func (t *trainee) slopes(name string, at *ckptfmt.Tensor) []float64 {
	t.Helper()
	const step = 1.0 / 1024
	base := values(at)
	out := make([]float64, len(base))
	for i := range base {
		moved := slices.Clone(base)
		moved[i] = base[i] + step
		up := t.lossWith(name, floats(moved, at.Shape...))
		moved[i] = base[i] - step
		out[i] = (up - t.lossWith(name, floats(moved, at.Shape...))) / (2 * step)
	}
	t.assign(name, at)
	return out
}

func (t *trainee) lossWith(name string, v *ckptfmt.Tensor) float64 {
	t.Helper()
	t.assign(name, v)
	return t.loss()
}

func (t *trainee) assign(name string, v *ckptfmt.Tensor) {
	t.Helper()
	if err := t.sess.Restore(context.Background(), []ckptfmt.NamedTensor{{Name: name, Tensor: v}}); err != nil {
		t.Fatal(err)
	}
}
