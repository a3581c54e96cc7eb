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
	x = floats(features, batch, int64(cfg.Inputs))
	if cfg.Family == "linear" {
		return x, floats(sums, batch)
	}
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
			case "softmax":
				c.Classes = 3
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
			if last := tr.loss(); !(last < .95*first) {
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
	x = floats(features, batch, int64(cfg.Inputs))
	if cfg.Family == "linear" {
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
		{"mlp sigmoid", model.Config{Family: "mlp", Classes: 3, Hidden: []int{8}, Activation: "sigmoid", Initializer: "glorot_normal"}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			cfg := c.cfg
			cfg.Inputs, cfg.Seed, cfg.LearningRate = 5, 12, 1
			tr := start(t, cfg)
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
