package exec

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Table is a lookup table among a session's resources.
type Table interface {
	// Changes reports whether steps may change the table: then it is state. Other
	// tables are filled by the local init op.
	Changes() bool
	// SaveTable returns copies of what the table holds.
	SaveTable() (keys, values *Tensor)
	// CheckTable says why the table cannot hold keys and values.
	CheckTable(keys, values *Tensor) error
	// LoadTable replaces what the table holds by what CheckTable has accepted.
	LoadTable(keys, values *Tensor)
}

// tableStates is a session's view of the tables of its graph that change.
type tableStates struct {
	mu      sync.Mutex
	objects map[string]Table // by name; nil for an observer's, which has those of another
	pending map[string]*tableState
}

// tableState is what was restored for a table.
type tableState struct{ keys, values *Tensor }

func (t *tableStates) init() {
	t.objects, t.pending = map[string]Table{}, map[string]*tableState{}
}

// addTable notes a table of the session's graph, which takes what was restored for it.
func (s *Session) addTable(container, name string, o any) {
	table, ok := o.(Table)
	if !ok || !table.Changes() {
		return
	}
	if container != "" {
		name = container + ":" + name
	}
	t := &s.tables
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.objects == nil {
		return
	}
	t.objects[name] = table
	if state := t.pending[name]; state != nil {
		delete(t.pending, name)
		if table.CheckTable(state.keys, state.values) == nil {
			table.LoadTable(state.keys, state.values)
		}
	}
}

// saveTables returns what the tables hold, in order of names. The caller holds
// Resources.state.
func (s *Session) saveTables() []ckptfmt.NamedTensor {
	t := &s.tables
	t.mu.Lock()
	defer t.mu.Unlock()
	states := maps.Clone(t.pending)
	for name, table := range t.objects {
		keys, values := table.SaveTable()
		states[name] = &tableState{keys, values}
	}
	var list []ckptfmt.NamedTensor
	for _, name := range slices.Sorted(maps.Keys(states)) {
		keys, values := session.TableState(name)
		list = append(list, ckptfmt.NamedTensor{Name: keys, Tensor: states[name].keys.Export()},
			ckptfmt.NamedTensor{Name: values, Tensor: states[name].values.Export()})
	}
	return list
}

// tableStatesOf finds the tables among values that are to be restored.
func tableStatesOf(values []ckptfmt.NamedTensor) map[string]*tableState {
	states := map[string]*tableState{}
	for _, nv := range values {
		name, ok := strings.CutPrefix(nv.Name, session.StatePrefix+"table/")
		if !ok {
			continue
		}
		i := strings.LastIndexByte(name, '/')
		of := name[:max(i, 0)]
		if states[of] == nil {
			states[of] = new(tableState)
		}
		switch name[i+1:] {
		case "keys":
			states[of].keys = ImportTensor(nv.Tensor)
		case "values":
			states[of].values = ImportTensor(nv.Tensor)
		}
	}
	maps.DeleteFunc(states, func(_ string, st *tableState) bool { return st.keys == nil || st.values == nil })
	return states
}

// checkTables says why the tables cannot hold what is to be restored.
func (s *Session) checkTables(states map[string]*tableState) error {
	s.tables.mu.Lock()
	defer s.tables.mu.Unlock()
	for name, state := range states {
		if table := s.tables.objects[name]; table != nil {
			if err := table.CheckTable(state.keys, state.values); err != nil {
				return &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: "restoring table " + name + ": " + err.Error()}
			}
		}
	}
	return nil
}

// restoreTables gives the tables what they are to hold; one that no node has made yet
// gets it then. The caller holds Resources.state for writing.
func (s *Session) restoreTables(states map[string]*tableState) {
	t := &s.tables
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = map[string]*tableState{}
	for name, state := range states {
		if table := t.objects[name]; table != nil {
			table.LoadTable(state.keys, state.values)
		} else {
			t.pending[name] = state
		}
	}
}
