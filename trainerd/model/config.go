package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Config says which model to build and how it learns. The zero value of a
// field means its default; the names in the tags are those of the fields in a
// job's configuration and in errors.
type Config struct {
	// Family is linear (one number from a weighted sum, squared error),
	// logistic (two classes), softmax (any number of classes) or mlp (softmax
	// behind hidden layers).
	Family string `toml:"family"`
	// Inputs is the number of features of an example.
	Inputs int `toml:"inputs"`
	// Classes is the number of classes of softmax and mlp. Linear has none,
	// logistic always two.
	Classes int `toml:"classes"`
	// Hidden lists the sizes of an mlp's hidden layers.
	Hidden []int `toml:"hidden"`
	// Activation of the hidden layers: relu (default), tanh or sigmoid.
	Activation string `toml:"activation"`
	// Initializer of the kernels: glorot_uniform (default), glorot_normal,
	// truncated_normal (standard deviation 0.1) or zeros. Biases begin at zero.
	Initializer string `toml:"initializer"`
	// L2 is the weight in the loss of half the kernels' squares; 0: none.
	L2 float64 `toml:"l2"`
	// Seed of the initial values. Equal seeds give equal models.
	Seed int64 `toml:"seed"`

	// Optimizer is sgd (default), momentum, adagrad, adam or rmsprop.
	Optimizer string `toml:"optimizer"`
	// LearningRate, default: 0.1 for sgd and adagrad, 0.01 for momentum,
	// 0.001 for adam and rmsprop.
	LearningRate float64 `toml:"learning_rate"`
	// DecaySteps makes the learning rate fall: after n steps it is
	// LearningRate * DecayRate^(n/DecaySteps). 0: it stays.
	DecaySteps int64 `toml:"decay_steps"`
	// DecayRate is the factor of each DecaySteps; default 0.96.
	DecayRate float64 `toml:"decay_rate"`
	// Staircase lets the rate fall at multiples of DecaySteps only.
	Staircase bool `toml:"staircase"`
	// Momentum of momentum (default 0.9) and rmsprop (default 0).
	Momentum float64 `toml:"momentum"`
	// Nesterov makes momentum look ahead.
	Nesterov bool `toml:"nesterov"`
	// Beta1 is adam's decay of the mean gradient; default 0.9.
	Beta1 float64 `toml:"beta1"`
	// Beta2 is adam's decay of the mean squared gradient; default 0.999.
	Beta2 float64 `toml:"beta2"`
	// Rho is rmsprop's decay of the mean squared gradient; default 0.9.
	Rho float64 `toml:"rho"`
	// Epsilon keeps divisors from zero; default 1e-8 for adam, 1e-10 for
	// rmsprop.
	Epsilon float64 `toml:"epsilon"`
	// InitialAccumulator is where adagrad's sums begin; default 0.1.
	InitialAccumulator float64 `toml:"initial_accumulator"`
}

// The values that the named fields take.
var (
	Families     = []string{"linear", "logistic", "softmax", "mlp"}
	Activations  = []string{"relu", "tanh", "sigmoid"}
	Initializers = []string{"glorot_uniform", "glorot_normal", "truncated_normal", "zeros"}
	Optimizers   = []string{"sgd", "momentum", "adagrad", "adam", "rmsprop"}
)

// maxSize bounds the sizes of layers, so that a slip of the keyboard is not
// taken for a model of a trillion weights.
const maxSize = 1 << 24

// ConfigError is a field of a [Config] with a value that makes no sense.
type ConfigError struct {
	Key   string // as in the configuration: "hidden"
	Value any
	Want  string // what would do
}

func (e *ConfigError) Error() string {
	if s, ok := e.Value.(string); ok {
		return fmt.Sprintf("model: %s = %q: want %s", e.Key, s, e.Want)
	}
	return fmt.Sprintf("model: %s = %v: want %s", e.Key, e.Value, e.Want)
}

// Check returns an error that joins a *[ConfigError] for each field that is
// wrong, nil when all are right.
func (c Config) Check() error {
	v := &checker{}
	v.oneOf("family", c.Family, Families)
	c = c.withDefaults()
	v.oneOf("activation", c.Activation, Activations)
	v.oneOf("initializer", c.Initializer, Initializers)
	v.oneOf("optimizer", c.Optimizer, Optimizers)
	v.size("inputs", c.Inputs)
	c.checkShape(v)
	c.checkNumbers(v)
	return errors.Join(v.errs...)
}

func (c Config) checkShape(v *checker) {
	switch c.Family {
	case "linear":
		v.require(c.Classes == 0, "classes", c.Classes, "none: the linear family predicts a number")
	case "logistic":
		v.require(c.Classes == 2, "classes", c.Classes, "2 (or none): the logistic family tells two classes apart")
	case "softmax", "mlp":
		v.require(c.Classes >= 2 && c.Classes <= maxSize, "classes", c.Classes, fmt.Sprintf("2 to %d", maxSize))
	}
	switch {
	case c.Family == "mlp":
		v.require(len(c.Hidden) > 0, "hidden", c.Hidden, "the size of at least one hidden layer, as in [128]")
		for _, n := range c.Hidden {
			v.size("hidden", n)
		}
	case slices.Contains(Families, c.Family):
		v.require(len(c.Hidden) == 0, "hidden", c.Hidden, "none: only the mlp family has hidden layers")
	}
}

func (c Config) checkNumbers(v *checker) {
	v.number("l2", c.L2, c.L2 >= 0, "0 or more")
	v.number("learning_rate", c.LearningRate, c.LearningRate > 0, "more than 0")
	v.require(c.DecaySteps >= 0, "decay_steps", c.DecaySteps, "0 or more")
	v.number("decay_rate", c.DecayRate, c.DecayRate > 0, "more than 0")
	v.number("momentum", c.Momentum, c.Momentum >= 0 && c.Momentum < 1, "0 to less than 1")
	v.number("beta1", c.Beta1, c.Beta1 > 0 && c.Beta1 < 1, "between 0 and 1")
	v.number("beta2", c.Beta2, c.Beta2 > 0 && c.Beta2 < 1, "between 0 and 1")
	v.number("rho", c.Rho, c.Rho > 0 && c.Rho < 1, "between 0 and 1")
	v.number("epsilon", c.Epsilon, c.Epsilon > 0, "more than 0")
	v.number("initial_accumulator", c.InitialAccumulator, c.InitialAccumulator > 0, "more than 0")
}

// withDefaults returns c with the fields that were left out filled in.
func (c Config) withDefaults() Config {
	c.Activation = orDefault(c.Activation, "relu")
	c.Initializer = orDefault(c.Initializer, "glorot_uniform")
	c.Optimizer = orDefault(c.Optimizer, "sgd")
	if c.Family == "logistic" {
		c.Classes = orDefault(c.Classes, 2)
	}
	c.LearningRate = orDefault(c.LearningRate, defaultRate[c.Optimizer])
	if c.Optimizer == "momentum" {
		c.Momentum = orDefault(c.Momentum, 0.9)
	}
	if c.Optimizer == "rmsprop" {
		c.Epsilon = orDefault(c.Epsilon, 1e-10)
	}
	c.Epsilon = orDefault(c.Epsilon, 1e-8)
	c.DecayRate = orDefault(c.DecayRate, 0.96)
	c.Beta1 = orDefault(c.Beta1, 0.9)
	c.Beta2 = orDefault(c.Beta2, 0.999)
	c.Rho = orDefault(c.Rho, 0.9)
	c.InitialAccumulator = orDefault(c.InitialAccumulator, 0.1)
	return c
}

var defaultRate = map[string]float64{
	"sgd": 0.1, "momentum": 0.01, "adagrad": 0.1, "adam": 0.001, "rmsprop": 0.001,
}

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// checker collects what is wrong.
type checker struct{ errs []error }

func (v *checker) require(ok bool, key string, value any, want string) {
	if !ok {
		v.errs = append(v.errs, &ConfigError{Key: key, Value: value, Want: want})
	}
}

func (v *checker) oneOf(key, value string, allowed []string) {
	last := len(allowed) - 1
	v.require(slices.Contains(allowed, value), key, value,
		strings.Join(allowed[:last], ", ")+" or "+allowed[last])
}

func (v *checker) size(key string, n int) {
	v.require(n >= 1 && n <= maxSize, key, n, fmt.Sprintf("1 to %d", maxSize))
}

// number checks a field that becomes a float32 of the graph.
func (v *checker) number(key string, x float64, ok bool, want string) {
	fits := math.Abs(x) <= math.MaxFloat32 // false for NaN
	v.require(ok && fits, key, x, want)
}
