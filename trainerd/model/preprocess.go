package model

import (
	"fmt"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// rawColumn is a feature, with its number and its place in a raw row.
type rawColumn struct {
	dataset.Feature
	number int
	at     int32
}

// name returns a name for the nodes of the column.
func (c rawColumn) name() string { return nodeName(c.Feature, c.number) }

// preprocess makes the features that are learnt from of raw rows.
func (m *maker) preprocess() {
	d := m.data
	if d == nil || m.x.DType() != tfpb.DataType_DT_FLOAT {
		return
	}
	var numbers []int32
	var words []rawColumn
	var dates []graph.Output
	at := int32(0)
	for i, f := range d.Schema.Features {
		c := rawColumn{f, i, at}
		at += int32(f.Size())
		if f.HasWords() {
			words = append(words, c)
			continue
		}
		numbers = append(numbers, c.at)
		dates = append(dates, m.dateParts(c)...)
	}
	if len(words) == 0 && len(dates) == 0 {
		m.x = m.scale(m.x, d.moments(numbers))
		return
	}
	var parts []graph.Output
	if len(numbers) > 0 {
		parts = append(parts, m.scale(m.b.Columns("features/numbers", m.x, numbers...), d.moments(numbers)))
	}
	parts = append(parts, dates...)
	for _, c := range words {
		if c.Kind == dataset.KindText {
			parts = append(parts, m.text(c))
		} else {
			parts = append(parts, m.category(c))
		}
	}
	m.x = m.b.ConcatColumns("features/concat", parts...)
}

// statistic adds a number for each column: a variable that is not trained, or a
// constant.
func (m *maker) statistic(name string, shape graph.Shape, values []float32) graph.Output {
	t := literal.Floats(values...)
	t.TensorShape = shape.Proto()
	if m.data.Constant {
		return m.b.Const(name, t)
	}
	v := m.b.Variable(graph.VariableSpec{Name: name, DType: tfpb.DataType_DT_FLOAT, Shape: shape, Initial: graph.Value(t)})
	return m.b.Read(name[strings.LastIndexByte(name, '/')+1:]+"/ReadVariableOp", v)
}

// scale adds what the data say of columns of numbers.
func (m *maker) scale(x graph.Output, all []dataset.Moments) (out graph.Output) {
	b, d := m.b, m.data
	shape := graph.MakeShape(x.Shape().Dims[1:]...)
	switch {
	case d.Normalize == dataset.NormalizeStandard:
		b.Scope("normalization", func() {
			centred := b.Sub("sub", x, m.statistic("normalization/mean", shape, floats(all, mean)))
			deviation := b.Sqrt("Sqrt", m.statistic("normalization/variance", shape, floats(all, variance)))
			scaled := b.RealDiv("truediv", centred, deviation)
			out = m.fill(scaled, b.Const("missing", literal.Float(0)))
		})
	case d.Normalize == dataset.NormalizeMinMax:
		b.Scope("normalization", func() {
			x = m.fill(x, m.statistic("normalization/mean", shape, floats(all, mean)))
			above := b.Sub("sub", x, m.statistic("normalization/minimum", shape, floats(all, minimum)))
			out = b.RealDiv("truediv", above, m.statistic("normalization/range", shape, floats(all, valueRange)))
		})
	default:
		out = m.divide(m.impute(x, shape, all))
	}
	return out
}

// fill adds x, with missing numbers replaced.
func (m *maker) fill(x, instead graph.Output) graph.Output {
	if m.data.Schema.Image != nil {
		return x // pixels are never missing
	}
	return m.b.Where("SelectV2", m.b.IsNan("IsNan", x), instead, x)
}

// impute fills in means for missing numbers, if the training rows have any.
func (m *maker) impute(x graph.Output, shape graph.Shape, all []dataset.Moments) (out graph.Output) {
	if !missing(all) {
		return x
	}
	m.b.Scope("imputation", func() {
		out = m.fill(x, m.statistic("imputation/mean", shape, floats(all, mean)))
	})
	return out
}

func (m *maker) divide(x graph.Output) graph.Output {
	if m.data.Scale == 0 || m.data.Scale == 1 {
		return x
	}
	return m.b.RealDiv("scale", x, m.b.Const("scale/divisor", literal.Float(float32(m.data.Scale))))
}

// category adds the encoded word of a column: a one among zeros, or a
// learnt vector; zeros for a word that is not in the vocabulary.
func (m *maker) category(c rawColumn) (out graph.Output) {
	b, words := m.b, len(c.Vocabulary)
	b.Scope("features/"+c.name(), func() {
		index := b.Reshape("index", b.Columns("column", m.x, c.at), graph.MakeShape(-1))
		index = b.Cast("Cast", index, tfpb.DataType_DT_INT64)
		if words <= oneHotWords {
			out = b.OneHot("one_hot", index, int32(words))
			return
		}
		table := m.variable("embedding/"+c.name(), m.initializer(), int64(words), embeddingSize(words))
		m.seeds++
		zero := b.Const("zero", literal.Int64(0))
		known := b.Cast("known", b.GreaterEqual("GreaterEqual", index, zero), tfpb.DataType_DT_FLOAT)
		rows := b.GatherVariable("lookup", table, b.Maximum("Maximum", index, zero))
		out = b.Mul("mul", rows, b.ExpandLast("ExpandDims", known))
	})
	return out
}

// nodeName returns a name for the nodes of a column: TensorFlow allows few
// characters in it.
func nodeName(f dataset.Feature, column int) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, f.Name)
	if strings.Trim(name, "_") == "" {
		return fmt.Sprintf("column_%d", column)
	}
	return strings.TrimLeft(name, "_")
}

// scaleLabel returns the label as it is learnt, and what brings a prediction, and
// a loss of squares, back to the label's units.
func (m *maker) scaleLabel() (y graph.Output, predict, loss func(name string, x graph.Output) graph.Output) {
	b := m.b
	asItIs := func(_ string, x graph.Output) graph.Output { return x }
	if !m.scalesLabel() {
		return m.y, asItIs, asItIs
	}
	var mu, v, deviation graph.Output
	b.Scope("label", func() {
		mu, v, deviation = m.labelScale()
		y = b.RealDiv("truediv", b.Sub("sub", m.y, mu), deviation)
	})
	predict = func(name string, x graph.Output) graph.Output {
		return b.AddV2(name, b.Mul("predictions/mul", x, deviation), mu)
	}
	loss = func(name string, x graph.Output) graph.Output { return b.Mul(name, x, v) }
	return y, predict, loss
}

// labelSpread returns that of the data; of data that do not say it, the label is learnt as it is.
func (m *maker) labelSpread() dataset.Spread {
	if m.data.LabelSpread.Deviation == 0 {
		return dataset.Spread{Deviation: 1}
	}
	return m.data.LabelSpread
}

// scalesLabel reports whether the label is learnt in deviations from its middle.
func (m *maker) scalesLabel() bool {
	return m.data != nil && !m.data.Constant && m.data.Statistics != nil
}

// labelScale adds the middle of the labels, and their usual deviation from it with its square.
func (m *maker) labelScale() (middle, squared, deviation graph.Output) {
	b := m.b
	if m.isHuber() {
		spread := m.labelSpread()
		middle = m.statistic("label/median", graph.Shape{}, []float32{float32(spread.Median)})
		deviation = m.statistic("label/deviation", graph.Shape{}, []float32{float32(spread.Deviation)})
		return middle, b.Square("Square", deviation), deviation
	}
	label := []dataset.Moments{m.data.Statistics.Label}
	middle = m.statistic("label/mean", graph.Shape{}, floats(label, mean))
	squared = m.statistic("label/variance", graph.Shape{}, floats(label, variance))
	return middle, squared, b.Sqrt("Sqrt", squared)
}
