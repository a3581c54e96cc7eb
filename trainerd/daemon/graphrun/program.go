package graphrun

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// graphJob finds in an exported graph what a job needs, and collects what is
// not there.
type graphJob struct {
	*config.Validator
	config *config.Config
	g      *graphFile
	p      *program.Program
}

// NewProgram reads the graph of a config and returns its program and its
// input. All that is wrong is in the error.
func NewProgram(c *config.Config, data *dataset.Dataset) (*program.Program, program.Input, error) {
	j := &graphJob{Validator: config.NewValidator(c), config: c}
	var err error
	if j.g, err = loadGraph(c.Graph.Meta); err != nil {
		return nil, nil, err
	}
	j.p = &program.Program{Dir: c.Graph.Dir}
	j.findTrainOp()
	j.findLoss()
	j.findFetches()
	j.findRetention()
	if err := j.complete(); err != nil {
		return nil, nil, err
	}
	in := j.input(data)
	if err := j.Err(); err != nil {
		in.Close()
		return nil, nil, err
	}
	return j.p, in, nil
}

// bad reports a value of the config, with what a look-up in the graph said.
func (j *graphJob) bad(key string, err error) {
	if err != nil {
		j.Require(false, key, strings.TrimSpace(err.Error()), "")
	}
}

// value returns the tensor that a key names, reporting what is wrong with it.
func (j *graphJob) value(key, name string) string {
	if n, err := j.g.Node(name); err == nil && hasNoValue(n.GetOp()) {
		j.Require(false, key, fmt.Sprintf("%s (%s) is an op without a value", name, n.GetOp()), "name a tensor")
		return ""
	}
	tensor, err := j.g.fetched("", name)
	j.bad(key, err)
	return tensor
}

// number is value for one that must be one number, as far as the export says its shape.
func (j *graphJob) number(key, name string) string {
	tensor := j.value(key, name)
	shape := j.g.shapeOf(tensor)
	if n, ok := shape.NumElements(); ok && n != 1 {
		j.Require(false, key, fmt.Sprintf("%s has the shape %v", name, shape), "name an op that gives one number, such as its mean")
	}
	return tensor
}

func (j *graphJob) findTrainOp() {
	name := j.config.Graph.TrainOp
	if name == "" {
		var among []string
		if name, among = j.g.trainOp(); name == "" {
			reason, remedy := j.g.missingTrainOp(among)
			j.Require(false, "graph.train_op", reason, remedy)
			return
		}
	}
	op, err := j.g.op("", name)
	j.bad("graph.train_op", err)
	j.p.Train = []string{op}
}

// findLoss finds the tensor that is watched.
func (j *graphJob) findLoss() {
	name := j.config.Graph.Loss
	if name != "" {
		j.p.Loss = j.number("graph.loss", name)
		return
	}
	if losses := j.g.Names("losses"); len(losses) == 1 {
		j.p.Loss = losses[0]
		return
	}
	n, err := j.g.Node("loss")
	switch {
	case err != nil:
	case n.GetOp() == "ScalarSummary" && len(n.GetInput()) > 1:
		// tf.summary.scalar("loss", x) takes the name from what it shows.
		if t, err := graph.ParseTensorName(n.GetInput()[1]); err == nil {
			j.p.Loss = t.Tensor()
		}
	case isScalarFloat(n):
		j.p.Loss = "loss:0"
	}
}

// isScalarFloat reports whether a node is known to give one float.
func isScalarFloat(n *tfpb.NodeDef) bool {
	if strings.HasSuffix(n.GetOp(), "Summary") || hasNoValue(n.GetOp()) {
		return false
	}
	t := opdef.Attr(n, "T").GetType()
	if t != tfpb.DataType_DT_FLOAT && t != tfpb.DataType_DT_DOUBLE {
		return false
	}
	shapes := n.GetAttr()["_output_shapes"].GetList().GetShape()
	return len(shapes) > 0 && graph.ShapeFromProto(shapes[0]).Rank() == 0
}

func (j *graphJob) findFetches() {
	c := j.config
	for _, name := range c.Graph.Fetches {
		j.p.Show = append(j.p.Show, program.Metric{Name: name, Tensor: j.value("graph.fetches", name)})
	}
	for _, name := range c.Eval.Fetches {
		j.p.Metrics = append(j.p.Metrics, program.Metric{Name: strings.TrimSuffix(name, ":0"), Tensor: j.number("eval.fetches", name)})
	}
	if len(c.Eval.Fetches) == 0 && j.p.Loss != "" {
		j.p.Metrics = append(j.p.Metrics, program.Metric{Name: "loss", Tensor: j.p.Loss})
	}
	if _, ok := j.p.Metric(c.Eval.Metric); !ok && c.Eval.Metric != "" {
		j.Require(false, "eval.metric", fmt.Sprintf("%q is not evaluated", c.Eval.Metric), "add it to eval.fetches")
	}
	switch name := c.Graph.SummaryOp; name {
	case "none":
	case "":
		if op := j.g.SummaryOp(); op != "" {
			j.p.Summary = []string{op}
		} else {
			j.p.Summary = j.g.Summaries()
		}
		j.p.DrawsLoss = len(j.p.Summary) == 0 && j.p.Loss != ""
	default:
		j.p.Summary = []string{j.value("graph.summary_op", name)}
	}
	for i, name := range j.p.Summary {
		if !strings.Contains(name, ":") {
			j.p.Summary[i] = name + ":0"
		}
	}
}

// findRetention takes from the graph's saver which checkpoints are kept, where the config
// does not say it. An invalid saver is reported when the graph is completed.
func (j *graphJob) findRetention() {
	if def, err := (graph.Collections{Meta: j.g.Meta}).SaverDef(); err == nil && def != nil {
		j.config.InheritRetention(int(def.GetMaxToKeep()), float64(def.GetKeepCheckpointEveryNHours()))
	}
}

// complete adds to the graph what a Supervisor needs and it lacks: a counter of
// steps, init ops, a saver.
func (j *graphJob) complete() error {
	fail := func(err error) error { return &program.FileError{File: j.config.Graph.Meta, Err: err} }
	g := j.g.Graph // not changed: each addition copies it
	var initStep string
	if _, _, counted := g.GlobalStep(); !counted {
		meta, init, count, err := g.WithStepCounter()
		if err == nil {
			g, err = graph.Parse(meta)
		}
		if err != nil {
			return fail(err)
		}
		initStep, j.p.Train, j.p.CountsSteps = init, append(j.p.Train, count), true
	}
	full, err := g.Complete()
	if err != nil {
		return fail(err)
	}
	j.p.SetGraph(full)
	j.p.GlobalStep, j.p.StepKey, _ = full.GlobalStep()
	j.p.Init, j.p.LocalInit = program.NonEmpty(full.InitOp()), program.NonEmpty(full.LocalInitOp())
	if initStep != "" {
		j.p.Init = append(j.p.Init, initStep)
	}
	j.initialise(full)
	j.checkQueues(full)
	j.p.Ready, j.p.ReadyForLocal = program.NonEmpty(full.ReadyOp()), program.NonEmpty(full.ReadyForLocalInitOp())
	j.p.ApplyGrads = program.Ancestors(full, j.p.Train, program.IsApplyGradient)
	j.p.TakeInput = slices.DeleteFunc(program.InputOps(full, j.targets()), func(name string) bool {
		return len(program.Ancestors(full, []string{name}, program.IsApplyGradient)) > 0 // it is a token, no input
	})
	return nil
}

// initialise adds the ops of graph.init to the local init op, and reports the iterators of the
// step that have no elements all the same.
func (j *graphJob) initialise(g *graph.Graph) {
	for _, name := range j.config.Graph.Init {
		op, err := j.g.op("", name)
		j.bad("graph.init", err)
		if err == nil {
			j.p.LocalInit = append(j.p.LocalInit, op)
		}
	}
	for _, it := range g.Iterators() {
		used := program.Ancestors(g, j.targets(), func(n *tfpb.NodeDef) bool { return n.GetName() == it.Name })
		if len(used) == 0 || g.InitializedBy(it, j.p.LocalInit) {
			continue
		}
		if len(it.Initializers) == 1 {
			j.Require(false, "graph.init", fmt.Sprintf("the iterator %s is initialised by %s, which needs a placeholder", it.Name, it.Initializers[0]),
				"export the graph with a data set that needs none")
			continue
		}
		j.Require(false, "graph.init", fmt.Sprintf("the iterator %s is not initialised", it.Name), "name one of "+strings.Join(it.Initializers, ", "))
	}
}

// targets returns all that a step may run or fetch.
func (j *graphJob) targets() []string {
	all := slices.Concat(j.p.Train, j.p.Summary)
	for _, m := range j.p.Show {
		all = append(all, m.Tensor)
	}
	if j.p.Loss != "" {
		all = append(all, j.p.Loss)
	}
	return all
}

// input makes what the graph is fed.
func (j *graphJob) input(data *dataset.Dataset) program.Input {
	c := j.config
	var in program.Input = program.NoInput{}
	switch {
	case c.Graph.Bundle != "":
		run := &Options{Feeds: c.Graph.Bundle}
		feeds, err := newFeeder(j.g, run)
		if err != nil {
			j.Require(false, "graph.bundle", err.Error(), "")
			return in
		}
		in = &bundleInput{feeds: feeds}
	case data != nil:
		in = &program.DataInput{Data: data}
	}
	train, eval := j.bindings("graph.feeds", c.Graph.Feeds, data), j.bindings("graph.eval_feeds", c.Graph.EvalFeeds, data)
	bound := &program.BoundInput{Input: in, Train: train, Eval: program.Overlay(train, eval)}
	if _, tests := in.Rows(); tests > 0 {
		fed := make(map[string]bool)
		for _, b := range bound.Eval {
			fed[b.Tensor] = true
		}
		j.checkEvaluated(fed)
	}
	j.checkFed(bound)
	return bound
}

// checkFed reports placeholders that a step needs and nothing feeds.
func (j *graphJob) checkFed(in *program.BoundInput) {
	fed := make(map[string]bool)
	for name := range j.config.Graph.Feeds {
		if t, err := graph.ParseTensorName(name); err == nil {
			fed[t.Tensor()] = true // what is wrong with it is said already
		}
	}
	if b, ok := in.Input.(*bundleInput); ok {
		for _, name := range b.feeds.names(0) {
			fed[name] = true
		}
	}
	var names []string
	for _, name := range j.targets() {
		if !strings.Contains(name, ":") {
			name = "^" + name
		}
		names = append(names, name)
	}
	for _, p := range j.g.needed(fed, names) {
		file, line, _ := j.config.Place("graph.feeds")
		j.Add(&config.Problem{
			File: file, Line: line, Key: "graph.feeds",
			Reason: fmt.Sprintf("nothing feeds the placeholder %s (%s)", program.NodeOf(p.Name), describePlaceholder(p)),
			Hint:   fmt.Sprintf(`say what does, for example feeds = { %s = "%s" }`, quoteKey(program.NodeOf(p.Name)), likelyFeed(p)),
		})
	}
}

// likelyFeed guesses what a placeholder is for.
func likelyFeed(p graph.Placeholder) string {
	if p.Shape.Rank() == 1 {
		return program.Label
	}
	return program.Features
}

// quoteKey returns a key in TOML's syntax.
func quoteKey(key string) string {
	if strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return key
	}
	return `"` + key + `"`
}

// bindings resolves the feeds of a table, in the order of their names.
func (j *graphJob) bindings(key string, feeds config.Feeds, data *dataset.Dataset) []program.Binding {
	var list []program.Binding
	for _, name := range feeds.Names() {
		b, err := j.g.bind(name, feeds[name], j.config, data)
		if err != nil {
			file, line, flag := j.config.Place(key)
			j.Add(&config.Problem{File: file, Line: line, Flag: flag, Key: key + "." + quoteKey(name), Reason: err.Error()})
			continue
		}
		list = append(list, b)
	}
	return list
}
