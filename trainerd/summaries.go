package trainerd

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
	"github.com/trainerd/trainerd/trainerd/session"
)

// SummaryComputed writes a summary made by the training, at any step: a *tfpb.Summary, or an
// encoded one as a *ckptfmt.Tensor (the result of fetching a summary op), string or []byte; several
// tensors are one summary. [session.NoStep] means the current global step, or 0 if there is none.
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
	if err = r.events.AddSummary(ctx, s, step); errors.Is(err, tfrecord.ErrClosed) {
		return fmt.Errorf("the run has ended; no summary is written any more: %w", err)
	}
	return err
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

// summaryOf returns the summary from any of the forms that SummaryComputed accepts.
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

// parseSummaries merges the serialised Summary messages that an op returned.
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
