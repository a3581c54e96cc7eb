package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Check returns an error that joins a *ConfigError for each invalid field, or
// nil if all are valid.
func (c Config) Check() error {
	v := &checker{}
	v.oneOf("family", c.Family, Families)
	c = c.withDefaults()
	v.oneOf("activation", c.Activation, Activations)
	v.oneOf("initializer", c.Initializer, Initializers)
	v.oneOf("optimizer", c.Optimizer, Optimizers)
	v.size("inputs", c.Inputs)
	if slices.Contains(Families, c.Family) {
		c.checkShape(v)
		c.checkParts(v)
	}
	c.checkNumbers(v)
	c.checkSchedule(v)
	return errors.Join(v.errs...)
}

func (c Config) checkShape(v *checker) {
	switch c.Family {
	case "linear", "mlp_regressor":
		v.require(c.Classes == 0, "classes", c.Classes, "none: the family "+c.Family+" predicts a number")
	case "logistic":
		v.require(c.Classes == 2, "classes", c.Classes, "2 (or none): the logistic family tells two classes apart")
	default:
		v.require(c.Classes >= 2 && c.Classes <= maxSize, "classes", c.Classes, fmt.Sprintf("2 to %d", maxSize))
	}
	switch c.Family {
	case "mlp", "mlp_regressor":
		v.require(len(c.Hidden) > 0, "hidden", c.Hidden, "the size of at least one hidden layer, as in [128]")
	case "convnet", "embedding_bag":
	default:
		v.require(len(c.Hidden) == 0, "hidden", c.Hidden, noHidden)
	}
	for _, n := range c.Hidden {
		v.size("hidden", n)
	}
}

const noHidden = "none: only the families mlp, mlp_regressor, convnet and embedding_bag have hidden layers"

// checkParts checks what only some families have.
func (c Config) checkParts(v *checker) {
	layers := c.isPerceptron() || c.Family == "convnet" || c.Family == "embedding_bag"
	v.require(layers || c.Dropout == 0, "dropout", c.Dropout, noHidden)
	v.require(c.isPerceptron() || !c.Wide, "wide", c.Wide, "none: only the families mlp and mlp_regressor have it")
	v.require(c.isPerceptron() || c.Family == "convnet" || !c.BatchNorm, "batch_norm", c.BatchNorm, "none: only the families mlp, mlp_regressor and convnet have it")
	c.checkLoss(v)
	if c.Family == "convnet" {
		c.checkImages(v)
	} else {
		v.require(len(c.Image) == 0, "image", c.Image, "none: only the convnet family takes images")
		v.require(len(c.Filters) == 0, "filters", c.Filters, "none: only the convnet family has filters")
	}
	if c.Family != "embedding_bag" {
		v.require(c.Vocabulary == 0, "vocabulary", c.Vocabulary, "none: only the embedding_bag family has a vocabulary")
		return
	}
	v.size("vocabulary", c.Vocabulary)
	v.size("embedding", c.Embedding)
	v.oneOf("combiner", c.Combiner, Combiners)
}

// checkLoss checks what only families that predict a number have.
func (c Config) checkLoss(v *checker) {
	if !c.IsRegression() {
		v.require(c.Loss == "", "loss", c.Loss, "none: only the families linear and mlp_regressor have a choice")
	} else {
		v.oneOf("loss", c.Loss, Losses)
	}
	v.require(c.Loss == "huber_loss" || c.HuberDelta == 0, "huber_delta", c.HuberDelta, `none, or loss = "huber_loss"`)
	v.number("huber_delta", c.HuberDelta, c.HuberDelta >= 0, "more than 0, or 0 for the default")
}

func (c Config) checkImages(v *checker) {
	pixels := 1
	for _, n := range c.Image {
		v.size("image", n)
		if n < 1 || pixels > maxSize/n {
			v.require(n < 1 || n > maxSize, "image", c.Image, fmt.Sprintf("at most %d numbers", maxSize))
			return
		}
		pixels *= n
	}
	v.require(len(c.Image) == 3, "image", c.Image, "height, width and channels, as in [28, 28, 1]")
	v.require(len(c.Image) != 3 || pixels == c.Inputs, "image", c.Image, fmt.Sprintf("a size of %d numbers, as many as an example has", c.Inputs))
	v.require(len(c.Filters) > 0, "filters", c.Filters, "the number of filters of at least one convolution, as in [32, 64]")
	for _, n := range c.Filters {
		v.size("filters", n)
	}
	v.require(c.KernelSize >= 1 && c.KernelSize <= maxKernel, "kernel_size", c.KernelSize, fmt.Sprintf("1 to %d", maxKernel))
	v.require(c.Pool >= 1 && c.Pool <= maxKernel, "pool", c.Pool, fmt.Sprintf("1 (no pooling) to %d", maxKernel))
}

// maxKernel bounds the height and width of kernels and pools.
const maxKernel = 1 << 10

func (c Config) checkNumbers(v *checker) {
	v.number("l2", c.L2, c.L2 >= 0, "0 or more")
	v.number("dropout", c.Dropout, c.Dropout >= 0 && c.Dropout < 1, "0 to less than 1")
	v.number("batch_norm_momentum", c.BatchNormMomentum, c.BatchNormMomentum > 0 && c.BatchNormMomentum < 1, "between 0 and 1")
	v.number("learning_rate", c.LearningRate, c.LearningRate > 0, "more than 0")
	v.number("momentum", c.Momentum, c.Momentum >= 0 && c.Momentum < 1, "0 to less than 1")
	v.number("beta1", c.Beta1, c.Beta1 > 0 && c.Beta1 < 1, "between 0 and 1")
	v.number("beta2", c.Beta2, c.Beta2 > 0 && c.Beta2 < 1, "between 0 and 1")
	v.number("rho", c.Rho, c.Rho > 0 && c.Rho < 1, "between 0 and 1")
	v.number("epsilon", c.Epsilon, c.Epsilon > 0, "more than 0")
	v.number("initial_accumulator", c.InitialAccumulator, c.InitialAccumulator > 0, "more than 0")
	v.number("learning_rate_power", c.LearningRatePower, c.LearningRatePower < 0, "less than 0")
	v.number("ftrl_l1", c.FtrlL1, c.FtrlL1 >= 0, "0 or more")
	v.number("ftrl_l2", c.FtrlL2, c.FtrlL2 >= 0, "0 or more")
}

func (c Config) checkSchedule(v *checker) {
	v.oneOf("schedule", c.Schedule, Schedules)
	v.require(c.DecaySteps >= 0, "decay_steps", c.DecaySteps, "0 or more")
	v.number("decay_rate", c.DecayRate, c.DecayRate > 0, "more than 0")
	v.number("end_learning_rate", c.EndLearningRate, c.EndLearningRate >= 0, "0 or more")
	v.number("power", c.Power, c.Power > 0, "more than 0")
	v.require(c.WarmupSteps >= 0, "warmup_steps", c.WarmupSteps, "0 or more")
	switch c.Schedule {
	case "exponential", "polynomial", "cosine", "inverse_time":
		v.require(c.DecaySteps != 0, "decay_steps", c.DecaySteps, "1 or more: the "+c.Schedule+" schedule's length in steps")
	case "constant":
		v.require(c.DecaySteps == 0, "decay_steps", c.DecaySteps, "none: the schedule is constant")
	}
	if c.Schedule != "piecewise" {
		v.require(len(c.Boundaries) == 0, "boundaries", c.Boundaries, `none, or schedule = "piecewise"`)
		v.require(len(c.Rates) == 0, "rates", c.Rates, `none, or schedule = "piecewise"`)
		return
	}
	v.require(len(c.Boundaries) > 0 && slices.IsSorted(c.Boundaries) && c.Boundaries[0] >= 0, "boundaries", c.Boundaries,
		"steps in rising order, as in [1000, 2000]")
	v.require(len(c.Rates) == len(c.Boundaries)+1, "rates", c.Rates, fmt.Sprintf("%d rates, one more than boundaries", len(c.Boundaries)+1))
	for _, rate := range c.Rates {
		v.number("rates", rate, rate > 0, "more than 0 each")
	}
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
