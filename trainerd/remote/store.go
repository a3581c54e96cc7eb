package remote

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Store is a Session whose variables are copied over the connection, so that
// checkpoints are written and read by the client. It is for servers that share
// no disk with it; see [Session] for the others.
//
// A snapshot is consistent with respect to the steps of the Store. Other
// clients of the server, such as replicas, may change variables while it is
// taken, as they may while TensorFlow's own saver runs.
type Store struct {
	*Session
	vars   []*storeVariable // by name
	byName map[string]*storeVariable
}

var _ session.VariableStore = (*Store)(nil)

// NewStore makes a Store from a session and its graph. It adds its own nodes
// to the session's graph.
func NewStore(ctx context.Context, s *Session, graph *tfpb.GraphDef) (*Store, error) {
	vars, added := storeGraph(graph)
	if err := s.Extend(ctx, added); err != nil {
		return nil, fmt.Errorf("adding the ops by which variables are copied: %w", err)
	}
	slices.SortFunc(vars, func(a, b *storeVariable) int { return strings.Compare(a.name, b.name) })
	st := &Store{Session: s, vars: vars, byName: map[string]*storeVariable{}}
	for _, v := range vars {
		st.byName[v.name] = v
	}
	return st, nil
}

// Variables implements [session.VariableStore]. It asks the server which variables have
// values, and for shapes that the graph does not say.
func (st *Store) Variables(ctx context.Context) ([]session.VariableInfo, error) {
	list := make([]session.VariableInfo, len(st.vars))
	var fetches []string
	for i, v := range st.vars {
		list[i] = session.VariableInfo{Name: v.name, DType: v.dtype}
		if v.known() {
			list[i].Shape = append([]int64{}, v.shape...)
		}
		fetches = append(fetches, v.initialized)
	}
	set, err := st.Session.Run(ctx, nil, fetches, nil)
	if err != nil {
		return nil, err
	}
	var open []int // initialized, of a shape that the graph does not say
	var shapes []string
	for i, t := range set {
		list[i].Initialized = len(t.Data) == 1 && t.Data[0] != 0
		if list[i].Initialized && list[i].Shape == nil {
			open, shapes = append(open, i), append(shapes, st.vars[i].shapeOf)
		}
	}
	if len(open) == 0 {
		return list, nil
	}
	values, err := st.Session.Run(ctx, nil, shapes, nil)
	if err != nil {
		return nil, err
	}
	for k, t := range values {
		if shape, err := ckptfmt.Values[int64](t); err == nil {
			list[open[k]].Shape = shape
		}
	}
	return list, nil
}

// chunkBytes bounds the tensors of one message, which holds less than 2 GiB.
const chunkBytes = 512 << 20

// Snapshot implements [session.VariableStore].
func (st *Store) Snapshot(ctx context.Context, names []string) (*session.Snapshot, error) {
	fetches := make([]string, len(names))
	for i, name := range names {
		v, ok := st.byName[name]
		if !ok {
			return nil, &session.OpError{Code: tfpb.Code_NOT_FOUND, Message: fmt.Sprintf("no variable is named %q", name)}
		}
		fetches[i] = v.read
	}
	release, err := st.HoldSteps(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	snap := &session.Snapshot{}
	for len(fetches) > 0 {
		n := st.chunk(names[len(snap.Tensors):])
		tensors, err := st.RunWhileHeld(ctx, nil, fetches[:n], nil)
		if err != nil {
			return nil, err
		}
		snap.Tensors = append(snap.Tensors, tensors...)
		fetches = fetches[n:]
	}
	return snap, nil
}

// chunk returns how many of the named variables fit into one message. One that
// is too large for any is sent alone.
func (st *Store) chunk(names []string) int {
	total := int64(0)
	for i, name := range names {
		v := st.byName[name]
		if n, err := dtype.NumElements(v.shape); err == nil && v.known() {
			total += n * max(1, dtype.Size(v.dtype))
		}
		if total > chunkBytes && i > 0 {
			return i
		}
	}
	return len(names)
}

// Restore implements [session.VariableStore]. Values whose names begin with
// [session.StatePrefix] belong to the embedded runtime, and are left out.
func (st *Store) Restore(ctx context.Context, values []ckptfmt.NamedTensor) error {
	var own []ckptfmt.NamedTensor
	for _, nv := range values {
		if strings.HasPrefix(nv.Name, session.StatePrefix) {
			continue
		}
		if err := st.checkValue(nv); err != nil {
			return err
		}
		own = append(own, nv)
	}
	release, err := st.HoldSteps(ctx)
	if err != nil {
		return err
	}
	defer release()
	for len(own) > 0 {
		n := restoreChunk(own)
		feeds, targets := map[string]*ckptfmt.Tensor{}, []string{}
		for _, nv := range own[:n] {
			v := st.byName[nv.Name]
			feeds[v.feed] = nv.Tensor
			targets = append(targets, v.assign)
		}
		if _, err := st.RunWhileHeld(ctx, feeds, nil, targets); err != nil {
			return err
		}
		own = own[n:]
	}
	return nil
}

// restoreChunk is chunk for values.
func restoreChunk(values []ckptfmt.NamedTensor) int {
	total := 0
	for i, nv := range values {
		if total += len(nv.Tensor.Data); total > chunkBytes && i > 0 {
			return i
		}
	}
	return len(values)
}

func (st *Store) checkValue(nv ckptfmt.NamedTensor) error {
	if nv.Tensor == nil {
		return invalid("restoring %q: no tensor", nv.Name)
	}
	if err := nv.Tensor.Validate(); err != nil {
		return invalid("restoring %q: %v", nv.Name, err)
	}
	v, ok := st.byName[nv.Name]
	if !ok {
		return &session.OpError{Code: tfpb.Code_NOT_FOUND, Message: fmt.Sprintf("restoring %q: the graph has no such variable", nv.Name)}
	}
	if v.dtype != nv.Tensor.DType {
		return invalid("restoring %q: the variable is %s, the value %s", nv.Name, dtype.Name(v.dtype), dtype.Name(nv.Tensor.DType))
	}
	if !v.fits(nv.Tensor.Shape) {
		return invalid("restoring %q: the variable has the shape %v, the value %v", nv.Name, v.shape, nv.Tensor.Shape)
	}
	return nil
}
