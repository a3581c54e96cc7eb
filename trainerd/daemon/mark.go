package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// A run's mark is a random text in the logdir and, while the model lives
// there, in a variable of the servers. A chief that comes back and finds its
// own mark there goes on with the model as it is, and a worker waits for it.
// Without the mark they would take the model of whoever used the servers before
// for their own.
const (
	markFile = "run-id"

	markScope = "trainerd_run/"
	markHas   = markScope + "has"
	markRead  = markScope + "read"
	markValue = markScope + "value"
	markSet   = markScope + "set"
)

// addMark adds the mark's variable to a graph, beside another variable.
func addMark(def *tfpb.GraphDef, beside string) {
	device := ""
	for _, n := range def.GetNode() {
		if n.GetName() == beside {
			device = n.GetDevice()
		}
	}
	text := graph.TypeAttr(tfpb.DataType_DT_STRING)
	node := func(name, op string, attrs graph.Attrs, inputs ...string) {
		def.Node = append(def.Node, &tfpb.NodeDef{Name: name, Op: op, Input: inputs, Device: device, Attr: attrs})
	}
	const id = markScope + "id"
	node(id, "VarHandleOp", graph.Attrs{"dtype": text, "shape": graph.ShapeAttr(graph.MakeShape()), "shared_name": graph.StringAttr(id)})
	node(markHas, "VarIsInitializedOp", nil, id)
	node(markRead, "ReadVariableOp", graph.Attrs{"dtype": text}, id)
	node(markValue, "Placeholder", graph.Attrs{"dtype": text, "shape": graph.ShapeAttr(graph.MakeShape())})
	node(markSet, "AssignVariableOp", graph.Attrs{"dtype": text}, id, markValue)
}

// runID returns the mark in the logdir, which it makes if there is none.
func (j *job) runID() (string, error) {
	name := filepath.Join(j.config.Logdir, markFile)
	text, err := os.ReadFile(name)
	if err == nil && len(text) > 0 {
		return string(text), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	id := make([]byte, 16)
	rand.Read(id)
	made := hex.EncodeToString(id) + "\n"
	return made, atomicfile.WriteFile(nil, name, []byte(made))
}

// marked reports whether the servers have the mark of this run.
func (j *job) marked(ctx context.Context, sess trainerd.Session) (bool, error) {
	out, err := sess.Run(ctx, nil, []string{markHas}, nil)
	if err != nil {
		return false, err
	}
	if len(out[0].Data) != 1 || out[0].Data[0] == 0 {
		return false, nil
	}
	if out, err = sess.Run(ctx, nil, []string{markRead}, nil); err != nil {
		return false, err
	}
	id, err := os.ReadFile(filepath.Join(j.config.Logdir, markFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return err == nil && len(out[0].Strings) == 1 && string(out[0].Strings[0]) == string(id), nil
}

// awaited is the reason for which a worker waits while the servers do not have
// the model of its run.
func (j *job) awaited(ctx context.Context, sess trainerd.Session) error {
	ours, err := j.marked(ctx, sess)
	if ours || err != nil {
		return err
	}
	return &trainerd.OpError{Code: tfpb.Code_UNAVAILABLE,
		Message: fmt.Sprintf("the chief has not made the model of the logdir %s ready on the servers", absolute(j.config.Logdir))}
}

// adopt reports whether the servers still have the model of this run, no older
// than its newest checkpoint.
func (j *job) adopt(ctx context.Context, sess trainerd.Session) (bool, error) {
	if ours, err := j.marked(ctx, sess); !ours || err != nil {
		return false, err
	}
	step, err := j.globalStep(ctx, sess)
	if err != nil {
		return false, err
	}
	found, err := trainerd.FindCheckpoints(j.config.Logdir, trainerd.DefaultLatestFilename, j.config.Supervisor.CheckpointBasename)
	if err != nil || len(found.Prefixes) == 0 {
		return err == nil, err
	}
	return step >= savedStep(found.Prefixes[0], j.program.stepKey), nil
}

// mark puts the run's mark beside the model.
func (j *job) mark(ctx context.Context, sess trainerd.Session) error {
	id, err := j.runID()
	if err != nil {
		return err
	}
	value := &ckptfmt.Tensor{DType: tfpb.DataType_DT_STRING, Strings: [][]byte{[]byte(id)}}
	if _, err := sess.Run(ctx, feed{markValue: value}, nil, []string{markSet}); err != nil {
		return fmt.Errorf("marking the model as this run's: %w", err)
	}
	return nil
}
