package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// boundVariable is a saved variable, bound to a session.
type boundVariable struct {
	graph.SavedVariable
	info session.VariableInfo
}

// ErrNoVariables says that a session has nothing for a Saver without AllowEmpty to save.
var ErrNoVariables = errors.New("saver: no variables to save")

// bind finds the variables to save or restore in a session, ordered by key.
func (s *Saver) bind(ctx context.Context, store session.VariableStore) ([]boundVariable, error) {
	all, err := store.Variables(ctx)
	if err != nil {
		return nil, fmt.Errorf("saver: listing the variables: %w", err)
	}
	infos := make(map[string]session.VariableInfo)
	for _, v := range all {
		infos[v.Name] = v
	}
	saved, err := s.savedVariables(infos)
	if err != nil {
		return nil, err
	}
	if _, ok := store.(session.TableStore); !ok && slices.ContainsFunc(s.tables(), bySaver) {
		return nil, graph.ErrSavedByOps
	}
	var vars []boundVariable
	keyOf := make(map[string]string)
	for _, v := range saved {
		info, ok := infos[v.Name]
		if !ok {
			return nil, fmt.Errorf("saver: the session has no variable %s: %w", v.Name, session.ErrNotFound)
		}
		if other, ok := keyOf[v.Name]; ok {
			return nil, fmt.Errorf("saver: variable %s has two keys, %s and %s", v.Name, min(v.Key, other), max(v.Key, other))
		}
		if strings.HasPrefix(v.Key, session.StatePrefix) {
			return nil, fmt.Errorf("saver: key %s begins with the reserved %s", v.Key, session.StatePrefix)
		}
		keyOf[v.Name] = v.Key
		vars = append(vars, boundVariable{v, info})
	}
	if len(vars) == 0 && !s.AllowEmpty {
		return nil, ErrNoVariables
	}
	slices.SortStableFunc(vars, func(a, b boundVariable) int { return strings.Compare(a.Key, b.Key) })
	return vars, nil
}

// savedVariables returns the variables that the options name; else those that the graph's saver
// saves; else the graph's global variables; else all variables.
func (s *Saver) savedVariables(infos map[string]session.VariableInfo) ([]graph.SavedVariable, error) {
	var saved []graph.SavedVariable
	if s.Variables != nil {
		for key, name := range s.Variables {
			saved = append(saved, graph.SavedVariable{Key: key, Name: graph.NodeName(name)})
		}
		return saved, nil
	}
	if vars, _, err := s.graphList.of(s); err != nil || vars != nil {
		return vars, err
	}
	for name := range infos {
		saved = append(saved, graph.SavedVariable{Key: name, Name: name})
	}
	return saved, nil
}

// graphVariableList remembers which variables are saved according to the MetaGraph of a Saver.
type graphVariableList struct {
	mu   sync.Mutex
	meta *tfpb.MetaGraphDef
	def  *tfpb.SaverDef
	read bool
	vars []graph.SavedVariable
	tabs []graph.SavedTable
	err  error
}

func (l *graphVariableList) of(s *Saver) ([]graph.SavedVariable, []graph.SavedTable, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.read || l.meta != s.MetaGraph || l.def != s.Def {
		l.read, l.meta, l.def = true, s.MetaGraph, s.Def
		l.vars, l.tabs, l.err = graph.Collections{Meta: s.MetaGraph}.SavedState(s.Def)
	}
	return l.vars, l.tabs, l.err
}
