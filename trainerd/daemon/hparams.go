package daemon

import (
	"context"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// beginHParams writes the hyperparameters of the run, once, by which TensorBoard's
// HPARAMS tab compares it with others. It keeps the first that it finds of a run.
func (t *training) beginHParams(ctx context.Context) error {
	if t.hparams || t.sv.Writer() == nil {
		return nil
	}
	v, err := summary.HParams(t.job.config.HParams(), "", time.Now())
	if err != nil {
		return err
	}
	t.hparams = true
	step := t.step
	if step > 0 {
		step++ // the first that comes: earlier ones are in earlier files
	}
	return t.sv.SummaryComputed(ctx, &tfpb.Summary{Value: []*tfpb.Summary_Value{v}}, step)
}

// endHParams writes that the run is complete. A stopped run may be resumed, so it has not ended.
func (t *training) endHParams(ctx context.Context) error {
	if t.sv.Writer() == nil {
		return nil
	}
	v := summary.HParamsEnd(tbpb.Status_STATUS_SUCCESS, time.Now())
	return t.sv.SummaryComputed(context.WithoutCancel(ctx), &tfpb.Summary{Value: []*tfpb.Summary_Value{v}}, t.step)
}
