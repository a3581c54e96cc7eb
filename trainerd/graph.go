package trainerd

import (
	"context"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/tfproto"
	"github.com/trainerd/trainerd/tfevents"
)

// graphDefField is the number of MetaGraphDef.graph_def.
const graphDefField = 2

// graphDelay is how long the graph waits for the first step.
const graphDelay = time.Second

// writeGraph writes the graph into the events file, unless that has it, and as
// graph.pbtxt. Nothing reads it back, so the first step does not wait for it: encoding a
// large graph takes as long as preparing its session.
func (sv *Supervisor) writeGraph(r *run, hasGraph bool) {
	meta := r.plan.meta
	if meta.GetGraphDef() == nil || sv.Logdir == "" && (r.writer == nil || hasGraph) {
		return
	}
	sv.coord.Go("graph", func(ctx context.Context) error {
		select {
		case <-r.firstStepDone:
		case <-time.After(graphDelay): // programs need not report their steps
		case <-ctx.Done():
		}
		encoded := sv.encodeGraph(r)
		def := tfproto.Field(encoded, graphDefField)
		if r.writer != nil && !hasGraph {
			if err := addGraph(context.WithoutCancel(ctx), r, def, encoded); err != nil {
				return err
			}
		}
		if sv.Logdir != "" {
			sv.writeGraphText(r, def)
		}
		return nil
	})
}

// encodeGraph returns the graph as files have it. A large one takes a while, so
// checkpoints have the same bytes.
func (sv *Supervisor) encodeGraph(r *run) []byte {
	if saver := r.plan.saver; saver != nil && saver.MetaGraph == r.plan.meta {
		return saver.EncodedMetaGraph()
	}
	return tfproto.Marshal(r.plan.meta)
}

func addGraph(ctx context.Context, r *run, def, meta []byte) error {
	return r.events.Add(ctx, func(w *tfevents.FileWriter) error {
		if err := w.AddGraph(ctx, def); err != nil {
			return err
		}
		return w.AddMetaGraph(ctx, meta, 0)
	})
}

func (sv *Supervisor) writeGraphText(r *run, def []byte) {
	name := filepath.Join(sv.Logdir, "graph.pbtxt")
	if err := atomicfile.WriteFile(r.fs(), name, tfproto.Text(r.plan.meta.GetGraphDef(), def)); err != nil {
		sv.log().Warn("the graph could not be written", "file", name, "err", err)
	}
}
