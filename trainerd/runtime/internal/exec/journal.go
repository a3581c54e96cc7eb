package exec

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Journal is a resource in which steps leave a record outside of the model, such as an
// events file. A training that is resumed makes some steps again, so a checkpoint says how
// far the record was.
type Journal interface {
	// Next returns the first step that the record has nothing of. No run with access to
	// state writes meanwhile.
	Next() int64
	// Continue has what follows replace the record from a step on.
	Continue(next int64)
	// Sync makes the record durable.
	Sync(ctx context.Context) error
	Close() error
}

// NoStep says that it is not known how far a record was.
const NoStep = -1

// journalPrefix begins the names of how far journals were, in snapshots.
const journalPrefix = session.StatePrefix + "events/"

// journals are those of the sessions that share them, by name, and how far those were
// that are not open yet. Resources.mu guards them.
type journals struct {
	open     map[string]Journal
	next     map[string]int64
	restored bool
}

// Journal returns the journal of a name, which open is called for at first sight.
func (c *KernelContext) Journal(name string, open func(next int64) Journal) Journal {
	r := c.run.sess.res
	r.mu.Lock()
	defer r.mu.Unlock()
	j, ok := r.journals.open[name]
	if !ok {
		j = open(r.journals.from(name))
		if r.journals.open == nil {
			r.journals.open = map[string]Journal{}
		}
		r.journals.open[name] = j
	}
	return j
}

// from returns where a journal continues: at the beginning if nothing was restored.
func (js *journals) from(name string) int64 {
	next, ok := js.next[name]
	switch {
	case ok:
		return next
	case js.restored:
		return NoStep
	}
	return 0
}

// saveJournals returns how far the journals are. The caller holds Resources.state.
func (r *Resources) saveJournals() []ckptfmt.NamedTensor {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := maps.Clone(r.journals.next)
	if all == nil {
		all = map[string]int64{}
	}
	for name, j := range r.journals.open {
		all[name] = j.Next()
	}
	var list []ckptfmt.NamedTensor
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] != NoStep {
			list = append(list, bytesTensor(journalPrefix+name, binary.LittleEndian.AppendUint64(nil, uint64(all[name]))))
		}
	}
	return list
}

// restoreJournals takes how far the journals were out of values. The caller holds
// Resources.state for writing.
func (r *Resources) restoreJournals(values []ckptfmt.NamedTensor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journals.next, r.journals.restored = map[string]int64{}, true
	for _, nv := range values {
		if name, ok := strings.CutPrefix(nv.Name, journalPrefix); ok {
			r.journals.next[name] = int64(binary.LittleEndian.Uint64(nv.Tensor.Data))
		}
	}
	for name, j := range r.journals.open {
		j.Continue(r.journals.from(name))
	}
}

func checkJournal(nv ckptfmt.NamedTensor) error {
	if !strings.HasPrefix(nv.Name, journalPrefix) || nv.Tensor.DType == Uint8 && len(nv.Tensor.Data) == 8 {
		return nil
	}
	return &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: "restoring \"" + nv.Name + "\": it does not say how far events were written"}
}

// openJournals returns the journals.
func (r *Resources) openJournals() []Journal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.journals.open))
}

// syncJournals makes durable what was written: a checkpoint must not be found without
// what the record has before it.
func (r *Resources) syncJournals(ctx context.Context) error {
	var errs []error
	for _, j := range r.openJournals() {
		errs = append(errs, j.Sync(ctx))
	}
	return errors.Join(errs...)
}

// Observes reports whether the run is of an observer, which leaves no trace.
func (c *KernelContext) Observes() bool { return c.run.sess.observes }
