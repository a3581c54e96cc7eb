package checkpoint

import (
	"context"
	"encoding/binary"
	"hash/maphash"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Values remembers the values of a session's variables in a checkpoint, to
// find out later whether the variables have changed. A nil Values is for a
// session that does not expose its variables: they count as changed.
//
// For a [session.ChangeTracker] the counts of changes are compared, for any
// other [session.VariableStore] a hash of the values.
type Values struct {
	store   session.VariableStore
	names   []string
	tracked bool
	changes uint64 // if tracked
	hashed  bool
	hash    uint64 // if hashed
}

// valuesOf begins to remember the present values of the named variables. It is called before they
// are copied, so that a change in between counts as one that the copy lacks: it may be saved twice,
// but is never lost.
func valuesOf(store session.VariableStore, names []string) *Values {
	v := &Values{store: store, names: names}
	if tracker, ok := store.(session.ChangeTracker); ok {
		changes, err := tracker.Changes(names)
		v.tracked, v.changes = err == nil, changes
	}
	return v
}

// Tracks reports whether the session itself counts its changes, which costs less
// than a comparison of values.
func (v *Values) Tracks() bool { return v.tracked }

// PresentValues remembers the current values of the variables that the Saver
// saves; it returns nil if the session saves itself.
func (s *Saver) PresentValues(ctx context.Context, sess session.Session) *Values {
	store, vars, err := s.variablesOf(ctx, sess)
	if err != nil || store == nil || len(s.tables()) > 0 {
		return nil
	}
	names := make([]string, len(vars))
	for i, v := range vars {
		names[i] = v.info.Name
	}
	return valuesOf(store, names)
}

// setHash completes the values of a session that does not track changes.
func (v *Values) setHash(tensors []ckptfmt.NamedTensor) {
	if !v.tracked {
		v.hash, v.hashed = hashValues(tensors), true
	}
}

// Comparison is the result of [Values.Compare].
type Comparison int

const (
	Unknown   Comparison = iota // the session does not expose its variables, or fails
	Unchanged                   // the variables have the same values
	Changed
)

// Compare compares the values with the current ones of the variables.
func (v *Values) Compare(ctx context.Context) Comparison {
	if v == nil || !v.tracked && !v.hashed {
		return Unknown
	}
	if !v.tracked {
		return v.compareHash(ctx)
	}
	changes, err := v.store.(session.ChangeTracker).Changes(v.names)
	switch {
	case err != nil:
		return Unknown
	case changes == v.changes:
		return Unchanged
	}
	return Changed
}

func (v *Values) compareHash(ctx context.Context) Comparison {
	snapshot, err := v.store.Snapshot(ctx, v.names)
	if err != nil || len(snapshot.Tensors) != len(v.names) {
		return Unknown
	}
	tensors := make([]ckptfmt.NamedTensor, len(v.names))
	for i, name := range v.names {
		tensors[i] = ckptfmt.NamedTensor{Name: name, Tensor: snapshot.Tensors[i]}
	}
	if hashValues(tensors) == v.hash {
		return Unchanged
	}
	return Changed
}

var hashSeed = maphash.MakeSeed()

// hashValues does not depend on the order of the tensors.
func hashValues(tensors []ckptfmt.NamedTensor) (sum uint64) {
	for _, t := range tensors {
		sum += hashTensor(t.Name, t.Tensor)
	}
	return sum
}

func hashTensor(name string, t *ckptfmt.Tensor) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	number := func(n int64) {
		var b [8]byte
		h.Write(binary.LittleEndian.AppendUint64(b[:0], uint64(n)))
	}
	number(int64(len(name)))
	h.WriteString(name)
	number(int64(t.DType))
	number(int64(len(t.Shape)))
	for _, d := range t.Shape {
		number(d)
	}
	for _, s := range t.Strings {
		number(int64(len(s)))
		h.Write(s)
	}
	h.Write(t.Data)
	return h.Sum64()
}
