package trainerd

import (
	"sync"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// metrics are the newest values reported to a run.
type metrics struct {
	mu     sync.Mutex
	values checkpoint.Measurements
	// reported are the values of ReportMetric in the step in progress.
	reported map[string]float64
}

// set records a value. A batch's value does not replace an evaluation's of the same step. The
// caller holds m.mu.
func (m *metrics) set(name string, v checkpoint.Measurement) {
	if old := m.values[name]; old.Source == manifest.SourceEval && v.Source == manifest.SourceTrain && old.Step == v.Step {
		return
	}
	m.values = m.values.With(name, v)
}

// take records the scalars in a summary of a step.
func (m *metrics) take(s *tfpb.Summary, step int64, source string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range s.GetValue() {
		if x, ok := decode.Scalar(v); ok {
			m.set(v.GetTag(), checkpoint.Measurement{Value: x, Step: step, Source: source})
		}
	}
}

// report records a value of the step in progress.
func (m *metrics) report(name string, v float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reported == nil {
		m.reported = make(map[string]float64)
	}
	m.reported[name] = v
}

// stepDone assigns the reported values to their step.
func (m *metrics) stepDone(step int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle(step)
}

func (m *metrics) settle(step int64) {
	for name, v := range m.reported {
		m.set(name, checkpoint.Measurement{Value: v, Step: step, Source: manifest.SourceProgram})
	}
	clear(m.reported)
}

// enter adds to a cut what is known of its model. From other steps it adds only what the program
// has reported, marked as such.
func (m *metrics) enter(cut *checkpoint.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle(cut.Step)
	for name, v := range m.values {
		if v.Step != cut.Step && v.Source != manifest.SourceProgram {
			continue
		}
		if cut.Metrics == nil {
			cut.Metrics, cut.Measured = make(map[string]float64), make(map[string]manifest.Measurement)
		}
		cut.Metrics[name], cut.Measured[name] = v.Value, manifest.Measurement{Step: v.Step, Source: v.Source}
	}
}

// ReportMetric reports the value of a metric, such as a loss, in the current
// step: the one that the next StepDone ends, or that of the next checkpoint if it
// comes first. The values go into the manifests of checkpoints with their step,
// and [retention.Best] and reports use those of a checkpoint's own step. Scalars
// written by SummaryComputed or the summary service are reported automatically,
// under their tags; see also [Supervisor.ReportEvaluation].
func (sv *Supervisor) ReportMetric(name string, value float64) {
	if r := sv.current(); r != nil {
		r.metrics.report(name, value)
	}
}

// ReportEvaluation reports how the model of a step performs on data that it was
// not trained on. A checkpoint of that step has the values in its manifest,
// instead of those of a training batch; see [Supervisor.WithoutSaves] for how to
// report them in time.
func (sv *Supervisor) ReportEvaluation(step int64, values map[string]float64) {
	r := sv.current()
	if r == nil {
		return
	}
	r.metrics.mu.Lock()
	defer r.metrics.mu.Unlock()
	for name, v := range values {
		r.metrics.set(name, checkpoint.Measurement{Value: v, Step: step, Source: manifest.SourceEval})
	}
}
