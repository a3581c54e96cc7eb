package trainerd

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/tfproto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/coord"
)

// graphDefField is the number of MetaGraphDef.graph_def.
const graphDefField = 2

// encodedGraph is a graph as files have it.
type encodedGraph struct{ meta, def []byte }

// encodeGraph encodes a graph while the session is being prepared, which takes about as
// long, and returns what waits for the end of that. It is nil if nothing is to be
// written.
func (sv *Supervisor) encodeGraph(p *plan) func() (encodedGraph, error) {
	meta := p.meta
	if sv.NonChief || meta.GetGraphDef() == nil || sv.Logdir == "" && sv.SummaryWriter == nil {
		return nil
	}
	encode := sync.OnceValues(func() (g encodedGraph, err error) {
		err = coord.Guard("encoding the graph", func() error {
			if p.saver != nil && p.saver.MetaGraph == meta {
				g.meta = p.saver.EncodedMetaGraph()
			} else {
				g.meta = tfproto.Marshal(meta)
			}
			g.def = tfproto.Field(g.meta, graphDefField) // a large graph takes a while, so it is encoded once
			return nil
		})
		return g, err
	})
	go encode()
	return encode
}

func (sv *Supervisor) writeGraph(ctx context.Context, r *run, hasGraph bool) error {
	if r.graph == nil {
		return nil
	}
	g, err := r.graph()
	if err != nil {
		return err
	}
	r.graph = nil
	if r.writer != nil && !hasGraph {
		err := r.events.Add(ctx, func(w *tfevents.FileWriter) error {
			if err := w.AddGraph(ctx, g.def); err != nil {
				return err
			}
			return w.AddMetaGraph(ctx, g.meta, 0)
		})
		if err != nil {
			return err
		}
	}
	if sv.Logdir != "" {
		sv.coord.Go("graph.pbtxt", func(context.Context) error { sv.writeGraphText(r, g); return nil })
	}
	return nil
}

// writeGraphText writes graph.pbtxt. The training does not wait for that: nothing reads
// it back.
func (sv *Supervisor) writeGraphText(r *run, g encodedGraph) {
	name := filepath.Join(sv.Logdir, "graph.pbtxt")
	if err := atomicfile.WriteFile(r.fs(), name, tfproto.Text(r.plan.meta.GetGraphDef(), g.def)); err != nil {
		sv.log().Warn("the graph could not be written", "file", name, "err", err)
	}
}
