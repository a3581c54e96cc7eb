package child

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// nodesDir is the folder in a logdir through which the nodes of a job find each other.
const nodesDir = "trainerd.nodes"

// phase is the state of a start of the program, on all nodes or on one.
type phase string

const (
	nodeRunning phase = "running"
	nodeEnding  phase = "ending"  // the chief has asked its program to end, or a worker was asked to stop
	nodeClosing phase = "closing" // the chief's program has succeeded; those of the others end by themselves
	nodeEnded   phase = "ended"   // on a node, or on all: another start follows
	jobComplete phase = "complete"
	jobStopped  phase = "stopped"
	jobFailed   phase = "failed"
)

func (p phase) final() bool { return p == jobComplete || p == jobStopped || p == jobFailed }

// start is one start of the program on all nodes.
type start struct {
	Chief   string `json:"chief"` // see lifeOf: each run of a chief counts its attempts
	Attempt int    `json:"attempt"`
}

// jobState is what the chief publishes to the workers: the file job.json.
type jobState struct {
	start
	Phase      phase  `json:"phase"`
	Host       string `json:"host"`                 // of the chief
	Node       int    `json:"node,omitempty"`       // its number
	Checkpoint string `json:"checkpoint,omitempty"` // below the logdir, "" for none
	Step       int64  `json:"step"`                 // of the checkpoint, NoStep where its name has none
	Reason     string `json:"reason,omitempty"`     // why the job has failed
	Speaker    *int   `json:"speaker,omitempty"`    // the node whose reports count, nil while none has reported
	Paused     bool   `json:"paused,omitempty"`
	Ending     bool   `json:"ending,omitempty"` // it saves, and then ends: a node that comes now waits for the next start

	Save saveRequest `json:"save,omitzero"` // the newest

	// Earlier is the start of an earlier chief whose end this chief has not seen yet, and whose
	// reports it has not all handled. If this chief does not finish that, the next one does.
	Earlier *jobState `json:"earlier,omitempty"`
}

// rendezvous is a name under which the ranks of one start find each other, and none of another
// start.
func (s start) rendezvous() string {
	sum := sha256.Sum256([]byte(s.Chief))
	return fmt.Sprintf("%x-%d", sum[:6], s.Attempt)
}

// nodeState is what a worker reports to the chief: the file nodeN/state.json.
type nodeState struct {
	start
	Phase phase  `json:"phase"`
	Host  string `json:"host"`
	Cause Cause  `json:"cause"` // why it has ended
	Code  int    `json:"code"`
	Exit  string `json:"exit,omitempty"`
}

// lifeOf identifies one holder of a logdir.
func lifeOf(h logdir.Holder) string {
	return fmt.Sprintf("%s/%d/%d", h.Host, h.PID, h.Start.UnixMilli())
}

// nodes is what one node knows about the others. It is nil for a job on one node.
type nodes struct {
	dir   string // absolute
	count int
	own   int // the number of this node
	disk  atomicfile.FS
	// states are this node's newest states, by file, and unsent says why some of them are not on the
	// disk yet: without them, the other nodes would wait forever.
	states map[string]any
	unsent map[string]error
}

// newNodes makes the folder of this node in an existing logdir.
func newNodes(sv *Supervisor, logdir string) (*nodes, error) {
	if sv.Nodes <= 1 {
		return nil, nil
	}
	n := &nodes{dir: filepath.Join(logdir, nodesDir), count: sv.Nodes, own: sv.Node, disk: sv.FS, states: map[string]any{}, unsent: map[string]error{}}
	return n, n.makeFolder()
}

// makeFolder makes the folder of this node, but not the logdir.
func (n *nodes) makeFolder() error {
	return atomicfile.MkdirAllSync(atomicfile.WithoutMaking(n.disk, filepath.Dir(n.dir)), n.groupDir())
}

// sweep removes the temporary files that killed processes have left of files that only this process
// writes: the node's, and the chief's if it is the chief.
func (n *nodes) sweep(isChief bool) error {
	o := &ckptfmt.FileOptions{FS: n.disk}
	_, err := ckptdir.SweepTemps(n.groupDir(), 0, o)
	if !isChief {
		return err
	}
	_, failed := ckptdir.SweepTemps(n.dir, 0, o)
	return errors.Join(err, failed)
}

// groupDir is the folder of this node. The processes there hold its lock: those of
// others may be on the same machine, and have locks of their own.
func (n *nodes) groupDir() string { return n.folder(n.own) }

func (n *nodes) folder(node int) string   { return filepath.Join(n.dir, fmt.Sprint("node", node)) }
func (n *nodes) jobFile() string          { return filepath.Join(n.dir, "job.json") }
func (n *nodes) nodeFile(node int) string { return filepath.Join(n.folder(node), "state.json") }

// maxState bounds what is read of a file of another node.
const maxState = 16 << 20

// readJSON reads a small file, or leaves v as it is.
func readJSON(name string, v any) {
	if text, err := atomicfile.ReadFileLimit(nil, name, maxState, nil); err == nil {
		json.Unmarshal(text, v) // files appear whole, and one of another version says nothing
	}
}

func writeJSON(fsys atomicfile.FS, name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(fsys, name, append(text, '\n'))
}

// send writes a state for the other nodes, or leaves it to resend if the disk refuses it.
func (n *nodes) send(name string, state any) error {
	n.states[name] = state
	err := writeJSON(n.disk, name, state)
	if errors.Is(err, fs.ErrNotExist) && n.makeFolder() == nil { // the chief has made the logdir again
		err = writeJSON(n.disk, name, state)
	}
	if n.unsent[name] = err; err == nil {
		delete(n.unsent, name)
	}
	return err
}

// resend sends the states that are not on the disk, because it has refused them or they were
// deleted. It reports whether all are there now.
func (n *nodes) resend() (all bool) {
	if n == nil {
		return true
	}
	for name, state := range n.states {
		if _, err := os.Stat(name); n.unsent[name] != nil || errors.Is(err, fs.ErrNotExist) {
			_ = n.send(name, state) // the log has why it could not be
		}
	}
	return !n.hasUnsent()
}

// hasUnsent reports whether some states of this node are not on the disk yet.
func (n *nodes) hasUnsent() bool { return n != nil && len(n.unsent) > 0 }

// patienceWithDisk is how long a node tries to send its last state.
const patienceWithDisk = 10 * time.Second

// sendLast tries for a while to send what the disk has refused.
func (n *nodes) sendLast() {
	for begun := time.Now(); !n.resend() && time.Since(begun) < patienceWithDisk; {
		time.Sleep(nodesPoll)
	}
}

// nodesPoll is the time between two checks while waiting for other nodes.
const nodesPoll = 200 * time.Millisecond

func (n *nodes) job() (j jobState) {
	readJSON(n.jobFile(), &j)
	return j
}

// unfinished returns the newest start of a chief before this one.
func (n *nodes) unfinished() *jobState {
	j := n.job()
	if j.Earlier != nil {
		return j.Earlier // after which there was none
	}
	return &j
}

// isPaused reports whether the job was paused when its chief was lost.
func (n *nodes) isPaused() bool {
	if n == nil {
		return false
	}
	j := n.job()
	return j.Paused && !j.Phase.final()
}

// HasNodes reports whether the job in a logdir has several nodes.
func HasNodes(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, nodesDir))
	return err == nil
}

// ChiefNode returns the number of the node that leads the job in a logdir: 0 for a job
// with one node, or while none leads it.
func ChiefNode(dir string) int {
	j := (&nodes{dir: filepath.Join(dir, nodesDir)}).job()
	if j.Chief != lifeOf(logdir.Named(dir)) {
		return 0
	}
	return j.Node
}

// others returns the states of the other nodes, by their numbers.
func (n *nodes) others() map[int]nodeState {
	states := map[int]nodeState{}
	for node := range n.count {
		var s nodeState
		if readJSON(n.nodeFile(node), &s); node != n.own && s.Phase != "" {
			states[node] = s
		}
	}
	return states
}
