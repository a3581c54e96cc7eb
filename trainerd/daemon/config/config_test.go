package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainerd/trainerd/trainerd/dataset"
)

// smallest is a config with nothing but what is required.
const smallest = `logdir = "logs"
[data]
file = "data.csv"
[model]
family = "softmax"
[train]
steps = 10
`

// load writes text to job.toml in a new folder and loads it.
func load(t *testing.T, text string, overrides ...Override) (dir string, c *Config, err error) {
	t.Helper()
	dir = t.TempDir()
	name := filepath.Join(dir, "job.toml")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err = Load(name, overrides)
	return dir, c, err
}

func TestLoadDefaults(t *testing.T) {
	dir, c, err := load(t, smallest)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Name, want.Logdir = "job", "logs"
	want.Data.File = filepath.Join(dir, "data.csv")
	want.Model.Family = "softmax"
	want.Train.Steps = 10
	if diff := cmp.Diff(want, c, cmp.FilterPath(unexported, cmp.Ignore())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The numbers that users of TensorFlow expect.
	s := c.Supervisor
	if s.SaveModelSecs != 600 || s.SaveSummariesSecs != 120 || s.RecoveryWaitSecs != 30 || s.StopGraceSecs != 120 ||
		s.CheckpointBasename != "model.ckpt" || s.MaxToKeep != 5 || s.KeepCheckpointEveryNHours != 10000 || !s.IsChief {
		t.Errorf("defaults differ from TensorFlow's: %+v", s)
	}
}

func unexported(p cmp.Path) bool {
	f, ok := p.Last().(cmp.StructField)
	return ok && (f.Name() == "file" || f.Name() == "origins")
}

func TestLoadValues(t *testing.T) {
	_, c, err := load(t, `
name = "n"
logdir = "/abs/logs"
[data]
file = "/abs/data.csv"
header = true
separator = ";"
label = "digit"
normalize = "standard"
shuffle = false
seed = 9223372036854775807
test_rows = 100
batch_size = 8
[model]
family = "mlp"
hidden = [64, 32]
learning_rate = 1
[train]
epochs = 2.5
eval_steps = 7
[supervisor]
save_model_secs = 0.25
save_summaries_secs = 0
max_to_keep = 0
`)
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "n" || c.Logdir != "/abs/logs" || c.Data.File != "/abs/data.csv" {
		t.Errorf("got %+v", c)
	}
	want := dataset.Options{Format: dataset.FormatCSV, MemoryLimit: dataset.DefaultMemoryLimit,
		Comma: ';', Header: true, Label: dataset.Column{Name: "digit"}, Scale: 1,
		Seed: 1<<63 - 1, TestRows: 100, BatchSize: 8}
	if diff := cmp.Diff(want, c.DatasetOptions(), cmpopts.IgnoreUnexported(dataset.Options{})); diff != "" {
		t.Errorf("dataset options (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{64, 32}, c.Model.Hidden); diff != "" || c.Model.LearningRate != 1 {
		t.Errorf("model %+v", c.Model)
	}
	s := c.Supervisor
	if s.SaveModelSecs.OrOff() != 250*time.Millisecond || s.SaveSummariesSecs.OrOff() >= 0 || s.MaxToKeep != 0 {
		t.Errorf("supervisor %+v", s)
	}
}

func TestErrors(t *testing.T) {
	set := func(assignments ...string) (all []Override) {
		for _, a := range assignments {
			all = append(all, Override{Flag: "--set " + a, Assignment: a})
		}
		return all
	}
	tests := []struct {
		name      string
		text      string
		overrides []Override
		want      []string
	}{
		{name: "syntax", text: "logdir = \"x\"\nlogdir = = 3\n", want: []string{
			"job.toml:2: is not TOML: expected value but found '=' instead"}},
		{name: "key twice", text: "logdir = \"x\"\nlogdir = \"y\"\n", want: []string{
			"job.toml:2: is not TOML: Key 'logdir' has already been defined"}},
		{name: "empty", text: "", want: []string{
			`job.toml: data.file: is missing; set it to the file with the examples`,
			`job.toml: logdir: is missing; set it to the folder for checkpoints and events, such as "logs/job"`,
			`job.toml: model.family: want linear, mlp_regressor, logistic, softmax, mlp, convnet or embedding_bag, got ""`,
			`job.toml: train.steps: is missing; set it to the number of steps to train, or set train.epochs`}},
		{name: "misspelled key", text: strings.Replace(smallest, "steps", "stpes", 1), want: []string{
			"job.toml:7: unknown key train.stpes; did you mean train.steps?"}},
		{name: "key of another table", text: "batch_size = 3\n" + smallest, want: []string{
			"job.toml:1: unknown key batch_size; did you mean data.batch_size?"}},
		{name: "misspelled table", text: smallest + "[superviser]\nsave_model_secs = 3\n", want: []string{
			"job.toml:8: unknown table superviser; did you mean supervisor?"}},
		{name: "key like no other", text: smallest + "zzzzzzz = 1\n", want: []string{
			"job.toml:8: unknown key train.zzzzzzz; the keys of [train] are steps, epochs, early_stopping, eval_steps, memory_mb"}},
		{name: "wrong case", text: "Logdir = 'x'\n" + smallest, want: []string{
			"job.toml:1: unknown key Logdir; did you mean logdir?"}},
		{name: "key of another program", text: smallest, overrides: set("model.lr=1", "patience=3"), want: []string{
			"--set model.lr=1: unknown key model.lr; did you mean model.learning_rate?",
			"--set patience=3: unknown key patience; did you mean train.early_stopping?"}},
		{name: "mistyped values, all at once", text: `logdir = 3
[data]
file = "data.csv"
header = "true"
label = 1.5
batch_size = "32"
scale = nan
seed = -1
[model]
family = "mlp"
hidden = [128, "64"]
learning_rate = []
[train]
steps = 1e3
`, want: []string{
			`job.toml:1: logdir: want a string, got 3`,
			`job.toml:4: data.header: want true or false, got the string "true"; remove the quotes`,
			`job.toml:5: data.label: want a column's name or index, got 1.5`,
			`job.toml:6: data.batch_size: want an integer, got the string "32"; remove the quotes`,
			`job.toml:7: data.scale: want a number, got NaN`,
			`job.toml:8: data.seed: want an integer from 0 up, got -1`,
			`job.toml:11: model.hidden: want an integer in place 2 of the list, got the list [128, "64"]`,
			`job.toml:12: model.learning_rate: want a number, got the list []`,
			`job.toml:14: train.steps: want an integer, got 1000`}},
		{name: "units", text: smallest + "[supervisor]\nsave_model_secs = \"10 min\"\nsave_summaries_secs = \"1h30m\"\nstop_grace_secs = \"2 Hours\"\nrecovery_wait_secs = \"soon\"\n" +
			"max_risk_secs = \"90\"\nmax_save_share = \"5%\"\nmax_to_keep = \"5%\"\n", want: []string{
			`job.toml:9: supervisor.save_model_secs: want a number, got the string "10 min"; write 600, the seconds`,
			`job.toml:10: supervisor.save_summaries_secs: want a number, got the string "1h30m"; write 5400, the seconds`,
			`job.toml:11: supervisor.stop_grace_secs: want a number, got the string "2 Hours"; write 7200, the seconds`,
			`job.toml:12: supervisor.recovery_wait_secs: want a number, got the string "soon"; write seconds, as a number`,
			`job.toml:13: supervisor.max_risk_secs: want a number, got the string "90"; remove the quotes`,
			`job.toml:14: supervisor.max_save_share: want a number, got the string "5%"; write 0.05`,
			`job.toml:15: supervisor.max_to_keep: want an integer, got the string "5%"`}},
		{name: "home folders", text: "logdir = \"~/logs/a\"\n[data]\nfile = \"$HOME/data.csv\"\ntest_file = \"./~/t.csv\"\n[model]\nfamily = \"softmax\"\n[train]\nsteps = 5\n[eval]\n[warm_start]\nfrom = \"${HOME}\"\n", want: []string{
			`job.toml:1: logdir: "~/logs/a" is no home folder here: nothing but a shell knows ~ and $HOME; write "/home/ada/logs/a"`,
			`job.toml:3: data.file: "$HOME/data.csv" is no home folder here: nothing but a shell knows ~ and $HOME; write "/home/ada/data.csv"`,
			`job.toml:11: warm_start.from: "${HOME}" is no home folder here: nothing but a shell knows ~ and $HOME; write "/home/ada"`}},
		{name: "value where a table belongs", text: "logdir = 'x'\ndata = 3\nmodel = [1]\ntrain.steps = 4\n", want: []string{
			`job.toml:2: data: want a table, got 3; write [data] on a line of its own, and its keys below`,
			`job.toml:3: model: want a table, got the list [1]; write [model] on a line of its own, and its keys below`,
			`job.toml: data.file: is missing; set it to the file with the examples`,
			`job.toml: model.family: want linear, mlp_regressor, logistic, softmax, mlp, convnet or embedding_bag, got ""`}},
		{name: "list of tables", text: smallest + "[[supervisor]]\nmax_to_keep = 3\n", want: []string{
			`job.toml:8: supervisor: want a table, got a list of tables; write [supervisor] on a line of its own, and its keys below`}},
		{name: "table where a value belongs", text: smallest + "[train.epochs]\nx = 3\n", want: []string{
			`job.toml:8: train.epochs: want a number, got a table`}},
		{name: "cluster", text: smallest + "[cluster]\nps_tasks = -1\nworkers = 0\ntask = 3\ncheckpoint_via = \"fax\"\nlisten = \"0.0.0.0:2222\"\ntls_cert = \"c.pem\"\npatience_secs = -1\n", overrides: set("master=grpc://host:1"), want: []string{
			`job.toml:9: cluster.ps_tasks: want 0 (none) to 65536, got -1`,
			`job.toml:10: cluster.workers: want 1 to 65536, got 0`,
			`job.toml:11: cluster.task: want 0 to -1, one less than cluster.workers, got 3`,
			`job.toml:12: cluster.checkpoint_via: there is no way "fax"; want "server" or "client"`,
			`job.toml:13: cluster.listen: is for another master; set master = "local", or remove it`,
			`job.toml:15: cluster.patience_secs: want 0 (forever) to 3153600000 seconds, got -1`,
			`job.toml: cluster.tls_key: only one of cluster.tls_cert and cluster.tls_key is set; set both, or neither`}},
		{name: "cluster without servers", text: "master = \"local\"\n" + smallest + "[supervisor]\nis_chief = false\n[cluster]\nworkers = 2\nlisten = \":1\"\n", want: []string{
			`job.toml:10: supervisor.is_chief: the embedded runtime has no other process that could be the chief; remove it`,
			`job.toml:12: cluster.workers: needs a TensorFlow server; set master = "grpc://host:port", or remove it`,
			`job.toml:13: cluster.listen: ":1" is not an address of this machine alone; anyone who reaches it can run ops that read and write files; want 127.0.0.1:PORT, [::1]:PORT or unix:PATH, or set listen_public = true`}},
		{name: "how checkpoints are written", text: smallest + "[supervisor]\nmax_save_share = 2\nmax_risk_secs = -1\nwrite_version = \"V3\"\nshards = 0\nkeep_steps = [1, -1]\n", want: []string{
			`job.toml:9: supervisor.max_save_share: want 0 (no bound) to less than 1, got 2`,
			`job.toml:10: supervisor.max_risk_secs: want 0 (off) to 3153600000 seconds, got -1`,
			`job.toml:11: supervisor.write_version: unknown version "V3"; want "V2" or "V1"`,
			`job.toml:12: supervisor.shards: want 1 to 99999, got 0`,
			`job.toml:13: supervisor.keep_steps: want steps of 0 or more`}},
		{name: "checkpoints that servers write", text: smallest + "[supervisor]\nwrite_version = \"V1\"\nshards = 2\n", overrides: set("master=grpc://host:1"), want: []string{
			`job.toml:9: supervisor.write_version: the save ops on the servers write V2; set cluster.checkpoint_via = "client", or leave it out`,
			`job.toml:10: supervisor.shards: the save ops on the servers decide on the data files; set cluster.checkpoint_via = "client", or leave it out`}},
		{name: "no such master", text: "master = \"loca\"\n" + smallest, want: []string{
			`job.toml:1: master: there is no runtime "loca"; want "" for the embedded runtime, "local" to serve it, "grpc://host:port" or "unix:PATH"`}},
		{name: "values out of range", text: `logdir = ""
master = "grpc://host"
[data]
file = "data.csv"
format = "xml"
separator = ", "
scale = 0
normalize = "z-score"
test_fraction = 1.0
batch_size = 0
[model]
family = "softmax"
hidden = [3]
optimizer = "sdg"
learning_rate = 0
[train]
steps = 0
eval_steps = -1
[supervisor]
save_model_secs = -1
stop_grace_secs = 1e300
save_summaries_steps = -2
checkpoint_basename = "a/b"
max_to_keep = -1
keep_checkpoint_every_n_hours = -0.5
is_chief = false
`, want: []string{
			`job.toml:1: logdir: is missing; set it to the folder for checkpoints and events, such as "logs/job"`,
			`job.toml:2: master: "grpc://host": the port is missing; TensorFlow has no default one, 2222 is customary: grpc://host:2222`,
			`job.toml:5: data.format: there is no format "xml"; want "csv", "json", "parquet", "tfrecord", "idx", "npy" or "images"`,
			`job.toml:6: data.separator: ", " cannot separate columns; want one character, such as "," or ";" or "\t"`,
			`job.toml:7: data.scale: want more than 0, got 0`,
			`job.toml:8: data.normalize: there is no normalisation "z-score"; want "standard", "minmax" or ""`,
			`job.toml:9: data.test_fraction: want 0 to less than 1, got 1`,
			`job.toml:10: data.batch_size: want 1 to 16777216, got 0`,
			`job.toml:13: model.hidden: want none: only the families mlp, mlp_regressor, convnet and embedding_bag have hidden layers, got [3]`,
			`job.toml:14: model.optimizer: want sgd, momentum, nesterov, adagrad, adadelta, adam, rmsprop or ftrl, got "sdg"`,
			`job.toml:15: model.learning_rate: want more than 0, got 0`,
			`job.toml:17: train.steps: want 1 or more, got 0`,
			`job.toml:18: train.eval_steps: want 0 (at the end alone) or more, got -1`,
			`job.toml:20: supervisor.save_model_secs: want 0 (off) to 3153600000 seconds, got -1`,
			`job.toml:21: supervisor.stop_grace_secs: want 0 (off) to 3153600000 seconds, got 1e+300`,
			`job.toml:22: supervisor.save_summaries_steps: want 0 (off) or more, got -2`,
			`job.toml:23: supervisor.checkpoint_basename: "a/b" cannot begin a checkpoint's name; want a file name without folders, such as "model.ckpt"`,
			`job.toml:24: supervisor.max_to_keep: want 0 (keep all) or more, got -1`,
			`job.toml:25: supervisor.keep_checkpoint_every_n_hours: want 0 (none) to 876000 hours, got -0.5`}},
		{name: "settings that exclude each other", text: smallest + "epochs = 1\n[data.x]\n", want: []string{
			`job.toml:8: train.epochs: is set together with train.steps; remove one of the two`,
			`job.toml:9: unknown table data.x; the keys of [data] most like it are file, drop, texts, seed, quote; doc/config.md lists all 38`}},
		{name: "split twice, scaled twice", text: strings.Replace(smallest, "[model]", "scale = 2\nnormalize = 'minmax'\ntest_rows = 5\ntest_fraction = 0.5\n[model]", 1), want: []string{
			`job.toml:4: data.scale: has no effect together with data.normalize; remove one of the two`,
			`job.toml:6: data.test_rows: is set together with data.test_fraction; remove one of the two`}},
		{name: "zeros", text: smallest, overrides: set("model.kernel_size=0", "model.end_learning_rate=0", "model.schedule=polynomial", "model.decay_steps=3", "model.learning_rate_power=0"), want: []string{
			`--set model.end_learning_rate=0: model.end_learning_rate: want more than 0 for the polynomial schedule, got 0; a very small rate, such as 1e-12, is as good as none`,
			`--set model.kernel_size=0: model.kernel_size: want 1 or more, got 0`,
			`--set model.learning_rate_power=0: model.learning_rate_power: want less than 0, got 0`}},
		{name: "a rate of zero", text: smallest, overrides: set("model.optimizer=ftrl", "model.schedule=cosine", "model.decay_steps=3"), want: []string{
			`--set model.decay_steps=3: model.decay_steps: the learning rate comes to 0 before the training ends, and ftrl divides by it; set model.end_learning_rate, or leave model.decay_steps out: then the schedule ends with the training`}},
		{name: "data of other formats", text: smallest, overrides: set("data.format=tfrecord", "data.label=2", "data.labels=y", "data.shuffle_buffer=-1", "data.memory_mb=0"), want: []string{
			`--set data.label=2: data.label: is an index, but features have names; set it to the name of the feature with the label`,
			`--set data.labels=y: data.labels: has no effect on the format "tfrecord"; remove it; data.label says where the label is`,
			`--set data.memory_mb=0: data.memory_mb: want 1 to 16777216, got 0`,
			`--set data.shuffle_buffer=-1: data.shuffle_buffer: want 0 (all) to 16777216, got -1`}},
		{name: "weights", text: smallest, overrides: set("data.class_weights=even"), want: []string{
			`--set data.class_weights=even: data.class_weights: want "balanced", or a table of classes, as in { yes = 5, no = 1 }, got the string "even"`,
		}},
		{name: "weights that weigh nothing", text: smallest, overrides: set("data.weight=1", "data.format=idx", "model.family=linear", "data.class_weights={yes=2}"), want: []string{
			`--set data.class_weights={yes=2}: data.class_weights: has no effect on a label that is a number; remove it; data.weight is the column with the weights`,
			`--set data.weight=1: data.weight: has no effect on the format "idx"; remove it; data.class_weights has one`,
		}},
		{name: "columns", text: smallest, overrides: set("data.features=['a']", "data.drop=[0]", "data.categories=['', 'b']", "data.dates={d='%Q'}", "data.missing=skip", "data.decimal=;", "data.quote=x", "data.comment=ab", "data.skip_lines=-1", "data.thousands=.", "data.encoding=utf7", "data.label=digit"), want: []string{
			`--set data.categories=['', 'b']: data.categories: want a list of columns, as in ["age", "town"], got the list ["", "b"]`,
			`--set data.comment=ab: data.comment: "ab" cannot begin comments; want one character, such as "#"`,
			`--set data.dates={d='%Q'}: data.dates: want a table of columns, as in { born = "%Y-%m-%d", sold = "iso" }; "%Q" has the directive "%Q", which is not known, got a table`,
			`--set data.decimal=;: data.decimal: ";" cannot be a decimal mark; want "." or ","`,
			`--set data.drop=[0]: data.drop: is set together with data.features; remove one of the two`,
			`--set data.encoding=utf7: data.encoding: there is no encoding "utf7"; want "latin1", or "" for UTF-8 and UTF-16`,
			`--set data.label=digit: data.label: is a name, but the file is read without a header; set data.header = true, or data.label to an index`,
			`--set data.missing=skip: data.missing: there is no rule "skip"; want "error" or "fill"`,
			`--set data.quote=x: data.quote: "x" cannot enclose fields; want "\"" or "'"`,
			`--set data.skip_lines=-1: data.skip_lines: want 0 or more, got -1`}},
		{name: "data of parquet", text: smallest, overrides: set("data.format=parquet", "data.header=true", "data.separator=;"), want: []string{
			`--set data.header=true: data.header: has no effect on the format "parquet"; remove it`,
			`--set data.separator=;: data.separator: has no effect on the format "parquet"; remove it`}},
		{name: "data of CSV", text: smallest, overrides: set("data.labels=a", "data.shuffle_buffer=9", "data.image=[3,3,2]", "data.test_file=x.csv", "data.test_rows=3"), want: []string{
			`--set data.image=[3,3,2]: data.image: want height, width and channels (1 or 3), got [3 3 2]; for example data.image = [32, 32, 3]`,
			`--set data.labels=a: data.labels: has no effect on the format "csv"; remove it; data.label says where the label is`,
			`--set data.shuffle_buffer=9: data.shuffle_buffer: has no effect on the format "csv"; remove it, or store the data as tfrecord`,
			`--set data.test_file=x.csv: data.test_file: is set together with data.test_rows or data.test_fraction; remove one of them`}},
		{name: "images without a size", text: smallest, overrides: set("data.format=images"), want: []string{
			`job.toml: data.image: want height, width and channels (1 or 3), got []; for example data.image = [32, 32, 3]`}},
		{name: "eval", text: smallest, overrides: set("data.test_rows=3", "eval.steps=1", "train.eval_steps=2", "eval.secs=-1", "eval.batch_size=0", "eval.mode=best", "eval.keep_best=-1", "eval.fetches=['x']", "eval.metric=f1"), want: []string{
			`--set eval.batch_size=0: eval.batch_size: want 1 to 16777216, got 0`,
			`--set eval.fetches=['x']: eval.fetches: is for graphs; a model family has accuracy and loss; remove it`,
			`--set eval.keep_best=-1: eval.keep_best: want 0 (none) to 1000, got -1`,
			`--set eval.metric=f1: eval.metric: there is no metric "f1"; want accuracy or loss`,
			`--set eval.mode=best: eval.mode: there is no mode "best"; want "min" or "max"`,
			`--set eval.secs=-1: eval.secs: want 0 (off) to 3153600000 seconds, got -1`,
			`--set train.eval_steps=2: train.eval_steps: is set together with eval.steps, its newer name; remove train.eval_steps`}},
		{name: "graph and model", text: smallest, overrides: set("graph.meta=m.meta", "graph.bundle=feeds", "graph.feeds={x=[{}]}", "graph.sumary_op=x"), want: []string{
			`job.toml:5: model.family: is set together with graph.meta; remove [model] to train the graph, or [graph] to train the family`,
			`--set graph.bundle=feeds: graph.bundle: is set together with data.file; remove one of the two`,
			`--set graph.sumary_op=x: unknown key graph.sumary_op; did you mean graph.summary_op?`}},
		{name: "part of a name", text: smallest, overrides: set("graph.train=x", "data.batch=3", "eval.keep=1"), want: []string{
			`--set data.batch=3: unknown key data.batch; did you mean data.batch_size?`,
			`--set eval.keep=1: unknown key eval.keep; did you mean eval.keep_best?`,
			`--set graph.train=x: unknown key graph.train; did you mean graph.train_op?`}},
		{name: "feeds", text: smallest, overrides: set("graph.feeds=x"), want: []string{
			`--set graph.feeds=x: graph.feeds: want a table of placeholders, as in { x = "features", y = "label" }, got the string "x"`}},
		{name: "graph without data", text: "logdir = 'x'\n[graph]\nmeta = ''\n[train]\nepochs = 3\n", want: []string{
			`job.toml:3: graph.meta: is empty; set it to the file with the MetaGraphDef`,
			`job.toml:5: train.epochs: needs data.file, whose rows it counts; set train.steps instead, or leave both out to train until the input ends`}},
		{name: "overrides", text: smallest, overrides: set("train.steps=x", "train.steps=99999999999999999999", "train.stpes=3", "train", "train=1", "=1", "data.batch_size=0", "a.b.c=1", "data.label.name=1"), want: []string{
			`--set =1: want KEY=VALUE; for example --set train.steps=500`,
			`--set a.b.c=1: unknown key a.b.c`,
			`--set data.batch_size=0: data.batch_size: want 1 to 16777216, got 0`,
			`--set data.label.name=1: data.label: is not a table, so it has no key name`,
			`--set train: want KEY=VALUE; for example --set train.steps=500`,
			`--set train.steps=99999999999999999999: train.steps: want an integer, got the string "99999999999999999999"; it is out of the range of 64 bits`,
			`--set train.steps=x: train.steps: want an integer, got the string "x"`,
			`--set train.stpes=3: unknown key train.stpes; did you mean train.steps?`,
			`--set train=1: train: is a table; set one of its keys: train.steps, train.epochs, train.early_stopping, train.eval_steps, train.memory_mb`}},
	}
	t.Setenv("HOME", "/home/ada")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, _, err := load(t, tt.text, tt.overrides...)
			var all *Error
			if !errors.As(err, &all) {
				t.Fatalf("got %v, want a *Error", err)
			}
			got := strings.Split(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""), "\n")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadMissing(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.toml"), nil)
	var p *Problem
	if !errors.As(err, &p) || !strings.HasSuffix(p.File, "none.toml") {
		t.Errorf("got %v", err)
	}
}

func TestOverrides(t *testing.T) {
	var overrides []Override
	for _, a := range []string{
		`train.steps = 20`, `logdir=2024`, `name="quoted"`, `data.label=digit`, `data.header=true`,
		`data.file=other.csv`, `model.family=mlp`, `model.hidden=[3, 4]`, `supervisor.save_model_secs=0.5`,
		`train.steps=30`, `model.activation=tanh`, `supervisor.max_to_keep=2`,
	} {
		overrides = append(overrides, Override{Flag: "--set " + a, Assignment: a})
	}
	_, c, err := load(t, smallest, overrides...)
	if err != nil {
		t.Fatal(err)
	}
	if c.Train.Steps != 30 || c.Logdir != "2024" || c.Name != "quoted" || c.Data.Label != (Column{Name: "digit"}) ||
		c.Data.File != "other.csv" || c.Model.Family != "mlp" || !cmp.Equal(c.Model.Hidden, []int{3, 4}) ||
		c.Supervisor.SaveModelSecs != .5 || c.Supervisor.MaxToKeep != 2 || c.Model.Activation != "tanh" {
		t.Errorf("got %+v", c)
	}
}

func TestLiteralOverride(t *testing.T) {
	for _, dir := range []string{`"quoted"`, " spaced ", "3", "a=b\x01\xff"} {
		_, c, err := load(t, smallest, Override{Flag: "--logdir", Assignment: "logdir=" + dir, Literal: true})
		if err != nil || c.Logdir != dir {
			t.Errorf("logdir %q became %q, %v", dir, c.Logdir, err)
		}
	}
}

// FuzzLoad feeds the decoder anything: it must answer with a config or
// with located problems.
func FuzzLoad(f *testing.F) {
	f.Add(smallest, "train.steps=3")
	f.Add("data = 3\n[model]\nhidden = [[1]]\n", "data.label=-1")
	f.Add("a.b.c = 1979-05-27T07:32:00Z\n[[x]]\n", "=")
	f.Add("supervisor = {max_to_keep = 3, x = {}}", "a.b=\"")
	f.Fuzz(func(t *testing.T, text, assignment string) {
		c := Default()
		d := &decoder{file: "job.toml", origins: c.origins, problems: &Error{}}
		d.decode(text, c)
		d.set(Override{Flag: "--set", Assignment: assignment})
		c.check(d.problems)
		if err := d.problems.err(); err != nil && err.Error() == "" {
			t.Error("a problem without words")
		}
	})
}

// A flag takes the place of a key of the file that would stand in its way.
func TestFlagReplaces(t *testing.T) {
	text := strings.Replace(smallest, "data.csv\"", "data.csv\"\ntest_fraction = 0.5", 1)
	for assignment, done := range map[string]func(*Config) bool{
		"train.steps=7":        func(c *Config) bool { return c.Train.Steps == 7 && c.Train.Epochs == 0 },
		"train.epochs=2":       func(c *Config) bool { return c.Train.Epochs == 2 && c.Train.Steps == 0 && !c.IsSet("train.steps") },
		"data.test_rows=3":     func(c *Config) bool { return c.Data.TestRows == 3 && c.Data.TestFraction == 0 },
		"data.test_file=t.csv": func(c *Config) bool { return c.Data.TestFile == "t.csv" && c.Data.TestFraction == 0 },
	} {
		_, c, err := load(t, text, Override{Flag: "--set " + assignment, Assignment: assignment})
		if err != nil || !done(c) {
			t.Errorf("%s: %+v, %v", assignment, c, err)
		}
	}
	if _, _, err := load(t, text, Override{Flag: "--set", Assignment: "train.steps=7"}, Override{Flag: "--set", Assignment: "train.epochs=2"}); err == nil {
		t.Error("two flags that exclude each other are taken")
	}
}

// A text that was not written as a config is refused in short, whatever it holds.
func TestHostile(t *testing.T) {
	var many, few strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, "a%d=1\n", i)
	}
	for i := range 300 {
		fmt.Fprintf(&few, "a%d=1\n", i)
	}
	long := strings.Repeat("x", 500_000)
	for name, tt := range map[string]struct{ text, want string }{
		"many keys":           {many.String(), "job.toml: has 20000 keys"},
		"keys of no job":      {few.String(), "\nand 20"}, // logdir and the data are missing, too
		"a long key":          {long + "=1", "; "},
		"a long value":        {"[train]\nsteps='" + long + "'", "job.toml:2: train.steps: want an integer"},
		"a long list":         {"[train]\nsteps=[" + strings.Repeat("1,", 200_000) + "]", "job.toml:2: train.steps: want an integer"},
		"a terminal's escape": {`"\u001b[2J\u202e" = 1`, "job.toml:1: unknown key \uFFFD[2J\uFFFD"},
		"a key twice":         {"logdir='a'\nlogdir='b'", "job.toml:2: is not TOML: Key 'logdir' has already been defined"},
	} {
		_, _, err := load(t, tt.text)
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if got := err.Error(); !strings.Contains(got, tt.want) || len(got) > 100<<10 || strings.ContainsRune(got, '\x1b') {
			t.Errorf("%s: %d bytes: %.300s", name, len(got), got)
		}
	}
}
