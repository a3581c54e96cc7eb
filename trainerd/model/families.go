package model

import (
	"fmt"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// families holds the forward pass of each family. Each sets the maker's
// weights, loss and accuracy and the names of its predictions.
var families = map[string]func(*maker){
	"linear":        (*maker).linear,
	"mlp_regressor": (*maker).perceptronRegressor,
	"logistic":      (*maker).logistic,
	"softmax":       func(m *maker) { m.classify(m.x) },
	"mlp":           (*maker).perceptron,
	"convnet":       (*maker).convnet,
	"embedding_bag": (*maker).embeddingBag,
}

// truncatedStddev is the spread of the initializer truncated_normal.
const truncatedStddev = 0.1

func (m *maker) initializer() graph.Initial {
	// Each kernel has a stream of its own. An op seed of zero next to a graph
	// seed of zero would mean a random seed, so they count from one.
	seeds := graph.Seeds{Graph: m.cfg.Seed, Op: int64(len(m.kernels)) + m.seeds + 1}
	switch m.cfg.Initializer {
	case "glorot_normal":
		return graph.GlorotNormal(seeds)
	case "truncated_normal":
		return graph.TruncatedNormal(0, truncatedStddev, seeds)
	case "zeros":
		return graph.Zeros()
	}
	return graph.GlorotUniform(seeds)
}

// variable adds a weight of a layer.
func (m *maker) variable(name string, initial graph.Initial, dims ...int64) *graph.Variable {
	v := m.b.Variable(graph.VariableSpec{
		Name: name, DType: tfpb.DataType_DT_FLOAT,
		Shape: graph.MakeShape(dims...), Initial: initial, Trainable: true,
	})
	m.weights = append(m.weights, v)
	return v
}

// dense adds a layer: x times a kernel, plus a bias.
func (m *maker) dense(name string, x graph.Output, size int64) (out graph.Output) {
	m.b.Scope(name, func() { out = m.bias(name, m.product(name, x, size)) })
	return out
}

// product adds x times a kernel.
func (m *maker) product(name string, x graph.Output, size int64) graph.Output {
	kernel := m.variable(name+"/kernel", m.initializer(), x.Shape().Dims[1], size)
	w := m.b.Read("MatMul/ReadVariableOp", kernel)
	m.kernels = append(m.kernels, w)
	return m.b.MatMul("MatMul", x, w, false, false)
}

// bias adds a number of its own to each channel of x.
func (m *maker) bias(name string, x graph.Output) graph.Output {
	dims := x.Shape().Dims
	bias := m.variable(name+"/bias", graph.Zeros(), dims[len(dims)-1])
	return m.b.BiasAdd("BiasAdd", x, m.b.Read("BiasAdd/ReadVariableOp", bias))
}

// biasOrNorm adds what comes between a layer's product and its activation.
// Batch normalisation takes any bias out again and has one of its own.
func (m *maker) biasOrNorm(name string, x graph.Output) graph.Output {
	if m.cfg.BatchNorm {
		return m.batchNorm(name, x)
	}
	return m.bias(name, x)
}

// hidden adds the hidden layers.
func (m *maker) hidden(x graph.Output) graph.Output {
	for i, size := range m.cfg.Hidden {
		name := layerName("hidden", i, len(m.cfg.Hidden))
		m.b.Scope(name, func() {
			x = m.product(name, x, int64(size))
			if m.cfg.isPerceptron() {
				x = m.biasOrNorm(name, x)
			} else {
				x = m.bias(name, x)
			}
			x = m.dropout(m.activation(x))
		})
	}
	return x
}

// layerName numbers layers from one, unless there is a single one.
func layerName(kind string, i, n int) string {
	if n == 1 {
		return kind
	}
	return fmt.Sprintf("%s_%d", kind, i+1)
}

func (m *maker) activation(x graph.Output) graph.Output {
	switch m.cfg.Activation {
	case "tanh":
		return m.b.Tanh("Tanh", x)
	case "sigmoid":
		return m.b.Sigmoid("Sigmoid", x)
	}
	return m.b.Relu("Relu", x)
}

// perceptron classifies by hidden layers.
func (m *maker) perceptron() {
	m.classifyBy(m.widened(m.dense("logits", m.hidden(m.x), int64(m.cfg.Classes))))
}

// widened adds a weighted sum of the features to what hidden layers say.
func (m *maker) widened(deep graph.Output) (sum graph.Output) {
	if !m.cfg.Wide {
		return deep
	}
	m.b.Scope("wide", func() { sum = m.b.AddV2("add", deep, m.product("wide", m.x, deep.Shape().Dims[1])) })
	return sum
}

// classify adds the logits of a softmax over the classes, and the loss.
func (m *maker) classify(x graph.Output) {
	m.classifyBy(m.dense("logits", x, int64(m.cfg.Classes)))
}

func (m *maker) classifyBy(logits graph.Output) {
	b := m.b
	m.out.Logits = logits.Name()
	m.addLoss(func() graph.Output {
		return b.SparseSoftmaxCrossEntropyWithLogits("", logits, m.y)
	})
	var classes graph.Output
	var probabilities graph.Output
	b.Scope("predictions", func() {
		classes = b.ArgMax("ArgMax", logits, 1)
		probabilities = b.Softmax("probabilities", logits)
	})
	m.addAccuracy(classes)
	m.answerClasses(probabilities, classes)
}

// logistic tells two classes apart by the sign of one logit z. Its cross
// entropy is log(1 + exp(z)) - y z.
func (m *maker) logistic() {
	b := m.b
	logits := m.flat(m.dense("logits", m.x, 1))
	m.out.Logits = logits.Name()
	m.addLoss(func() graph.Output {
		labels := b.Cast("Cast", m.y, tfpb.DataType_DT_FLOAT)
		return b.Sub("cross_entropy", b.Softplus("Softplus", logits), b.Mul("mul", logits, labels))
	})
	var classes, probabilities graph.Output
	b.Scope("predictions", func() {
		positive := b.Greater("Greater", logits, b.Const("zero", literal.Float(0)))
		classes = b.Cast("Cast", positive, tfpb.DataType_DT_INT64)
		// Of two sigmoids neither loses digits, as 1 - p would.
		probabilities = b.StackColumns("probabilities", b.Sigmoid("Sigmoid", b.Neg("Neg", logits)), b.Sigmoid("Sigmoid_1", logits))
	})
	m.addAccuracy(classes)
	m.answerClasses(probabilities, classes)
}

// linear predicts a number by a weighted sum.
func (m *maker) linear() {
	m.regress(func() graph.Output { return m.dense("linear", m.x, 1) })
}

// perceptronRegressor predicts a number by hidden layers.
func (m *maker) perceptronRegressor() {
	m.regress(func() graph.Output { return m.widened(m.dense("output", m.hidden(m.x), 1)) })
}

// regress adds the loss of a number: the mean squared error, or the Huber loss.
func (m *maker) regress(predict func() graph.Output) {
	b := m.b
	y, inUnits, lossInUnits := m.scaleLabel()
	values := m.flat(predict())
	predicted := inUnits("predictions/prediction", values)
	m.out.Predictions = predicted.Name()
	m.gives = map[string]graph.Output{OutputPrediction: predicted}
	m.addLoss(func() graph.Output { return m.errorLoss(b.Sub("sub", values, y)) })
	m.minimized = m.loss
	m.loss = lossInUnits("loss_in_units", m.minimized)
	m.out.MSE = m.loss.Name()
	if m.isHuber() {
		b.Scope("squared_error", func() { m.fit = b.Mean("Mean", b.Square("Square", b.Sub("sub", values, y))) })
	}
	if m.fit != m.minimized {
		m.out.MSE = lossInUnits("mean_squared_error", m.fit).Name()
	}
}

// flat makes a vector of a matrix with one column.
func (m *maker) flat(x graph.Output) graph.Output {
	return m.b.Reshape("predictions/Reshape", x, graph.MakeShape(-1))
}

// addLoss adds the mean of the examples' losses, each times its weight, plus the
// L2 term.
func (m *maker) addLoss(examples func() graph.Output) {
	b := m.b
	b.Scope("loss", func() {
		each := examples()
		if m.weight.Valid() {
			m.fit = b.Mean("unweighted", each)
			each = b.Mul("weighted", each, m.weight)
		}
		if m.cfg.L2 == 0 {
			m.loss = b.Mean("loss/", each)
			m.fit = validOr(m.fit, m.loss)
			return
		}
		mean := b.Mean("Mean", each)
		m.fit = validOr(m.fit, mean)
		squares := make([]graph.Output, len(m.kernels))
		for i, w := range m.kernels {
			squares[i] = b.L2Loss("L2Loss", w)
		}
		weight := b.Const("l2", literal.Float(float32(m.cfg.L2)))
		m.loss = b.AddV2("loss/", mean, b.Mul("mul", weight, b.AddN("AddN", squares...)))
	})
}

func validOr(a, b graph.Output) graph.Output {
	if a.Valid() {
		return a
	}
	return b
}

func (m *maker) addAccuracy(classes graph.Output) {
	b := m.b
	m.out.Predictions = classes.Name()
	b.Scope("accuracy", func() {
		right := b.Cast("Cast", b.Equal("Equal", classes, m.y), tfpb.DataType_DT_FLOAT)
		m.accuracy = b.Mean("accuracy/", right)
	})
}
