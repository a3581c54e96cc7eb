//go:build unix

package world

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfexample"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/model"
)

// A daemonPlan is all that happens in a history of a job as the daemon reads it.
type daemonPlan struct {
	choices
	kind     *daemonKind
	stepTime time.Duration
}

// A daemonKind is a kind of model with the data that it needs.
type daemonKind struct {
	name       string
	family     bool // a model family; else a graph
	layers     bool // it has hidden layers
	normalises bool // it takes batch_norm
	ownInput   bool // the graph reads its input itself, ahead of the steps
	format     string
	keys       map[string]string // in TOML
	data       func() ([]byte, error)
}

func (k *daemonKind) predictsNumber() bool { return k.name == "linear" || k.name == "mlp_regressor" }

var daemonKinds = []*daemonKind{
	{name: "linear", family: true, format: "csv", data: table(4, 0), keys: map[string]string{"model.family": `"linear"`, "data.label": "-1"}},
	{name: "logistic", family: true, format: "csv", data: table(4, 2), keys: map[string]string{"model.family": `"logistic"`}},
	{name: "softmax", family: true, format: "json", data: lines(4, 3), keys: map[string]string{"model.family": `"softmax"`, "data.label": `"y"`}},
	{name: "softmax of records", family: true, format: "tfrecord", data: records(4, 3), keys: map[string]string{"model.family": `"softmax"`}},
	{name: "mlp", family: true, layers: true, normalises: true, format: "csv", data: table(4, 3),
		keys: map[string]string{"model.family": `"mlp"`, "model.hidden": "[5, 3]"}},
	{name: "mlp_regressor", family: true, layers: true, normalises: true, format: "csv", data: table(4, 0),
		keys: map[string]string{"model.family": `"mlp_regressor"`, "model.hidden": "[5]"}},
	{name: "convnet", family: true, layers: true, normalises: true, format: "csv", data: table(16, 3),
		keys: map[string]string{"model.family": `"convnet"`, "model.image": "[4, 4, 1]", "model.filters": "[2]", "model.kernel_size": "2", "model.pool": "2", "model.hidden": "[3]"}},
	{name: "embedding_bag", family: true, layers: true, format: "csv", data: bags(4, 3),
		keys: map[string]string{"model.family": `"embedding_bag"`, "model.vocabulary": "12", "model.embedding": "3", "model.hidden": "[4]"}},
	{name: "graph", format: "csv", data: table(4, 3), keys: map[string]string{"graph.meta": `"graph.meta"`}},
	{name: "graph that reads", ownInput: true, keys: map[string]string{"graph.meta": `"graph.meta"`, "graph.dir": `"."`}},
}

// rateKind is a graph whose learning rate is in a variable, which people may set.
var rateKind = &daemonKind{name: "graph with a rate", keys: map[string]string{"graph.meta": `"graph.meta"`, "graph.loss": `"loss"`}}

const firstRate = 0.5 // of rateKind

func newDaemonPlan(seed uint64) *daemonPlan {
	p := laterDaemonPlan(seed)
	p.pairUp(p.source("pairs"), slices.Concat(daemonEvents, laterDaemonEvents))
	return p
}

// laterDaemonPlan is newDaemonPlan as it was before two things happened at once.
func laterDaemonPlan(seed uint64) *daemonPlan {
	return drawDaemonPlan(seed, append(slices.Clone(daemonKinds), rateKind), slices.Concat(daemonEvents, laterDaemonEvents))
}

// firstDaemonPlan is that as it was when the first defects were found.
func firstDaemonPlan(seed uint64) *daemonPlan {
	return drawDaemonPlan(seed, daemonKinds, daemonEvents)
}

func drawDaemonPlan(seed uint64, kinds []*daemonKind, events []*event) *daemonPlan {
	all := maps.Clone(daemonOptions)
	maps.Copy(all, daemonShapes)
	p := &daemonPlan{choices: choose(seed, all)}
	rnd := p.source("plan")
	p.kind = kinds[rnd.IntN(len(kinds))]
	p.stepTime = between(rnd, 100*time.Millisecond, 10*time.Minute)
	p.disturb(rnd, events)
	return p
}

// smaller returns plans with a life or an option less.
func (p *daemonPlan) smaller() []*daemonPlan {
	var all []*daemonPlan
	for _, c := range p.choices.smaller() {
		q := *p
		q.choices = c
		all = append(all, &q)
	}
	return all
}

// keys returns the keys of the config with their values: those that decide what is
// trained, and if all are wanted the others too.
func (p *daemonPlan) keys(all bool) map[string]string {
	keys := maps.Clone(p.kind.keys)
	if p.kind.data != nil {
		keys["data.file"], keys["data.format"] = `"data"`, fmt.Sprintf("%q", p.kind.format)
	}
	if keys["graph.meta"] != "" && p.kind.data != nil {
		maps.Copy(keys, graphFeeds)
	}
	if p.kind.data == nil {
		keys["train.steps"] = fmt.Sprint(5 + p.source("steps").IntN(15))
	}
	set := func(key, format string, args ...any) { keys[key] = fmt.Sprintf(format, args...) }
	for name, f := range daemonShapes {
		if p.options[name] || name == "train.epochs" {
			f(p.source("option "+name), p, set)
		}
	}
	for name, f := range daemonOptions {
		if all && p.options[name] {
			f(p.source("option "+name), p, set)
		}
	}
	if p.kind.predictsNumber() {
		set("model.learning_rate", "0.0006") // else some diverge
		if keys["model.rates"] != "" {
			set("model.rates", "[0.0006, 0.0005, 0.0004]")
		}
	}
	if all { // two steps and a slow disk fit into it
		keys["supervisor.stop_grace_secs"] = fmt.Sprint(between(p.source("grace"), 40*time.Minute, 10*time.Hour).Seconds())
	}
	return keys
}

// toml returns the config of the job.
func (p *daemonPlan) toml(logdir string, all bool) string { return tomlOf(p.keys(all), logdir) }

func tomlOf(keys map[string]string, logdir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "logdir = %q\n", logdir)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, "%s = %s\n", key, keys[key])
	}
	return b.String()
}

// graphFeeds are what the exported graph is fed.
var graphFeeds = map[string]string{
	"graph.feeds":      `{ x = "features", y = "label", training = true }`,
	"graph.eval_feeds": `{ training = false }`, "graph.loss": `"loss"`,
}

// lay writes what the job reads into its folder.
func (k *daemonKind) lay(dir string) error {
	if k.data != nil {
		data, err := k.data()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "data"), data, 0o666); err != nil {
			return err
		}
	}
	switch {
	case k.family:
		return nil
	case k.ownInput:
		return layPipeline(dir)
	case k == rateKind:
		return layRate(dir)
	}
	m, err := model.Build(model.Config{Family: "mlp", Inputs: 4, Classes: 3, Hidden: []int{5}, Dropout: 0.3, Seed: 7, Optimizer: "adam"})
	if err != nil {
		return err
	}
	for placeholder, tensor := range map[string]string{"x": m.X.Name, "y": m.Y.Name, "training": m.Training, "loss": m.Loss} {
		if strings.TrimSuffix(tensor, ":0") != placeholder {
			return fmt.Errorf("the graph has %s where graphFeeds say %s", tensor, placeholder)
		}
	}
	return os.WriteFile(filepath.Join(dir, "graph.meta"), tfproto.Marshal(m.Meta), 0o666)
}

// layRate writes a graph that adds its learning rate to a variable in each step.
func layRate(dir string) error {
	b := graph.NewBuilder()
	step := b.GlobalStep()
	rate := b.Variable(graph.VariableSpec{Name: rateVariable, DType: tfpb.DataType_DT_FLOAT, Initial: graph.Constant(firstRate)})
	w := b.Variable(graph.VariableSpec{Name: "w", DType: tfpb.DataType_DT_FLOAT, Initial: graph.Zeros(), Trainable: true})
	loss := b.Identity("loss", b.Read("", w))
	add := func(name string, to *graph.Variable, value graph.Output) *graph.Node {
		return b.Add(graph.NodeSpec{Op: "AssignAddVariableOp", Name: name, Inputs: []graph.Output{to.Handle(), value}, Attrs: graph.Attrs{"dtype": attr.Type(to.DType)}})
	}
	b.After([]*graph.Node{loss.Node}, func() {
		learn := add("learn", w, b.Read("", rate))
		b.After([]*graph.Node{learn}, func() { b.AddNodes(graph.TrainOpKey, add("count", step, b.Const("one", literal.Int64(1))).Name()) })
	})
	b.AddInit()
	b.AddReady()
	b.AddSaver()
	meta, err := b.MetaGraph()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "graph.meta"), tfproto.Marshal(meta), 0o666)
}

const rateVariable = "learning_rate"

// layPipeline copies a program of TensorFlow with queues of its own.
func layPipeline(dir string) error {
	const fixtures = "../../fixtures/graphs"
	for from, to := range map[string]string{"queue_pipeline/graph.meta": "graph.meta", "digits.tfrecord": "digits.tfrecord"} {
		data, err := os.ReadFile(filepath.Join(fixtures, from))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), data, 0o666)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const dataRows = 40

// table is a CSV file of numbers, the last of each row a class, or with no classes
// a number.
func table(width, classes int) func() ([]byte, error) {
	return func() ([]byte, error) {
		var b bytes.Buffer
		rnd := rand.New(rand.NewPCG(5, uint64(width)))
		for row := range dataRows {
			for range width {
				fmt.Fprintf(&b, "%.3f,", 4*rnd.Float64())
			}
			if classes == 0 {
				fmt.Fprintf(&b, "%.3f\n", rnd.Float64())
			} else {
				fmt.Fprintln(&b, row%classes)
			}
		}
		return b.Bytes(), nil
	}
}

// lines is a file of JSON objects.
func lines(width, classes int) func() ([]byte, error) {
	return func() ([]byte, error) {
		var b bytes.Buffer
		rnd := rand.New(rand.NewPCG(6, uint64(width)))
		for row := range dataRows {
			b.WriteString("{")
			for i := range width {
				fmt.Fprintf(&b, `"x%d": %.3f, `, i, rnd.Float64())
			}
			fmt.Fprintf(&b, "\"y\": %d}\n", row%classes)
		}
		return b.Bytes(), nil
	}
}

// records is a file of tf.Examples.
func records(width, classes int) func() ([]byte, error) {
	return func() ([]byte, error) {
		var b bytes.Buffer
		w := tfrecord.NewWriter(&b)
		rnd := rand.New(rand.NewPCG(7, uint64(width)))
		for row := range dataRows {
			x := make([]float32, width)
			for i := range x {
				x[i] = rnd.Float32()
			}
			e := tfexample.New(map[string]*tfpb.Feature{"x": tfexample.Floats(x...), "label": tfexample.Int64s(int64(row % classes))})
			if err := w.Write(tfexample.Marshal(e)); err != nil {
				return nil, err
			}
		}
		return b.Bytes(), nil
	}
}

// bags is a CSV file of ids.
func bags(width, classes int) func() ([]byte, error) {
	return func() ([]byte, error) {
		var b bytes.Buffer
		rnd := rand.New(rand.NewPCG(8, uint64(width)))
		for row := range dataRows {
			for range width {
				fmt.Fprintf(&b, "%d,", rnd.IntN(13)-1)
			}
			fmt.Fprintln(&b, row%classes)
		}
		return b.Bytes(), nil
	}
}

// keepOnly returns the plan without what is not among the words.
func (p *daemonPlan) keepOnly(words []string) *daemonPlan {
	q := *p
	q.choices = p.keep(words)
	return &q
}
