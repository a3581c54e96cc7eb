package daemon

import (
	"math"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
)

// Config is a job, as its TOML file describes it. The tags are the keys; a key
// that is left out has the value in [DefaultConfig].
type Config struct {
	// Name of the job, for people. Default: the file's name.
	Name string `toml:"name"`
	// Logdir is where checkpoints, events and the graph go. A relative path
	// starts at the working directory.
	Logdir string `toml:"logdir"`
	// Master is where the model runs: "" is this process.
	Master string `toml:"master"`

	Data       DataConfig       `toml:"data"`
	Model      model.Config     `toml:"model"`
	Train      TrainConfig      `toml:"train"`
	Supervisor SupervisorConfig `toml:"supervisor"`

	file    string
	origins map[string]origin
}

// DataConfig says what to train on.
type DataConfig struct {
	// File with the examples. A relative path starts at the config's folder;
	// one given with --set starts at the working directory.
	File string `toml:"file"`
	// Format of the file: "csv", plain or compressed with gzip.
	Format string `toml:"format"`
	// Separator of the columns.
	Separator string `toml:"separator"`
	// Header says that the first row holds the names of the columns.
	Header bool `toml:"header"`
	// Label is the column with the class: a name, or an index from 0; negative
	// ones count from the end.
	Label Column `toml:"label"`
	// Scale divides all features.
	Scale float64 `toml:"scale"`
	// Normalize each feature by the training part: "standard" for mean 0 and
	// deviation 1, "minmax" for 0 to 1, "" for neither.
	Normalize dataset.Normalize `toml:"normalize"`
	// Shuffle the rows before the split and in each epoch. Without it the last
	// rows are the test part.
	Shuffle bool `toml:"shuffle"`
	// Seed of the shuffle. The same seed gives the same split and batches.
	Seed uint64 `toml:"seed"`
	// TestFraction of the rows is kept for testing.
	TestFraction float64 `toml:"test_fraction"`
	// TestRows is the number of rows kept for testing, instead of a fraction.
	TestRows int `toml:"test_rows"`
	// BatchSize is the number of rows of a step.
	BatchSize int `toml:"batch_size"`
}

// TrainConfig says how long to train.
type TrainConfig struct {
	// Steps to train; the job is complete at this global step.
	Steps int64 `toml:"steps"`
	// Epochs to train, instead of steps: how often each row is used.
	Epochs float64 `toml:"epochs"`
	// EvalSteps is the number of steps between two evaluations on the test
	// part. 0 evaluates at the end alone.
	EvalSteps int64 `toml:"eval_steps"`
}

// SupervisorConfig has the arguments of TensorFlow's Supervisor and Saver, with
// their names and defaults, and a few of our own. Seconds may have a fraction;
// 0 switches a service off.
type SupervisorConfig struct {
	// SaveModelSecs is the time between two checkpoints.
	SaveModelSecs Seconds `toml:"save_model_secs"`
	// SaveModelSteps saves a checkpoint at each multiple of so many steps, too.
	SaveModelSteps int64 `toml:"save_model_steps"`
	// SaveSummariesSecs is the time between two points of global_step/sec, and
	// of the summaries unless save_summaries_steps is set.
	SaveSummariesSecs Seconds `toml:"save_summaries_secs"`
	// SaveSummariesSteps writes summaries at step 1, at each multiple of so many
	// steps and at the last step, instead of by the clock.
	SaveSummariesSteps int64 `toml:"save_summaries_steps"`
	// RecoveryWaitSecs is the pause between two attempts of a worker to find the
	// model ready.
	RecoveryWaitSecs Seconds `toml:"recovery_wait_secs"`
	// StopGraceSecs is how long everything may take to end after a stop.
	StopGraceSecs Seconds `toml:"stop_grace_secs"`
	// CheckpointBasename begins the names of checkpoints.
	CheckpointBasename string `toml:"checkpoint_basename"`
	// MaxToKeep is the number of newest checkpoints that stay; 0 keeps all.
	MaxToKeep int `toml:"max_to_keep"`
	// KeepCheckpointEveryNHours keeps one checkpoint of each such period for
	// good; 0 keeps none.
	KeepCheckpointEveryNHours float64 `toml:"keep_checkpoint_every_n_hours"`
	// IsChief says that this process initialises, saves and writes events.
	IsChief bool `toml:"is_chief"`
}

// DefaultConfig returns the values of keys that are left out.
func DefaultConfig() *Config {
	return &Config{
		Data: DataConfig{Format: "csv", Separator: ",", Label: Column{Index: -1}, Scale: 1, Shuffle: true, BatchSize: 32},
		Supervisor: SupervisorConfig{
			SaveModelSecs: 600, SaveSummariesSecs: 120, RecoveryWaitSecs: 30, StopGraceSecs: 120,
			CheckpointBasename: "model.ckpt", MaxToKeep: 5, KeepCheckpointEveryNHours: 10000, IsChief: true,
		},
		origins: make(map[string]origin),
	}
}

// Column is a column of the data in the config: a string is a name, an integer
// an index.
type Column dataset.Column

func (c *Column) decodeValue(v any) (want string) {
	switch v := v.(type) {
	case string:
		if v == "" {
			return "a column's name or index"
		}
		*c = Column{Name: v}
		return ""
	case int64:
		if v < math.MinInt32 || v > math.MaxInt32 {
			return "a column's name or index"
		}
		*c = Column{Index: int(v)}
		return ""
	}
	return "a column's name or index"
}

// Seconds is a duration in the config.
type Seconds float64

// Duration returns s as a duration.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// orOff translates TensorFlow's 0 for "off" to Go's negative duration.
func (s Seconds) orOff() time.Duration {
	if s == 0 {
		return -1
	}
	return max(s.Duration(), 1)
}

// Override is a change to the config that was given to a flag.
type Override struct {
	Flag       string // as the user typed it, for errors
	Assignment string // key.path=value, the value in TOML; a bare word is a string
	Literal    bool   // the value is a string as it stands, whatever it looks like
}

// LoadConfig reads the file name, applies the overrides in order, and checks
// the values. All that is wrong is reported at once, as a [*ConfigError]; the
// config then comes with what could be read, or is nil when that is nothing.
func LoadConfig(name string, overrides []Override) (*Config, error) {
	c := DefaultConfig()
	c.file = name
	d := &decoder{file: name, origins: c.origins, problems: &ConfigError{}}
	text, err := os.ReadFile(name)
	if err != nil {
		d.problems.add(&ConfigProblem{File: name, Reason: "cannot be read: " + pathCause(err), Hint: "give the path of a job's TOML file"})
		return nil, d.problems
	}
	d.decode(string(text), c)
	for _, o := range overrides {
		d.set(o)
	}
	if d.problems.syntax {
		return nil, d.problems // the values are those of an unread file
	}
	c.resolve()
	c.check(d.problems)
	return c, d.problems.err()
}

// resolve fills in what depends on the config's own place.
func (c *Config) resolve() {
	if c.Name == "" {
		base := filepath.Base(c.file)
		c.Name = base[:len(base)-len(filepath.Ext(base))]
	}
	if c.Data.File != "" && !filepath.IsAbs(c.Data.File) && c.origins["data.file"].flag == "" {
		c.Data.File = filepath.Join(filepath.Dir(c.file), c.Data.File)
	}
}

// datasetOptions says how the data are read.
func (c *Config) datasetOptions() dataset.Options {
	comma, _ := utf8.DecodeRuneInString(c.Data.Separator)
	return dataset.Options{
		Comma:  comma,
		Header: c.Data.Header, Label: dataset.Column(c.Data.Label), Classes: c.Model.Classes,
		Scale: c.Data.Scale, Normalize: c.Data.Normalize,
		Shuffle: c.Data.Shuffle, Seed: c.Data.Seed,
		TestRows: c.Data.TestRows, TestFraction: c.Data.TestFraction, BatchSize: c.Data.BatchSize,
	}
}

// steps returns the global step at which the job is complete.
func (c *Config) steps(d *dataset.Dataset) int64 {
	if c.Train.Steps > 0 {
		return c.Train.Steps
	}
	return max(1, int64(math.Ceil(c.Train.Epochs*float64(d.TrainRows)/float64(d.BatchSize()))))
}
