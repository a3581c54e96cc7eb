package program

import (
	"slices"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/model"
)

// Program is what a job trains, a model family or an exported graph, by the
// names of its parts. Tensors are named "node:output".
type Program struct {
	Meta *tfpb.MetaGraphDef
	Dir  string // where file names in the graph start; "" is the working directory

	Train   []string // ops of a step
	Loss    string   // "" for none
	Show    []Metric // fetched to be shown
	Summary []string // encoded summaries; none for none
	// DrawsLoss says that the loss is written as a curve: the graph has no summaries.
	DrawsLoss bool
	Metrics   []Metric // evaluated on the test part

	Init, LocalInit, Ready, ReadyForLocal []string
	GlobalStep                            string // tensor
	StepKey                               string // its key in checkpoints
	CountsSteps                           bool   // every step is known to raise the global step by one

	Sync *model.Sync // nil for a program whose replicas do not wait for each other

	// ApplyGrads are the ops of a worker's step by which it gives its gradients to an
	// update that waits for those of others; none if it does not.
	ApplyGrads []string

	// TakeInput are the ops by which a step takes its input from queues and
	// readers of the graph.
	TakeInput []string

	parsing sync.Mutex
	parsed  *graph.Graph // of Meta, once it was asked for
}

// Graph returns Meta, indexed. Meta does not change once it was asked for.
func (p *Program) Graph() (*graph.Graph, error) {
	p.parsing.Lock()
	defer p.parsing.Unlock()
	if p.parsed != nil {
		return p.parsed, nil
	}
	var err error
	p.parsed, err = graph.Parse(p.Meta)
	return p.parsed, err
}

// SetGraph makes g the program's graph.
func (p *Program) SetGraph(g *graph.Graph) {
	p.parsing.Lock()
	defer p.parsing.Unlock()
	p.Meta, p.parsed = g.Meta, g
}

// MSE is the metric of a model of numbers whose loss has more than the squared
// error; of others that is the loss.
const MSE = "mean_squared_error"

// Metric is a scalar with the name that people know it by.
type Metric struct{ Name, Tensor string }

// OfFamily returns the program of a model family.
func OfFamily(m *model.Model) *Program {
	p := &Program{
		Meta: m.Meta, Train: []string{m.TrainOp}, Loss: m.Loss, Summary: []string{m.SummaryOp},
		Init: []string{m.InitOp}, LocalInit: []string{m.LocalInitOp}, Ready: []string{m.ReadyOp},
		GlobalStep: m.GlobalStep, StepKey: trainerd.DefaultGlobalStep, CountsSteps: true, Sync: m.Sync,
	}
	if m.Sync != nil {
		p.ApplyGrads = []string{m.Sync.Give}
	}
	if m.Accuracy != "" {
		p.Metrics = append(p.Metrics, Metric{"accuracy", m.Accuracy})
	}
	p.Metrics = append(p.Metrics, Metric{"loss", m.Loss})
	if m.MSE != "" && m.MSE != m.Loss {
		p.Metrics = append(p.Metrics, Metric{MSE, m.MSE})
	}
	return p
}

// Metric returns the tensor of a metric.
func (p *Program) Metric(name string) (Metric, bool) {
	i := slices.IndexFunc(p.Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return p.Metrics[i], true
}

// trainable returns the trainable variables, or all if none is marked.
func (p *Program) trainable() ([]graph.VariableRef, error) {
	g, err := p.Graph()
	if err != nil {
		return nil, err
	}
	if vars := g.TrainableVariables(); len(vars) > 0 {
		return vars, nil
	}
	return g.Variables(), nil
}

// Parameters counts the numbers that training changes. Variables whose size is
// not known before they have a value are left out.
func (p *Program) Parameters() (int64, error) {
	vars, err := p.trainable()
	if err != nil {
		return 0, err
	}
	total := int64(0)
	seen := make(map[string]bool)
	for _, v := range vars {
		if n, known := v.Shape.NumElements(); known && !seen[v.Name()] {
			total += n
		}
		seen[v.Name()] = true
	}
	return total, nil
}

// Feed is what a run is fed, by tensor.
type Feed = map[string]*ckptfmt.Tensor

// QueueRunners returns what fills the queues of the graph.
func (p *Program) QueueRunners() ([]*tfpb.QueueRunnerDef, error) {
	g, err := p.Graph()
	if err != nil {
		return nil, err
	}
	return g.QueueRunners()
}
