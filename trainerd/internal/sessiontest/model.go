// Package sessiontest has what the tests of several packages share: a model that
// several sessions share, as on a parameter server, a log to look into, and small
// checks of a logdir's files.
package sessiontest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Model is a model that several sessions may share, as on a parameter
// server.
type Model struct {
	Mu   sync.Mutex
	Vars map[string]*Variable
	Ops  map[string]func(s *Session, feeds map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error)
	Made int // sessions made
	Open int // sessions not closed

	State        []ckptfmt.NamedTensor // given out with snapshots
	Restored     []ckptfmt.NamedTensor // what the last Restore got
	FailSnapshot error
	FailList     error // of Variables
}

type Variable struct {
	Value *ckptfmt.Tensor // of the right type and shape even if not initialised
	Ready bool
}

type Session struct {
	*Model
	closed bool
}

// NewModel makes a model with variables that have no value yet.
func NewModel(vars map[string]*ckptfmt.Tensor) *Model {
	m := &Model{Vars: make(map[string]*Variable), Ops: make(map[string]func(*Session, map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error))}
	for name, v := range vars {
		m.Vars[name] = &Variable{Value: v}
	}
	m.Op("init", func(*Session) error {
		for _, v := range m.Vars {
			v.Ready = true
		}
		return nil
	})
	return m
}

// Counter is a model whose step 0 is ready for training.
func Counter() *Model {
	return NewModel(map[string]*ckptfmt.Tensor{
		"global_step": ckptfmt.Scalar(int64(0)),
		"w":           ckptfmt.Scalar(float32(0)),
	})
}

func (m *Model) Op(name string, f func(*Session) error) {
	m.Ops[name] = func(s *Session, _ map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error) { return nil, f(s) }
}

func (m *Model) NewSession(context.Context) (session.Session, error) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.Made++
	m.Open++
	return &Session{Model: m}, nil
}

// Set gives a variable its value.
func (m *Model) Set(name string, v *ckptfmt.Tensor) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.Vars[name] = &Variable{Value: v, Ready: true}
}

func (m *Model) Get(name string) *ckptfmt.Tensor {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return m.Vars[name].Value
}

// Step is one training step: w grows by half, the step by one.
func (m *Model) Step() int64 {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	n := stepValue(m.Vars["global_step"].Value)
	w, _ := ckptfmt.Values[float32](m.Vars["w"].Value)
	m.Vars["global_step"] = &Variable{ckptfmt.Scalar(n + 1), true}
	m.Vars["w"] = &Variable{ckptfmt.Scalar(w[0] + 0.5), true}
	return n + 1
}

// stepValue returns the value of a scalar int64.
func stepValue(t *ckptfmt.Tensor) int64 {
	v, err := ckptfmt.Values[int64](t)
	if err != nil {
		panic(err)
	}
	return v[0]
}

var errClosedSession = errors.New("session is closed")

func (s *Session) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.closed {
		return nil, errClosedSession
	}
	for _, name := range targets {
		f, ok := s.Ops[name]
		if !ok {
			return nil, &session.OpError{Code: tfpb.Code_NOT_FOUND, Node: name}
		}
		if _, err := f(s, feeds); err != nil {
			return nil, err
		}
	}
	var out []*ckptfmt.Tensor
	for _, name := range fetches {
		t, err := s.fetch(strings.TrimSuffix(name, ":0"), feeds)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func (s *Session) fetch(name string, feeds map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error) {
	if f, ok := s.Ops[name]; ok {
		return f(s, feeds)
	}
	return s.Read(name)
}

// Read gives the value of a variable. The caller holds the lock.
func (s *Session) Read(name string) (*ckptfmt.Tensor, error) {
	v, ok := s.Vars[name]
	if !ok {
		return nil, &session.OpError{Code: tfpb.Code_NOT_FOUND, Node: name}
	}
	if !v.Ready {
		return nil, &session.OpError{Code: tfpb.Code_FAILED_PRECONDITION, Node: name, Message: "Attempting to use uninitialized value " + name}
	}
	return v.Value, nil
}

func (s *Session) Close() error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !s.closed {
		s.Open--
	}
	s.closed = true
	return nil
}

func (s *Session) Variables(context.Context) ([]session.VariableInfo, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.FailList != nil {
		return nil, s.FailList
	}
	var infos []session.VariableInfo
	for _, name := range slices.Sorted(maps.Keys(s.Vars)) {
		v := s.Vars[name]
		infos = append(infos, session.VariableInfo{Name: name, DType: v.Value.DType, Shape: append([]int64{}, v.Value.Shape...), Initialized: v.Ready})
	}
	return infos, nil
}

func (s *Session) Snapshot(_ context.Context, names []string) (*session.Snapshot, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.closed {
		return nil, errClosedSession
	}
	if s.FailSnapshot != nil {
		return nil, s.FailSnapshot
	}
	snapshot := &session.Snapshot{State: s.State}
	for _, name := range names {
		t, err := s.Read(name)
		if err != nil {
			return nil, err
		}
		snapshot.Tensors = append(snapshot.Tensors, t)
	}
	return snapshot, nil
}

func (s *Session) Restore(_ context.Context, values []ckptfmt.NamedTensor) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Restored = values
	for _, v := range values {
		if !strings.HasPrefix(v.Name, session.StatePrefix) {
			s.Vars[v.Name] = &Variable{v.Tensor, true}
		}
	}
	return nil
}

// OpSession hides that a session is a VariableStore.
type OpSession struct{ session.Session }

func SessionOf(vars map[string]*ckptfmt.Tensor) *Session {
	m := NewModel(vars)
	for _, v := range m.Vars {
		v.Ready = true
	}
	return &Session{Model: m}
}

func Vector[T ckptfmt.Element](v ...T) *ckptfmt.Tensor {
	t, err := ckptfmt.FromValues([]int64{int64(len(v))}, v)
	if err != nil {
		panic(err)
	}
	return t
}

func (m *Model) NewOpSession(ctx context.Context) (session.Session, error) {
	s, err := m.NewSession(ctx)
	return OpSession{s}, err
}
