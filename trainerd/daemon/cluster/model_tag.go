package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/session"
)

// While a run's model lives on servers, a variable there holds its tag, which begins with
// the run's ID. A chief that comes back and finds its own ID continues with the model as it
// is, and a worker waits for it. Without the tag they would take the model of an earlier user
// of the servers for their own.
//
// The second line of the tag is the generation: a random word that the chief
// draws whenever it has put values into the model, and where workers wait for each
// other also when it has a new session, for the updates under way were lost with
// the old one. While it restores the tag is a claim. A worker reads the tag
// repeatedly: once it differs from that with which its session began, the worker
// would wait for steps that are no longer made, and makes a new session.
//
// The third line is the layout: which variable is on which server. With another one, by
// another cluster.ps_tasks, a variable may be one that an earlier run has left on its server.
const (
	tagScope = "trainerd_run/"
	tagHas   = tagScope + "has"
	tagRead  = tagScope + "read"
	tagValue = tagScope + "value"
	tagSet   = tagScope + "set"
)

// addTag adds the variable of the tag to a graph, on the device of another
// variable.
func addTag(def *tfpb.GraphDef, beside string) {
	text := attr.Type(tfpb.DataType_DT_STRING)
	node := nodeAdder(def, beside)
	const id = tagScope + "id"
	node(id, "VarHandleOp", graph.Attrs{"dtype": text, "shape": attr.Shape(graph.MakeShape().Proto()), "shared_name": attr.String(id)})
	node(tagHas, "VarIsInitializedOp", nil, id)
	node(tagRead, "ReadVariableOp", graph.Attrs{"dtype": text}, id)
	node(tagValue, "Placeholder", graph.Attrs{"dtype": text, "shape": attr.Shape(graph.MakeShape().Proto())})
	node(tagSet, "AssignVariableOp", graph.Attrs{"dtype": text}, id, tagValue)
}

// nodeAdder returns a function that adds nodes to a graph, on the device of one
// that it has.
func nodeAdder(def *tfpb.GraphDef, beside string) func(name, op string, attrs graph.Attrs, inputs ...string) {
	device := ""
	for _, n := range def.GetNode() {
		if n.GetName() == beside {
			device = n.GetDevice()
		}
	}
	return func(name, op string, attrs graph.Attrs, inputs ...string) {
		def.Node = append(def.Node, &tfpb.NodeDef{Name: name, Op: op, Input: inputs, Device: device, Attr: attrs})
	}
}

// readTag returns the tag on the servers, "" for none.
func readTag(ctx context.Context, sess session.Session) (string, error) {
	out, err := sess.Run(ctx, nil, []string{tagHas}, nil)
	if err != nil || len(out[0].Data) != 1 || out[0].Data[0] == 0 {
		return "", err
	}
	if out, err = sess.Run(ctx, nil, []string{tagRead}, nil); err != nil {
		return "", err
	}
	return tagText(out[0]), nil
}

// tagText returns the text of a tag that was fetched.
func tagText(t *ckptfmt.Tensor) string {
	if len(t.Strings) != 1 {
		return ""
	}
	return string(t.Strings[0])
}

// ownTag returns the tag on the servers if it is of this run, else "".
func (t *Task) ownTag(ctx context.Context, sess session.Session) (string, error) {
	tag, err := readTag(ctx, sess)
	if tag == "" || err != nil {
		return "", err
	}
	id, err := t.readID()
	if id == "" || err != nil || !strings.HasPrefix(tag, id) {
		return "", err
	}
	t.id.Store(id)
	return tag, nil
}

// awaitTag returns the tag with which a worker's session begins, or the reason
// for which the worker waits while the servers do not have the model of its run.
func (t *Task) awaitTag(ctx context.Context, sess session.Session) (string, error) {
	tag, err := t.ownTag(ctx, sess)
	if tag != "" || err != nil {
		return tag, err
	}
	return "", &session.OpError{Code: tfpb.Code_UNAVAILABLE,
		Message: fmt.Sprintf("the chief has not made the model of the logdir %s ready on the servers", config.Absolute(t.config.Logdir))}
}

// ErrReplaced ends the session of a worker whose generation is over. By its code
// the Supervisor makes another one.
var ErrReplaced = &session.OpError{Code: tfpb.Code_ABORTED,
	Message: "the chief has restored the model or has a new session; the steps of this session are no longer waited for"}

// CurrentStep reads the global step. It fails with [ErrReplaced] if the session
// is a worker's and its generation is over.
func (t *Task) CurrentStep(ctx context.Context, sess session.Session) (int64, error) {
	w := watchOf(sess)
	if w == nil || w.tag == "" {
		return t.program.ReadStep(ctx, sess)
	}
	out, err := sess.Run(ctx, nil, []string{t.program.GlobalStep, tagRead}, nil)
	if err != nil {
		return 0, fmt.Errorf("reading the global step: %w", err)
	}
	if tagText(out[1]) != w.tag {
		return 0, ErrReplaced
	}
	return session.ScalarInt(out[0])
}

// Adopt reports whether the servers still have the model of this run, no older
// than its newest checkpoint, and with its variables on the same servers.
func (t *Task) Adopt(ctx context.Context, sess session.Session) (bool, error) {
	tag, err := t.ownTag(ctx, sess)
	if err != nil {
		return false, err
	}
	if tag == "" {
		return false, t.awaitOther(ctx, sess)
	}
	if lines := strings.Split(tag, "\n"); len(lines) > 2 && lines[2] != t.layout { // that of an older release has none
		t.log.Info("the model is alive, with its variables on other servers, and is not adopted")
		return false, nil
	}
	step, err := t.program.ReadStep(ctx, sess)
	if err != nil {
		return false, err
	}
	saved, err := t.savedStep()
	return err == nil && step >= saved, err
}

// savedStep returns the step of the newest checkpoint that can be read, -1 for none: a chief
// may have been killed while it wrote one.
func (t *Task) savedStep() (int64, error) {
	found, err := checkpoint.Find(t.config.Logdir, checkpoint.DefaultLatestFilename, t.config.Supervisor.CheckpointBasename)
	if err != nil {
		return -1, err
	}
	for _, prefix := range found.Prefixes {
		if step := t.program.SavedStep(prefix); step >= 0 {
			return step, nil
		}
	}
	return -1, nil
}

// tagModel makes the model known as this run's, with a new generation. One that was
// adopted keeps its generation, unless workers wait for each other.
func (t *Task) tagModel(ctx context.Context, sess session.Session, adopted bool) error {
	id, err := t.runID()
	if err != nil {
		return err
	}
	if !adopted || t.tracksWorkers() {
		if err := setTag(ctx, sess, id+rand.Text()+"\n"+t.layout); err != nil {
			return fmt.Errorf("tagging the model as this run's: %w", err)
		}
	}
	t.id.Store(id)
	w := watchOf(sess)
	w.own(id)
	w.beginLife()
	return nil
}

func setTag(ctx context.Context, sess session.Session, text string) error {
	value := &ckptfmt.Tensor{DType: tfpb.DataType_DT_STRING, Strings: [][]byte{[]byte(text)}}
	_, err := sess.Run(ctx, program.Feed{tagValue: value}, nil, []string{tagSet})
	return err
}
