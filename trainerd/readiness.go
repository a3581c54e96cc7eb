package trainerd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// storeReady is the default readiness predicate if no graph lists variables: every variable of a
// session that knows its variables has a value.
func storeReady(ctx context.Context, s session.Session) error {
	store, ok := s.(session.VariableStore)
	if !ok {
		return nil
	}
	return initialized(ctx, store, func(string) bool { return true })
}

// initialized returns a *NotReadyError unless the wanted variables have values.
func initialized(ctx context.Context, store session.VariableStore, wanted func(name string) bool) error {
	all, err := store.Variables(ctx)
	if err != nil {
		return err
	}
	var missing []string
	for _, v := range all {
		if !v.Initialized && wanted(v.Name) {
			missing = append(missing, v.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &NotReadyError{Missing: missing}
}

// readiness is the default readiness predicate of a graph: its global and local variables have
// values, as TensorFlow's report_uninitialized_variables checks.
type readiness struct {
	graph *tfpb.GraphDef
	vars  []*tfpb.VariableDef
	err   error // of the collections

	mu       sync.Mutex // guards what follows
	nodes    graph.Nodes
	names    map[string]bool // of vars, as a VariableStore has them
	reads    map[string]string
	extended session.Session // to which the ops were added last
	asked    []string
}

// ready returns the default ready op.
func ready(g graph.Collections) Op {
	r := &readiness{graph: g.Meta.GetGraphDef()}
	for _, key := range []string{graph.GlobalVariables, graph.LocalVariables} {
		vars, err := g.Variables(key)
		r.vars, r.err = append(r.vars, vars...), errors.Join(r.err, err)
	}
	if len(r.vars) == 0 && r.err == nil {
		return Func(storeReady)
	}
	return Func(r.check)
}

// graphExtender is a Session to whose graph nodes can be added, such as that of
// a server.
type graphExtender interface {
	Extend(ctx context.Context, nodes *tfpb.GraphDef) error
}

func (r *readiness) check(ctx context.Context, s session.Session) error {
	if r.err != nil {
		return r.err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.find()
	}
	if store, ok := s.(session.VariableStore); ok {
		return initialized(ctx, store, func(name string) bool { return r.names[name] })
	}
	if extender, ok := s.(graphExtender); ok {
		return r.ask(ctx, s, extender)
	}
	return r.tryReading(ctx, s)
}

// find looks for the variables in the graph.
func (r *readiness) find() {
	r.nodes = graph.NodesOf(r.graph)
	r.reads = r.nodes.Reads()
	r.names = make(map[string]bool)
	for _, v := range r.vars {
		r.names[r.nodes.StoreName(graph.NodeName(v.GetVariableName()))] = true
	}
}

// ask runs an op for each variable that says whether it has a value; it adds these ops if the
// session lacks them.
func (r *readiness) ask(ctx context.Context, s session.Session, extender graphExtender) error {
	if r.extended != s {
		ops, asked := r.questions()
		if err := extender.Extend(ctx, ops); err != nil {
			return fmt.Errorf("adding the ops that ask whether variables have values: %w", err)
		}
		r.extended, r.asked = s, asked
	}
	out, err := s.Run(ctx, nil, r.asked, nil)
	if err != nil {
		return err
	}
	var missing []string
	for i, t := range out {
		if len(t.Data) != 1 || t.Data[0] == 0 {
			missing = append(missing, graph.NodeName(r.vars[i].GetVariableName()))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &NotReadyError{Missing: missing}
}

// questions returns the ops, on the devices of the variables, and what to fetch.
func (r *readiness) questions() (ops *tfpb.GraphDef, asked []string) {
	scope := "trainerd_ready"
	for i := 1; r.nodes.Node(scope+"/0") != nil; i++ {
		scope = fmt.Sprintf("trainerd_ready_%d", i)
	}
	ops = new(tfpb.GraphDef)
	for i, v := range r.vars {
		name := graph.NodeName(v.GetVariableName())
		op := &tfpb.NodeDef{Name: fmt.Sprintf("%s/%d", scope, i), Op: "VarIsInitializedOp", Input: []string{name},
			Device: r.nodes.Node(name).GetDevice()}
		if r.nodes.Node(name).GetOp() != "VarHandleOp" {
			op.Op = "IsVariableInitialized"
			op.Attr = map[string]*tfpb.AttrValue{"dtype": r.nodes.Node(name).GetAttr()["dtype"]}
		}
		ops.Node = append(ops.Node, op)
		asked = append(asked, op.Name+":0")
	}
	return ops, asked
}

// tryReading reads the variables, one after the other since each may be large, for a session that
// offers no other way to find out.
func (r *readiness) tryReading(ctx context.Context, s session.Session) error {
	for _, v := range r.vars {
		name := graph.NodeName(v.GetVariableName())
		fetches, targets := []string{name + ":0"}, []string(nil)
		if r.nodes.Node(name).GetOp() == "VarHandleOp" && r.reads[name] != "" {
			fetches, targets = nil, []string{r.reads[name]} // its value stays where it is
		}
		_, err := s.Run(ctx, nil, fetches, targets)
		if errors.Is(err, session.ErrFailedPrecondition) {
			return &NotReadyError{Missing: []string{name}, Err: err}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// NotReadyError says that a model is not ready for use, and why.
type NotReadyError struct {
	Missing []string // names of variables without a value, if known
	Err     error    // the session's own error, if it reported one
}

func (e *NotReadyError) Error() string {
	if len(e.Missing) > 0 || e.Err == nil {
		return "variables not initialized: " + strings.Join(e.Missing, ", ")
	}
	return e.Err.Error()
}

func (e *NotReadyError) Unwrap() error { return e.Err }

// Is makes the error match [session.ErrFailedPrecondition].
func (e *NotReadyError) Is(target error) bool { return target == session.ErrFailedPrecondition }

// ready evaluates o as a readiness predicate. It returns nil when the model is
// ready, a *NotReadyError when it is not, and any other error unchanged.
//
// The predicate gives a vector of names that are not ready. No value at all, an
// int32 and a vector without elements all mean that the model is ready.
func (o Op) ready(ctx context.Context, s session.Session) error {
	out, err := o.run(ctx, s, nil)
	if err != nil {
		return asNotReady(err)
	}
	var missing []string
	for _, t := range out {
		if t == nil || t.DType != tfpb.DataType_DT_STRING {
			continue
		}
		for _, name := range t.Strings {
			missing = append(missing, string(name))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &NotReadyError{Missing: missing}
}

// asNotReady recognises the failure of reading a variable without a value.
func asNotReady(err error) error {
	var notReady *NotReadyError
	if errors.As(err, &notReady) {
		return notReady
	}
	if errors.Is(err, session.ErrFailedPrecondition) && strings.Contains(strings.ToLower(err.Error()), "uninitialized") {
		return &NotReadyError{Err: err}
	}
	return err
}
