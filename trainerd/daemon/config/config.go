package config

import (
	"math"
	"path/filepath"

	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

// Config is a job, as its TOML file describes it. The tags are the keys; a key
// that is left out has the value in [Default].
type Config struct {
	// Name of the job, for people. Default: the file's name.
	Name string `toml:"name"`
	// Logdir is where checkpoints, events and the graph go. A relative path
	// starts at the working directory.
	Logdir string `toml:"logdir" path:"working"`
	// Master is where the model runs: "" is this process; "local" is this
	// process too, and lets other clients of TensorFlow's MasterService use the
	// model; "grpc://host:port" is a TensorFlow server; "unix:PATH" is one at a
	// socket, such as another job's "local".
	Master string `toml:"master"`

	Data  Data         `toml:"data"`
	Model model.Config `toml:"model"`
	Graph Graph        `toml:"graph"`
	Train Train        `toml:"train"`
	Eval  Eval         `toml:"eval"`
	Child Child        `toml:"child"`

	WarmStart  WarmStart  `toml:"warm_start"`
	Supervisor Supervisor `toml:"supervisor"`
	Cluster    Cluster    `toml:"cluster"`

	file    string
	origins map[string]origin
}

// Graph says which exported graph to train, instead of a model family.
// Tensors may be named without ":0". Keys that are left out are taken from the
// graph's collections, as by TensorFlow's Supervisor.
type Graph struct {
	// Meta is the file with the MetaGraphDef, binary or text, as
	// tf.compat.v1.train.export_meta_graph and Savers write it. A relative path
	// starts at the config's folder; one given with --set starts at the working
	// directory.
	Meta string `toml:"meta" path:"config"`
	// Dir is the folder to which file names in the graph are relative. Default:
	// the working directory, as in TensorFlow. It is itself a path like meta.
	Dir string `toml:"dir" path:"config"`
	// TrainOp makes one step. Default: the op in the collection train_op, or the one that
	// runs it, or all of several, with more updates of variables, such as a group with
	// moving averages. If several ops may be meant, it must be set.
	TrainOp string `toml:"train_op"`
	// Init names ops that every session runs before its first step, with the local init
	// op: initializers of iterators that have several, such as one for training and one
	// for tests. An iterator that has one is initialised without it.
	Init []string `toml:"init"`
	// Loss is a scalar to show and to watch: a job whose loss is not finite is
	// stopped. Default: the only one in the collection losses, or else the tensor
	// named loss or shown by the summary of that name, or else none.
	Loss string `toml:"loss"`
	// SummaryOp returns encoded summaries. Default: the first of the
	// collection summary_op, or else all of the collection summaries, or else a
	// curve of the loss; "none" for none.
	SummaryOp string `toml:"summary_op"`
	// Fetches are tensors to print or log with the progress.
	Fetches []string `toml:"fetches"`
	// Feeds says what placeholders are fed, as in
	// feeds = { x = "features", y = "label", keep_prob = 0.5 }:
	// "features" and "label" are those of the data, "weight" is the weight of
	// each example (see data.weight), "one_hot" the label as a row of zeros
	// and a one, "column:NAME" one column of CSV, "npy:FILE" an array that is
	// the same for each step; a number, boolean or list of them is fed
	// unchanged.
	Feeds Feeds `toml:"feeds"`
	// EvalFeeds are fed instead in evaluations, as in { keep_prob = 1 }.
	EvalFeeds Feeds `toml:"eval_feeds"`
	// Bundle is the prefix of a checkpoint with the feeds of each step under the
	// keys step_NNN/PLACEHOLDER, from 000. The job ends with its last step.
	Bundle string `toml:"bundle" path:"config"`
}

// Train says how long to train.
type Train struct {
	// Steps to train; the job is complete at this global step. For a graph that
	// reads its own input it may be left out, to train until the input ends.
	Steps int64 `toml:"steps"`
	// Epochs to train, instead of steps: how many times each row is used.
	Epochs float64 `toml:"epochs"`
	// EarlyStopping ends the training after that many evaluations in a row
	// without a better eval.metric; 0: never. It needs eval.steps.
	EarlyStopping int `toml:"early_stopping"`
	// EvalSteps is an older name of eval.steps.
	EvalSteps int64 `toml:"eval_steps"`
	// MemoryMB limits the total memory, in MiB, of a model in this process: values
	// of its steps, variables, elements of queues, lists and input pipelines. A
	// step that needs more ends the job. 0: three quarters of the memory of the
	// machine, or of the control group.
	MemoryMB int `toml:"memory_mb"`
}

// Eval says when the model is evaluated on the test part, and which
// checkpoints are kept for it. The results go to their own events file, in the
// folder eval of the logdir. An evaluation does not affect the training: its
// random ops draw their own numbers, by their seed and the step.
type Eval struct {
	// Steps between two evaluations. There is always one at the end.
	Steps int64 `toml:"steps"`
	// Secs is the time between two evaluations, in addition to steps or
	// instead; 0 switches it off. It evaluates at different steps in each run.
	// Without steps there are about 20 evaluations of a training, however short
	// it is, if they take little of its time.
	Secs Seconds `toml:"secs"`
	// BatchSize is the number of rows that are evaluated at a time.
	BatchSize int `toml:"batch_size"`
	// Fetches are the scalars of a graph to evaluate, each the mean of a batch.
	// Default: graph.loss. A model family has its loss, and accuracy if it has
	// classes.
	Fetches []string `toml:"fetches"`
	// Metric by which the best checkpoint is chosen: accuracy (default, if there
	// is one), loss, or one of fetches.
	Metric string `toml:"metric"`
	// Mode is "max" if more of the metric is better, "min" if less is. Default:
	// "min" for names that end in loss or error, else "max".
	Mode string `toml:"mode"`
	// KeepBest is the number of best checkpoints that are kept in the folder best
	// of the logdir; 0 keeps none.
	KeepBest int `toml:"keep_best"`
}

// Supervisor has the arguments of TensorFlow's Supervisor and Saver, with
// their names and defaults, and a few of our own. Seconds may have a fraction;
// 0 switches a service off.
type Supervisor struct {
	// SaveModelSecs is the time between two checkpoints. If steps had to wait for
	// the last one, they get at least as long for themselves before the next.
	SaveModelSecs Seconds `toml:"save_model_secs"`
	// SaveModelSteps also saves a checkpoint at each multiple of that many
	// steps.
	SaveModelSteps int64 `toml:"save_model_steps"`
	// SaveSummariesSecs is the time between two points of global_step/sec, and of the summaries
	// unless save_summaries_steps is set. Even a short training has about 100 points of its
	// summaries.
	SaveSummariesSecs Seconds `toml:"save_summaries_secs"`
	// SaveSummariesSteps writes summaries at step 1, at each multiple of that
	// many steps and at the last step, instead of by time.
	SaveSummariesSteps int64 `toml:"save_summaries_steps"`
	// RecoveryWaitSecs is the pause between two checks of a worker whether the
	// model is ready; for a model on servers.
	RecoveryWaitSecs Seconds `toml:"recovery_wait_secs"`
	// StopGraceSecs is how long everything may take to end after a stop.
	StopGraceSecs Seconds `toml:"stop_grace_secs"`
	// CheckpointBasename begins the names of checkpoints.
	CheckpointBasename string `toml:"checkpoint_basename"`
	// MaxToKeep is the number of newest checkpoints that are kept; 0 keeps all. For an exported
	// graph, the default is the number of its saver, if it has one.
	MaxToKeep int `toml:"max_to_keep"`
	// KeepCheckpointEveryNHours keeps one checkpoint of each such period permanently; 0 keeps none.
	// For an exported graph, the default is the period of its saver, if it has one.
	KeepCheckpointEveryNHours float64 `toml:"keep_checkpoint_every_n_hours"`
	// KeepSteps are the steps whose checkpoints, if any, are also kept.
	KeepSteps []int64 `toml:"keep_steps"`
	// MaxSaveShare is the largest share of the time that may be spent writing
	// checkpoints, such as 0.05 for a twentieth; 0 sets no limit. Saves that are
	// due sooner wait, unless max_risk_secs requires them.
	MaxSaveShare float64 `toml:"max_save_share"`
	// MaxRiskSecs is the most work, in seconds, that a crash may lose; if
	// saves take long, they begin earlier than save_model_secs to keep to it.
	// 0 sets no limit. If saves take so long that it cannot be kept, the log says
	// so once.
	MaxRiskSecs Seconds `toml:"max_risk_secs"`
	// WriteVersion of checkpoints: "V2", or "V1" for very old programs.
	WriteVersion string `toml:"write_version"`
	// Shards is the number of data files of a checkpoint.
	Shards int `toml:"shards"`
	// IsChief says that this process initialises, saves and writes events.
	IsChief bool `toml:"is_chief"`
}

// The values of supervisor.write_version.
const (
	writeV1 = "V1"
	writeV2 = "V2"
)

// WritesV1 reports whether checkpoints have TensorFlow's first format.
func (s *Supervisor) WritesV1() bool { return s.WriteVersion == writeV1 }

// Cluster says how the model is distributed over TensorFlow's servers, and
// what part this process has. All processes of a job share one logdir; one of
// them is the chief, see supervisor.is_chief.
type Cluster struct {
	// PSTasks is the number of parameter servers, /job:ps, on which the
	// variables of a model family are placed in turn. An exported graph keeps the
	// devices that its program assigned. 0: everything is on the master.
	PSTasks int `toml:"ps_tasks"`
	// Workers is the number of processes that train together.
	Workers int `toml:"workers"`
	// Task is the number of this process, from 0: /job:worker/task:N.
	Task int `toml:"task"`
	// Sync makes the workers of a model family wait for each other: each update
	// applies the mean of their gradients, as SyncReplicasOptimizer does.
	// Without it each worker changes the model on its own.
	Sync bool `toml:"sync"`
	// ReplicasToAggregate is the number of gradients in an update. Fewer than
	// workers leave out the slowest, more let each worker contribute several.
	// Default: workers.
	ReplicasToAggregate int `toml:"replicas_to_aggregate"`
	// CheckpointVia says who writes checkpoints: "server", by the save ops of
	// the graph, on the disk of the servers; "client", this process, which
	// copies the variables over the connection.
	CheckpointVia string `toml:"checkpoint_via"`
	// PatienceSecs is how long to wait for unreachable servers, and as a worker
	// for the chief, before giving up. 0 is forever.
	PatienceSecs Seconds `toml:"patience_secs"`
	// Listen is the loopback address, or the unix:PATH, at which the master
	// "local" is served. Port 0 means any free port.
	Listen string `toml:"listen"`
	// ListenPublic lets listen be an address that other machines can reach.
	// Anyone who reaches it can change the model; see listen_files.
	ListenPublic bool `toml:"listen_public"`
	// ListenFiles says which files the ops of clients of the master "local" may
	// read and write: "logdir", those in the logdir after links are resolved,
	// or "all" that this process can. Default: "logdir" with listen_public,
	// else "all".
	ListenFiles string `toml:"listen_files"`
	// TLS encrypts the connection to a proxy or tunnel in front of the server;
	// TensorFlow's own servers do not encrypt. So does any of the following:
	// TLSCA, a PEM file with the authorities that may sign the server's
	// certificate, by default those of the system; TLSServerName, the name in it,
	// by default the host of master; TLSCert and TLSKey, PEM files with a
	// certificate of this client and its key.
	TLS           bool   `toml:"tls"`
	TLSServerName string `toml:"tls_server_name"`
	TLSCA         string `toml:"tls_ca" path:"config"`
	TLSCert       string `toml:"tls_cert" path:"config"`
	TLSKey        string `toml:"tls_key" path:"config"`
}

// Default returns the values of keys that are left out.
func Default() *Config {
	return &Config{
		Data: Data{
			Format: dataset.FormatCSV, Separator: ",", Quote: `"`, Decimal: ".", Missing: missingError, Label: Column{Index: -1}, Scale: 1, Shuffle: true,
			MemoryMB: dataset.DefaultMemoryLimit >> 20, BatchSize: 32,
		},
		Eval: Eval{BatchSize: 1024}, WarmStart: WarmStart{Missing: unmatchedError},
		Child: Child{
			Recipe:            recipe.Auto,
			Nodes:             1,
			Node:              -1,
			MaxRestarts:       child.DefaultMaxRestarts,
			RestartWindowSecs: Seconds(child.DefaultRestartWindow.Seconds()),
			BackoffSecs:       Seconds(child.DefaultBackoff.Seconds()),
			MaxBackoffSecs:    Seconds(child.DefaultMaxBackoff.Seconds()),
		},
		Supervisor: Supervisor{
			SaveModelSecs: 600, SaveSummariesSecs: 120, RecoveryWaitSecs: 30, StopGraceSecs: 120,
			CheckpointBasename: "model.ckpt", MaxToKeep: 5, KeepCheckpointEveryNHours: 10000,
			WriteVersion: writeV2, Shards: 1, IsChief: true,
		},
		Cluster: Cluster{Workers: 1, CheckpointVia: viaServer, PatienceSecs: 600, Listen: "127.0.0.1:0"},
		origins: make(map[string]origin),
	}
}

// resolve fills in what depends on the config's own place.
func (c *Config) resolve() {
	c.resolveChild()
	if c.Name == "" {
		base := filepath.Base(c.file)
		c.Name = base[:len(base)-len(filepath.Ext(base))]
	}
	for _, p := range c.paths() {
		if p.from == fromConfig {
			*p.value = c.ResolvePath(p.key, *p.value)
		}
	}
	if path := c.ResolvePath("warm_start.map", c.WarmStart.Map); !isReadyMap(c.WarmStart.Map) || fileExists(path) {
		c.WarmStart.Map = path
	}
	if c.Eval.Steps == 0 {
		c.Eval.Steps = c.Train.EvalSteps
	}
	if c.IsChild() {
		c.resolveRecipe()
	}
}

// Steps returns the global step at which the job is complete, or 0 if that is
// when the input ends.
func (c *Config) Steps(d *dataset.Dataset) int64 {
	if c.Train.Steps > 0 || d == nil {
		return c.Train.Steps
	}
	return max(1, int64(math.Ceil(c.Train.Epochs*float64(d.TrainRows)/float64(d.BatchSize()))))
}

// IsGraph reports whether the job trains an exported graph.
func (c *Config) IsGraph() bool { return c.Graph.Meta != "" || c.IsSet("graph.meta") }

// File returns the name of the file that c was loaded from, "" for none.
func (c *Config) File() string { return c.file }

// Place returns where a key was set: a line of the file, 0 for none, or a flag.
func (c *Config) Place(key string) (file string, line int, flag string) {
	from := c.origins[key]
	return c.file, from.line, from.flag
}

// IsSet reports whether the config sets a key.
func (c *Config) IsSet(key string) bool {
	_, ok := c.origins[key]
	return ok
}
