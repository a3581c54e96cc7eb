package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// sortedVars returns the variables by name. The caller does not hold s.mu.
func (s *Session) sortedVars() []*Variable {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*Variable, 0, len(s.vars))
	for _, v := range s.vars {
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b *Variable) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (s *Session) varsByName() map[string]*Variable {
	m := map[string]*Variable{}
	for _, v := range s.sortedVars() {
		m[v.Name] = v
	}
	return m
}

// Variables implements [session.VariableStore].
func (s *Session) Variables(context.Context) ([]session.VariableInfo, error) {
	s.state.RLock()
	defer s.state.RUnlock()
	var list []session.VariableInfo
	for _, v := range s.sortedVars() {
		info := session.VariableInfo{Name: v.Name, DType: v.DType, Initialized: v.Initialized}
		switch {
		case v.Initialized:
			info.Shape = Int64Shape(v.Value.Shape)
		case v.Accepts(v.Shape) && !HasUnknownDim(v.Shape):
			info.Shape = Int64Shape(v.Shape)
		}
		list = append(list, info)
	}
	return list, nil
}

// Snapshot implements [session.VariableStore]. Runs that write wait while the
// values are copied.
func (s *Session) Snapshot(ctx context.Context, names []string) (*session.Snapshot, error) {
	snap := new(session.Snapshot)
	err := s.betweenWrites(ctx, "snapshot", names, func(vars []*Variable, state []ckptfmt.NamedTensor) {
		snap.State, snap.Tensors = state, make([]*ckptfmt.Tensor, len(vars))
		for i, v := range vars {
			snap.Tensors[i] = v.Value.Export()
		}
	})
	if err != nil {
		return nil, err
	}
	if err := s.res.syncJournals(ctx); err != nil {
		return nil, err
	}
	return snap, nil
}

// betweenWrites calls take with the named variables and the state of random streams and input, while nothing changes
// them.
func (s *Session) betweenWrites(ctx context.Context, what string, names []string, take func([]*Variable, []ckptfmt.NamedTensor)) error {
	if err := ctx.Err(); err != nil {
		return &session.OpError{Code: tfpb.Code_CANCELLED, Message: what, Err: err}
	}
	all := s.varsByName()
	end, input, err := s.cutInput(ctx)
	if err != nil {
		return err
	}
	defer end()
	s.state.RLock()
	defer s.state.RUnlock()
	vars, err := pick(all, names)
	if err != nil {
		return err
	}
	state := slices.Concat(s.saveStreams(), s.saveTables(), s.res.saveJournals())
	if input {
		state = append(state, s.saveInput(names)...)
	}
	take(vars, state)
	return nil
}

// Changes implements [session.ChangeTracker]. Steps that change other variables
// do not count, nor do draws from random streams.
func (s *Session) Changes(names []string) (uint64, error) {
	all := s.varsByName()
	s.state.RLock()
	defer s.state.RUnlock()
	changes := uint64(0)
	for _, name := range names {
		v, ok := all[name]
		if !ok {
			return 0, &session.OpError{Code: tfpb.Code_NOT_FOUND, Message: fmt.Sprintf("no variable is named %q", name)}
		}
		changes += v.changes
	}
	return changes, nil
}

// pick returns the named variables, which must have values. The caller holds
// Resources.state.
func pick(all map[string]*Variable, names []string) ([]*Variable, error) {
	vars := make([]*Variable, len(names))
	for i, name := range names {
		v, ok := all[name]
		if !ok {
			return nil, &session.OpError{Code: tfpb.Code_NOT_FOUND, Message: fmt.Sprintf("no variable is named %q", name)}
		}
		if !v.Initialized {
			return nil, &session.OpError{Code: tfpb.Code_FAILED_PRECONDITION, Message: fmt.Sprintf("variable %q was never assigned", name)}
		}
		vars[i] = v
	}
	return vars, nil
}

// Restore implements [session.VariableStore].
func (s *Session) Restore(ctx context.Context, values []ckptfmt.NamedTensor) error {
	return s.restore(ctx, values, (*Variable).set)
}

// Adopt implements [session.Adopter].
func (s *Session) Adopt(ctx context.Context, values []ckptfmt.NamedTensor) error {
	return s.restore(ctx, values, (*Variable).adopt)
}

// restore gives each variable its value, with put.
func (s *Session) restore(ctx context.Context, values []ckptfmt.NamedTensor, put func(*Variable, *Tensor)) error {
	if err := ctx.Err(); err != nil {
		return &session.OpError{Code: tfpb.Code_CANCELLED, Message: "restore", Err: err}
	}
	vars := s.varsByName()
	for _, nv := range values {
		if err := s.checkValue(vars, nv); err != nil {
			return err
		}
	}
	tables := tableStatesOf(values)
	if err := s.checkTables(tables); err != nil {
		return err
	}
	end, free, err := s.cutInput(ctx)
	if err != nil {
		return err
	}
	defer end()
	if !free {
		return &session.OpError{Code: tfpb.Code_FAILED_PRECONDITION, Message: "restore: runs that have taken elements of the input wait for more; end them first"}
	}
	s.state.Lock()
	defer s.state.Unlock()
	for _, nv := range values {
		if strings.HasPrefix(nv.Name, session.StatePrefix) {
			s.restoreStream(nv)
			continue
		}
		v := vars[nv.Name]
		v.kept = false
		before := v.own.size()
		var t Tensor
		var own buffer
		t.load(nv.Tensor, &own)
		put(v, &t)
		s.memory.shrink(int64(before - v.own.size())) // a restore never lacks room
	}
	s.restoreInput(vars, values)
	s.restoreTables(tables)
	s.res.restoreJournals(values)
	return nil
}

// checkValue says why a value cannot be restored.
func (s *Session) checkValue(vars map[string]*Variable, nv ckptfmt.NamedTensor) error {
	bad := func(code tfpb.Code, format string, args ...any) error {
		return &session.OpError{Code: code, Message: fmt.Sprintf("restoring %q: ", nv.Name) + fmt.Sprintf(format, args...)}
	}
	if err := checkTensor(nv.Tensor); err != nil {
		return bad(tfpb.Code_INVALID_ARGUMENT, "%v", err)
	}
	if strings.HasPrefix(nv.Name, session.StatePrefix) {
		return errors.Join(s.checkStream(nv), checkInput(nv), checkJournal(nv))
	}
	v, ok := vars[nv.Name]
	if !ok {
		return bad(tfpb.Code_NOT_FOUND, "the graph has no such variable")
	}
	if v.DType != nv.Tensor.DType {
		return bad(tfpb.Code_INVALID_ARGUMENT, "the variable is %s, the value %s", TypeName(v.DType), TypeName(nv.Tensor.DType))
	}
	shape := make([]int, len(nv.Tensor.Shape))
	for i, d := range nv.Tensor.Shape {
		shape[i] = int(d)
	}
	if !v.Accepts(shape) {
		return bad(tfpb.Code_INVALID_ARGUMENT, "the variable has the shape %s, the value %s", ShapeString(v.Shape), ShapeString(shape))
	}
	return nil
}
