package model

import (
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// isHuber reports whether a number is learnt by TensorFlow's huber_loss.
func (m *maker) isHuber() bool { return m.cfg.Loss == "huber_loss" }

// errorLoss adds the loss of each error of a number.
func (m *maker) errorLoss(e graph.Output) graph.Output {
	if m.isHuber() {
		return m.huber(e)
	}
	return m.b.Square("Square", e)
}

// huber adds half the square of each error up to delta, and delta times a larger one less half
// the square of delta. With c, the error cut at delta, both are c e - c²/2, whose derivative
// is c as if that were constant.
func (m *maker) huber(e graph.Output) graph.Output {
	b, delta := m.b, m.huberDelta()
	most, least := b.Const("delta", literal.Float(delta)), b.Const("minus_delta", literal.Float(-delta))
	cut := b.StopGradient("cut", b.Maximum("Maximum", b.Minimum("Minimum", e, most), least))
	half := b.Mul("half", b.Square("Square", cut), b.Const("half/x", literal.Float(0.5)))
	return b.Sub("huber", b.Mul("mul", cut, e), half)
}

// huberDelta returns where huber_loss becomes a straight line, for labels as they are learnt.
func (m *maker) huberDelta() float32 {
	switch {
	case m.cfg.HuberDelta == 0:
		return 1
	case !m.scalesLabel():
		return float32(m.cfg.HuberDelta)
	}
	return float32(m.cfg.HuberDelta / m.labelSpread().Deviation)
}
