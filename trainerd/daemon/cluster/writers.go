package cluster

import (
	"context"
	"errors"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Summary writers of a graph on servers are TensorFlow's: they keep up to max_queue
// events, for up to two minutes, in memory, and nothing writes them when a training ends
// or its server is killed. So a checkpoint is preceded by a flush of each.
// A server that was lost has written points that the next one writes again, into another
// file: a SessionLog START drops them.
const (
	writersScope = tagScope + "writers/"
	eventValue   = writersScope + "event"
)

// writerNodes are the names of the nodes added for one summary writer.
type writerNodes struct{ flush, add string }

// addWriterNodes adds to a graph what flushes its summary writers and what gives them
// an event, each on the writer's device.
func addWriterNodes(def *tfpb.GraphDef) (writers []writerNodes) {
	for _, n := range def.GetNode() {
		if n.GetOp() != "SummaryWriter" {
			continue
		}
		scope, node := writersScope+strconv.Itoa(len(writers)), nodeAdder(def, n.GetName())
		if len(writers) == 0 {
			node(eventValue, "Placeholder", graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_STRING), "shape": attr.Shape(graph.MakeShape().Proto())})
		}
		w := writerNodes{flush: scope + "/flush", add: scope + "/add"}
		node(w.flush, "FlushSummaryWriter", nil, n.GetName())
		node(w.add, "ImportEvent", nil, n.GetName(), eventValue)
		writers = append(writers, w)
	}
	return writers
}

// flushPatience is how long a save waits for a server that does not answer.
const flushPatience = 10 * time.Second

// FlushWriters makes the servers write the points that the graph's summary writers hold. A failure
// is only logged: the checkpoint that follows is worth more than a few points of a curve.
func (t *Task) FlushWriters(ctx context.Context, sess session.Session) {
	ctx, cancel := context.WithTimeout(ctx, flushPatience)
	defer cancel()
	for _, w := range t.writers {
		_, err := sess.Run(ctx, nil, nil, []string{w.flush})
		t.reportWriter(err, "the events of a summary writer on a server could not be flushed; what it has not written yet is lost if the server ends")
	}
}

// restartWriters makes readers drop the points of the steps after the checkpoint, which are made
// again. Depending on how the graph counts, the point of the checkpoint's step may belong to the
// step before or after it: it stays, because a point that appears twice is better than none.
func (t *Task) restartWriters(ctx context.Context, sess session.Session, step int64) error {
	if step > 0 {
		step++
	}
	start := &tfpb.Event{WallTime: tfevents.WallTime(time.Now()), Step: step,
		What: &tfpb.Event_SessionLog{SessionLog: &tfpb.SessionLog{Status: tfpb.SessionLog_START}}}
	data, err := proto.Marshal(start)
	if err != nil {
		return err
	}
	value := &ckptfmt.Tensor{DType: tfpb.DataType_DT_STRING, Strings: [][]byte{data}}
	for _, w := range t.writers {
		_, err := sess.Run(ctx, program.Feed{eventValue: value}, nil, []string{w.add})
		t.reportWriter(err, "a summary writer on a server could not be told that the training was resumed; its points of earlier steps may be shown twice")
	}
	return nil
}

// reportWriter logs a failure, unless the writer was never opened.
func (t *Task) reportWriter(err error, what string) {
	if err != nil && !errors.Is(err, &session.OpError{Code: tfpb.Code_NOT_FOUND}) {
		t.log.Warn(what, "err", err)
	}
}
