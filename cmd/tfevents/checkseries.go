package main

import (
	"iter"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

// checkedRun is what check needs of a run as one loader, or the exact rule, sees it.
type checkedRun struct {
	series  []*checkedSeries
	byTag   map[string]*checkedSeries
	damaged bool
	purged  int
}

// checkedSeries is a series whose values are read only where they matter.
type checkedSeries struct {
	tag      string
	metadata *tfpb.SummaryMetadata
	points   int
	plain    bool // of scalars, as [tfevents.Series.AllFloat32] says
	stamps   iter.Seq[stamp]
	stepped  bool   // whether steps is known
	steps    string // what is odd about the steps
	values   iter.Seq2[*tfpb.Summary_Value, error]
}

func (s *checkedSeries) plugin() string { return s.metadata.GetPluginData().GetPluginName() }

// read reads a run.
func (k *runChecker) read(run tfevents.Run, mode tfevents.Purge) (*checkedRun, error) {
	d := tfevents.ReadRun(k.source, run, &tfevents.RunOptions{Purge: mode, MaxSize: maxRecord})
	r := &checkedRun{byTag: make(map[string]*checkedSeries), damaged: len(d.Damage) > 0, purged: d.Purged}
	for _, series := range d.Series {
		s := checkedOf(d, series)
		s.plain = s.plain && !k.everyValue
		r.series = append(r.series, s)
		r.byTag[s.tag] = s
	}
	return r, k.source.ctx.Err()
}

func checkedOf(d *tfevents.RunData, series *tfevents.Series) *checkedSeries {
	return &checkedSeries{
		tag: series.Tag, metadata: series.Metadata, points: series.Len(), plain: series.AllFloat32(),
		stamps: func(yield func(stamp) bool) {
			for step, wall := range series.Times() {
				if !yield(stamp{step, wall}) {
					return
				}
			}
		},
		values: func(yield func(*tfpb.Summary_Value, error) bool) {
			d.Values(slices.Collect(series.Points()))(yield)
		},
	}
}

// loadersAgree reports whether it is certain that both loaders keep every point
// of a run: then it need not be read as they do.
func (r *checkedRun) loadersAgree(files []*fileTimes) bool {
	starts := 0
	for _, f := range files {
		starts += f.starts
		if !f.usual {
			return false
		}
	}
	if starts > 1 || r.damaged || r.purged > 0 {
		return false
	}
	for _, s := range r.series {
		if !s.plain || stepProblem(s) != "" {
			return false
		}
	}
	return true
}

// problem returns the first thing that is wrong with a series: the others mostly
// follow from it.
func (s *checkedSeries) problem(python, server *checkedSeries, damaged bool, purgeHint string) (string, error) {
	if p, err := s.valueProblem(); p != "" || err != nil {
		return p, err
	}
	if decode.DescribesRun(s.plugin()) {
		return "", nil // each session writes it again, and the last one is shown
	}
	if p := stepProblem(s); p != "" {
		return p, nil
	}
	if !damaged {
		if p := purgeProblem(s, python, server, purgeHint); p != "" {
			return p, nil
		}
	}
	return sampleProblem(s), nil
}

// sameStamps reports whether two series have the same points in the same order.
func sameStamps(a, b *checkedSeries) bool {
	if a.points != b.points {
		return false
	}
	want := make([]stamp, 0, a.points)
	for p := range a.stamps {
		want = append(want, p)
	}
	i, same := 0, true
	for p := range b.stamps {
		if same = p.bits() == want[i].bits(); !same {
			break
		}
		i++
	}
	return same
}
