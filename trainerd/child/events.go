package child

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/eventlog"
)

// events are the events of a run. It belongs to one goroutine.
type events struct {
	*eventlog.Log
	logger *slog.Logger
	last   map[string]lastPoint // by tag, of this start of the program
}

// lastPoint is the newest point of a curve.
type lastPoint struct {
	step int64
	bits uint64
}

// flushEvery is how long a point may wait in the memory of this process. If this process is killed,
// the program may already have a checkpoint of later steps, so points that are still here would be
// missing forever.
const flushEvery = time.Millisecond

// newEvents begins an events file in the logdir or a folder of it.
func (r *run) newEvents(dir string) (*events, error) {
	disk := atomicfile.WithoutMaking(r.FS, r.logdir) // which would lack the lock
	w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{Suffix: eventlog.OwnSuffix, FlushEvery: flushEvery, FS: disk})
	if err != nil {
		return nil, err
	}
	return &events{eventlog.New(w, r.log), r.log, map[string]lastPoint{}}, nil
}

// report writes the points of a report. A value that repeats one of the same step, as in
// transformers' closing line, does not become a second point.
func (e *events) report(ctx context.Context, r *Report, at time.Time) {
	if !r.Time.IsZero() {
		at = r.Time
	}
	for _, v := range r.Values {
		point := lastPoint{r.Step, math.Float64bits(v.Value)}
		if before, ok := e.last[v.Tag]; ok && before == point {
			continue
		}
		e.last[v.Tag] = point
		e.check(e.AddScalarAt(ctx, at, v.Tag, v.Value, r.Step))
	}
}

func (e *events) scalar(ctx context.Context, tag string, v float64, step int64) {
	e.check(e.AddScalar(ctx, tag, v, step))
}

func (e *events) session(ctx context.Context, status tfpb.SessionLog_SessionStatus, path string, step int64) {
	if status == tfpb.SessionLog_START { // which drops what was written before
		clear(e.last)
	}
	e.check(e.AddSession(ctx, status, path, step))
}

// flush returns when the file has all events.
func (e *events) flush(ctx context.Context) { e.check(e.Flush(ctx)) }

// sync is flush, and also makes the events durable.
func (e *events) sync(ctx context.Context) { e.check(e.Sync(ctx)) }

func (e *events) text(ctx context.Context, tag, text string, step int64) {
	e.check(e.AddSummary(ctx, summary.New(summary.Text(tag, text)), step))
}

// check logs that an event could not be written anywhere, which is no reason to end a training.
func (e *events) check(err error) {
	if err != nil {
		e.logger.Error("an event cannot be written", "err", err)
	}
}
