package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Snapshot is the state of a session between two steps, taken by [Saver.Snapshot] to be
// written by [Saver.Write].
type Snapshot struct {
	// Step is the value of the global step in the snapshot, or NoStep.
	Step int64
	// Metrics are recorded in the checkpoint's manifest, for [retention.Best] and
	// for readers. The caller may set them.
	Metrics map[string]float64
	// Measured has the step that each of Metrics belongs to, and its source. A
	// metric without an entry is of the checkpoint's step, and reported by the
	// program.
	Measured map[string]manifest.Measurement
	// DirExists says that the directory of the checkpoint exists: if it is deleted, it is not made
	// again. The caller may set it.
	DirExists bool
	// Asking, if not nil, is called before the session is asked to save its variables, and the
	// function that it returns when the session has answered. The caller may set it.
	Asking func() (answered func())

	sess    session.Session
	values  *Values          // nil when the session saves itself
	tensors []snapshotTensor // by key; nil when the session saves itself
	lazy    session.LazySnapshot
	began   time.Time
	held    time.Duration // for as long it kept steps waiting
	release func()        // ends the holding of steps; nil for none
}

// BySession reports whether the session writes the checkpoint itself, in its state at that moment.
func (c *Snapshot) BySession() bool { return c.tensors == nil }

// HoldsSteps reports whether the session makes no steps until the snapshot is written;
// see [session.StepHolder].
func (c *Snapshot) HoldsSteps() bool { return c.release != nil }

// Held returns how long steps had to wait for the snapshot: while it was taken, or,
// if it has held them, until it was written.
func (c *Snapshot) Held() time.Duration { return c.held }

// snapshotTensor is a tensor of a cut, in memory or still with the session.
type snapshotTensor struct {
	graph.SavedVariable
	tensor *ckptfmt.Tensor // nil when lazy has it
	index  int             // in the lazy snapshot
	size   int64           // about what it takes in a checkpoint
}

// Close releases what the session keeps for the snapshot. Write does so
// itself; a snapshot that is not written must be closed by the caller.
func (c *Snapshot) Close() {
	if c.lazy != nil {
		c.lazy.Close()
		c.lazy = nil
	}
	if c.release != nil {
		c.release()
		c.held, c.release = time.Since(c.began), nil
	}
}

// Snapshot takes the session's variables as they are between two steps: a
// [session.LazyStore] freezes them, any other [session.VariableStore] copies them. Training
// may continue while [Saver.Write] writes them. stepName names the variable that counts the
// steps; "" means that there is none.
//
// The variables of a session that is not a [session.VariableStore] are not copied:
// Write lets the session save them, as they are by then. Steps of a
// [session.StepHolder] wait until it has.
func (s *Saver) Snapshot(ctx context.Context, sess session.Session, stepName string) (*Snapshot, error) {
	cut := &Snapshot{Step: session.NoStep, sess: sess, began: time.Now()}
	store, vars, err := s.variablesOf(ctx, sess)
	if err != nil {
		return nil, err
	}
	if store == nil {
		return cut, cut.hold(ctx, stepName)
	}
	names := make([]string, len(vars), len(vars)+1)
	for i, v := range vars {
		names[i] = v.info.Name
	}
	if stepName != "" {
		names = append(names, graph.NodeName(stepName))
	}
	if err := s.makeTables(ctx, store); err != nil {
		return nil, err
	}
	if len(s.tables()) == 0 { // whose changes are not noticed
		cut.values = valuesOf(store, names[:len(vars):len(vars)])
	}
	taken := false
	defer func() {
		if !taken { // also where the session has panicked
			cut.Close()
		}
	}()
	if err := cut.take(ctx, store, vars, names); err != nil {
		return nil, err
	}
	cut.nameTables(s.tables())
	taken, cut.held = true, time.Since(cut.began)
	return cut, nil
}

// hold prevents steps of the session, if possible, until it has saved its variables.
func (c *Snapshot) hold(ctx context.Context, stepName string) (err error) {
	reader := c.sess
	if holder, ok := c.sess.(session.StepHolder); ok {
		if c.release, err = holder.HoldSteps(ctx); err != nil {
			return err
		}
		reader = struct{ session.Session }{c.sess} // a store would wait for the hold to end
	}
	if c.Step, err = session.ReadStep(ctx, reader, stepName); err != nil {
		c.Close()
	}
	return err
}

// take copies the variables, or makes the session freeze them.
func (c *Snapshot) take(ctx context.Context, store session.VariableStore, vars []boundVariable, names []string) error {
	snapshot := new(session.Snapshot)
	var step *ckptfmt.Tensor
	var err error
	if lazy, ok := store.(session.LazyStore); ok {
		if c.lazy, err = lazy.Freeze(ctx, names); err != nil {
			return err
		}
		snapshot.State = c.lazy.State()
		if len(names) > len(vars) {
			step, err = c.lazy.Tensor(len(vars))
		}
	} else if snapshot, err = store.Snapshot(ctx, names); err == nil {
		if len(snapshot.Tensors) != len(names) {
			return fmt.Errorf("session gave %d values for %d variables", len(snapshot.Tensors), len(names))
		}
		if len(names) > len(vars) {
			step = snapshot.Tensors[len(vars)]
		}
	}
	if err != nil {
		return err
	}
	if len(names) > len(vars) {
		if c.Step, err = session.ScalarInt(step); err != nil {
			return fmt.Errorf("global step %s: %w", names[len(vars)], err)
		}
	}
	c.tensors = snapshotTensors(vars, snapshot)
	return nil
}

// snapshotTensors returns what goes into the checkpoint, ordered by key.
func snapshotTensors(vars []boundVariable, snapshot *session.Snapshot) []snapshotTensor {
	tensors := make([]snapshotTensor, 0, len(vars)+len(snapshot.State))
	for i, v := range vars {
		t := snapshotTensor{SavedVariable: v.SavedVariable, index: i, size: byteSize(v.info)}
		if snapshot.Tensors != nil {
			t.tensor = snapshot.Tensors[i]
		}
		tensors = append(tensors, t)
	}
	if len(vars) > 0 {
		for _, state := range snapshot.State {
			tensors = append(tensors, snapshotTensor{SavedVariable: graph.SavedVariable{Key: state.Name}, tensor: state.Tensor})
		}
	}
	slices.SortStableFunc(tensors, func(a, b snapshotTensor) int { return strings.Compare(a.Key, b.Key) })
	return tensors
}

// nameTables gives what the state has of saved tables the keys that the graph's saver has
// for it.
func (c *Snapshot) nameTables(tables []graph.SavedTable) {
	keys := map[string]string{}
	for _, t := range tables {
		keys[tableState(t)] = t.Key
	}
	for i, t := range c.tensors {
		if key, ok := keys[t.Key]; ok {
			c.tensors[i].Key = key
		}
	}
	slices.SortStableFunc(c.tensors, func(a, b snapshotTensor) int { return strings.Compare(a.Key, b.Key) })
}

// Values returns the values of the snapshot, to be compared with later values of
// the variables.
func (c *Snapshot) Values() *Values {
	if c.values == nil || c.values.tracked || c.lazy != nil {
		return c.values
	}
	var tensors []ckptfmt.NamedTensor
	for _, t := range c.tensors {
		if t.Name != "" { // not the session's own state
			tensors = append(tensors, ckptfmt.NamedTensor{Name: t.Name, Tensor: t.tensor})
		}
	}
	c.values.setHash(tensors)
	return c.values
}

// addTo writes the tensor.
func (t *snapshotTensor) addTo(w tensorWriter, lazy session.LazySnapshot) (err error) {
	value := t.tensor
	if value == nil {
		if value, err = lazy.Tensor(t.index); err != nil {
			return err
		}
	}
	if t.Part != nil {
		return w.AddSlice(t.Key, t.Part.Shape, t.Part.Slice, value)
	}
	return w.Add(t.Key, value)
}
