package optimizer

import (
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// Schedule is how a learning rate changes with the global step.
type Schedule int

// The schedules, as TensorFlow's functions of these names compute them.
const (
	// ScheduleConstant stays at Initial, unless DecaySteps is set: then it is
	// ScheduleExponential.
	ScheduleConstant Schedule = iota
	// ScheduleExponential is Initial * DecayRate^(step/DecaySteps).
	ScheduleExponential
	// SchedulePolynomial falls from Initial to End in DecaySteps, along the
	// Power of the remaining steps, and stays there.
	SchedulePolynomial
	// SchedulePiecewise is Values[i] up to step Boundaries[i], and the last of
	// the Values after the last boundary.
	SchedulePiecewise
	// ScheduleCosine falls from Initial to End in DecaySteps along half a
	// cosine wave, and stays there.
	ScheduleCosine
	// ScheduleInverseTime is Initial / (1 + DecayRate*step/DecaySteps).
	ScheduleInverseTime
)

// LearningRate is how fast an optimizer goes: a constant, or a function of the
// global step.
type LearningRate struct {
	Initial    float32
	Schedule   Schedule
	DecaySteps int64
	DecayRate  float32
	Staircase  bool // ScheduleExponential, ScheduleInverseTime: change at whole multiples of DecaySteps only
	End        float32
	Power      float32 // of SchedulePolynomial
	Boundaries []int64
	Values     []float32 // one more than Boundaries
	// WarmupSteps raises the rate evenly during the first steps: step n, counted
	// from 0, has (n+1)/WarmupSteps of the scheduled rate.
	WarmupSteps int64
}

// schedule is the schedule with its default resolved.
func (lr LearningRate) schedule() Schedule {
	if lr.Schedule == ScheduleConstant && lr.DecaySteps > 0 {
		return ScheduleExponential
	}
	return lr.Schedule
}

// Changes reports whether the rate depends on the step.
func (lr LearningRate) Changes() bool {
	return lr.schedule() != ScheduleConstant || lr.WarmupSteps > 0
}

// learningRate adds the nodes of a rate that changes.
func learningRate(b *graph.Builder, lr LearningRate, step *graph.Variable) (rate graph.Output) {
	switch lr.schedule() {
	case ScheduleExponential:
		rate = exponentialDecay(b, lr, step)
	case SchedulePolynomial:
		rate = polynomialDecay(b, lr, step)
	case SchedulePiecewise:
		rate = piecewiseConstant(b, lr, step)
	case ScheduleCosine:
		rate = cosineDecay(b, lr, step)
	case ScheduleInverseTime:
		rate = inverseTimeDecay(b, lr, step)
	default:
		rate = b.Const("base_learning_rate", literal.Float(lr.Initial))
	}
	if lr.WarmupSteps <= 0 {
		return rate
	}
	named(b, "Warmup", func(name string) {
		one := b.Const("one", literal.Float(1))
		share := b.RealDiv("truediv", b.AddV2("add", stepNow(b, step), one), b.Const("warmup_steps", literal.Float(float32(lr.WarmupSteps))))
		rate = b.Mul(name, rate, b.Minimum("Minimum", share, one))
	})
	return rate
}

// named runs body in a new scope, with the name of the scope's result.
func named(b *graph.Builder, scope string, body func(result string)) {
	full := b.UniqueName(scope)
	b.Scope(full+"/", func() { body(full + "/") })
}

func stepNow(b *graph.Builder, step *graph.Variable) graph.Output {
	return b.Cast("Cast", b.Read("Cast/ReadVariableOp", step), tfpb.DataType_DT_FLOAT)
}

// periods adds how many DecaySteps have passed.
func periods(b *graph.Builder, lr LearningRate, now, every graph.Output) graph.Output {
	p := b.RealDiv("truediv", now, every)
	if lr.Staircase {
		p = b.Floor("Floor", p)
	}
	return p
}

func exponentialDecay(b *graph.Builder, lr LearningRate, step *graph.Variable) (rate graph.Output) {
	named(b, "ExponentialDecay", func(name string) {
		initial := b.Const("initial_learning_rate", literal.Float(lr.Initial))
		every := b.Const("decay_steps", literal.Float(float32(lr.DecaySteps)))
		factor := b.Const("decay_rate", literal.Float(lr.DecayRate))
		rate = b.Mul(name, initial, b.Pow("Pow", factor, periods(b, lr, stepNow(b, step), every)))
	})
	return rate
}

func inverseTimeDecay(b *graph.Builder, lr LearningRate, step *graph.Variable) (rate graph.Output) {
	named(b, "InverseTimeDecay", func(name string) {
		initial := b.Const("initial_learning_rate", literal.Float(lr.Initial))
		every := b.Const("decay_steps", literal.Float(float32(lr.DecaySteps)))
		factor := b.Const("decay_rate", literal.Float(lr.DecayRate))
		periods := periods(b, lr, stepNow(b, step), every)
		rate = b.RealDiv(name, initial, b.AddV2("Add", b.Const("Const", literal.Float(1)), b.Mul("Mul", factor, periods)))
	})
	return rate
}

// progress adds the part of DecaySteps that has passed, at most one.
func progress(b *graph.Builder, lr LearningRate, step *graph.Variable) graph.Output {
	every := b.Const("decay_steps", literal.Float(float32(lr.DecaySteps)))
	return b.RealDiv("truediv", b.Minimum("Minimum", stepNow(b, step), every), every)
}

func polynomialDecay(b *graph.Builder, lr LearningRate, step *graph.Variable) (rate graph.Output) {
	named(b, "PolynomialDecay", func(name string) {
		end := b.Const("end_learning_rate", literal.Float(lr.End))
		span := b.Sub("sub", b.Const("initial_learning_rate", literal.Float(lr.Initial)), end)
		left := b.Sub("sub_1", b.Const("one", literal.Float(1)), progress(b, lr, step))
		power := b.Pow("Pow", left, b.Const("power", literal.Float(lr.Power)))
		rate = b.AddV2(name, b.Mul("Mul", span, power), end)
	})
	return rate
}

func cosineDecay(b *graph.Builder, lr LearningRate, step *graph.Variable) (rate graph.Output) {
	named(b, "CosineDecay", func(name string) {
		one, half := b.Const("one", literal.Float(1)), b.Const("half", literal.Float(.5))
		angle := b.Mul("mul", b.Const("pi", literal.Float(math.Pi)), progress(b, lr, step))
		wave := b.Mul("mul_1", half, b.AddV2("add", one, b.Cos("Cos", angle)))
		alpha := float32(0)
		if lr.Initial != 0 {
			alpha = lr.End / lr.Initial
		}
		share := b.AddV2("add_1", b.Mul("mul_2", b.Const("span", literal.Float(1-alpha)), wave), b.Const("alpha", literal.Float(alpha)))
		rate = b.Mul(name, b.Const("initial_learning_rate", literal.Float(lr.Initial)), share)
	})
	return rate
}

// piecewiseConstant counts the boundaries that the step has passed, and takes the value
// of that number.
func piecewiseConstant(b *graph.Builder, lr LearningRate, step *graph.Variable) (rate graph.Output) {
	if len(lr.Values) != len(lr.Boundaries)+1 {
		b.Fail("learning rate: %d values for %d boundaries, want one more", len(lr.Values), len(lr.Boundaries))
		return b.Const("base_learning_rate", literal.Float(lr.Initial))
	}
	named(b, "PiecewiseConstant", func(name string) {
		bounds := b.Const("boundaries", literal.Int64s(lr.Boundaries...))
		passed := b.Greater("Greater", b.Read("ReadVariableOp", step), bounds)
		piece := b.Sum("Sum", b.Cast("Cast", passed, tfpb.DataType_DT_INT32))
		rate = b.Elements(name, b.Const("values", literal.Floats(lr.Values...)), piece)
	})
	return rate
}
