package daemon

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
)

// maxSeconds bounds times in the config: a hundred years.
const maxSeconds = 100 * 365 * 24 * 3600

// maxBatch bounds the rows of a step.
const maxBatch = 1 << 24

// validator collects values that make no sense, with their places.
type validator struct {
	config   *Config
	problems *ConfigError
}

// check adds to problems what is wrong with the values of c, as far as it shows
// without the data.
func (c *Config) check(problems *ConfigError) {
	v := &validator{c, problems}
	v.top()
	v.data()
	v.train()
	v.supervisor()
	v.model()
}

// require reports the value of key unless ok. A key that has a problem already
// gets no second one: its value is not the one in the file.
func (v *validator) require(ok bool, key, reason, hint string) {
	if ok || slices.ContainsFunc(v.problems.Problems, func(p *ConfigProblem) bool { return p.Key == key || p.meant == key }) {
		return
	}
	from := v.config.origins[key]
	v.problems.add(&ConfigProblem{File: v.config.file, Line: from.line, Flag: from.flag, Key: key, Reason: reason, Hint: hint})
}

// given reports whether the config sets a key.
func (v *validator) given(key string) bool {
	_, ok := v.config.origins[key]
	return ok
}

func (v *validator) top() {
	c := v.config
	v.require(c.Logdir != "", "logdir", "is missing", `set it to the folder for checkpoints and events, such as "logs/`+c.Name+`"`)
	v.require(c.Master == "", "master", fmt.Sprintf("there is no runtime for %q in this version", c.Master),
		`leave it out, or "", for the embedded runtime`)
}

func (v *validator) data() {
	d := v.config.Data
	v.require(d.File != "", "data.file", "is missing", "set it to the file with the examples")
	v.require(d.Format == "csv", "data.format", fmt.Sprintf("there is no format %q", d.Format), `want "csv"`)
	comma, _ := utf8.DecodeRuneInString(d.Separator)
	v.require(utf8.RuneCountInString(d.Separator) == 1 && comma != utf8.RuneError && comma != '"' && !unicode.IsDigit(comma) && !strings.ContainsRune("\r\n.+-", comma),
		"data.separator", fmt.Sprintf("%q cannot divide columns", d.Separator), `want one character, such as "," or ";" or "\t"`)
	v.require(d.Label.Name == "" || d.Header, "data.label", "is a name, but the file is read without a header",
		"set data.header = true, or data.label to an index")
	v.require(d.Scale > 0, "data.scale", fmt.Sprintf("want more than 0, got %v", d.Scale), "")
	switch d.Normalize {
	case dataset.NormalizeNone:
	case dataset.NormalizeStandard, dataset.NormalizeMinMax:
		v.require(d.Scale == 1, "data.scale", "has no effect beside data.normalize", "remove one of the two")
	default:
		v.require(false, "data.normalize", fmt.Sprintf("there is no normalisation %q", d.Normalize), `want "standard", "minmax" or ""`)
	}
	v.require(d.TestFraction >= 0 && d.TestFraction < 1, "data.test_fraction", fmt.Sprintf("want 0 to less than 1, got %v", d.TestFraction), "")
	v.require(d.TestRows >= 0, "data.test_rows", fmt.Sprintf("want 0 or more, got %d", d.TestRows), "")
	v.require(d.TestRows == 0 || d.TestFraction == 0, "data.test_rows", "is set beside data.test_fraction", "remove one of the two")
	v.require(d.BatchSize >= 1 && d.BatchSize <= maxBatch, "data.batch_size", fmt.Sprintf("want 1 to %d, got %d", maxBatch, d.BatchSize), "")
}

func (v *validator) train() {
	t := v.config.Train
	switch {
	case !v.given("train.steps") && !v.given("train.epochs"):
		v.require(false, "train.steps", "is missing", "set it to the number of steps to train, or set train.epochs")
	case v.given("train.steps") && v.given("train.epochs"):
		v.require(false, "train.epochs", "is set beside train.steps", "remove one of the two")
	case v.given("train.steps"):
		v.require(t.Steps >= 1, "train.steps", fmt.Sprintf("want 1 or more, got %d", t.Steps), "")
	default:
		v.require(t.Epochs > 0 && t.Epochs <= 1e9, "train.epochs", fmt.Sprintf("want more than 0, up to 1e9, got %v", t.Epochs), "")
	}
	v.require(t.EvalSteps >= 0, "train.eval_steps", fmt.Sprintf("want 0 (at the end alone) or more, got %d", t.EvalSteps), "")
}

func (v *validator) supervisor() {
	s := v.config.Supervisor
	seconds := func(key string, value Seconds) {
		v.require(value >= 0 && value <= maxSeconds, "supervisor."+key,
			fmt.Sprintf("want 0 (off) to %.0f seconds, got %v", float64(maxSeconds), float64(value)), "")
	}
	seconds("save_model_secs", s.SaveModelSecs)
	seconds("save_summaries_secs", s.SaveSummariesSecs)
	seconds("recovery_wait_secs", s.RecoveryWaitSecs)
	seconds("stop_grace_secs", s.StopGraceSecs)
	v.require(s.SaveModelSteps >= 0, "supervisor.save_model_steps", fmt.Sprintf("want 0 (off) or more, got %d", s.SaveModelSteps), "")
	v.require(s.SaveSummariesSteps >= 0, "supervisor.save_summaries_steps", fmt.Sprintf("want 0 (off) or more, got %d", s.SaveSummariesSteps), "")
	v.require(s.MaxToKeep >= 0, "supervisor.max_to_keep", fmt.Sprintf("want 0 (keep all) or more, got %d", s.MaxToKeep), "")
	v.require(s.KeepCheckpointEveryNHours >= 0 && s.KeepCheckpointEveryNHours <= maxSeconds/3600, "supervisor.keep_checkpoint_every_n_hours",
		fmt.Sprintf("want 0 (none) to %d hours, got %v", maxSeconds/3600, s.KeepCheckpointEveryNHours), "")
	name := s.CheckpointBasename
	v.require(name != "" && name == filepath.Base(name) && name != "." && name != ".." && name != "checkpoint" && !strings.Contains(name, "tfevents"),
		"supervisor.checkpoint_basename", fmt.Sprintf("%q cannot begin a checkpoint's name", name), `want a file name without folders, such as "model.ckpt"`)
	v.require(s.IsChief, "supervisor.is_chief", "the embedded runtime has no other process that could be the chief", "remove it")
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
}

func (v *validator) model() {
	m := v.config.Model
	for name, value := range zeroIsDefault {
		key := "model." + name
		v.require(!v.given(key) || value(m) != 0, key, "want more than 0, got 0", "")
	}
	if m.Family == "linear" {
		v.require(false, "model.family", "the linear family predicts numbers, but the labels of CSV data are classes", "want logistic, softmax or mlp")
		return
	}
	v.require(m.Inputs >= 0, "model.inputs", fmt.Sprintf("want the number of features, or none, got %d", m.Inputs), "")
	// What the data decide is assumed to be right for now.
	if m.Inputs <= 0 {
		m.Inputs = 1
	}
	if m.Classes == 0 {
		m.Classes = 2
	}
	v.modelErrors(m.Check())
}

// modelErrors adds what the model's own check found.
func (v *validator) modelErrors(err error) {
	if err == nil {
		return
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		v.require(false, "model.family", err.Error(), "")
		return
	}
	for _, one := range joined.Unwrap() {
		var bad *model.ConfigError
		if !errors.As(one, &bad) {
			v.require(false, "model.family", one.Error(), "")
			continue
		}
		v.require(false, "model."+bad.Key, fmt.Sprintf("want %s, got %s", bad.Want, quoted(bad.Value)), "")
	}
}

func quoted(value any) string {
	if s, ok := value.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprint(value)
}
