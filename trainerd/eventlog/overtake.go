package eventlog

import (
	"context"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// A training that was resumed from a checkpoint makes some steps again. Its SessionLog
// START drops their points from TensorBoard's Python loader. The data server, which
// most users have, ignores it: there each point drops those of its own tag that are not
// before it, so that curves whose first new point comes late, as global_step/sec does,
// would keep what lies between. A value of the tag that holds nothing, at the first of
// these steps, drops it too, and no loader shows it.

// overtaking is the state of a Log after a resume. The zero value is that of a training
// from the beginning.
type overtaking struct {
	from  int64               // the first step that is made again
	begun map[string]struct{} // tags that were written since; nil if nothing is overtaken
}

// Overtake says that the training was resumed, and which step is the first that it
// makes again.
func (l *Log) Overtake(from int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.overtaking = overtaking{from: from, begun: make(map[string]struct{})}
}

func (l *Log) isOvertaking() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overtaking.begun != nil
}

// overtakes reports whether the first point of a tag since the resume leaves points
// before it that are overtaken, and where from.
func (l *Log) overtakes(tag string, step int64) (from int64, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.overtaking
	if o.begun == nil {
		return 0, false
	}
	if _, ok := o.begun[tag]; ok {
		return 0, false
	}
	o.begun[tag] = struct{}{}
	return o.from, step > o.from
}

// scalarMetadata is that of every scalar.
var scalarMetadata = summary.Scalar("", 0).GetMetadata()

// overtakeScalar drops what a scalar overtakes.
func (l *Log) overtakeScalar(ctx context.Context, tag string, step int64, m *tfpb.SummaryMetadata) error {
	from, yes := l.overtakes(tag, step)
	if !yes {
		return nil
	}
	nothing := &tfpb.Summary_Value{Tag: tag, Metadata: proto.CloneOf(m)}
	return l.Add(ctx, func(w *tfevents.FileWriter) error { return w.AddSummary(ctx, summary.New(nothing), from) })
}

// overtakeSummary drops what the scalars of a summary overtake. Other kinds of values
// have no form that no loader shows.
func (l *Log) overtakeSummary(ctx context.Context, s *tfpb.Summary, step int64) error {
	if !l.isOvertaking() {
		return nil
	}
	for _, v := range s.GetValue() {
		if _, ok := summary.ScalarOf(v); !ok {
			continue
		}
		m := summary.ModernValue(v).GetMetadata()
		if name := m.GetPluginData().GetPluginName(); name != summary.PluginScalars {
			continue
		}
		if err := l.overtakeScalar(ctx, v.GetTag(), step, m); err != nil {
			return err
		}
	}
	return nil
}
