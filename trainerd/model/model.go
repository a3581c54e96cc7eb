// Package model builds the model families that a job's configuration can name,
// as MetaGraphDefs that TensorFlow imports and that any session runs: forward
// pass, gradients, optimizer, initialisation, summaries and saver.
//
// The variables have the names that TensorFlow users expect: hidden/kernel
// and hidden/bias (hidden_1, hidden_2, ... when there are several layers),
// logits/kernel and logits/bias, conv_1/kernel, embedding/table, global_step, and
// each optimizer's slots, such as logits/kernel/Adam. Kernels are drawn by seeded ops, so that all runtimes
// begin with the same numbers.
package model

import (
	"fmt"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/graph/optimizer"
)

// Model is a model ready to train, with the names of the tensors and ops that
// can be fed, fetched and run. Names of tensors end in ":0"; those of ops do
// not.
type Model struct {
	Meta *tfpb.MetaGraphDef

	// X takes a batch of examples, float32 [batch, inputs]; for convnet float32
	// [batch, height, width, channels], for embedding_bag int64 [batch, inputs].
	X graph.Placeholder
	// Y takes their labels: the classes, int64 [batch]; for the linear family
	// the values, float32 [batch].
	Y graph.Placeholder
	// Weight takes the weights of the examples, float32 [batch], by which their
	// losses are multiplied: the tensor's name, or "" for a model without
	// weights.
	Weight string
	// Training is a bool to be fed as true in a training step; it is false by
	// default: the tensor's name, or "" for a model that does the same in both
	// cases.
	Training string

	Loss        string // mean loss of the batch, weights and the L2 term included; of linear in the label's units
	MSE         string // mean squared error of the batch, without both; only for linear
	Accuracy    string // fraction of the batch predicted correctly, without weights; "" for linear
	Predictions string // predicted classes, int64 [batch]; for linear the values
	Logits      string // what the classes are predicted from; "" for linear

	TrainOp     string // makes one step
	InitOp      string // gives all variables their initial values
	LocalInitOp string
	ReadyOp     string // lists the variables that have no value yet
	SummaryOp   string // all summaries as one encoded Summary
	GlobalStep  string // number of steps made, int64

	Sync *Sync // nil for a replica that does not wait for others
}

// Build makes the model that cfg describes, for features that are used
// unchanged.
func Build(cfg Config) (*Model, error) { return Spec{Config: cfg}.Build() }

// Spec is a model together with its data and replicas.
type Spec struct {
	Config
	// Data describes the examples; nil for features that are used unchanged.
	Data *Data
	// Sync makes the model one of several replicas that wait for each other in
	// every step; nil for one that does not.
	Sync *SyncReplicas
}

// Build makes the model.
func (s Spec) Build() (*Model, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	m := &maker{b: graph.NewBuilder(), cfg: s.withDefaults(), data: s.Data, sync: s.Sync}
	m.inputs()
	m.step = m.b.GlobalStep()
	m.preprocess()
	families[m.cfg.Family](m)
	m.train()
	m.summaries()
	m.finish()
	meta, err := m.b.MetaGraph()
	if err != nil {
		return nil, fmt.Errorf("model: family %s: %w", s.Family, err)
	}
	m.out.Meta = meta
	return &m.out, m.sign(meta)
}

// maker holds a model under construction.
type maker struct {
	b    *graph.Builder
	cfg  Config
	data *Data         // nil for features that are learnt from as they are
	sync *SyncReplicas // nil for a replica that does not wait for others
	out  Model
	x, y graph.Output
	// weight is that of each example; not valid for a model without.
	weight graph.Output
	step   *graph.Variable

	weights  []*graph.Variable // in the order in which the optimizer goes through them
	kernels  []graph.Output    // the kernels as the forward pass reads them
	seeds    int64             // random initial values besides the kernels'
	dropouts int64
	updates  []*graph.Node // of moving averages
	training graph.Output  // not valid for a model without dropout and batch norm
	loss     graph.Output
	accuracy graph.Output // not valid for linear
	rate     graph.Output

	takes, gives map[string]graph.Output // of the signature
	// minimized is what training makes small; not valid for the loss itself.
	minimized graph.Output
	fit       graph.Output // the loss without weights and the L2 term
}

func (m *maker) inputs() {
	yType := tfpb.DataType_DT_INT64
	if m.cfg.IsRegression() {
		yType = tfpb.DataType_DT_FLOAT
	}
	xType, xShape, yShape := tfpb.DataType_DT_FLOAT, graph.MakeShape(-1, int64(m.cfg.Inputs)), graph.MakeShape(-1)
	switch m.cfg.Family {
	case "convnet":
		xShape = graph.MakeShape(-1, int64(m.cfg.Image[0]), int64(m.cfg.Image[1]), int64(m.cfg.Image[2]))
	case "embedding_bag":
		xType = tfpb.DataType_DT_INT64
	}
	m.x = m.input(xType, xShape)
	m.y = m.b.Placeholder("y", yType, yShape)
	m.out.X = graph.Placeholder{Name: m.x.Name(), DType: m.x.DType(), Shape: xShape}
	if m.data != nil && m.data.Weighted {
		m.weight = m.b.Placeholder("sample_weight", tfpb.DataType_DT_FLOAT, graph.MakeShape(-1))
		m.out.Weight = m.weight.Name()
	}
	m.out.Y = graph.Placeholder{Name: m.y.Name(), DType: yType, Shape: yShape}
	if m.cfg.Dropout > 0 || m.cfg.BatchNorm {
		no := m.b.Const("training/input", literal.Bool(false))
		m.training = m.b.PlaceholderWithDefault("training", no, graph.Shape{})
		m.out.Training = m.training.Name()
	}
}

func (m *maker) train() {
	if m.sync != nil {
		m.trainSync()
		return
	}
	train, rate := optimizer.Minimize(m.b, m.objective(), newOptimizer(m.cfg), learningRate(m.cfg), m.step, m.weights, m.updates...)
	m.out.TrainOp, m.rate = train.Name(), rate
}

// objective returns what training makes small.
func (m *maker) objective() graph.Output {
	if m.minimized.Valid() {
		return m.minimized
	}
	return m.loss
}

func newOptimizer(c Config) optimizer.Optimizer {
	switch c.Optimizer {
	case "momentum", "nesterov":
		return optimizer.Momentum{Momentum: float32(c.Momentum), Nesterov: c.Nesterov}
	case "adagrad":
		return optimizer.Adagrad{InitialAccumulator: float32(c.InitialAccumulator)}
	case "adadelta":
		return optimizer.Adadelta{Rho: float32(c.Rho), Epsilon: float32(c.Epsilon)}
	case "ftrl":
		return optimizer.Ftrl{Power: float32(c.LearningRatePower), InitialAccumulator: float32(c.InitialAccumulator),
			L1: float32(c.FtrlL1), L2: float32(c.FtrlL2)}
	case "adam":
		return optimizer.Adam{Beta1: float32(c.Beta1), Beta2: float32(c.Beta2), Epsilon: float32(c.Epsilon)}
	case "rmsprop":
		return optimizer.RMSProp{Decay: float32(c.Rho), Momentum: float32(c.Momentum), Epsilon: float32(c.Epsilon)}
	}
	return optimizer.SGD{}
}

func learningRate(c Config) optimizer.LearningRate {
	lr := optimizer.LearningRate{
		Initial: float32(c.LearningRate), Schedule: schedules[c.Schedule],
		DecaySteps: c.DecaySteps, DecayRate: float32(c.DecayRate), Staircase: c.Staircase,
		End: float32(c.EndLearningRate), Power: float32(c.Power),
		Boundaries: c.Boundaries, WarmupSteps: c.WarmupSteps,
	}
	for _, rate := range c.Rates {
		lr.Values = append(lr.Values, float32(rate))
	}
	return lr
}

var schedules = map[string]optimizer.Schedule{
	"constant": optimizer.ScheduleConstant, "exponential": optimizer.ScheduleExponential,
	"polynomial": optimizer.SchedulePolynomial, "piecewise": optimizer.SchedulePiecewise,
	"cosine": optimizer.ScheduleCosine, "inverse_time": optimizer.ScheduleInverseTime,
}

// summaries adds what TensorBoard shows: loss, accuracy, a learning rate that
// changes, and the distribution of each weight.
func (m *maker) summaries() {
	b := m.b
	var all []graph.Output
	b.Scope("summaries", func() {
		all = append(all, b.ScalarSummary("loss", "loss", m.loss))
		if m.accuracy.Valid() {
			all = append(all, b.ScalarSummary("accuracy", "accuracy", m.accuracy))
		}
		if learningRate(m.cfg).Changes() {
			all = append(all, b.ScalarSummary("learning_rate", "learning_rate", m.rate))
		}
		for _, v := range m.weights {
			value := b.Read(v.Name()+"/ReadVariableOp", v)
			all = append(all, b.HistogramSummary(v.Name(), v.Name(), value))
		}
	})
	m.out.SummaryOp = b.MergeSummaries(all...).Name()
}

func (m *maker) finish() {
	init, local := m.b.AddInit()
	ready, _ := m.b.AddReady()
	m.b.AddSaver()
	m.out.InitOp, m.out.LocalInitOp, m.out.ReadyOp = init.Name(), local.Name(), ready.Name()
	m.out.GlobalStep = m.step.Def.GetSnapshotName()
	m.out.Loss = m.loss.Name()
	m.out.Accuracy = m.accuracy.Name()
}
