package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
)

// spread reports whether the model is on more than the master.
func spread(c config.Cluster) bool { return c.PSTasks > 0 || c.Workers > 1 }

func worker(c config.Cluster) string { return fmt.Sprintf("/job:worker/task:%d", c.Task) }

// deviceFilters names the servers that the session needs, so that it does not wait for other
// replicas' servers. None means all.
func deviceFilters(c config.Cluster) []string {
	if c.PSTasks == 0 {
		return nil
	}
	return []string{"/job:ps", worker(c)}
}

// placed returns the graph as the servers get it: a family with its places,
// and the nodes of the run's tag.
func (t *Task) placed() (*tfpb.GraphDef, error) {
	c := t.config
	def := proto.Clone(t.program.Meta.GetGraphDef()).(*tfpb.GraphDef)
	switch {
	case c.IsGraph() && !c.Supervisor.IsChief:
		if v := unplaced(def); v != "" {
			return nil, &program.FileError{File: c.Graph.Meta, Err: fmt.Errorf("variable %s has no device, so that each worker would have one of its own; export the graph under tf.compat.v1.device(tf.compat.v1.train.replica_device_setter(...))", v)}
		}
	case !c.IsGraph() && spread(c.Cluster):
		def = place(def, placement{PSTasks: c.Cluster.PSTasks, WorkerDevice: worker(c.Cluster)})
	}
	t.layout = layoutOf(def)
	ownInputs(def, worker(c.Cluster))
	t.marked = t.addMarks(def)
	t.writers = addWriterNodes(def)
	addTag(def, program.NodeOf(t.program.GlobalStep))
	addLife(def, program.NodeOf(t.program.GlobalStep))
	if t.tracksWorkers() {
		addProgress(def, program.NodeOf(t.program.GlobalStep), t.program.ApplyGrads, c.Cluster)
	}
	return def, nil
}

// layoutOf returns a text that is the same for graphs whose variables are on the same devices.
func layoutOf(def *tfpb.GraphDef) string {
	var places []string
	for _, n := range def.GetNode() {
		if isVariableOp(n.GetOp()) {
			places = append(places, n.GetName()+"\x00"+n.GetDevice())
		}
	}
	slices.Sort(places)
	sum := sha256.Sum256([]byte(strings.Join(places, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// unplaced returns a variable without a device, "" if there is none.
func unplaced(def *tfpb.GraphDef) string {
	for _, n := range def.GetNode() {
		switch n.GetOp() {
		case "Variable", "VariableV2", "VarHandleOp":
			if n.GetDevice() == "" {
				return n.GetName()
			}
		}
	}
	return ""
}
