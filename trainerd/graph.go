package trainerd

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/tfproto"
	"github.com/trainerd/trainerd/tfevents"
)

// graphDefField is the number of MetaGraphDef.graph_def.
const graphDefField = 2

// graphDelay is how long the graph waits for the first step.
const graphDelay = time.Second

// writeGraph writes the graph into the events file, unless it is there already, and as graph.pbtxt.
// Nothing reads it back, so the first step does not wait for it: encoding a large graph takes as
// long as preparing its session. It still comes before all later events of the run.
func (sv *Supervisor) writeGraph(ctx context.Context, r *run, hasGraph bool) error {
	if r.plan.meta.GetGraphDef() == nil || sv.Logdir == "" && (r.writer == nil || hasGraph) {
		return nil
	}
	encoded := sync.OnceValue(func() []byte { return sv.encodeGraph(r) })
	if r.writer != nil && !hasGraph {
		kept := context.WithoutCancel(ctx)
		r.events.Later(func(w *tfevents.FileWriter) error { return addGraph(kept, w, encoded()) })
	}
	if r.writer != nil && r.writer == sv.SummaryWriter { // its owner may write past r.events
		if err := r.events.Settle(ctx); err != nil {
			return err
		}
	}
	sv.coord.Go("graph", func(ctx context.Context) error {
		select {
		case <-r.firstStepDone:
		case <-time.After(graphDelay): // programs need not report their steps
		case <-ctx.Done():
		}
		if r.writer != nil {
			if err := r.events.Settle(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
		if sv.Logdir != "" {
			sv.writeGraphText(r, tfproto.Field(encoded(), graphDefField))
		}
		return nil
	})
	return nil
}

// encodeGraph returns the graph as it is in files. Encoding a large one takes a while, so
// checkpoints reuse the bytes.
func (sv *Supervisor) encodeGraph(r *run) []byte {
	if saver := r.plan.saver; saver != nil && saver.MetaGraph == r.plan.meta {
		return saver.EncodedMetaGraph()
	}
	return tfproto.Marshal(r.plan.meta)
}

func addGraph(ctx context.Context, w *tfevents.FileWriter, meta []byte) error {
	if err := w.AddGraph(ctx, tfproto.Field(meta, graphDefField)); err != nil {
		return err
	}
	return w.AddMetaGraph(ctx, meta, 0)
}

func (sv *Supervisor) writeGraphText(r *run, def []byte) {
	name := filepath.Join(sv.Logdir, "graph.pbtxt")
	if err := atomicfile.WriteFile(r.fs(), name, tfproto.Text(r.plan.meta.GetGraphDef(), def)); err != nil {
		sv.log().Warn("the graph could not be written", "file", name, "err", err)
	}
}
