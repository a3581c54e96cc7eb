package model

import (
	"cmp"
	"fmt"
)

// Config says which model to build and how it learns. The zero value of a
// field means its default; the tags are the names of the fields in a job's
// configuration and in errors.
type Config struct {
	// Family is linear (one number from a weighted sum, squared error),
	// mlp_regressor (one number after hidden layers, squared error), logistic (two
	// classes), softmax (any number of classes), mlp (softmax after hidden layers),
	// convnet (softmax after convolutions of images) or
	// embedding_bag (softmax of the mean of learnt vectors, one for each id in a
	// bag of ids, such as the words of a text).
	Family string `toml:"family"`
	// Inputs is the number of features of an example; for embedding_bag the
	// number of ids in a bag.
	Inputs int `toml:"inputs"`
	// Classes is the number of classes. Linear and mlp_regressor have none, logistic
	// always two.
	Classes int `toml:"classes"`
	// Hidden lists the sizes of the hidden layers. An mlp and an mlp_regressor have
	// at least one; convnet and embedding_bag may have some before the logits.
	Hidden []int `toml:"hidden"`
	// Wide adds a weighted sum of the features to what the hidden layers of an mlp
	// or mlp_regressor predict, as in TensorFlow's DNNLinearCombined models.
	Wide bool `toml:"wide"`
	// Activation of the layers: relu (default), tanh or sigmoid.
	Activation string `toml:"activation"`
	// Initializer of the kernels: glorot_uniform (default), glorot_normal,
	// truncated_normal (standard deviation 0.1) or zeros. Biases begin at zero.
	Initializer string `toml:"initializer"`
	// Dropout is the fraction of each hidden layer's outputs that a training
	// step drops; 0: none.
	Dropout float64 `toml:"dropout"`
	// BatchNorm normalises each hidden layer of an mlp or mlp_regressor, and each
	// convolution of a convnet, by the mean and variance of the batch, and in predictions
	// by moving averages of them. Such a layer has beta and gamma instead of a bias.
	BatchNorm bool `toml:"batch_norm"`
	// BatchNormMomentum is the decay of these moving averages; default 0.99.
	BatchNormMomentum float64 `toml:"batch_norm_momentum"`
	// L2 is the weight of half the sum of the kernels' squares in the loss; 0:
	// none.
	L2 float64 `toml:"l2"`
	// Seed of the initial values and of dropout. Equal seeds give equal models.
	Seed int64 `toml:"seed"`

	// Image is the size of a convnet's images: height, width and channels, as in
	// [28, 28, 1]. Their product is the number of inputs. By default it is that
	// of the data, if they are images.
	Image []int `toml:"image"`
	// Filters lists the numbers of filters of a convnet's convolutions, as in
	// [32, 64]. A max pooling follows each.
	Filters []int `toml:"filters"`
	// KernelSize is the height and width of a convnet's kernels; default 3.
	KernelSize int `toml:"kernel_size"`
	// Pool is the height and width of the windows of max pooling; default 2,
	// and 1 for no pooling.
	Pool int `toml:"pool"`

	// Vocabulary is the number of ids of embedding_bag, which are 0 to
	// vocabulary-1. Negative ids are padding.
	Vocabulary int `toml:"vocabulary"`
	// Embedding is the length of embedding_bag's vectors; default 16.
	Embedding int `toml:"embedding"`
	// Combiner says how the vectors of a bag are combined: mean (default) or
	// sum.
	Combiner string `toml:"combiner"`

	// Loss of a number to predict: mean_squared_error (default), or huber_loss, on which a few
	// labels far from all others have little effect: half the square of an error of up to
	// huber_delta; for a larger error its size times huber_delta, less half the square of
	// huber_delta.
	Loss string `toml:"loss"`
	// HuberDelta is the delta of huber_loss, in units of the label; default: 1.4826 times the median
	// distance of the training labels from their median.
	HuberDelta float64 `toml:"huber_delta"`

	// Optimizer is sgd (default), momentum, nesterov (momentum that looks
	// ahead), adagrad, adadelta, adam, rmsprop or ftrl.
	Optimizer string `toml:"optimizer"`
	// LearningRate, default: 0.1 for sgd, adagrad and ftrl, 0.01 for momentum
	// and nesterov, 0.001 for adadelta, adam and rmsprop.
	LearningRate float64 `toml:"learning_rate"`
	// Schedule of the learning rate r after n steps:
	// constant (default, unless decay_steps is set),
	// exponential: r * decay_rate^(n/decay_steps),
	// polynomial: from r to end_learning_rate in decay_steps, as (1-n/decay_steps)^power,
	// piecewise: rates[i] up to step boundaries[i], then the last of the rates,
	// cosine: from r to end_learning_rate in decay_steps along half a wave,
	// inverse_time: r / (1 + decay_rate*n/decay_steps).
	Schedule string `toml:"schedule"`
	// DecaySteps is the schedule's length or period in steps. If set without a
	// schedule, the schedule is exponential. Default for polynomial and
	// cosine: all steps of the job.
	DecaySteps int64 `toml:"decay_steps"`
	// DecayRate is the factor of exponential (default 0.96) and inverse_time
	// (default 0.5).
	DecayRate float64 `toml:"decay_rate"`
	// Staircase makes exponential and inverse_time fall only at multiples of
	// DecaySteps.
	Staircase bool `toml:"staircase"`
	// EndLearningRate is where polynomial (default 0.0001) and cosine (default
	// 0) end.
	EndLearningRate float64 `toml:"end_learning_rate"`
	// Power of polynomial; default 1.
	Power float64 `toml:"power"`
	// Boundaries are the steps at which piecewise moves on to the next rate.
	Boundaries []int64 `toml:"boundaries"`
	// Rates are the learning rates of piecewise, one more than boundaries.
	Rates []float64 `toml:"rates"`
	// WarmupSteps is the number of steps at the start in which the rate rises
	// evenly to the scheduled one; 0: none.
	WarmupSteps int64 `toml:"warmup_steps"`

	// Momentum of momentum and nesterov (default 0.9) and rmsprop (default 0).
	Momentum float64 `toml:"momentum"`
	// Nesterov makes momentum look ahead, as optimizer = "nesterov" does.
	Nesterov bool `toml:"nesterov"`
	// Beta1 is adam's decay of the mean gradient; default 0.9.
	Beta1 float64 `toml:"beta1"`
	// Beta2 is adam's decay of the mean squared gradient; default 0.999.
	Beta2 float64 `toml:"beta2"`
	// Rho is the decay of the mean squared gradient of rmsprop (default 0.9)
	// and adadelta (default 0.95).
	Rho float64 `toml:"rho"`
	// Epsilon keeps divisors from zero; default 1e-8 for adam and adadelta,
	// 1e-10 for rmsprop.
	Epsilon float64 `toml:"epsilon"`
	// InitialAccumulator is the initial value of the sums of adagrad and ftrl;
	// default 0.1.
	InitialAccumulator float64 `toml:"initial_accumulator"`
	// LearningRatePower is the exponent of ftrl's sums in its rate; default
	// -0.5.
	LearningRatePower float64 `toml:"learning_rate_power"`
	// FtrlL1 is ftrl's penalty on the weights' absolute values, which makes small
	// ones exactly zero; default 0.
	FtrlL1 float64 `toml:"ftrl_l1"`
	// FtrlL2 is ftrl's own penalty on the weights' squares; default 0.
	FtrlL2 float64 `toml:"ftrl_l2"`
}

// The values of the named fields.
var (
	Families     = []string{"linear", "mlp_regressor", "logistic", "softmax", "mlp", "convnet", "embedding_bag"}
	Activations  = []string{"relu", "tanh", "sigmoid"}
	Initializers = []string{"glorot_uniform", "glorot_normal", "truncated_normal", "zeros"}
	Losses       = []string{"mean_squared_error", "huber_loss"}
	Combiners    = []string{"mean", "sum"}
	Optimizers   = []string{"sgd", "momentum", "nesterov", "adagrad", "adadelta", "adam", "rmsprop", "ftrl"}
	Schedules    = []string{"constant", "exponential", "polynomial", "piecewise", "cosine", "inverse_time"}
)

// maxSize bounds the sizes of layers, so that a slip of the keyboard is not
// taken for a model of a trillion weights.
const maxSize = 1 << 24

// ConfigError is a field of a [Config] with an invalid value.
type ConfigError struct {
	Key   string // as in the configuration: "hidden"
	Value any
	Want  string // what would be valid
}

func (e *ConfigError) Error() string {
	if s, ok := e.Value.(string); ok {
		return fmt.Sprintf("model: %s = %q: want %s", e.Key, s, e.Want)
	}
	return fmt.Sprintf("model: %s = %v: want %s", e.Key, e.Value, e.Want)
}

// IsRegression reports whether the model predicts a number.
func (c Config) IsRegression() bool { return c.Family == "linear" || c.Family == "mlp_regressor" }

// isPerceptron reports whether the model has hidden layers and nothing before them.
func (c Config) isPerceptron() bool { return c.Family == "mlp" || c.Family == "mlp_regressor" }

// Resolved returns c with the defaults filled in.
func (c Config) Resolved() Config { return c.withDefaults() }

// withDefaults returns c with the fields that were left out filled in.
func (c Config) withDefaults() Config {
	c.Activation = cmp.Or(c.Activation, "relu")
	c.Initializer = cmp.Or(c.Initializer, "glorot_uniform")
	c.Combiner = cmp.Or(c.Combiner, "mean")
	if c.IsRegression() {
		c.Loss = cmp.Or(c.Loss, "mean_squared_error")
	}
	c.Embedding = cmp.Or(c.Embedding, 16)
	c.KernelSize = cmp.Or(c.KernelSize, 3)
	c.Pool = cmp.Or(c.Pool, 2)
	c.BatchNormMomentum = cmp.Or(c.BatchNormMomentum, 0.99)
	if c.Family == "logistic" {
		c.Classes = cmp.Or(c.Classes, 2)
	}
	return c.optimizerDefaults().scheduleDefaults()
}

// WithSteps returns c with a schedule that needs a length, but has none, ending
// with the training.
func (c Config) WithSteps(steps int64) Config {
	if c.DecaySteps == 0 && (c.Schedule == "polynomial" || c.Schedule == "cosine") {
		c.DecaySteps = max(steps, 1)
	}
	return c
}

func (c Config) optimizerDefaults() Config {
	c.Optimizer = cmp.Or(c.Optimizer, "sgd")
	c.LearningRate = cmp.Or(c.LearningRate, cmp.Or(defaultRate[c.Optimizer], 0.1))
	switch c.Optimizer {
	case "momentum", "nesterov":
		c.Momentum = cmp.Or(c.Momentum, 0.9)
		c.Nesterov = c.Nesterov || c.Optimizer == "nesterov"
	case "rmsprop":
		c.Epsilon = cmp.Or(c.Epsilon, 1e-10)
	case "adadelta":
		c.Rho = cmp.Or(c.Rho, 0.95)
	}
	c.Epsilon = cmp.Or(c.Epsilon, 1e-8)
	c.Beta1 = cmp.Or(c.Beta1, 0.9)
	c.Beta2 = cmp.Or(c.Beta2, 0.999)
	c.Rho = cmp.Or(c.Rho, 0.9)
	c.InitialAccumulator = cmp.Or(c.InitialAccumulator, 0.1)
	c.LearningRatePower = cmp.Or(c.LearningRatePower, -0.5)
	return c
}

func (c Config) scheduleDefaults() Config {
	if c.Schedule == "" && c.DecaySteps != 0 {
		c.Schedule = "exponential"
	}
	c.Schedule = cmp.Or(c.Schedule, "constant")
	switch c.Schedule {
	case "inverse_time":
		c.DecayRate = cmp.Or(c.DecayRate, 0.5)
	case "polynomial":
		c.EndLearningRate = cmp.Or(c.EndLearningRate, 1e-4)
	}
	c.DecayRate = cmp.Or(c.DecayRate, 0.96)
	c.Power = cmp.Or(c.Power, 1)
	return c
}

var defaultRate = map[string]float64{
	"sgd": 0.1, "momentum": 0.01, "nesterov": 0.01, "adagrad": 0.1, "adadelta": 0.001,
	"adam": 0.001, "rmsprop": 0.001, "ftrl": 0.1,
}
