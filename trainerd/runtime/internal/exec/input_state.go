package exec

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Kinds of objects that hold the input of a graph.
const (
	KindQueue    = "queue"
	KindStage    = "stage"
	KindReader   = "reader"
	KindIterator = "iterator"
	kindVariable = "variable" // that counts epochs
)

// inputPrefix begins the names of the input's state in snapshots: the kind,
// the container and the name of an object follow. inputMark is there whenever
// the state of any was saved, so an object without state is at its start.
const (
	inputPrefix = session.StatePrefix + "input/"
	inputMark   = inputPrefix + "saved"
)

// InputObject is a queue, reader or iterator.
type InputObject interface {
	// SaveInput returns the state, of no more than limit bytes; nil for an object
	// that is at its start. No run moves the input meanwhile.
	SaveInput(limit int) ([]byte, error)
	// LoadInput takes the state that the object is to continue from, and nil
	// to begin at the start.
	LoadInput(state []byte, log *slog.Logger)
}

// inputStates is a session's view of the input of its graph.
type inputStates struct {
	limit int
	log   *slog.Logger

	mu       sync.Mutex
	any      bool                   // the graph has input
	counters []string               // variables that count epochs
	tokens   map[string]bool        // keys of queues that hold no input
	objects  map[string]InputObject // by resource key
	pending  map[string][]byte      // states of objects that there are not yet
	restored bool
	said     map[string]bool // names that a warning was given for
}

func (in *inputStates) init(o *Options) {
	in.limit, in.log = o.MaxInputState, o.Logger
	if in.limit <= 0 {
		in.limit = 1 << 30
	}
	if in.log == nil {
		in.log = slog.New(slog.DiscardHandler)
	}
	in.objects, in.pending, in.said = map[string]InputObject{}, map[string][]byte{}, map[string]bool{}
}

// InputRestored reports whether the last Restore put back the state of the
// graph's input. If not, or if the graph has none, the input begins at its
// start.
func (s *Session) InputRestored() bool {
	s.input.mu.Lock()
	defer s.input.mu.Unlock()
	return s.input.restored
}

// addInput notes an object of the session's graph, which continues from the
// state that was restored for it.
func (s *Session) addInput(key string, o any) {
	object, ok := o.(InputObject)
	if !ok {
		return
	}
	in := &s.input
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.objects == nil {
		return // an observer's, or a session that only tries to build nodes
	}
	in.objects[key] = object
	if state, ok := in.pending[key]; ok {
		delete(in.pending, key)
		object.LoadInput(state, in.log)
	}
}

// cutInput holds the input still until end is called. ok is false if that
// cannot be: the input's state is not to be looked at.
func (s *Session) cutInput(ctx context.Context) (end func(), ok bool, err error) {
	s.input.mu.Lock()
	some := s.input.any
	s.input.mu.Unlock()
	if !some {
		return func() {}, true, nil
	}
	end, ok, err = s.res.gate.cut(ctx)
	if err != nil {
		return nil, false, &session.OpError{Code: tfpb.Code_CANCELLED, Message: "waiting for the input to be between steps", Err: err}
	}
	if !ok {
		s.input.log.Warn("not exactly resumable: the input is not in this checkpoint", "why", "runs that have taken elements of it wait for others")
	}
	return end, ok, nil
}

// saveInput returns the state of the graph's input, in order of names. The
// caller has cut the input, and holds Resources.state; saved are the variables
// of the snapshot.
func (s *Session) saveInput(saved []string) []ckptfmt.NamedTensor {
	in, vars := &s.input, s.varsByName()
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.any {
		return nil
	}
	var list []ckptfmt.NamedTensor
	for key, state := range in.pending {
		list = append(list, bytesTensor(stateName(key), state))
	}
	for key, o := range in.objects {
		if in.tokens[key] {
			continue
		}
		state, err := o.SaveInput(in.limit)
		name := stateName(key)
		if err != nil {
			state = []byte{} // so that a restore says so, too
			if !in.said[name] {
				in.said[name] = true
				in.log.Warn("not exactly resumable: input is not in checkpoints", "input", objectName(name), "why", err)
			}
		}
		if state != nil {
			list = append(list, bytesTensor(name, state))
		}
	}
	if len(list) == 0 {
		return nil // a checkpoint of a run that has not begun is as TensorFlow's
	}
	list = append(list, bytesTensor(inputMark, []byte{1}))
	for _, name := range in.counters {
		if v := vars[name]; v != nil && v.Initialized && !slices.Contains(saved, name) {
			list = append(list, ckptfmt.NamedTensor{Name: inputPrefix + kindVariable + "/" + name, Tensor: v.Value.Export()})
		}
	}
	slices.SortFunc(list, func(a, b ckptfmt.NamedTensor) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// restoreInput takes the state out of values. The caller has cut the input,
// and holds Resources.state for writing.
func (s *Session) restoreInput(vars map[string]*Variable, values []ckptfmt.NamedTensor) {
	in := &s.input
	in.mu.Lock()
	defer in.mu.Unlock()
	in.restored = false
	if !in.any {
		return
	}
	states := map[string][]byte{}
	for _, nv := range values {
		name, ok := strings.CutPrefix(nv.Name, inputPrefix)
		switch variable, counts := strings.CutPrefix(name, kindVariable+"/"); {
		case !ok:
		case nv.Name == inputMark:
			in.restored = true
		case counts:
			in.restoreCounter(vars[variable], nv.Tensor)
		default:
			states[stateKey(name)] = nv.Tensor.Data
		}
	}
	if !in.restored {
		in.log.Info("the checkpoint has no state of the graph's input, which begins at its start")
		return
	}
	for key, o := range in.objects {
		o.LoadInput(in.take(states, key), in.log)
	}
	clear(in.pending)
	for key := range states {
		in.pending[key] = in.take(states, key)
	}
}

// take removes the state of an object from states. That of one that could not
// be saved is empty.
func (in *inputStates) take(states map[string][]byte, key string) []byte {
	state, ok := states[key]
	delete(states, key)
	if ok && len(state) == 0 {
		in.log.Warn("the checkpoint lacks this input, which begins at its start", "input", objectName(stateName(key)))
		return nil
	}
	return slices.Clone(state)
}

// restoreCounter sets a variable that counts epochs. Local variables are
// initialised after a restore, which must not undo it.
func (in *inputStates) restoreCounter(v *Variable, t *ckptfmt.Tensor) {
	if v == nil || v.DType != t.DType || len(t.Shape) > 0 {
		in.log.Warn("the graph does not count epochs as the checkpoint does; it begins with the first one")
		return
	}
	v.kept = false
	v.set(ImportTensor(t))
	v.kept = true
}

// stateName returns the name in checkpoints of a resource key's object.
func stateName(key string) string {
	parts := strings.SplitN(key, "\x00", 3)
	if parts[1] != "" {
		parts[1] += ":"
	}
	return inputPrefix + parts[0] + "/" + parts[1] + parts[2]
}

// stateKey returns the resource key of a name after inputPrefix.
func stateKey(name string) string {
	kind, rest, _ := strings.Cut(name, "/")
	container, of, ok := strings.Cut(rest, ":")
	if !ok {
		container, of = "", rest
	}
	return resourceKey(kind, container, of)
}

func objectName(name string) string { return strings.TrimPrefix(name, inputPrefix) }

// bytesTensor is a type that both formats of checkpoints hold.
func bytesTensor(name string, data []byte) ckptfmt.NamedTensor {
	return ckptfmt.NamedTensor{Name: name, Tensor: &ckptfmt.Tensor{DType: Uint8, Shape: []int64{int64(len(data))}, Data: data}}
}

func checkInput(nv ckptfmt.NamedTensor) error {
	name, ok := strings.CutPrefix(nv.Name, inputPrefix)
	if !ok || strings.HasPrefix(name, kindVariable+"/") || nv.Tensor.DType == Uint8 && len(nv.Tensor.Shape) == 1 {
		return nil
	}
	return &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: "restoring \"" + nv.Name + "\": it is not the state of an input"}
}
