package model

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// convnet adds convolutions, each with activation and max pooling, then hidden
// layers, then a softmax.
func (m *maker) convnet() {
	b, x := m.b, m.x
	for i, filters := range m.cfg.Filters {
		name := layerName("conv", i, len(m.cfg.Filters))
		b.Scope(name, func() { x = m.convolution(name, x, int64(filters)) })
	}
	size := int64(1)
	for _, d := range x.Shape().Dims[1:] {
		size *= d
	}
	m.classify(m.hidden(b.Reshape("flatten/Reshape", x, graph.MakeShape(-1, size))))
}

func (m *maker) convolution(name string, x graph.Output, filters int64) graph.Output {
	b, size := m.b, int64(m.cfg.KernelSize)
	kernel := m.variable(name+"/kernel", m.initializer(), size, size, x.Shape().Dims[3], filters)
	w := b.Read("Conv2D/ReadVariableOp", kernel)
	m.kernels = append(m.kernels, w)
	x = m.activation(m.biasOrNorm(name, b.Conv2D("Conv2D", x, w)))
	if m.cfg.Pool > 1 {
		x = b.MaxPool("MaxPool", x, int64(m.cfg.Pool))
	}
	return x
}

// batchNormEpsilon keeps the variance from zero, as in TensorFlow's layers.
const batchNormEpsilon = 1e-3

// batchNorm normalises each channel of x, its last dimension: in training by
// the batch, else by the moving averages, which the train op moves.
func (m *maker) batchNorm(layer string, x graph.Output) (out graph.Output) {
	b, name := m.b, layer+"/batch_normalization"
	dims := x.Shape().Dims
	channels := dims[len(dims)-1]
	gamma := m.variable(name+"/gamma", graph.Ones(), channels)
	beta := m.variable(name+"/beta", graph.Zeros(), channels)
	moving := func(part string, initial graph.Initial) *graph.Variable {
		return b.Variable(graph.VariableSpec{Name: name + "/" + part, DType: tfpb.DataType_DT_FLOAT,
			Shape: graph.MakeShape(channels), Initial: initial})
	}
	movingMean, movingVariance := moving("moving_mean", graph.Zeros()), moving("moving_variance", graph.Ones())
	b.Scope("batch_normalization", func() {
		mean, variance := m.moments(x)
		rate := 1 - float32(m.cfg.BatchNormMomentum)
		m.updates = append(m.updates, b.MoveAverage("AssignMovingAvg", movingMean, mean, rate),
			b.MoveAverage("AssignMovingAvg_1", movingVariance, variance, rate))
		mean = b.SelectV2("mean", m.training, mean, b.Read("mean/ReadVariableOp", movingMean))
		variance = b.SelectV2("variance", m.training, variance, b.Read("variance/ReadVariableOp", movingVariance))
		out = m.normalize(x, mean, variance, gamma, beta)
	})
	return out
}

// moments adds mean and variance of each channel of a batch.
func (m *maker) moments(x graph.Output) (mean, variance graph.Output) {
	b, dims := m.b, x.Shape().Dims
	axes := make([]int32, len(dims)-1)
	for i := range axes {
		axes[i] = int32(i)
	}
	flat := graph.MakeShape(dims[len(dims)-1])
	b.Scope("moments", func() {
		kept := b.MeanOver("mean", x, axes...)
		squares := b.SquaredDifference("SquaredDifference", x, b.StopGradient("StopGradient", kept))
		mean = b.Reshape("Squeeze", kept, flat)
		variance = b.Reshape("Squeeze_1", b.MeanOver("variance", squares, axes...), flat)
	})
	return mean, variance
}

// normalize adds (x - mean) / sqrt(variance + epsilon) * gamma + beta, with as
// much as possible done for the channels alone.
func (m *maker) normalize(x, mean, variance graph.Output, gamma, beta *graph.Variable) (out graph.Output) {
	b := m.b
	b.Scope("batchnorm", func() {
		epsilon := b.Const("add/y", literal.Float(batchNormEpsilon))
		factor := b.Rsqrt("Rsqrt", b.AddV2("add", variance, epsilon))
		factor = b.Mul("mul", factor, b.Read("mul/ReadVariableOp", gamma))
		shift := b.Sub("sub", b.Read("ReadVariableOp", beta), b.Mul("mul_2", mean, factor))
		out = b.AddV2("add_1", b.Mul("mul_1", x, factor), shift)
	})
	return out
}

// dropout leaves out a part of x in training. Each layer has a stream of its
// own.
func (m *maker) dropout(x graph.Output) graph.Output {
	if m.cfg.Dropout == 0 {
		return x
	}
	b := m.b
	training := b.Cast("dropout_rate/Cast", m.training, tfpb.DataType_DT_FLOAT)
	rate := b.Mul("dropout_rate", training, b.Const("dropout_rate/rate", literal.Float(float32(m.cfg.Dropout))))
	m.dropouts++
	return b.Dropout("dropout", x, rate, b.Read("dropout_step", m.step), m.cfg.Seed+m.dropouts<<32)
}

// embeddingBag looks up a vector for each id, and combines those of a bag. Ids
// below zero do not count.
func (m *maker) embeddingBag() {
	b, size := m.b, int64(m.cfg.Embedding)
	var bag graph.Output
	b.Scope("embedding", func() {
		table := m.variable("embedding/table", m.initializer(), int64(m.cfg.Vocabulary), size)
		m.seeds++ // no kernel, but as random as one
		zero := b.Const("zero", literal.Int64(0))
		present := b.Cast("present", b.GreaterEqual("GreaterEqual", m.x, zero), tfpb.DataType_DT_FLOAT)
		rows := b.GatherVariable("lookup", table, b.Maximum("Maximum", m.x, zero))
		sum := b.SumOver("Sum", b.Mul("mul", rows, b.ExpandLast("ExpandDims", present)), 1)
		bag = b.Reshape("Reshape", sum, graph.MakeShape(-1, size))
		if m.cfg.Combiner == "mean" {
			one := b.Const("one", literal.Float(1))
			share := b.RealDiv("truediv", one, b.Maximum("count", b.SumOver("Sum_1", present, 1), one))
			bag = b.Mul("bag", bag, share)
		}
	})
	m.classify(m.hidden(bag))
}
