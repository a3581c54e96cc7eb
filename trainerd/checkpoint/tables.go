package checkpoint

import (
	"context"

	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// tables returns what is saved of lookup tables.
func (s *Saver) tables() []graph.SavedTable {
	if s.Variables != nil {
		return nil
	}
	_, tables, err := s.graphList.of(s)
	if err != nil {
		return nil
	}
	return tables
}

// bySaver reports whether the graph's saver saves a table, so that a checkpoint must have it.
func bySaver(t graph.SavedTable) bool { return t.Tensor != "" }

// tableState returns the name of a saved table in the state of a [session.TableStore].
func tableState(t graph.SavedTable) string {
	keys, values := session.TableState(t.Table)
	if t.Values {
		return values
	}
	return keys
}

// makeTables has the session make the tables that are to be saved: the first checkpoint
// comes before the first step, and TensorFlow wants to find all keys in it.
func (s *Saver) makeTables(ctx context.Context, sess session.Session) error {
	var ops []string
	for _, t := range s.tables() {
		if bySaver(t) && !t.Values {
			ops = append(ops, t.Op)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	_, err := sess.Run(ctx, nil, nil, ops)
	return err
}
