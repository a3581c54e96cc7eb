package child

import (
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

// maxRemembered bounds the reports that are remembered for a checkpoint of their
// step, which counts only once it has been verified.
const maxRemembered = 1 << 14

// measured are the newest reports, a ring.
type measured struct {
	reports []*Report
	next    int
}

// add remembers a report.
func (m *measured) add(r *Report) {
	if len(r.Values) == 0 {
		return
	}
	if len(m.reports) < maxRemembered {
		m.reports = append(m.reports, r)
		return
	}
	m.reports[m.next] = r
	m.next = (m.next + 1) % maxRemembered
}

// forget drops the reports from a step on. A start makes these steps again, perhaps with other
// numbers, so a checkpoint of them has another model than the one that was measured.
func (m *measured) forget(from int64) {
	oldestFirst := slices.Concat(m.reports[m.next:], m.reports[:m.next])
	m.reports = slices.DeleteFunc(oldestFirst, func(r *Report) bool { return r.Step >= from })
	m.next = 0
}

// forgetRepeated drops the reports of the steps that a start from a checkpoint, nil for none,
// repeats. If it is not known which these are, the first report shows it.
func (m *measured) forgetRepeated(given *Checkpoint) {
	switch {
	case given == nil:
		m.forget(0)
	case given.At() != found.NoStep:
		m.forget(given.At() + 1)
	}
}

// of returns the values of the model in a checkpoint. A program may number its checkpoints one step
// higher than its reports; values of the step itself win. If the checkpoint is numbered by epoch or
// save, the newest values count, which may be some steps older.
func (m *measured) of(c *Checkpoint) (all checkpoint.Measurements) {
	step := c.At()
	if step == found.NoStep {
		return nil
	}
	if c.CountsOtherUnit() {
		for i := range m.reports {
			if r := m.reports[(m.next+i)%len(m.reports)]; r.Step <= step {
				all = measurementsOf(r, c.Step, all)
			}
		}
		return all
	}
	for _, of := range []int64{step - 1, step} {
		for i := range m.reports {
			if r := m.reports[(m.next+i)%len(m.reports)]; r.Step == of {
				all = measurementsOf(r, step, all)
			}
		}
	}
	return all
}

// measurementsOf adds the values of a report to those of the model of a step.
func measurementsOf(r *Report, step int64, all checkpoint.Measurements) checkpoint.Measurements {
	for _, v := range r.Values {
		all = all.With(v.Tag, checkpoint.Measurement{Value: v.Value, Step: step, Source: manifest.SourceProgram})
	}
	return all
}

// measure records what the program reports, for the checkpoint of that step, whether it exists
// already or comes later.
func (r *run) measure(report *Report) {
	if r.Checkpoints == "" {
		return
	}
	r.measured.add(report)
	if err := r.store.Measure(report.Step, measurementsOf(report, report.Step, nil)); err != nil {
		r.log.Warn("cannot record the metrics of a checkpoint", "step", report.Step, "err", err)
	}
}
