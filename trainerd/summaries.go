package trainerd

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/session"
)

// SummaryComputed writes a summary made by the training, at any step: a
// *tfpb.Summary, or the result of fetching a summary op, which is an encoded one
// as a *ckptfmt.Tensor, string or []byte; several tensors are one summary.
// [session.NoStep] means the current global step, or 0 if there is none.
//
// A full disk is not an error here, because it must not end the training. The
// summary is dropped, and the log says so.
func (sv *Supervisor) SummaryComputed(ctx context.Context, summary any, step int64) error {
	r := sv.current()
	if r == nil {
		return errNoRun
	}
	if r.writer == nil {
		return ErrNoSummaryWriter
	}
	s, err := summaryOf(summary)
	if err != nil {
		return err
	}
	return r.addSummary(ctx, s, step)
}

// addSummary writes a summary of a step, or with NoStep, of the current one.
func (r *run) addSummary(ctx context.Context, s *tfpb.Summary, step int64) (err error) {
	if step == session.NoStep && r.plan.globalStep == "" {
		step = 0
	} else if step == session.NoStep {
		if step, err = session.ReadStep(ctx, r.sess, r.plan.globalStep); err != nil {
			return err
		}
	}
	r.metrics.take(s, step, manifest.SourceTrain)
	return r.events.AddSummary(ctx, s, step)
}

// Summarize fetches a summary op, runs ops in the same step, and writes the
// summary as [Supervisor.SummaryComputed] does, at the current global step.
func (sv *Supervisor) Summarize(ctx context.Context, s session.Session, summary string, ops ...string) error {
	out, err := s.Run(ctx, nil, []string{summary}, ops)
	if err != nil {
		return err
	}
	return sv.SummaryComputed(ctx, out, session.NoStep)
}

// Writer returns the events file of the run, for events beyond summaries, or
// nil when there is none.
func (sv *Supervisor) Writer() *tfevents.FileWriter {
	r := sv.current()
	if r == nil || r.writer == nil {
		return nil
	}
	if err := r.events.Settle(context.Background()); err != nil {
		sv.log().Error("the graph could not be written", "err", err)
	}
	return r.writer
}

// summaryOf returns a summary in any of the forms that SummaryComputed takes.
func summaryOf(v any) (*tfpb.Summary, error) {
	switch v := v.(type) {
	case *tfpb.Summary:
		return v, nil
	case *ckptfmt.Tensor:
		return parseSummaries([]*ckptfmt.Tensor{v})
	case []*ckptfmt.Tensor:
		return parseSummaries(v)
	case string:
		return summaryOf([]byte(v))
	case []byte:
		return parseSummaries([]*ckptfmt.Tensor{{DType: tfpb.DataType_DT_STRING, Strings: [][]byte{v}}})
	}
	return nil, fmt.Errorf("SummaryComputed: %T is not a summary; want a *tfpb.Summary, or an encoded one as *ckptfmt.Tensor, string or []byte", v)
}

// parseSummaries merges the serialised Summary messages that an op gave.
func parseSummaries(out []*ckptfmt.Tensor) (*tfpb.Summary, error) {
	merged := new(tfpb.Summary)
	for _, t := range out {
		if t == nil {
			continue
		}
		if t.DType != tfpb.DataType_DT_STRING {
			return nil, fmt.Errorf("summary op gave a %v; want a string", t.DType)
		}
		for _, b := range t.Strings {
			if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(b, merged); err != nil {
				return nil, fmt.Errorf("summary op: %w", err)
			}
		}
	}
	return merged, nil
}

// ErrNoSummaryWriter says that the supervisor writes no events: it is not the
// chief, or has neither a logdir nor a summary writer.
var ErrNoSummaryWriter = errors.New("writing a summary requires a summary writer; set Logdir or SummaryWriter on the chief")

// metrics are the newest values reported to a run.
type metrics struct {
	mu     sync.Mutex
	values checkpoint.Measurements
	// reported are the values of ReportMetric in the step that is under way.
	reported map[string]float64
}

// set notes a value. That of an evaluation is not replaced by a batch's of the
// same step. The caller holds m.mu.
func (m *metrics) set(name string, v checkpoint.Measurement) {
	if old := m.values[name]; old.Source == manifest.SourceEval && v.Source == manifest.SourceTrain && old.Step == v.Step {
		return
	}
	m.values = m.values.With(name, v)
}

// take notes the scalars of a summary of a step.
func (m *metrics) take(s *tfpb.Summary, step int64, source string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range s.GetValue() {
		if x, ok := decode.Scalar(v); ok {
			m.set(v.GetTag(), checkpoint.Measurement{Value: x, Step: step, Source: source})
		}
	}
}

// report notes a value of the step that is under way.
func (m *metrics) report(name string, v float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reported == nil {
		m.reported = make(map[string]float64)
	}
	m.reported[name] = v
}

// stepDone gives what was reported its step.
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

// enter adds to a cut what is known of its model. Of other steps it has what the
// program has reported, marked as such, and nothing else.
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
