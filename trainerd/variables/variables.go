// Package variables has [Variables], the session of a Go program that keeps
// its own parameters. Programs use its alias trainerd.Variables.
package variables

import (
	"cmp"
	"context"
	"encoding"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Variables is the session of a Go program that keeps its own parameters: slices of
// numbers, registered by name. It is a [session.VariableStore], so Saver and
// Supervisor save and restore them like those of a graph. It counts the steps
// in the variable "global_step".
//
// The program must change its slices only within [Variables.Step]; then a checkpoint always holds them as
// they are between two steps; for a large model see also [Variables.StepOn]. The zero Variables is ready for
// use. Register everything before the first step.
type Variables struct {
	mu     sync.Mutex
	vars   map[string]goVariable
	states map[string]BinaryState
	step   atomic.Int64 // changes while mu is held; a step may read it
	// changes counts the steps begun and the restores: what may change values.
	changes uint64

	frozen  *frozenVariables // for the checkpoint that is being written, or nil
	scratch []byte           // its copies are made there; kept for the next one
}

var (
	_ session.LazyStore     = (*Variables)(nil)
	_ session.ChangeTracker = (*Variables)(nil)
)

// goVariable is a registered slice.
type goVariable struct {
	dtype tfpb.DataType
	shape []int64
	bytes int
	read  func(dst []byte, at int)
	set   func(*ckptfmt.Tensor) error
}

// get returns a copy.
func (g *goVariable) get() *ckptfmt.Tensor {
	t := &ckptfmt.Tensor{DType: g.dtype, Shape: slices.Clone(g.shape), Data: make([]byte, g.bytes)}
	g.read(t.Data, 0)
	return t
}

// BinaryState is a value that can be saved and restored as a whole, such as a
// random source of math/rand/v2.
type BinaryState interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// Float32 registers a slice as a variable. Without a shape it is a vector. The
// slice is kept, and is written to when a checkpoint is restored.
func (v *Variables) Float32(name string, values []float32, shape ...int64) error {
	return register(v, name, values, shape)
}

// Float64 is like Float32.
func (v *Variables) Float64(name string, values []float64, shape ...int64) error {
	return register(v, name, values, shape)
}

// Int64 is like Float32.
func (v *Variables) Int64(name string, values []int64, shape ...int64) error {
	return register(v, name, values, shape)
}

func register[T float32 | float64 | int64](v *Variables, name string, values []T, shape []int64) error {
	if shape == nil {
		shape = []int64{int64(len(values))}
	}
	n, err := dtype.NumElements(shape)
	if err == nil && n != int64(len(values)) {
		err = fmt.Errorf("%d values for shape %v", len(values), shape)
	}
	if err != nil {
		return fmt.Errorf("variable %s: %w", name, err)
	}
	shape = slices.Clone(shape)
	dt := ckptfmt.Scalar(T(0)).DType
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.vars[name]; ok || name == session.DefaultGlobalStep || name == "" || strings.HasPrefix(name, session.StatePrefix) {
		return fmt.Errorf("variable %q: the name is taken or reserved", name)
	}
	if v.vars == nil {
		v.vars = make(map[string]goVariable)
	}
	v.vars[name] = goVariable{
		dtype: dt,
		shape: shape,
		bytes: len(values) * int(dtype.Size(dt)),
		read:  func(dst []byte, at int) { readBytes(values, dst, at) },
		set:   func(t *ckptfmt.Tensor) error { return writeBytes(values, t) },
	}
	return nil
}

// State registers a state other than variables that a resumed run needs to
// continue exactly, such as a random source.
func (v *Variables) State(name string, s BinaryState) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.states[name]; ok || name == "" {
		return fmt.Errorf("state %q: the name is taken or empty", name)
	}
	if v.states == nil {
		v.states = make(map[string]BinaryState)
	}
	v.states[name] = s
	return nil
}

// Step runs one step of the training and returns the number of steps so far.
// No checkpoint is taken while f runs. If f fails, the step does not count.
// f may call GlobalStep, which is then the number of steps before this one, and nothing
// else of v or its session, which would wait for the step to end.
func (v *Variables) Step(f func() error) (int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.frozen != nil {
		v.frozen.rescueAll()
	}
	return v.step1(f)
}

// step1 runs one step. The caller holds the lock.
func (v *Variables) step1(f func() error) (int64, error) {
	v.changes++ // also by a step that fails half-way
	if err := f(); err != nil {
		return v.step.Load(), err
	}
	return v.step.Add(1), nil
}

// GlobalStep returns the number of steps so far, including restored ones.
// It does not wait for a step that is under way.
func (v *Variables) GlobalStep() int64 { return v.step.Load() }

// Run returns the values of the variables named in fetches. There is no graph,
// so it accepts neither feeds nor targets.
func (v *Variables) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if len(feeds) > 0 || len(targets) > 0 {
		return nil, &session.OpError{Code: tfpb.Code_UNIMPLEMENTED, Message: "a session of Go variables has no graph to run"}
	}
	names := make([]string, len(fetches))
	for i, f := range fetches {
		names[i] = graph.NodeName(f)
	}
	snapshot, err := v.Snapshot(ctx, names)
	if err != nil {
		return nil, err
	}
	return snapshot.Tensors, nil
}

// Session returns v; use it as a Supervisor's NewSession.
func (v *Variables) Session(context.Context) (session.Session, error) { return v, nil }

// Close does nothing: the variables stay as they are.
func (v *Variables) Close() error { return nil }

// Variables lists the registered variables and the global step.
func (v *Variables) Variables(context.Context) ([]session.VariableInfo, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	infos := []session.VariableInfo{{Name: session.DefaultGlobalStep, DType: tfpb.DataType_DT_INT64, Shape: []int64{}, Initialized: true}}
	for name, g := range v.vars {
		infos = append(infos, session.VariableInfo{Name: name, DType: g.dtype, Shape: slices.Clone(g.shape), Initialized: true})
	}
	slices.SortFunc(infos, func(a, b session.VariableInfo) int { return cmp.Compare(a.Name, b.Name) })
	return infos, nil
}

// Snapshot copies the named variables and all registered state between two
// steps.
func (v *Variables) Snapshot(_ context.Context, names []string) (*session.Snapshot, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	snapshot := &session.Snapshot{Tensors: make([]*ckptfmt.Tensor, 0, len(names))}
	for _, name := range names {
		t, err := v.get(name)
		if err != nil {
			return nil, err
		}
		snapshot.Tensors = append(snapshot.Tensors, t)
	}
	var err error
	snapshot.State, err = v.saveStates()
	return snapshot, err
}

// Changes implements [session.ChangeTracker]. Every step may change every variable.
func (v *Variables) Changes([]string) (uint64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changes, nil
}

// saveStates copies the registered state, ordered by name.
func (v *Variables) saveStates() ([]ckptfmt.NamedTensor, error) {
	var all []ckptfmt.NamedTensor
	for name, s := range v.states {
		b, err := s.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("state %s: %w", name, err)
		}
		all = append(all, ckptfmt.NamedTensor{Name: session.StatePrefix + name, Tensor: ckptfmt.Scalar(string(b))})
	}
	slices.SortFunc(all, func(a, b ckptfmt.NamedTensor) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func (v *Variables) get(name string) (*ckptfmt.Tensor, error) {
	if name == session.DefaultGlobalStep {
		return ckptfmt.Scalar(v.step.Load()), nil
	}
	g, ok := v.vars[name]
	if !ok {
		return nil, &session.OpError{Code: tfpb.Code_NOT_FOUND, Message: "no variable " + name}
	}
	return g.get(), nil
}

// Restore assigns values to the registered variables and state, all or none.
func (v *Variables) Restore(_ context.Context, values []ckptfmt.NamedTensor) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.frozen != nil {
		v.frozen.rescueAll()
	}
	for _, value := range values {
		if err := v.check(value); err != nil {
			return err
		}
	}
	v.changes++
	before := make(map[string][]byte)
	for _, value := range values {
		if err := v.restoreState(value, before); err != nil {
			return errors.Join(err, v.rollback(before))
		}
	}
	for _, value := range values {
		if value.Name == session.DefaultGlobalStep {
			step, _ := session.ScalarInt(value.Tensor) // checked
			v.step.Store(step)
		} else if g, ok := v.vars[value.Name]; ok {
			if err := g.set(value.Tensor); err != nil {
				return err
			}
		}
	}
	return nil
}

// check refuses a value that cannot be assigned.
func (v *Variables) check(value ckptfmt.NamedTensor) error {
	if strings.HasPrefix(value.Name, session.StatePrefix) {
		return nil
	}
	if err := value.Tensor.Validate(); err != nil {
		return fmt.Errorf("variable %s: %w", value.Name, err)
	}
	g, ok := v.vars[value.Name]
	if value.Name == session.DefaultGlobalStep {
		g, ok = goVariable{dtype: tfpb.DataType_DT_INT64, shape: []int64{}}, true
	}
	if !ok {
		return &session.OpError{Code: tfpb.Code_NOT_FOUND, Message: "no variable " + value.Name}
	}
	if value.Tensor.DType != g.dtype || !slices.Equal(value.Tensor.Shape, g.shape) {
		return &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: fmt.Sprintf("variable %s has %s, not %s", value.Name,
			dtype.Text(g.dtype, g.shape), dtype.Text(value.Tensor.DType, value.Tensor.Shape))}
	}
	return nil
}

// restoreState restores one registered state, and records its previous value.
func (v *Variables) restoreState(value ckptfmt.NamedTensor, before map[string][]byte) (err error) {
	name, isState := strings.CutPrefix(value.Name, session.StatePrefix)
	s, ok := v.states[name]
	if !isState || !ok {
		return nil
	}
	if len(value.Tensor.Strings) != 1 {
		return fmt.Errorf("state %s: %d values; want one string", name, len(value.Tensor.Strings))
	}
	if before[name], err = s.MarshalBinary(); err != nil {
		return fmt.Errorf("state %s: %w", name, err)
	}
	if err := s.UnmarshalBinary(value.Tensor.Strings[0]); err != nil {
		return fmt.Errorf("state %s: %w", name, err)
	}
	return nil
}

func (v *Variables) rollback(before map[string][]byte) error {
	var errs []error
	for name, b := range before {
		errs = append(errs, v.states[name].UnmarshalBinary(b))
	}
	return errors.Join(errs...)
}
