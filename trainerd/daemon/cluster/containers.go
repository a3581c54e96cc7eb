package cluster

import (
	"crypto/rand"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
)

// inputOp matches the ops that hold what is left of an input.
var inputOp = lazyregexp.New(`^(?:(?:FIFO|PaddingFIFO|RandomShuffle|Priority)Queue|\w*Reader|Barrier|Iterator|OneShotIterator)(?:V2)?$`)

// ownInputs gives the queues, readers and iterators of a worker their own container. Servers keep
// them when a session ends, closed and half read; a new session has to find new ones, as in this
// process. Those with a shared name, or on another server, are meant for several workers and stay
// unchanged.
func ownInputs(def *tfpb.GraphDef, worker string) {
	container := attr.String("trainerd-" + rand.Text())
	for _, n := range def.GetNode() {
		if !inputOp().MatchString(n.GetOp()) || isShared(n, worker) || len(n.GetAttr()["container"].GetS()) > 0 {
			continue
		}
		if n.Attr == nil {
			n.Attr = make(map[string]*tfpb.AttrValue)
		}
		n.Attr["container"] = container
	}
}

// isShared reports whether other workers use the same queue, or reader.
func isShared(n *tfpb.NodeDef, worker string) bool {
	s := server().FindString(n.GetDevice())
	return len(n.GetAttr()["shared_name"].GetS()) > 0 || s != "" && s != worker
}

// sharedCancels returns the ops by which queue runners cancel queues that other
// workers use. A queue that is cancelled stays so on its server, for them and
// for anyone who comes back.
func (t *Task) sharedCancels(def *tfpb.GraphDef) map[string]bool {
	runners, err := t.program.QueueRunners()
	if err != nil {
		return nil // the Supervisor will say so
	}
	shared := make(map[string]bool)
	for _, n := range def.GetNode() {
		shared[n.GetName()] = inputOp().MatchString(n.GetOp()) && isShared(n, worker(t.config.Cluster))
	}
	cancels := make(map[string]bool)
	for _, q := range runners {
		if shared[q.GetQueueName()] && q.GetCancelOpName() != "" {
			cancels[q.GetCancelOpName()] = true
		}
	}
	return cancels
}
