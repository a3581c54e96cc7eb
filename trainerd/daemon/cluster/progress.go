package cluster

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

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
// who wait know for whom.
const (
	progressScope  = tagScope + "roll_"
	progressRead   = progressScope + "read"
	progressValue  = progressScope + "value"
	progressSet    = progressScope + "set"
	progressHas    = progressScope + "has"
	progressStep   = progressScope + "step"
	progressRecord = progressScope + "note"
)

// tracksWorkers reports whether workers wait for each other where others can see it.
func (t *Task) tracksWorkers() bool { return t.config.IsRemote() && len(t.program.ApplyGrads) > 0 }

// addProgress adds the variable of the progress to a graph, on the device of
// another variable. A worker's record is made after the given nodes.
func addProgress(def *tfpb.GraphDef, beside string, after []string, c config.Cluster) {
	number := attr.Type(tfpb.DataType_DT_INT64)
	node := nodeAdder(def, beside)
	const id, task = progressScope + "steps", progressScope + "task"
	shape := attr.Shape(graph.MakeShape(int64(c.Workers)).Proto())
	node(id, "VarHandleOp", graph.Attrs{"dtype": number, "shape": shape, "shared_name": attr.String(id)})
	node(progressHas, "VarIsInitializedOp", nil, id)
	node(progressRead, "ReadVariableOp", graph.Attrs{"dtype": number}, id)
	node(progressValue, "Placeholder", graph.Attrs{"dtype": number, "shape": shape})
	node(progressSet, "AssignVariableOp", graph.Attrs{"dtype": number}, id, progressValue)
	node(task, "Const", graph.Attrs{"dtype": number, "value": attr.Tensor(literal.Int64s(int64(c.Task)))})
	node(progressStep, "Placeholder", graph.Attrs{"dtype": number, "shape": attr.Shape(graph.MakeShape(1).Proto())})
	inputs := []string{id, task, progressStep}
	for _, name := range after {
		inputs = append(inputs, "^"+name)
	}
	node(progressRecord, "ResourceScatterUpdate", graph.Attrs{"dtype": number, "Tindices": number}, inputs...)
}

// initProgress makes the vector. That of an earlier session of the chief stays,
// except for gradients of the step that comes next: they may be lost, and are
// given again.
func (t *Task) initProgress(ctx context.Context, sess session.Session, step int64, adopted bool) error {
	if !t.tracksWorkers() {
		return nil
	}
	workers := t.config.Cluster.Workers
	steps := slices.Repeat([]int64{-1}, workers)
	if adopted {
		old, err := t.readProgress(ctx, sess)
		if err != nil {
			return err
		}
		for i := range min(len(old), workers) {
			steps[i] = min(old[i], step-1)
		}
	}
	value := &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT64, Shape: []int64{int64(workers)}}
	for _, s := range steps {
		value.Data = binary.LittleEndian.AppendUint64(value.Data, uint64(s))
	}
	_, err := sess.Run(ctx, program.Feed{progressValue: value}, nil, []string{progressSet})
	return err
}

// readProgress returns the vector, nothing when there is none.
func (t *Task) readProgress(ctx context.Context, sess session.Session) ([]int64, error) {
	if !t.tracksWorkers() {
		return nil, nil
	}
	out, err := sess.Run(ctx, nil, []string{progressHas}, nil)
	if err != nil || len(out[0].Data) != 1 || out[0].Data[0] == 0 {
		return nil, err
	}
	if out, err = sess.Run(ctx, nil, []string{progressRead}, nil); err != nil {
		return nil, err
	}
	return ckptfmt.Values[int64](out[0])
}

// RecordStep returns the ops that record a step as this task's progress, and
// feeds them.
func (t *Task) RecordStep(step int64, f program.Feed) []string {
	if !t.tracksWorkers() {
		return nil
	}
	value := binary.LittleEndian.AppendUint64(nil, uint64(step))
	f[progressStep] = &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT64, Shape: []int64{1}, Data: value}
	return []string{progressRecord}
}

// missing names those who have not given gradients for a step. A negative one
// is the newest that anybody has given some for.
func (t *Task) missing(ctx context.Context, sess session.Session, step int64) (string, error) {
	steps, err := t.readProgress(ctx, sess)
	if err != nil {
		return "", err
	}
	if step < 0 && len(steps) > 0 {
		step = slices.Max(steps)
	}
	var list []string
	for task, last := range steps {
		switch {
		case last >= step:
		case last < 0:
			list = append(list, fmt.Sprintf("worker %d (it has done no step yet)", task))
		default:
			list = append(list, fmt.Sprintf("worker %d (its last step was %d)", task, last+1))
		}
	}
	if len(list) == 0 {
		return "the chief to update the model", nil
	}
	return strings.Join(list, ", "), nil
}
