package child

import (
	"time"

	"github.com/trainerd/trainerd/proto/tbpb"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// beginHParams writes the hyperparameters at the first report of a start, after the START that may
// drop the previous start's. TensorBoard keeps the first that it finds in a run.
func (r *run) beginHParams(step int64) {
	if r.HParams == nil {
		return
	}
	v, err := summary.HParams(r.HParams, "", time.Now())
	if err != nil {
		r.log.Warn("cannot write the hyperparameters", "err", err)
		return
	}
	r.events.check(r.events.AddSummary(r.ectx, summary.New(v), step))
}

// endHParams writes that the job is complete. A stopped job may be resumed, so it has not ended.
func (r *run) endHParams() {
	if r.HParams == nil || r.maxStep < 0 {
		return
	}
	v := summary.HParamsEnd(tbpb.Status_STATUS_SUCCESS, time.Now())
	r.events.check(r.events.AddSummary(r.ectx, summary.New(v), r.maxStep))
}
