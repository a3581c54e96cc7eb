package model

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// mlp is a good configuration, to be spoilt.
func mlp() Config {
	return Config{Family: "mlp", Inputs: 64, Classes: 10, Hidden: []int{128}, Optimizer: "adam"}
}

func TestConfigErrors(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(c *Config)
		want  string
	}{
		{"no family", func(c *Config) { c.Family = "" }, `model: family = "": want linear, mlp_regressor, logistic, softmax, mlp, convnet or embedding_bag`},
		{"family", func(c *Config) { c.Family = "MLP" }, `model: family = "MLP": want linear, mlp_regressor, logistic, softmax, mlp, convnet or embedding_bag`},
		{"activation", func(c *Config) { c.Activation = "reul" }, `model: activation = "reul": want relu, tanh or sigmoid`},
		{"initializer", func(c *Config) { c.Initializer = "he" },
			`model: initializer = "he": want glorot_uniform, glorot_normal, truncated_normal or zeros`},
		{"optimizer", func(c *Config) { c.Optimizer = "adamw" },
			`model: optimizer = "adamw": want sgd, momentum, nesterov, adagrad, adadelta, adam, rmsprop or ftrl`},
		{"no inputs", func(c *Config) { c.Inputs = 0 }, "model: inputs = 0: want 1 to 16777216"},
		{"inputs", func(c *Config) { c.Inputs = 1 << 25 }, "model: inputs = 33554432: want 1 to 16777216"},
		{"classes", func(c *Config) { c.Classes = 1 }, "model: classes = 1: want 2 to 16777216"},
		{"classes of linear", func(c *Config) { c.Family, c.Hidden = "linear", nil }, "model: classes = 10: want none"},
		{"classes of logistic", func(c *Config) { c.Family, c.Hidden = "logistic", nil }, "model: classes = 10: want 2 (or none)"},
		{"no hidden", func(c *Config) { c.Hidden = nil }, "model: hidden = []: want the size of at least one hidden layer"},
		{"hidden", func(c *Config) { c.Hidden = []int{8, -1} }, "model: hidden = -1: want 1 to 16777216"},
		{"hidden of softmax", func(c *Config) { c.Family = "softmax" }, "model: hidden = [128]: want none: only the families mlp, mlp_regressor, convnet and embedding_bag have hidden"},
		{"l2", func(c *Config) { c.L2 = -1 }, "model: l2 = -1: want 0 or more"},
		{"learning rate", func(c *Config) { c.LearningRate = -.1 }, "model: learning_rate = -0.1: want more than 0"},
		{"infinite rate", func(c *Config) { c.LearningRate = math.Inf(1) }, "model: learning_rate = +Inf: want more than 0"},
		{"rate too large for the graph", func(c *Config) { c.LearningRate = 1e300 }, "model: learning_rate = 1e+300: want"},
		{"no number", func(c *Config) { c.L2 = math.NaN() }, "model: l2 = NaN: want 0 or more"},
		{"decay steps", func(c *Config) { c.DecaySteps = -5 }, "model: decay_steps = -5: want 0 or more"},
		{"decay rate", func(c *Config) { c.DecayRate = -1 }, "model: decay_rate = -1: want more than 0"},
		{"momentum", func(c *Config) { c.Momentum = 1 }, "model: momentum = 1: want 0 to less than 1"},
		{"beta1", func(c *Config) { c.Beta1 = 1.5 }, "model: beta1 = 1.5: want between 0 and 1"},
		{"beta2", func(c *Config) { c.Beta2 = -1 }, "model: beta2 = -1: want between 0 and 1"},
		{"rho", func(c *Config) { c.Rho = 1 }, "model: rho = 1: want between 0 and 1"},
		{"epsilon", func(c *Config) { c.Epsilon = -1e-8 }, "model: epsilon = -1e-08: want more than 0"},
		{"accumulator", func(c *Config) { c.InitialAccumulator = -1 }, "model: initial_accumulator = -1: want more than 0"},
		{"dropout", func(c *Config) { c.Dropout = 1 }, "model: dropout = 1: want 0 to less than 1"},
		{"dropout of softmax", func(c *Config) { c.Family, c.Hidden, c.Dropout = "softmax", nil, .5 }, "model: dropout = 0.5: want none: only the families mlp,"},
		{"batch norm of softmax", func(c *Config) { c.Family, c.Hidden, c.BatchNorm = "softmax", nil, true }, "model: batch_norm = true: want none"},
		{"batch norm momentum", func(c *Config) { c.BatchNormMomentum = 1 }, "model: batch_norm_momentum = 1: want between 0 and 1"},
		{"wide softmax", func(c *Config) { c.Family, c.Hidden, c.Wide = "softmax", nil, true }, "model: wide = true: want none: only the families mlp and mlp_regressor"},
		{"classes of a number", func(c *Config) { c.Family = "mlp_regressor" }, "model: classes = 10: want none: the family mlp_regressor predicts a number"},
		{"image of mlp", func(c *Config) { c.Image = []int{8, 8, 1} }, "model: image = [8 8 1]: want none: only the convnet family"},
		{"filters of mlp", func(c *Config) { c.Filters = []int{8} }, "model: filters = [8]: want none: only the convnet family"},
		{"vocabulary of mlp", func(c *Config) { c.Vocabulary = 8 }, "model: vocabulary = 8: want none: only the embedding_bag family"},
		{"image", func(c *Config) { c.Family, c.Filters, c.Image = "convnet", []int{8}, []int{8, 8} }, "model: image = [8 8]: want height, width and channels"},
		{"pixels", func(c *Config) { c.Family, c.Filters, c.Image = "convnet", []int{8}, []int{8, 8, 3} }, "model: image = [8 8 3]: want a size of 64 numbers"},
		{"image overflows", func(c *Config) {
			c.Family, c.Filters, c.Image = "convnet", []int{8}, []int{1 << 24, 1 << 24, 1 << 24}
		}, "model: image = [16777216 16777216 16777216]: want at most 16777216 numbers"},
		{"filters", func(c *Config) { c.Family, c.Image = "convnet", []int{8, 8, 1} }, "model: filters = []: want the number of filters"},
		{"kernel size", func(c *Config) {
			c.Family, c.Filters, c.Image, c.KernelSize = "convnet", []int{8}, []int{8, 8, 1}, -1
		}, "model: kernel_size = -1: want 1 to 1024"},
		{"pool", func(c *Config) { c.Family, c.Filters, c.Image, c.Pool = "convnet", []int{8}, []int{8, 8, 1}, -1 }, "model: pool = -1: want 1"},
		{"no vocabulary", func(c *Config) { c.Family = "embedding_bag" }, "model: vocabulary = 0: want 1 to"},
		{"combiner", func(c *Config) { c.Family, c.Vocabulary, c.Combiner = "embedding_bag", 9, "max" }, `model: combiner = "max": want mean or sum`},
		{"schedule", func(c *Config) { c.Schedule = "cos" }, `model: schedule = "cos": want constant, exponential, polynomial, piecewise, cosine or inverse_time`},
		{"schedule without steps", func(c *Config) { c.Schedule = "cosine" }, "model: decay_steps = 0: want 1 or more: the cosine schedule's length"},
		{"steps of no schedule", func(c *Config) { c.Schedule, c.DecaySteps = "constant", 5 }, "model: decay_steps = 5: want none: the schedule is constant"},
		{"boundaries of no schedule", func(c *Config) { c.Boundaries = []int64{1} }, `model: boundaries = [1]: want none, or schedule = "piecewise"`},
		{"boundaries", func(c *Config) { c.Schedule, c.Boundaries, c.Rates = "piecewise", []int64{3, 1}, []float64{1, 2, 3} },
			"model: boundaries = [3 1]: want steps in rising order"},
		{"rates", func(c *Config) { c.Schedule, c.Boundaries, c.Rates = "piecewise", []int64{3}, []float64{1} },
			"model: rates = [1]: want 2 rates, one more than boundaries"},
		{"warm-up", func(c *Config) { c.WarmupSteps = -1 }, "model: warmup_steps = -1: want 0 or more"},
		{"power", func(c *Config) { c.LearningRatePower = .5 }, "model: learning_rate_power = 0.5: want less than 0"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			cfg := mlp()
			c.spoil(&cfg)
			m, err := Build(cfg)
			var one *ConfigError
			if m != nil || !errors.As(err, &one) {
				t.Fatalf("got %v, %v; want a *ConfigError", m, err)
			}
			if !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %s\nwant %s", err, c.want)
			}
		})
	}
}

func TestConfigErrorsComeTogether(t *testing.T) {
	cfg := Config{Family: "mlp", Hidden: []int{0}, Activation: "x", LearningRate: -1}
	err := cfg.Check()
	for _, key := range []string{"activation", "inputs", "classes", "hidden", "learning_rate"} {
		if err == nil || !strings.Contains(err.Error(), "model: "+key+" = ") {
			t.Errorf("%s is missing in: %v", key, err)
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	tests := []struct {
		optimizer               string
		rate, momentum, epsilon float64
	}{
		{"", 0.1, 0, 1e-8},
		{"momentum", 0.01, 0.9, 1e-8},
		{"nesterov", 0.01, 0.9, 1e-8},
		{"adagrad", 0.1, 0, 1e-8},
		{"adadelta", 0.001, 0, 1e-8},
		{"ftrl", 0.1, 0, 1e-8},
		{"adam", 0.001, 0, 1e-8},
		{"rmsprop", 0.001, 0, 1e-10},
	}
	for _, c := range tests {
		got := Config{Family: "softmax", Optimizer: c.optimizer}.withDefaults()
		if got.LearningRate != c.rate || got.Momentum != c.momentum || got.Epsilon != c.epsilon {
			t.Errorf("%q: rate %v, momentum %v, epsilon %v; want %v, %v, %v", c.optimizer,
				got.LearningRate, got.Momentum, got.Epsilon, c.rate, c.momentum, c.epsilon)
		}
	}
	given := mlp()
	given.LearningRate, given.Epsilon, given.Activation = .5, 1, "tanh"
	if got := given.withDefaults(); got.LearningRate != .5 || got.Epsilon != 1 || got.Activation != "tanh" {
		t.Errorf("what was given changed: %+v", got)
	}
}
