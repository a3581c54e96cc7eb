package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
)

// maxShards bounds the data files of a checkpoint, whose names have five
// digits for them.
const maxShards = 99999

// maxBatch bounds the rows of a step.
const maxBatch = 1 << 24

// Validator collects invalid values, with their positions.
type Validator struct {
	config   *Config
	problems *Error
}

// NewValidator returns a Validator without problems.
func NewValidator(c *Config) *Validator { return &Validator{c, &Error{}} }

// Add adds a problem unchanged.
func (v *Validator) Add(p *Problem) { v.problems.add(p) }

// Err returns all reported problems, or nil if there are none.
func (v *Validator) Err() error { return v.problems.err() }

// check adds to problems what is wrong with the values of c, as far as it shows
// without the data.
func (c *Config) check(problems *Error) {
	v := &Validator{c, problems}
	defer v.scope() // a value that is wrong in any job is said first
	v.top()
	if c.IsChild() {
		v.supervisor()
		v.child()
		return
	}
	v.train()
	v.earlyStopping()
	v.warmStart()
	v.eval()
	v.supervisor()
	v.cluster()
	if c.IsGraph() {
		v.graph()
		return
	}
	v.data()
	v.model()
}

// Require reports the value of key unless ok. A key that already has a problem
// gets no second one: its value is not the one in the file.
func (v *Validator) Require(ok bool, key, reason, hint string) {
	if ok || slices.ContainsFunc(v.problems.Problems, func(p *Problem) bool { return p.Key == key || p.meant == key }) {
		return
	}
	file, line, flag := v.config.Place(key)
	v.problems.add(&Problem{File: file, Line: line, Flag: flag, Key: key, Reason: reason, Hint: hint})
}

func (v *Validator) top() {
	c := v.config
	v.Require(c.Logdir != "", "logdir", "is missing", `set it to the folder for checkpoints and events, such as "logs/`+c.Name+`"`)
}

func (v *Validator) data() {
	d := v.config.Data
	v.Require(d.File != "", "data.file", "is missing", "set it to the file with the examples")
	v.Require(slices.Contains(formats, d.Format), "data.format", fmt.Sprintf("there is no format %q", d.Format), `want "csv", "json", "parquet", "tfrecord", "idx", "npy" or "images"`)
	v.text(d)
	v.columns(d)
	v.Require(d.Label.Name == "" || d.Header || slices.Contains(formats[1:], d.Format), "data.label", "is a name, but the file is read without a header",
		"set data.header = true, or data.label to an index")
	v.Require(d.Scale > 0, "data.scale", fmt.Sprintf("want more than 0, got %v", d.Scale), "")
	switch d.Normalize {
	case dataset.NormalizeNone:
	case dataset.NormalizeStandard, dataset.NormalizeMinMax:
		v.Require(d.Scale == 1, "data.scale", "has no effect together with data.normalize", "remove one of the two")
	default:
		v.Require(false, "data.normalize", fmt.Sprintf("there is no normalisation %q", d.Normalize), `want "standard", "minmax" or ""`)
	}
	v.Require(d.TestFraction >= 0 && d.TestFraction < 1, "data.test_fraction", fmt.Sprintf("want 0 to less than 1, got %v", d.TestFraction), "")
	v.dataOfFormat(d)
	v.Require(d.TestFile == "" || d.TestRows == 0 && d.TestFraction == 0, "data.test_file", "is set together with data.test_rows or data.test_fraction", "remove one of them")
	v.Require(d.TestRows >= 0, "data.test_rows", fmt.Sprintf("want 0 or more, got %d", d.TestRows), "")
	v.Require(d.TestRows == 0 || d.TestFraction == 0, "data.test_rows", "is set together with data.test_fraction", "remove one of the two")
	v.Require(d.BatchSize >= 1 && d.BatchSize <= maxBatch, "data.batch_size", fmt.Sprintf("want 1 to %d, got %d", maxBatch, d.BatchSize), "")
}

// ValidData reports whether the settings of the data are valid.
func (c *Config) ValidData() bool {
	v := NewValidator(c)
	v.data()
	return v.Err() == nil
}

// dataOfFormat checks what only some formats have.
func (v *Validator) dataOfFormat(d Data) {
	v.Require(d.ShuffleBuffer >= 0 && d.ShuffleBuffer <= maxBatch, "data.shuffle_buffer", fmt.Sprintf("want 0 (all) to %d, got %d", maxBatch, d.ShuffleBuffer), "")
	v.Require(d.ShuffleBuffer == 0 || d.Format == dataset.FormatTFRecord, "data.shuffle_buffer", fmt.Sprintf("has no effect on the format %q", d.Format),
		"remove it, or store the data as tfrecord")
	hasLabelFile := slices.Contains([]dataset.Format{dataset.FormatIDX, dataset.FormatNumPy, dataset.FormatImages}, d.Format)
	v.Require(d.Labels == "" || hasLabelFile, "data.labels", fmt.Sprintf("has no effect on the format %q", d.Format), "remove it; data.label says where the label is")
	v.Require(len(d.Features) == 0 || d.Format == dataset.FormatTFRecord || isTableFormat(d.Format), "data.features", fmt.Sprintf("has no effect on the format %q", d.Format), "remove it")
	v.tableOnly(d)
	v.Require(d.Format != dataset.FormatTFRecord || d.Label.Name != "" || !v.config.IsSet("data.label"), "data.label", "is an index, but features have names", "set it to the name of the feature with the label")
	v.Require(d.MemoryMB >= 1 && d.MemoryMB <= maxMemoryMB, "data.memory_mb", fmt.Sprintf("want 1 to %d, got %d", maxMemoryMB, d.MemoryMB), "")
	if d.Format != dataset.FormatImages && len(d.Image) == 0 {
		return
	}
	valid := len(d.Image) == 3 && (d.Image[2] == 1 || d.Image[2] == 3)
	for _, n := range d.Image {
		valid = valid && n >= 1 && n <= maxImage
	}
	v.Require(valid, "data.image", fmt.Sprintf("want height, width and channels (1 or 3), got %v", d.Image), "for example data.image = [32, 32, 3]")
}

const (
	maxMemoryMB = 1 << 24
	maxImage    = 1 << 12 // pixels along one side of an image to train on
)

func (v *Validator) eval() {
	e, t := v.config.Eval, v.config.Train
	v.Require(!v.config.IsSet("eval.steps") || !v.config.IsSet("train.eval_steps"), "train.eval_steps", "is set together with eval.steps, its newer name", "remove train.eval_steps")
	v.Require(t.EvalSteps >= 0, "train.eval_steps", fmt.Sprintf("want 0 (at the end alone) or more, got %d", t.EvalSteps), "")
	v.Require(e.Steps >= 0 || e.Steps == t.EvalSteps, "eval.steps", fmt.Sprintf("want 0 (at the end alone) or more, got %d", e.Steps), "")
	v.Require(e.Secs >= 0 && e.Secs <= maxSeconds, "eval.secs", fmt.Sprintf("want 0 (off) to %.0f seconds, got %v", float64(maxSeconds), float64(e.Secs)), "")
	v.Require(e.BatchSize >= 1 && e.BatchSize <= maxBatch, "eval.batch_size", fmt.Sprintf("want 1 to %d, got %d", maxBatch, e.BatchSize), "")
	v.Require(e.Mode == "" || e.Mode == "min" || e.Mode == "max", "eval.mode", fmt.Sprintf("there is no mode %q", e.Mode), `want "min" or "max"`)
	v.Require(e.KeepBest >= 0 && e.KeepBest <= maxKeepBest, "eval.keep_best", fmt.Sprintf("want 0 (none) to %d, got %d", maxKeepBest, e.KeepBest), "")
	if v.config.IsGraph() {
		return
	}
	v.Require(len(e.Fetches) == 0, "eval.fetches", "is for graphs; a model family has accuracy and loss", "remove it")
	names := []string{"accuracy", "loss"}
	if v.config.Model.IsRegression() {
		names = names[1:]
	}
	v.Require(e.Metric == "" || slices.Contains(names, e.Metric), "eval.metric", fmt.Sprintf("there is no metric %q", e.Metric), "want "+strings.Join(names, " or "))
}

// maxKeepBest is more than anybody looks at.
const maxKeepBest = 1000

// graph checks what shows without the graph.
func (v *Validator) graph() {
	c := v.config
	v.Require(c.Graph.Meta != "", "graph.meta", "is empty", "set it to the file with the MetaGraphDef")
	v.Require(c.Graph.Bundle == "" || c.Data.File == "", "graph.bundle", "is set together with data.file", "remove one of the two")
	if c.Data.File != "" {
		v.data()
	}
}

func (v *Validator) train() {
	t := v.config.Train
	v.Require(t.MemoryMB >= 0 && t.MemoryMB <= maxMemoryMB, "train.memory_mb", fmt.Sprintf("want 0 (three quarters of the machine's) to %d, got %d", maxMemoryMB, t.MemoryMB), "")
	v.Require(!v.config.IsRemote() || !v.config.IsSet("train.memory_mb"), "train.memory_mb", "has no effect on a model on servers", "remove it")
	endless := v.config.IsGraph() && v.config.Data.File == ""
	switch {
	case endless && v.config.IsSet("train.epochs"):
		v.Require(false, "train.epochs", "needs data.file, whose rows it counts", "set train.steps instead, or leave both out to train until the input ends")
	case endless && !v.config.IsSet("train.steps"):
	case !v.config.IsSet("train.steps") && !v.config.IsSet("train.epochs"):
		v.Require(false, "train.steps", "is missing", "set it to the number of steps to train, or set train.epochs")
	case v.config.IsSet("train.steps") && v.config.IsSet("train.epochs"):
		v.Require(false, "train.epochs", "is set together with train.steps", "remove one of the two")
	case v.config.IsSet("train.steps"):
		v.Require(t.Steps >= 1, "train.steps", fmt.Sprintf("want 1 or more, got %d", t.Steps), "")
	default:
		v.Require(t.Epochs > 0 && t.Epochs <= 1e9, "train.epochs", fmt.Sprintf("want more than 0, up to 1e9, got %v", t.Epochs), "")
	}
}

func (v *Validator) earlyStopping() {
	c := v.config
	n := c.Train.EarlyStopping
	v.Require(n >= 0, "train.early_stopping", fmt.Sprintf("want 0 (never) or more, got %d", n), "")
	if n <= 0 || !c.hasTestPart() {
		return
	}
	v.Require(c.Eval.Steps > 0, "train.early_stopping", "counts evaluations, and eval.steps is not set", "set eval.steps")
	v.Require(c.Cluster.Workers == 1, "train.early_stopping", fmt.Sprintf("is for one worker, got cluster.workers = %d", c.Cluster.Workers), "remove one of the two")
}

func (v *Validator) supervisor() {
	s := v.config.Supervisor
	seconds := func(key string, value Seconds) {
		v.Require(value >= 0 && value <= maxSeconds, "supervisor."+key,
			fmt.Sprintf("want 0 (off) to %.0f seconds, got %v", float64(maxSeconds), float64(value)), "")
	}
	seconds("save_model_secs", s.SaveModelSecs)
	seconds("save_summaries_secs", s.SaveSummariesSecs)
	seconds("recovery_wait_secs", s.RecoveryWaitSecs)
	seconds("stop_grace_secs", s.StopGraceSecs)
	v.Require(s.SaveModelSteps >= 0, "supervisor.save_model_steps", fmt.Sprintf("want 0 (off) or more, got %d", s.SaveModelSteps), "")
	v.Require(s.SaveSummariesSteps >= 0, "supervisor.save_summaries_steps", fmt.Sprintf("want 0 (off) or more, got %d", s.SaveSummariesSteps), "")
	v.Require(s.MaxToKeep >= 0, "supervisor.max_to_keep", fmt.Sprintf("want 0 (keep all) or more, got %d", s.MaxToKeep), "")
	v.Require(s.KeepCheckpointEveryNHours >= 0 && s.KeepCheckpointEveryNHours <= maxSeconds/3600, "supervisor.keep_checkpoint_every_n_hours",
		fmt.Sprintf("want 0 (none) to %d hours, got %v", maxSeconds/3600, s.KeepCheckpointEveryNHours), "")
	seconds("max_risk_secs", s.MaxRiskSecs)
	v.Require(s.MaxSaveShare >= 0 && s.MaxSaveShare < 1, "supervisor.max_save_share", fmt.Sprintf("want 0 (no bound) to less than 1, got %v", s.MaxSaveShare), "")
	v.Require(s.WritesV1() || s.WriteVersion == writeV2, "supervisor.write_version", fmt.Sprintf("unknown version %q", s.WriteVersion), `want "V2" or "V1"`)
	v.Require(s.Shards >= 1 && s.Shards <= maxShards, "supervisor.shards", fmt.Sprintf("want 1 to %d, got %d", maxShards, s.Shards), "")
	elsewhere := v.config.IsRemote() && v.config.Cluster.CheckpointVia == viaServer
	v.Require(!elsewhere || s.WriteVersion == writeV2, "supervisor.write_version", "the save ops on the servers write V2", `set cluster.checkpoint_via = "client", or leave it out`)
	v.Require(!elsewhere || s.Shards == 1, "supervisor.shards", "the save ops on the servers decide on the data files", `set cluster.checkpoint_via = "client", or leave it out`)
	v.Require(!slices.ContainsFunc(s.KeepSteps, func(n int64) bool { return n < 0 }), "supervisor.keep_steps", "want steps of 0 or more", "")
	name := s.CheckpointBasename
	v.Require(name != "" && name == filepath.Base(name) && name != "." && name != ".." && name != "checkpoint" && !strings.Contains(name, "tfevents"),
		"supervisor.checkpoint_basename", fmt.Sprintf("%q cannot begin a checkpoint's name", name), `want a file name without folders, such as "model.ckpt"`)
	v.Require(s.IsChief || v.config.IsRemote(), "supervisor.is_chief", "the embedded runtime has no other process that could be the chief", "remove it")
}

// zeroIsDefault are the model's numbers for which the model takes 0 as not
// given. Written out, 0 is a mistake.
var zeroIsDefault = map[string]func(model.Config) float64{
	"learning_rate":       func(m model.Config) float64 { return m.LearningRate },
	"decay_rate":          func(m model.Config) float64 { return m.DecayRate },
	"beta1":               func(m model.Config) float64 { return m.Beta1 },
	"beta2":               func(m model.Config) float64 { return m.Beta2 },
	"rho":                 func(m model.Config) float64 { return m.Rho },
	"epsilon":             func(m model.Config) float64 { return m.Epsilon },
	"initial_accumulator": func(m model.Config) float64 { return m.InitialAccumulator },
	"power":               func(m model.Config) float64 { return m.Power },
	"batch_norm_momentum": func(m model.Config) float64 { return m.BatchNormMomentum },
}

func (v *Validator) model() {
	m := v.config.Model
	for name, value := range zeroIsDefault {
		key := "model." + name
		v.Require(!v.config.IsSet(key) || value(m) != 0, key, "want more than 0, got 0", "")
	}
	for key, value := range map[string]int{"model.kernel_size": m.KernelSize, "model.pool": m.Pool, "model.embedding": m.Embedding} {
		v.Require(!v.config.IsSet(key) || value != 0, key, "want 1 or more, got 0", "")
	}
	v.Require(!v.config.IsSet("model.learning_rate_power") || m.LearningRatePower != 0, "model.learning_rate_power", "want less than 0, got 0", "")
	v.Require(!v.config.IsSet("model.end_learning_rate") || m.EndLearningRate != 0 || m.Schedule != "polynomial", "model.end_learning_rate",
		"want more than 0 for the polynomial schedule, got 0", "a very small rate, such as 1e-12, is as good as none")
	v.Require(!(m.Optimizer == "ftrl" && m.Schedule == "cosine" && m.EndLearningRate == 0 && m.DecaySteps > 0 && m.DecaySteps < v.config.Train.Steps),
		"model.decay_steps", "the learning rate comes to 0 before the training ends, and ftrl divides by it",
		"set model.end_learning_rate, or leave model.decay_steps out: then the schedule ends with the training")
	v.Require(m.Inputs >= 0, "model.inputs", fmt.Sprintf("want the number of features, or none, got %d", m.Inputs), "")
	// What the data decide is assumed to be right for now.
	if m.Inputs <= 0 {
		m.Inputs = 1
	}
	if m.Classes == 0 && !m.IsRegression() {
		m.Classes = 2
	}
	if m.Family == "convnet" {
		v.image(&m)
	}
	m = m.WithSteps(1)
	v.AddModelErrors(m.Check())
}

// image fills in the size of images that the data will decide.
func (v *Validator) image(m *model.Config) {
	if len(m.Image) == 0 {
		m.Image = v.config.Data.Image
	}
	if len(m.Image) == 0 {
		m.Image = []int{1, 1, 1}
	}
	m.Inputs = 1
	for _, n := range m.Image {
		m.Inputs *= min(max(n, 1), maxImage)
	}
}

// AddModelErrors adds the errors of the model's own check.
func (v *Validator) AddModelErrors(err error) {
	if err == nil {
		return
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		v.Require(false, "model.family", err.Error(), "")
		return
	}
	for _, one := range joined.Unwrap() {
		var bad *model.ConfigError
		if !errors.As(one, &bad) {
			v.Require(false, "model.family", one.Error(), "")
			continue
		}
		v.Require(false, "model."+bad.Key, fmt.Sprintf("want %s, got %s", bad.Want, quoted(bad.Value)), "")
	}
}

func quoted(value any) string {
	if s, ok := value.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprint(value)
}
