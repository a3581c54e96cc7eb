package trainerd

import (
	"context"
	"fmt"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// plan is the result of a Supervisor's options, with the defaults filled in.
type plan struct {
	meta *tfpb.MetaGraphDef // the graph, completed where the run may; nil for none

	init, localInit, ready, readyForLocalInit, summary Op

	globalStep string            // name of the variable, "" for none
	stepTensor string            // fetches its value in a run, "" if it has to be read separately
	saver      *checkpoint.Saver // nil for none
	inherit    *checkpoint.Saver // what saver, if it is the program's own, takes from the graph
}

func (sv *Supervisor) plan() (*plan, error) {
	meta, err := sv.completeGraph()
	if err != nil {
		return nil, err
	}
	g := graph.Collections{Meta: meta}
	p := &plan{
		meta:              meta,
		init:              sv.InitOp.orDefault(func() Op { return opOr(g, graph.InitOpKey, initializers(g, graph.GlobalVariables)) }),
		localInit:         sv.LocalInitOp.orDefault(func() Op { return localInit(g) }),
		ready:             sv.ReadyOp.orDefault(func() Op { return opOr(g, graph.ReadyOpKey, ready(g)) }),
		readyForLocalInit: sv.ReadyForLocalInitOp.orDefault(func() Op { return opOr(g, graph.ReadyForLocalInitOp, None()) }),
		summary:           sv.SummaryOp.orDefault(func() Op { return summaries(g) }),
	}
	if sv.LocalInitOp.IsDefault() && p.localInit.IsNone() && !p.readyForLocalInit.IsNone() {
		// As in TensorFlow, whose default is never none: the gate op runs even if there is nothing
		// local to initialise.
		p.localInit = Func(func(context.Context, session.Session) error { return nil })
	}
	step := sv.GlobalStep.orDefault(func() Op { return opOr(g, graph.GlobalStepKey, Nodes(DefaultGlobalStep)) })
	if !step.IsNone() {
		p.globalStep = graph.NodeName(step.nodes[0])
	}
	return p, sv.planSaver(p, g)
}

// planSaver chooses the Saver of the program, or else the graph's. The former inherits the graph's
// settings only when a run begins: another run may be using it now.
func (sv *Supervisor) planSaver(p *plan, g graph.Collections) (err error) {
	if sv.NoSaver {
		return nil
	}
	if p.inherit, err = sv.defaultSaver(g); err != nil {
		return err
	}
	switch {
	case sv.Saver != nil:
		p.saver = sv.Saver
	case sv.SessionManager != nil && sv.SessionManager.Saver != nil:
		p.saver = sv.SessionManager.Saver
	default:
		p.saver = p.inherit
	}
	return nil
}

// completeGraph returns the graph with added ops that a run needs. Only a session of Open uses the
// result; the graph of any other session stays unchanged.
func (sv *Supervisor) completeGraph() (*tfpb.MetaGraphDef, error) {
	if sv.MetaGraph == nil || sv.Open == nil || sv.NewSession != nil || sv.SessionManager != nil {
		return sv.MetaGraph, nil
	}
	meta, err := graph.Complete(sv.MetaGraph)
	if err != nil {
		return nil, fmt.Errorf("Supervisor.MetaGraph: %w", err)
	}
	return meta, nil
}

// newSession returns the function that makes the sessions of a run.
func (sv *Supervisor) newSession(p *plan) func(context.Context) (session.Session, error) {
	if sv.NewSession != nil || sv.Open == nil {
		return sv.NewSession
	}
	return func(ctx context.Context) (session.Session, error) { return sv.Open(ctx, sv.Master, p.meta) }
}

// defaultSaver makes a Saver from the first one in the collection of savers, or
// else with the defaults.
func (sv *Supervisor) defaultSaver(g graph.Collections) (*checkpoint.Saver, error) {
	saver := &checkpoint.Saver{MetaGraph: g.Meta, Logger: sv.Logger}
	def, err := g.SaverDef()
	if err != nil || def == nil {
		return saver, err
	}
	saver.Def = def
	saver.MaxToKeep = int(def.GetMaxToKeep())
	if saver.MaxToKeep == 0 {
		saver.MaxToKeep = -1 // as TensorFlow: zero keeps all
	}
	saver.KeepEvery = checkpoint.KeepEvery(def)
	return saver, nil
}

// opOr returns the first op of a collection, which may have several, or the fallback if the
// collection is empty.
func opOr(g graph.Collections, key string, fallback Op) Op {
	if names := g.Names(key); len(names) > 0 {
		return Nodes(names[0])
	}
	if key == graph.GlobalStepKey {
		if vars, err := g.Variables(key); err == nil && len(vars) > 0 {
			return Nodes(vars[0].GetVariableName())
		}
	}
	return fallback
}

// summaries returns the default summary op.
func summaries(g graph.Collections) Op {
	return opOr(g, graph.SummaryOpKey, Nodes(g.Names(graph.SummariesKey)...))
}

// initializers returns the op that initialises the variables of a collection.
func initializers(g graph.Collections, key string) Op {
	vars, err := g.Variables(key)
	if err != nil {
		return Func(func(context.Context, session.Session) error { return err })
	}
	var names []string
	for _, v := range vars {
		names = append(names, graph.NodeName(v.GetInitializerName()))
	}
	if len(names) == 0 {
		// A program without a graph has already initialised its variables.
		return Func(func(context.Context, session.Session) error { return nil })
	}
	return Nodes(names...)
}

// localInit returns the default local init op: the collection's, or else local
// variables and tables, or else none.
func localInit(g graph.Collections) Op {
	if op := opOr(g, graph.LocalInitOpKey, None()); !op.IsNone() {
		return op
	}
	names := slices.Clone(g.Names(graph.TableInitializers))
	vars, err := g.Variables(graph.LocalVariables)
	if err != nil {
		return Func(func(context.Context, session.Session) error { return err })
	}
	for _, v := range vars {
		names = append(names, graph.NodeName(v.GetInitializerName()))
	}
	for i, name := range names {
		names[i] = graph.NodeName(name)
	}
	return Nodes(names...)
}

// existingStep returns the name of the global step if the session has it as an
// integer, and "" otherwise.
func (sv *Supervisor) existingStep(ctx context.Context, s session.Session, p *plan) (string, error) {
	name := p.globalStep
	if name == "" {
		return "", nil
	}
	dt, ok := tfpb.DataType_DT_INVALID, false
	if store, isStore := s.(session.VariableStore); isStore {
		all, err := store.Variables(ctx)
		if err != nil {
			return "", fmt.Errorf("looking for the global step: %w", err)
		}
		for _, v := range all {
			if v.Name == name {
				dt, ok = v.DType, true
			}
		}
	} else {
		dt, ok = graph.NodesOf(p.meta.GetGraphDef()).Type(name)
	}
	if !ok {
		return "", nil
	}
	if dt != tfpb.DataType_DT_INT32 && dt != tfpb.DataType_DT_INT64 {
		sv.log().Warn("global step is not an integer; there will be no step numbers", "name", name, "dtype", dtype.Name(dt))
		return "", nil
	}
	return name, nil
}

// stepTensor returns what to fetch for the value of the global step in a run of the graph. The
// handle of a resource variable is not the value; if the graph has no op that reads it, or is not
// known, the step has to be read separately.
func stepTensor(s session.Session, p *plan) string {
	def, name := p.meta.GetGraphDef(), p.globalStep
	for _, n := range def.GetNode() {
		switch {
		case name == "" || n.GetName() != name:
			continue
		case n.GetOp() != "VarHandleOp":
			return name + ":0"
		}
		if read := graph.NodesOf(def).Reads()[name]; read != "" {
			return read + ":0"
		}
		return ""
	}
	if _, isStore := s.(session.VariableStore); isStore || name == "" {
		return ""
	}
	return name + ":0"
}
