package graph

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Collections reads the collections of a MetaGraphDef, which may be nil.
type Collections struct{ Meta *tfpb.MetaGraphDef }

// Names returns the node names of a collection.
func (g Collections) Names(key string) []string {
	return g.Meta.GetCollectionDef()[key].GetNodeList().GetValue()
}

// Variables returns the VariableDefs of a collection.
func (g Collections) Variables(key string) ([]*tfpb.VariableDef, error) {
	var vars []*tfpb.VariableDef
	for i, b := range g.Meta.GetCollectionDef()[key].GetBytesList().GetValue() {
		v := new(tfpb.VariableDef)
		if err := proto.Unmarshal(b, v); err != nil {
			return nil, fmt.Errorf("meta graph: collection %s, item %d: %w", key, i, err)
		}
		vars = append(vars, v)
	}
	return vars, nil
}

// SaverDef returns the first saver of the graph, or nil.
func (g Collections) SaverDef() (*tfpb.SaverDef, error) {
	if list := g.Meta.GetCollectionDef()[SaversKey].GetBytesList().GetValue(); len(list) > 0 {
		def := new(tfpb.SaverDef)
		if err := proto.Unmarshal(list[0], def); err != nil {
			return nil, fmt.Errorf("meta graph: collection %s: %w", SaversKey, err)
		}
		return def, nil
	}
	return g.Meta.GetSaverDef(), nil
}

// nodeCollections are the collections whose entries must name nodes for a
// training to run. Others belong to the program that made the graph.
var nodeCollections = []string{
	InitOpKey, LocalInitOpKey, ReadyForLocalInitOp, ReadyOpKey, SummariesKey, SummaryOpKey, summaryWriters, TableInitializers, TrainOpKey,
}

func (g *Graph) checkCollections() error {
	for _, name := range nodeCollections {
		for _, v := range (Collections{g.Meta}).Names(name) {
			if _, err := g.Node(v); err != nil && !g.inFunction(NodeName(v)) {
				return &Error{Collection: name, Message: fmt.Sprintf("there is no node %s", v)}
			}
		}
	}
	for _, name := range []string{GlobalVariables, LocalVariables, TrainableVariables} {
		for _, wire := range g.messages(name) {
			v, err := g.variable(name, wire)
			if err != nil {
				return err
			}
			g.vars[name] = append(g.vars[name], v)
		}
	}
	if _, err := g.QueueRunners(); err != nil {
		return err
	}
	_, err := g.Savers()
	return err
}

// Collections lists the names of all collections, sorted.
func (g *Graph) Collections() []string {
	return slices.Sorted(maps.Keys(g.Meta.GetCollectionDef()))
}

// inFunction reports whether a function of the graph has a node of a name.
func (g *Graph) inFunction(name string) bool {
	for _, f := range g.Meta.GetGraphDef().GetLibrary().GetFunction() {
		if slices.ContainsFunc(f.GetNodeDef(), func(n *tfpb.NodeDef) bool { return n.GetName() == name }) {
			return true
		}
	}
	return false
}

// Names returns the node and tensor names in a collection; none if there is no
// such collection or it holds something else. What is not in the graph itself is left
// out: a program that makes an op in a branch of tf.cond puts the name of a node of a
// function, which no session can run, into the collections.
func (g *Graph) Names(collection string) []string {
	names := Collections{g.Meta}.Names(collection)
	if !slices.Contains(nodeCollections, collection) {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, err := g.Node(name)
		return err != nil
	})
}

func (g *Graph) messages(collection string) [][]byte {
	return g.Meta.GetCollectionDef()[collection].GetBytesList().GetValue()
}

// first returns a collection's first name, "" when there is none. TensorFlow's
// supervisor takes the first of several.
func (g *Graph) first(collection string) string {
	if names := g.Names(collection); len(names) > 0 {
		return names[0]
	}
	return ""
}

// TrainOp returns the name of the op that makes one training step, or "".
func (g *Graph) TrainOp() string { return g.first(TrainOpKey) }

// InitOp returns the name of the op that sets all global variables, or "";
// then use [Graph.Initializers].
func (g *Graph) InitOp() string { return g.first(InitOpKey) }

// LocalInitOp returns the name of the op that sets the local variables and
// tables, or ""; then use [Graph.LocalInitializers].
func (g *Graph) LocalInitOp() string { return g.first(LocalInitOpKey) }

// ReadyOp returns the tensor that lists the variables without a value, or "".
func (g *Graph) ReadyOp() string { return g.first(ReadyOpKey) }

// ReadyForLocalInitOp returns the tensor that lists the variables without a
// value before the local init op may run, or "".
func (g *Graph) ReadyForLocalInitOp() string { return g.first(ReadyForLocalInitOp) }

// SummaryOp returns the tensor that holds all summaries, or ""; then
// [Graph.Summaries] are its parts: encoded summaries, to be concatenated.
func (g *Graph) SummaryOp() string { return g.first(SummaryOpKey) }

// Summaries returns the tensors of the single summaries.
func (g *Graph) Summaries() []string { return g.Names(SummariesKey) }

// Initializers returns the ops that set the global variables, one each.
func (g *Graph) Initializers() []string { return initializerNames(g.vars[GlobalVariables]) }

// LocalInitializers returns the ops that set the local variables and tables.
func (g *Graph) LocalInitializers() []string {
	return append(initializerNames(g.vars[LocalVariables]), g.Names(TableInitializers)...)
}

func initializerNames(vars []VariableRef) []string {
	names := make([]string, len(vars))
	for i, v := range vars {
		names[i] = v.Def.GetInitializerName()
	}
	return names
}

// GlobalStep returns the tensor to fetch for the number of steps, and the
// variable's name, or false if the graph counts no steps. It is the first
// entry of its collection, or else the variable named global_step, in either
// case of type int32 or int64.
func (g *Graph) GlobalStep() (tensor, variable string, ok bool) {
	for _, wire := range g.messages(GlobalStepKey) {
		def := &tfpb.VariableDef{}
		if proto.Unmarshal(wire, def) == nil {
			return g.stepVariable(def.GetVariableName())
		}
	}
	if names := g.Names(GlobalStepKey); len(names) > 0 {
		return g.stepVariable(names[0])
	}
	return g.stepVariable("global_step:0")
}

func (g *Graph) stepVariable(name string) (tensor, variable string, ok bool) {
	for _, v := range g.vars[GlobalVariables] {
		if v.Def.GetVariableName() != name && v.Name() != name {
			continue
		}
		if v.DType != tfpb.DataType_DT_INT64 && v.DType != tfpb.DataType_DT_INT32 {
			return "", "", false
		}
		return v.valueTensor(), v.Name(), true
	}
	return "", "", false
}

// valueTensor returns the tensor to fetch for the variable's value. A resource
// variable's own tensor is only its handle.
func (v VariableRef) valueTensor() string {
	if v.Def.GetIsResource() {
		return v.Def.GetSnapshotName()
	}
	return v.Def.GetVariableName()
}

// Savers returns the graph's savers: the MetaGraphDef's own, or else those of
// the collection.
func (g *Graph) Savers() ([]*tfpb.SaverDef, error) {
	if s := g.Meta.GetSaverDef(); s != nil {
		return []*tfpb.SaverDef{s}, g.checkSaver(s)
	}
	var savers []*tfpb.SaverDef
	for _, wire := range g.messages(SaversKey) {
		s := &tfpb.SaverDef{}
		if err := proto.Unmarshal(wire, s); err != nil {
			return nil, &Error{Collection: SaversKey, Message: fmt.Sprintf("an entry is not a SaverDef: %v", err)}
		}
		if err := g.checkSaver(s); err != nil {
			return nil, err
		}
		savers = append(savers, s)
	}
	return savers, nil
}

func (g *Graph) checkSaver(s *tfpb.SaverDef) error {
	return g.checkNames(SaversKey, s.GetFilenameTensorName(), s.GetSaveTensorName(), s.GetRestoreOpName())
}

// QueueRunners returns the runners that feed the graph's input queues.
func (g *Graph) QueueRunners() ([]*tfpb.QueueRunnerDef, error) {
	var runners []*tfpb.QueueRunnerDef
	for _, wire := range g.messages(QueueRunnersKey) {
		r := &tfpb.QueueRunnerDef{}
		if err := proto.Unmarshal(wire, r); err != nil {
			return nil, &Error{Collection: QueueRunnersKey, Message: fmt.Sprintf("an entry is not a QueueRunnerDef: %v", err)}
		}
		names := append([]string{r.GetQueueName(), r.GetCloseOpName(), r.GetCancelOpName()}, r.GetEnqueueOpName()...)
		if err := g.checkNames(QueueRunnersKey, names...); err != nil {
			return nil, err
		}
		runners = append(runners, r)
	}
	return runners, nil
}

func (g *Graph) checkNames(collection string, names ...string) error {
	for _, name := range names {
		if _, err := g.Node(name); err != nil {
			return &Error{Collection: collection, Message: fmt.Sprintf("there is no node %q", name)}
		}
	}
	return nil
}
