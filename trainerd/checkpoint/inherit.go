package checkpoint

import (
	"log/slog"
	"math"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
)

// inherited is what a Saver has got from the Supervisor that uses it, as opposed to what the
// program has set.
type inherited struct {
	meta   *tfpb.MetaGraphDef
	def    *tfpb.SaverDef
	logger *slog.Logger
}

// Inherit fills in options that the program has not set from the graph's
// default Saver. A Saver that was used by another Supervisor before inherits
// again.
func (s *Saver) Inherit(from *Saver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inheritField(&s.MetaGraph, &s.inherited.meta, from.MetaGraph)
	inheritField(&s.Def, &s.inherited.def, from.Def)
	inheritField(&s.Logger, &s.inherited.logger, from.Logger)
}

// inheritField does not write a value that is there already, because another goroutine may be
// reading it.
func inheritField[T any](field, before **T, value *T) {
	if *field != nil && *field != *before || *field == value {
		return
	}
	*field, *before = value, value
}

// KeepEvery returns the period of a graph's saver.
func KeepEvery(def *tfpb.SaverDef) time.Duration {
	hours := float64(def.GetKeepCheckpointEveryNHours())
	if !(hours > 0) {
		return 0
	}
	if period := hours * float64(time.Hour); period < math.MaxInt64 {
		return time.Duration(period)
	}
	return math.MaxInt64
}
