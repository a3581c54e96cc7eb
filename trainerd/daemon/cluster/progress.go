package cluster

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/session"
)

// The progress of the workers is a vector on the servers with the step to which
// each has contributed gradients last, counted from 0; -1 is for none. By it those
// who wait know for whom. One more number is the chief's: it changes while the chief
// evaluates, which may take longer than anybody's patience.
const (
	progressScope  = tagScope + "roll_"
	progressRead   = progressScope + "read"
	progressValue  = progressScope + "value"
	progressSet    = progressScope + "set"
	progressHas    = progressScope + "has"
	progressStep   = progressScope + "step"
	progressRecord = progressScope + "note"
	progressSign   = progressScope + "sign"
)

// SignEvery is how often a task gives a sign while it evaluates, or is paused.
const SignEvery = 20 * time.Second

// progress is what is known about the replicas.
type progress struct {
	steps []int64 // of each worker; nil where that is not known
	sign  int64   // of the chief
}

// tracksWorkers reports whether workers wait for each other where others can see it.
func (t *Task) tracksWorkers() bool { return t.config.IsRemote() && len(t.program.ApplyGrads) > 0 }

// addProgress adds the variable of the progress to a graph, on the device of
// another variable. A worker's record is made after the given nodes.
func addProgress(def *tfpb.GraphDef, beside string, after []string, c config.Cluster) {
	number := attr.Type(tfpb.DataType_DT_INT64)
	node := nodeAdder(def, beside)
	const id, task, chief = progressScope + "steps", progressScope + "task", progressScope + "chief"
	shape := attr.Shape(graph.MakeShape(int64(c.Workers + 1)).Proto())
	node(id, "VarHandleOp", graph.Attrs{"dtype": number, "shape": shape, "shared_name": attr.String(id)})
	node(progressHas, "VarIsInitializedOp", nil, id)
	node(progressRead, "ReadVariableOp", graph.Attrs{"dtype": number}, id)
	node(progressValue, "Placeholder", graph.Attrs{"dtype": number, "shape": shape})
	node(progressSet, "AssignVariableOp", graph.Attrs{"dtype": number}, id, progressValue)
	node(task, "Const", graph.Attrs{"dtype": number, "value": attr.Tensor(literal.Int64s(int64(c.Task)))})
	node(chief, "Const", graph.Attrs{"dtype": number, "value": attr.Tensor(literal.Int64s(int64(c.Workers)))})
	node(progressStep, "Placeholder", graph.Attrs{"dtype": number, "shape": attr.Shape(graph.MakeShape(1).Proto())})
	inputs := []string{id, task, progressStep}
	for _, name := range after {
		inputs = append(inputs, "^"+name)
	}
	node(progressRecord, "ResourceScatterUpdate", graph.Attrs{"dtype": number, "Tindices": number}, inputs...)
	node(progressSign, "ResourceScatterUpdate", graph.Attrs{"dtype": number, "Tindices": number}, id, chief, progressStep)
}

// initProgress makes the vector. The values of the chief's earlier session stay, except for
// gradients of the next step: they may be lost, and are contributed again.
func (t *Task) initProgress(ctx context.Context, sess session.Session, step int64, adopted bool) error {
	if !t.tracksWorkers() {
		return nil
	}
	workers := t.config.Cluster.Workers
	values := slices.Repeat([]int64{-1}, workers+1)
	if adopted {
		old, err := t.readProgress(ctx, sess)
		if err != nil {
			return err
		}
		for i := range min(len(old.steps), workers) {
			values[i] = min(old.steps[i], step-1)
		}
	}
	_, err := sess.Run(ctx, program.Feed{progressValue: int64s(values...)}, nil, []string{progressSet})
	return err
}

// int64s returns a vector.
func int64s(values ...int64) *ckptfmt.Tensor {
	t := &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT64, Shape: []int64{int64(len(values))}}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint64(t.Data, uint64(v))
	}
	return t
}

// readProgress returns what is known, or nothing if there is no vector.
func (t *Task) readProgress(ctx context.Context, sess session.Session) (progress, error) {
	if !t.tracksWorkers() {
		return progress{}, nil
	}
	out, err := sess.Run(ctx, nil, []string{progressHas}, nil)
	if err != nil || len(out[0].Data) != 1 || out[0].Data[0] == 0 {
		return progress{}, err
	}
	if out, err = sess.Run(ctx, nil, []string{progressRead}, nil); err != nil {
		return progress{}, err
	}
	values, err := ckptfmt.Values[int64](out[0])
	if err != nil || len(values) == 0 {
		return progress{}, err
	}
	last := len(values) - 1
	return progress{values[:last], values[last]}, nil
}

// GiveSign tells those who wait for this task that it is alive, unless it has done so just
// now. The call after a sign that was lost shows why.
func (t *Task) GiveSign(ctx context.Context, sess session.Session) {
	if t == nil || !t.tracksWorkers() || time.Since(t.signed) < SignEvery {
		return
	}
	t.signed = time.Now()
	sess.Run(ctx, program.Feed{progressStep: int64s(t.signed.UnixMilli())}, nil, []string{progressSign})
}

// RecordStep returns the ops that record a step as this task's progress, and
// feeds them.
func (t *Task) RecordStep(step int64, f program.Feed) []string {
	if !t.tracksWorkers() {
		return nil
	}
	f[progressStep] = int64s(step)
	return []string{progressRecord}
}

// missing names those who have not given gradients for a step. A negative one
// is the newest that anybody has given some for.
func (p *progress) missing(step int64) string {
	if step < 0 && len(p.steps) > 0 {
		step = slices.Max(p.steps)
	}
	var list []string
	for task, last := range p.steps {
		switch {
		case last >= step:
		case last < 0:
			list = append(list, fmt.Sprintf("worker %d (it has done no step yet)", task))
		default:
			list = append(list, fmt.Sprintf("worker %d (its last step was %d)", task, last+1))
		}
	}
	if len(list) == 0 {
		return "the chief to update the model"
	}
	return strings.Join(list, ", ")
}

// patience is how long others are waited for: until they have given no sign for so long.
type patience struct {
	limit time.Duration // 0: forever
	since time.Time     // of the last sign, or the begin
	sign  int64
}

// newPatience returns the patience of a wait that begins.
func (t *Task) newPatience() patience {
	return patience{limit: t.config.Cluster.PatienceSecs.Duration(), since: time.Now()}
}

// see records the result of a check; a sign of life is above 0.
func (p *patience) see(sign int64) {
	if sign > 0 && sign != p.sign {
		p.sign, p.since = sign, time.Now()
	}
}

// remaining returns how much is left, and whether that is nothing.
func (p *patience) remaining() (left time.Duration, over bool) {
	left = p.limit - time.Since(p.since)
	return left, p.limit > 0 && left <= 0
}
