package state

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// The update rules on variables of 16 bits. TensorFlow rounds to the type after each
// operation of a rule, so the order of its operations shows in the results.

// halfRule is a [rule] on a block of elements, whose steps round.
type halfRule func(v *[maxOperands][]float32, h, g []float32, s *halfSteps)

// always returns a rule that no attribute changes.
func always(f halfRule) func(*exec.OpConstruction) halfRule {
	return func(*exec.OpConstruction) halfRule { return f }
}

func halfDescent(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
	v[0] = s.sub(v[0], s.times(g, h[0]))
}

func halfMomentum(b *exec.OpConstruction) halfRule {
	nesterov := b.Bool("use_nesterov")
	return func(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
		lr, m := h[0], h[1]
		v[1] = s.add(s.times(v[1], m), g)
		switch {
		case nesterov && s.sparse:
			v[0] = s.sub(v[0], s.add(s.times(g, lr), s.times(v[1], s.one(lr*m))))
		case nesterov:
			v[0] = s.sub(v[0], s.add(s.times(g, lr), s.times(s.times(v[1], m), lr)))
		default:
			v[0] = s.sub(v[0], s.times(v[1], lr))
		}
	}
}

func halfKerasMomentum(b *exec.OpConstruction) halfRule {
	nesterov := b.Bool("use_nesterov")
	return func(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
		m, change := h[1], s.times(g, h[0])
		v[1] = s.sub(s.times(v[1], m), change)
		if nesterov {
			v[0] = s.add(v[0], s.sub(s.times(v[1], m), change))
		} else {
			v[0] = s.add(v[0], v[1])
		}
	}
}

func halfAdagrad(b *exec.OpConstruction) halfRule {
	update := b.Bool("update_slots")
	return func(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
		if update {
			v[1] = s.add(v[1], s.mul(g, g))
		}
		if s.alone {
			v[0] = s.sub(v[0], s.div(s.times(g, h[0]), s.sqrt(v[1])))
		} else {
			v[0] = s.sub(v[0], s.mul(s.times(g, h[0]), s.rsqrt(v[1])))
		}
	}
}

func halfAdagradV2(b *exec.OpConstruction) halfRule {
	update := b.Bool("update_slots")
	return func(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
		if update {
			v[1] = s.add(v[1], s.mul(g, g))
		}
		v[0] = s.sub(v[0], s.div(s.times(g, h[0]), s.plus(s.sqrt(v[1]), h[1])))
	}
}

func halfAdadelta(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
	lr, rho, eps := h[0], h[1], h[2]
	rest := s.one(1 - rho)
	v[1] = s.add(s.times(v[1], rho), s.times(s.mul(g, g), rest))
	update := s.mul(s.mul(s.sqrt(s.plus(v[2], eps)), s.rsqrt(s.plus(v[1], eps))), g)
	v[0] = s.sub(v[0], s.times(update, lr))
	v[2] = s.add(s.times(v[2], rho), s.times(s.mul(update, update), rest))
}

// adamRate is the rate of a step of Adam.
func adamRate(h []float32, s *halfSteps) float32 {
	r := s.one
	beta1Power, beta2Power, lr := h[0], h[1], h[2]
	return r(r(lr*r(elem.Sqrt(r(1-beta2Power)))) / r(1-beta1Power))
}

func halfAdam(b *exec.OpConstruction) halfRule {
	nesterov := b.Bool("use_nesterov")
	return func(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
		alpha, beta1, beta2, eps := adamRate(h, s), h[3], h[4], h[5]
		v[1] = s.moment(v[1], g, s.one(1-beta1))
		v[2] = s.moment(v[2], s.mul(g, g), s.one(1-beta2))
		m := v[1]
		if nesterov {
			m = s.add(s.times(g, s.one(1-beta1)), s.times(v[1], beta1))
		}
		v[0] = s.sub(v[0], s.div(s.times(m, alpha), s.plus(s.sqrt(v[2]), eps)))
	}
}

func halfAmsgrad(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
	alpha, beta1, beta2, eps := adamRate(h, s), h[3], h[4], h[5]
	v[1] = s.moment(v[1], g, s.one(1-beta1))
	v[2] = s.moment(v[2], s.mul(g, g), s.one(1-beta2))
	v[3] = s.largest(v[3], v[2])
	v[0] = s.sub(v[0], s.div(s.times(v[1], alpha), s.plus(s.sqrt(v[3]), eps)))
}

func halfAdaMax(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
	beta1Power, lr, beta1, beta2, eps := h[0], h[1], h[2], h[3], h[4]
	v[1] = s.moment(v[1], g, s.one(1-beta1))
	v[2] = s.largest(s.times(v[2], beta2), s.each(g, elem.Absolute))
	v[0] = s.sub(v[0], s.times(s.div(v[1], s.plus(v[2], eps)), s.one(lr/s.one(1-beta1Power))))
}

func halfRMSProp(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
	lr, rho, m, eps := h[0], h[1], h[2], h[3]
	var change []float32
	if s.sparse {
		v[1] = s.average(v[1], s.mul(g, g), rho)
		change = s.mul(s.times(s.rsqrt(s.plus(v[1], eps)), lr), g)
	} else {
		v[1] = s.moment(v[1], s.mul(g, g), s.one(1-rho))
		change = s.div(s.times(g, lr), s.sqrt(s.plus(v[1], eps)))
	}
	v[2] = s.add(s.times(v[2], m), change)
	v[0] = s.sub(v[0], v[2])
}

func halfCenteredRMSProp(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
	lr, rho, m, eps := h[0], h[1], h[2], h[3]
	var change []float32
	if s.sparse {
		v[2] = s.average(v[2], s.mul(g, g), rho)
		v[1] = s.average(v[1], g, rho)
		square := s.sub(s.plus(v[2], eps), s.mul(v[1], v[1]))
		change = s.mul(s.times(s.rsqrt(square), lr), g)
	} else {
		v[2] = s.moment(v[2], s.mul(g, g), s.one(1-rho))
		v[1] = s.moment(v[1], g, s.one(1-rho))
		square := s.plus(s.sub(v[2], s.mul(v[1], v[1])), eps)
		change = s.div(s.times(g, lr), s.sqrt(square))
	}
	v[3] = s.add(s.times(v[3], m), change)
	v[0] = s.sub(v[0], v[3])
}

func halfAddSign(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
	lr, alpha, decay, beta := h[0], h[1], h[2], h[3]
	v[1] = s.add(s.times(v[1], beta), s.times(g, s.one(1-beta)))
	scale := s.times(s.plus(s.times(s.signs(g, v[1]), decay), alpha), lr)
	v[0] = s.sub(v[0], s.mul(scale, g))
}

func halfPowerSign(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
	lr, base, decay, beta := h[0], h[1], h[2], h[3]
	v[1] = s.add(s.times(v[1], beta), s.times(g, s.one(1-beta)))
	scale := s.times(s.signs(g, v[1]), s.one(base*decay))
	scale = s.rounded(s.each(scale, func(x float32) float32 { return float32(math.Exp(float64(x))) }))
	v[0] = s.sub(v[0], s.mul(s.times(scale, lr), g))
}

func halfFtrl(b *exec.OpConstruction) halfRule {
	byLR := b.Bool("multiply_linear_by_lr")
	return func(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
		k := ftrlScalars{lr: h[0], l1: h[1], l2: s.one(2 * h[2]), power: h[3], byLR: byLR}
		k.step(v, g, g, s)
	}
}

func halfFtrlV2(b *exec.OpConstruction) halfRule {
	byLR := b.Bool("multiply_linear_by_lr")
	return func(v *[maxOperands][]float32, h, g []float32, s *halfSteps) {
		k := ftrlScalars{lr: h[0], l1: h[1], l2: s.one(2 * h[2]), power: h[4], byLR: byLR}
		k.step(v, g, s.add(g, s.times(v[0], s.one(2*h[3]))), s)
	}
}

// ftrlScalars are what Ftrl computes with; l2 is twice the input.
type ftrlScalars struct {
	lr, l1, l2, power float32
	byLR              bool
}

func (k *ftrlScalars) step(v *[maxOperands][]float32, g, grad []float32, s *halfSteps) {
	next := s.add(v[1], s.mul(g, g))
	root := s.pow(next, -k.power)
	sigma := s.sub(root, s.pow(v[1], -k.power))
	bound, y := k.l1, root
	if k.byLR {
		grad = s.times(grad, k.lr)
		bound, y = s.one(k.l1*k.lr), s.plus(root, s.one(k.l2*k.lr))
	} else {
		sigma = s.over(sigma, k.lr)
		y = s.plus(s.over(root, k.lr), k.l2)
	}
	change := s.mul(sigma, v[0])
	if s.alone {
		v[2] = s.sub(s.add(v[2], grad), change)
	} else {
		v[2] = s.add(v[2], s.sub(grad, change))
	}
	clamped := s.each(v[2], func(z float32) float32 { return max(min(z, bound), -bound) })
	v[0] = s.div(s.sub(clamped, v[2]), y)
	v[1] = next
}
