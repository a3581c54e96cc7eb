package dataserver

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

// pointsOf returns the points of a series at no more than the given number of steps, grouped by
// step. Of several points in a row from one writer at one step, the last is shown, as in
// TensorBoard's data server, unless it is of another kind: programs write a histogram and the mean
// of its values under one tag.
func pointsOf(series *tfevents.Series, limit int, budget *budget) ([][]tfevents.Point, error) {
	if err := budget.need(series.Len() * heldPoint); err != nil {
		return nil, err
	}
	all := make([]tfevents.Point, 0, series.Len()) // so that parts of it do not move
	var steps [][]tfevents.Point
	for p := range series.Points() {
		all = append(all, p)
		end := len(all)
		if last := len(steps) - 1; last >= 0 && p.Replaces(steps[last][0]) {
			steps[last] = all[end-1-len(steps[last]) : end]
			continue
		}
		steps = append(steps, all[end-1:])
	}
	steps = thin(steps, limit)
	for _, at := range steps {
		for _, p := range at {
			if err := budget.need(p.Size()); err != nil {
				return nil, err
			}
		}
	}
	return steps, nil
}

// repeatedSteps returns the steps at which several points of a series are shown.
func repeatedSteps(series *tfevents.Series) map[int64]bool {
	several := make(map[int64]bool) // false once it was seen
	var before *tfevents.Point
	for p := range series.Points() {
		if before == nil || !p.Replaces(*before) {
			_, seen := several[p.Step]
			several[p.Step] = seen
		}
		before = &p
	}
	return several
}

// eachStep calls f with the last point of each step and its value, and with the one before
// it if f reports that this is of another kind. It ends with the first error.
func (s *Server) eachStep(x *tfevents.RunData, steps [][]tfevents.Point, f func(tfevents.Point, *tfpb.Summary_Value) (shown bool, err error)) error {
	last := make([]tfevents.Point, len(steps))
	for i, at := range steps {
		last[i] = at[len(at)-1]
	}
	i := 0
	for v, unread := range x.Values(last) {
		at := steps[i]
		i++
		for n := len(at) - 1; ; n-- {
			if unread != nil {
				s.o.Logger.Debug("reading a value", "run", x.Name, "step", at[n].Step, "error", unread)
				break
			}
			if shown, err := f(at[n], v); err != nil {
				return err
			} else if shown || n == 0 {
				break
			}
			v, unread = x.Value(at[n-1])
		}
	}
	return nil
}
