package eventlog

import (
	"context"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

// A training that was resumed from a checkpoint makes some steps again. Its SessionLog START drops
// their points from TensorBoard's Python loader. The data server, which most users have, ignores
// it: there each point drops its own tag's points at its step or later, so that a curve whose first
// new point comes late, such as global_step/sec, would keep the old points in between. If there are
// any, an empty value of the tag at the first of these steps drops them too, and no loader shows
// it. The same is done at the end for a tag that had no new point at all.

// A resumed training that is killed before it has written some tag leaves the same problem: points
// that the data server shows although a START has dropped them, perhaps of steps before the next
// resume. So the points that count are compared with those that the data server shows, not only
// with the step of the resume.

// superseding is the state of a Log after a resume. The zero value is for a training in a fresh
// folder.
type superseding struct {
	from int64            // the first step that is made again
	old  map[string]int64 // of each scalar that was not written since, its first point that does not count
	// made has the first step of each scalar written since; nil if that is not known, or if one was
	// of a step before from.
	made map[string]int64
}

// at returns the step from which on a scalar loses its points.
func (o *superseding) at(tag string) int64 { return min(o.from, o.old[tag]) }

// Supersede says that the training was resumed, or has begun again, and which step is the first that
// it makes again. It reads the run so far: two tenths of a second for a million points. If a
// training fails again and again, and is resumed from the same step, the run is read only once.
func (l *Log) Supersede(from int64) {
	old := l.supersededAgain(from)
	if old == nil {
		old = superseded(l.Dir(), from)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.superseding = superseding{from, old, map[string]int64{}}
}

// supersededAgain is superseded if the last resume was at the same step, so that only what was
// written since has changed. Otherwise it returns nil.
func (l *Log) supersededAgain(from int64) map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.superseding
	if o.made == nil || o.from != from {
		return nil
	}
	old := maps.Clone(o.old)
	maps.Copy(old, o.made)
	return old
}

// superseded returns of each scalar the first step that the data server shows and that does
// not count: after those which do, or from the given step on.
func superseded(dir string, from int64) map[string]int64 {
	lastCounted := map[string]int64{}
	for s := range scalars(dir, tfevents.PurgeExact) {
		for step := range s.Times() {
			if step < from {
				lastCounted[s.Tag] = step
			}
		}
	}
	old := map[string]int64{}
	for s := range scalars(dir, tfevents.PurgeDataServer) {
		last, counts := lastCounted[s.Tag]
		for step := range s.Times() {
			if step >= from || !counts || step > last {
				old[s.Tag] = step
				break
			}
		}
	}
	return old
}

// finishSuperseding drops the superseded points of tags that were not written since the resume, by
// this Log or another.
func (l *Log) finishSuperseding(ctx context.Context) error {
	l.mu.Lock()
	missing := l.superseding
	l.superseding.old = nil
	l.mu.Unlock()
	if len(missing.old) == 0 {
		return nil
	}
	if err := l.Flush(ctx); err != nil { // START says which points count
		return err
	}
	written := map[string]bool{}
	for s := range scalars(l.Dir(), tfevents.PurgeExact) {
		for step := range s.Times() {
			if step >= missing.from {
				written[s.Tag] = true
				break
			}
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(missing.old)) {
		if written[tag] {
			continue
		}
		if err := l.dropFrom(ctx, tag, missing.at(tag), scalarMetadata); err != nil {
			return err
		}
	}
	return nil
}

// scalars returns the scalars of a folder as a loader shows them. What cannot be read is left
// out, as no loader shows it either. Values of other kinds are not needed: for them there is no
// empty value that all loaders hide.
func scalars(dir string, loader tfevents.Purge) iter.Seq[*tfevents.Series] {
	return func(yield func(*tfevents.Series) bool) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		run := tfevents.Run{Name: "."}
		for _, e := range entries { // in the order of their names
			if !tfevents.IsEventsFile(e.Name()) {
				continue // without a look at each checkpoint
			}
			if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.Mode().IsRegular() {
				run.Files = append(run.Files, e.Name())
			}
		}
		for _, s := range tfevents.ReadRun(tfevents.DirFS(dir), run, &tfevents.RunOptions{Purge: loader}).Series {
			if s.Plugin() == summary.PluginScalars && !yield(s) {
				return
			}
		}
	}
}

func (l *Log) isSuperseding() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.superseding.old) > 0
}

// supersedes reports whether the first point of a tag since the resume leaves points
// before it that are superseded, and where from.
func (l *Log) supersedes(tag string, step int64) (from int64, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.superseding.note(tag, step)
	old, ok := l.superseding.old[tag]
	from = l.superseding.at(tag)
	delete(l.superseding.old, tag)
	return from, ok && old < step
}

// note records a point that is written.
func (o *superseding) note(tag string, step int64) {
	first, there := o.made[tag]
	switch {
	case o.made == nil:
	case step < o.from:
		o.made = nil
	case !there || step < first:
		o.made[tag] = step
	}
}

// noteSummary records a summary that is written while nothing is superseded: finding out which
// scalars it has is not worth the time.
func (l *Log) noteSummary(s *tfpb.Summary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.superseding.made != nil && slices.ContainsFunc(s.GetValue(), isScalar) {
		l.superseding.made = nil
	}
}

// noteUnknown records that there may be points of any kind.
func (l *Log) noteUnknown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.superseding.made = nil
}

func isScalar(v *tfpb.Summary_Value) bool {
	_, ok := decode.Scalar(v)
	return ok
}

// scalarMetadata is the metadata of every scalar.
var scalarMetadata = summary.Scalar("", 0).GetMetadata()

// supersedeScalar drops what a scalar supersedes.
func (l *Log) supersedeScalar(ctx context.Context, tag string, step int64, m *tfpb.SummaryMetadata) error {
	from, yes := l.supersedes(tag, step)
	if !yes {
		return nil
	}
	return l.dropFrom(ctx, tag, from, m)
}

// dropFrom writes a value that holds nothing.
func (l *Log) dropFrom(ctx context.Context, tag string, from int64, m *tfpb.SummaryMetadata) error {
	nothing := &tfpb.Summary_Value{Tag: tag, Metadata: proto.CloneOf(m)}
	return l.addSummary(ctx, summary.New(nothing), from)
}

// supersedeSummary drops what the scalars of a summary supersede.
func (l *Log) supersedeSummary(ctx context.Context, s *tfpb.Summary, step int64) error {
	if !l.isSuperseding() {
		l.noteSummary(s)
		return nil
	}
	for _, v := range s.GetValue() {
		if !isScalar(v) {
			continue
		}
		m := decode.ModernValue(v).GetMetadata()
		if name := m.GetPluginData().GetPluginName(); name != summary.PluginScalars {
			continue
		}
		if err := l.supersedeScalar(ctx, v.GetTag(), step, m); err != nil {
			return err
		}
	}
	return nil
}
