package trainerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Defaults of Saver, as in TensorFlow.
const (
	DefaultMaxToKeep      = 5
	DefaultLatestFilename = "checkpoint"
)

// Saver writes checkpoints and restores them, and deletes old ones.
//
// The zero Saver saves all variables of a session, keeps five checkpoints, and
// names them in the file `checkpoint`, relative to its directory.
//
// The fields must not change after first use. A Saver is safe for concurrent
// use; saves happen one after the other.
type Saver struct {
	// Variables maps keys in the checkpoint to names of variables; see
	// [VariableList] for keys that are the names. Nil means what the saver of
	// MetaGraph saves, or else the graph's global variables, or without a graph
	// all variables of the session.
	Variables map[string]string
	// AllowEmpty makes it no error to have nothing to save.
	AllowEmpty bool
	// Reshape accepts on restore a tensor of another shape with the same
	// number of elements.
	Reshape bool

	// MaxToKeep is how many checkpoints stay. Zero means DefaultMaxToKeep,
	// negative means all. Those too many are deleted after the new checkpoint
	// is durable, and never outside its directory.
	MaxToKeep int
	// KeepEvery preserves for good one checkpoint for each such period. The
	// periods go on across restarts. Zero or less preserves none.
	KeepEvery time.Duration

	// LatestFilename is the name of the state file. "" means "checkpoint".
	LatestFilename string
	// AbsolutePaths writes absolute paths into the state file. They make a
	// copied directory refer to the original, so they are not the default.
	AbsolutePaths bool
	// PadStep writes the step number with at least eight digits.
	PadStep bool

	// MetaGraph is written beside each checkpoint, unless nil.
	MetaGraph *tfpb.MetaGraphDef
	// Def names the nodes that save and restore. They run in a session that is
	// not a [VariableStore], and where the graph saves more than variables. Nil
	// means the first one in MetaGraph.
	Def *tfpb.SaverDef

	// FS is where checkpoints are written; nil means the operating system.
	FS ckptfmt.FS
	// Logger says what is deleted or cannot be. Nil discards.
	Logger *slog.Logger

	writing sync.Mutex // held during a write
	mu      sync.Mutex
	rotation
	started bool             // lastPreserved is set
	doomed  []keptCheckpoint // out of the rotation, still to be deleted

	graphOnce sync.Once // for what MetaGraph says
	graphVars []savedVariable
	graphErr  error
}

// VariableList returns the map for Saver.Variables in which each variable has
// its own name as key.
func VariableList(names ...string) map[string]string {
	m := make(map[string]string, len(names))
	for _, name := range names {
		m[name] = name
	}
	return m
}

// Cut is the state of a session between two steps, taken by [Saver.Cut] to be
// written by [Saver.Write].
type Cut struct {
	// Step is the value of the global step in the cut, or NoStep.
	Step int64

	sess    Session
	tensors []cutTensor // by key; nil when the session saves itself
}

type cutTensor struct {
	savedVariable
	tensor *ckptfmt.Tensor
}

// Save writes a checkpoint and returns its prefix: path, with the step number
// appended unless step is negative. It returns when the checkpoint is durable:
// after a crash at any later time it is there, and named in the state file.
//
// The prefix is "" when there was nothing to save and AllowEmpty is set.
func (s *Saver) Save(ctx context.Context, sess Session, path string, step int64) (string, error) {
	cut, err := s.Cut(ctx, sess, "")
	if err != nil {
		return "", err
	}
	return s.Write(ctx, cut, path, step)
}

// Cut copies the session's variables as they stand between two steps. Training
// may go on while [Saver.Write] writes them. stepName names the variable that
// counts the steps; "" means that there is none.
//
// The variables of a session that is not a [VariableStore] are not copied:
// Write lets the session save them, as they are by then.
func (s *Saver) Cut(ctx context.Context, sess Session, stepName string) (*Cut, error) {
	cut := &Cut{Step: NoStep, sess: sess}
	store, vars, err := s.variablesOf(sess)
	if err != nil {
		return nil, err
	}
	if store == nil {
		cut.Step, err = readStep(ctx, sess, stepName)
		return cut, err
	}
	names := make([]string, len(vars), len(vars)+1)
	for i, v := range vars {
		names[i] = v.info.Name
	}
	if stepName != "" {
		names = append(names, variableName(stepName))
	}
	snapshot, err := store.Snapshot(ctx, names)
	if err != nil {
		return nil, err
	}
	if len(snapshot.Tensors) != len(names) {
		return nil, fmt.Errorf("session gave %d values for %d variables", len(snapshot.Tensors), len(names))
	}
	if stepName != "" {
		if cut.Step, err = scalarInt(snapshot.Tensors[len(vars)]); err != nil {
			return nil, fmt.Errorf("global step %s: %w", stepName, err)
		}
	}
	cut.tensors = cutTensors(vars, snapshot)
	return cut, nil
}

// cutTensors returns what goes into the checkpoint, ordered by key.
func cutTensors(vars []boundVariable, snapshot *Snapshot) []cutTensor {
	tensors := make([]cutTensor, 0, len(vars)+len(snapshot.State))
	for i, v := range vars {
		tensors = append(tensors, cutTensor{v.savedVariable, snapshot.Tensors[i]})
	}
	if len(vars) > 0 {
		for _, state := range snapshot.State {
			tensors = append(tensors, cutTensor{savedVariable{key: state.Name}, state.Tensor})
		}
	}
	slices.SortStableFunc(tensors, func(a, b cutTensor) int { return strings.Compare(a.key, b.key) })
	return tensors
}

// variablesOf returns the variables to save or restore, or a nil store when the
// session has to do that itself.
func (s *Saver) variablesOf(sess Session) (VariableStore, []boundVariable, error) {
	store, ok := sess.(VariableStore)
	if !ok {
		return nil, nil, nil
	}
	vars, err := s.bind(store)
	if errors.Is(err, errSavedByOps) {
		return nil, nil, nil
	}
	return store, vars, err
}

// LastCheckpoints returns the prefixes of the checkpoints that the Saver looks
// after, oldest first.
func (s *Saver) LastCheckpoints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	prefixes := make([]string, len(s.kept))
	for i, k := range s.kept {
		prefixes[i] = k.prefix
	}
	return prefixes
}

// RecoverLastCheckpoints makes the Saver look after checkpoints of an earlier
// run, oldest first. Those that do not exist are left out.
func (s *Saver) RecoverLastCheckpoints(prefixes []string) {
	var kept []keptCheckpoint
	for _, prefix := range prefixes {
		saved, err := checkpointTime(prefix)
		if err != nil {
			continue
		}
		abs, err := filepath.Abs(prefix)
		if err != nil {
			continue
		}
		kept = append(kept, keptCheckpoint{abs, saved})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start()
	s.kept = kept
}

// start begins the first keep-every period. The caller holds s.mu.
func (s *Saver) start() {
	if !s.started {
		s.started = true
		s.lastPreserved = time.Now()
	}
}

func (s *Saver) maxToKeep() int {
	if s.MaxToKeep == 0 {
		return DefaultMaxToKeep
	}
	return s.MaxToKeep
}

func (s *Saver) latestFilename() string {
	if s.LatestFilename == "" {
		return DefaultLatestFilename
	}
	return s.LatestFilename
}
