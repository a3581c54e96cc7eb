// Package session is the contract between a training and its runtime: what
// every session must do, what it may also do to make saves cheaper, and the
// errors that both sides branch on. It has no state and starts nothing. Each
// interface says what may be called concurrently.
package session

import (
	"context"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Session runs parts of a model. The embedded runtime and the client of
// TensorFlow's distributed runtime implement it; so may a Go program that
// keeps its own parameters.
//
// Run feeds the tensors named in feeds, computes the tensors named in fetches
// (returned in that order) and runs the nodes named in targets. Tensors are
// named as in TensorFlow, "node:output", where ":0" may be omitted. A Session
// is safe for concurrent use. The caller owns the result of Run; Run does not
// keep or change the feeds.
type Session interface {
	Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error)
	Close() error
}

// VariableInfo describes one variable of a [VariableStore].
type VariableInfo struct {
	Name        string // as in a checkpoint: the variable's name, without ":0"
	DType       tfpb.DataType
	Shape       []int64 // nil, with Initialized false, if not known yet
	Initialized bool
}

// Snapshot is a consistent copy of variables: all as they were between the
// same two steps.
type Snapshot struct {
	// Tensors holds the requested values, in the order of the names.
	Tensors []*ckptfmt.Tensor
	// State is what the session needs in addition to the variables to continue
	// exactly where it was, such as positions in random-number streams. Its
	// names begin with StatePrefix, so TensorFlow, which ignores names that are
	// not in the graph, can still restore such a checkpoint.
	State []ckptfmt.NamedTensor
}

// StatePrefix begins the names of a session's own state in a checkpoint.
const StatePrefix = "_trainerd/"

// VariableStore is a Session whose variables a [trainerd.Saver] copies in and out
// itself. Any other Session (a remote server, which has its own disk) is saved
// through the save and restore ops of its graph.
type VariableStore interface {
	Session
	// Variables lists all variables, ordered by name. It does not change the session.
	Variables(ctx context.Context) ([]VariableInfo, error)
	// Snapshot copies the named variables between two steps. A variable that
	// was never assigned is an *OpError with Code FAILED_PRECONDITION.
	Snapshot(ctx context.Context, names []string) (*Snapshot, error)
	// Restore assigns all values or none: names, types and shapes are checked
	// first. Values whose names begin with StatePrefix restore the session's
	// own state; unknown ones are ignored.
	Restore(ctx context.Context, values []ckptfmt.NamedTensor) error
}

// TableStore is a VariableStore whose state has the tables of the graph that steps
// change, such as a MutableHashTable: the two tensors that LookupTableExport gives of
// each, named by TableState.
type TableStore interface {
	VariableStore
	SavesTables()
}

// TableState returns the names in Snapshot.State of what the table of a node, or of a
// shared name, holds.
func TableState(table string) (keys, values string) {
	return StatePrefix + "table/" + table + "/keys", StatePrefix + "table/" + table + "/values"
}

// ChangeTracker is a VariableStore that knows when its variables change. So a
// [trainerd.Supervisor] finds out at no cost that a save would only repeat the
// current checkpoint. For any other VariableStore it compares the values; the
// variables of a Session that is neither count as changed.
type ChangeTracker interface {
	VariableStore
	// Changes returns a number that grows with every change of one of the named
	// variables, before any other call can see the new value. So equal numbers
	// mean equal values; the reverse need not hold.
	Changes(names []string) (uint64, error)
}

// Adopter is a VariableStore that can take over the memory of values.
type Adopter interface {
	VariableStore
	// Adopt is Restore, but that the session may keep the memory of the values, which
	// nobody else may use from then on. No two values may share any.
	Adopt(ctx context.Context, values []ckptfmt.NamedTensor) error
}

// LazyStore is a VariableStore that can freeze the current values without copying all
// of them at once: a variable that the training is about to change is copied first, the
// rest when written or not at all. A [trainerd.Saver] then stalls the training only to
// copy what the next steps change, not the whole model.
type LazyStore interface {
	VariableStore
	// Freeze is like Snapshot, but leaves copying for later.
	Freeze(ctx context.Context, names []string) (LazySnapshot, error)
}

// LazySnapshot holds values as they were between two steps. It is used by one
// goroutine, during the training.
type LazySnapshot interface {
	// Tensor returns a value by the index of its name in the list passed to
	// Freeze. It is valid until the next call, and must not be changed. Each
	// may be requested once.
	Tensor(i int) (*ckptfmt.Tensor, error)
	// State is like Snapshot.State.
	State() []ckptfmt.NamedTensor
	// Close releases the values that were not requested.
	Close()
}

// StepHolder is a Session that can hold back the steps by which its user changes variables. A
// [trainerd.Saver] holds them while such a session saves its own variables, so that the checkpoint
// is of a single moment, that of its step.
type StepHolder interface {
	Session
	// HoldSteps returns when no step that changes variables is under way, and keeps
	// new ones waiting until release is called, which may be called again.
	HoldSteps(ctx context.Context) (release func(), err error)
}

// Wrapper is a VariableStore around another one, which may be able to do more
// than the wrapper shows. A Saver takes and restores the variables of the store
// inside.
type Wrapper interface {
	VariableStore
	Saved() VariableStore
}
