package state

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// The update rules on variables of 16 bits. TensorFlow rounds to the type after each
// operation of a rule, so the order of its operations shows in the results.

// halfRule is a [rule] on one element, which rounds after each operation.
type halfRule func(v *[maxOperands]float32, h []float32, g float32, s *halfSteps)

// always returns a rule that no attribute changes.
func always(f halfRule) func(*exec.OpConstruction) halfRule {
	return func(*exec.OpConstruction) halfRule { return f }
}

func halfDescent(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
	r := s.round
	v[0] = r(v[0] - r(g*h[0]))
}

func halfMomentum(b *exec.OpConstruction) halfRule {
	nesterov := b.Bool("use_nesterov")
	return func(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
		r := s.round
		lr, m := h[0], h[1]
		v[1] = r(r(v[1]*m) + g)
		switch {
		case nesterov && s.sparse:
			v[0] = r(v[0] - r(r(g*lr)+r(r(lr*m)*v[1])))
		case nesterov:
			v[0] = r(v[0] - r(r(g*lr)+r(r(v[1]*m)*lr)))
		default:
			v[0] = r(v[0] - r(v[1]*lr))
		}
	}
}

func halfKerasMomentum(b *exec.OpConstruction) halfRule {
	nesterov := b.Bool("use_nesterov")
	return func(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
		r := s.round
		lr, m := h[0], h[1]
		v[1] = r(r(v[1]*m) - r(g*lr))
		if nesterov {
			v[0] = r(v[0] + r(r(v[1]*m)-r(g*lr)))
		} else {
			v[0] = r(v[0] + v[1])
		}
	}
}

func halfAdagrad(b *exec.OpConstruction) halfRule {
	update := b.Bool("update_slots")
	return func(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
		r := s.round
		if update {
			v[1] = r(v[1] + r(g*g))
		}
		if s.alone {
			v[0] = r(v[0] - r(r(g*h[0])/s.sqrt(v[1])))
		} else {
			v[0] = r(v[0] - r(r(g*h[0])*s.rsqrt(v[1])))
		}
	}
}

func halfAdagradV2(b *exec.OpConstruction) halfRule {
	update := b.Bool("update_slots")
	return func(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
		r := s.round
		if update {
			v[1] = r(v[1] + r(g*g))
		}
		v[0] = r(v[0] - r(r(g*h[0])/r(s.sqrt(v[1])+h[1])))
	}
}

func halfAdadelta(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
	r := s.round
	lr, rho, eps := h[0], h[1], h[2]
	rest := r(1 - rho)
	v[1] = r(r(v[1]*rho) + r(r(g*g)*rest))
	update := r(r(s.sqrt(r(v[2]+eps))*s.rsqrt(r(v[1]+eps))) * g)
	v[0] = r(v[0] - r(update*lr))
	v[2] = r(r(v[2]*rho) + r(r(update*update)*rest))
}

// adamRate is the rate of a step of Adam.
func adamRate(h []float32, s *halfSteps) float32 {
	r := s.round
	beta1Power, beta2Power, lr := h[0], h[1], h[2]
	return r(r(lr*s.sqrt(r(1-beta2Power))) / r(1-beta1Power))
}

// moment moves an average towards a value by a share.
func (s *halfSteps) moment(old, x, share float32) float32 {
	r := s.round
	return r(old + r(r(x-old)*share))
}

// average is moment with the operations in TensorFlow's order for rows.
func (s *halfSteps) average(old, x, rho float32) float32 {
	r := s.round
	return r(r(old*rho) + r(x*r(1-rho)))
}

func halfAdam(b *exec.OpConstruction) halfRule {
	nesterov := b.Bool("use_nesterov")
	return func(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
		r := s.round
		alpha, beta1, beta2, eps := adamRate(h, s), h[3], h[4], h[5]
		v[1] = s.moment(v[1], g, r(1-beta1))
		v[2] = s.moment(v[2], r(g*g), r(1-beta2))
		m := v[1]
		if nesterov {
			m = r(r(g*r(1-beta1)) + r(beta1*v[1]))
		}
		v[0] = r(v[0] - r(r(m*alpha)/r(s.sqrt(v[2])+eps)))
	}
}

func halfAmsgrad(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
	r := s.round
	alpha, beta1, beta2, eps := adamRate(h, s), h[3], h[4], h[5]
	v[1] = s.moment(v[1], g, r(1-beta1))
	v[2] = s.moment(v[2], r(g*g), r(1-beta2))
	v[3] = max(v[3], v[2])
	v[0] = r(v[0] - r(r(v[1]*alpha)/r(s.sqrt(v[3])+eps)))
}

func halfAdaMax(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
	r := s.round
	beta1Power, lr, beta1, beta2, eps := h[0], h[1], h[2], h[3], h[4]
	v[1] = s.moment(v[1], g, r(1-beta1))
	v[2] = max(r(beta2*v[2]), elem.Absolute(g))
	v[0] = r(v[0] - r(r(lr/r(1-beta1Power))*r(v[1]/r(v[2]+eps))))
}

func halfRMSProp(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
	r := s.round
	lr, rho, m, eps := h[0], h[1], h[2], h[3]
	if s.sparse {
		v[1] = s.average(v[1], r(g*g), rho)
		v[2] = r(r(v[2]*m) + r(r(s.rsqrt(r(v[1]+eps))*lr)*g))
	} else {
		v[1] = s.moment(v[1], r(g*g), r(1-rho))
		v[2] = r(r(v[2]*m) + r(r(g*lr)/s.sqrt(r(v[1]+eps))))
	}
	v[0] = r(v[0] - v[2])
}

func halfCenteredRMSProp(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
	r := s.round
	lr, rho, m, eps := h[0], h[1], h[2], h[3]
	if s.sparse {
		v[2] = s.average(v[2], r(g*g), rho)
		v[1] = s.average(v[1], g, rho)
		square := r(r(v[2]+eps) - r(v[1]*v[1]))
		v[3] = r(r(v[3]*m) + r(r(s.rsqrt(square)*lr)*g))
	} else {
		v[2] = s.moment(v[2], r(g*g), r(1-rho))
		v[1] = s.moment(v[1], g, r(1-rho))
		square := r(r(v[2]-r(v[1]*v[1])) + eps)
		v[3] = r(r(v[3]*m) + r(r(g*lr)/s.sqrt(square)))
	}
	v[0] = r(v[0] - v[3])
}

func halfAddSign(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
	r := s.round
	lr, alpha, decay, beta := h[0], h[1], h[2], h[3]
	v[1] = r(r(v[1]*beta) + r(g*r(1-beta)))
	sign := elem.Sign(g) * elem.Sign(v[1])
	v[0] = r(v[0] - r(r(lr*r(alpha+r(decay*sign)))*g))
}

func halfPowerSign(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
	r := s.round
	lr, base, decay, beta := h[0], h[1], h[2], h[3]
	v[1] = r(r(v[1]*beta) + r(g*r(1-beta)))
	sign := elem.Sign(g) * elem.Sign(v[1])
	scale := r(float32(math.Exp(float64(r(r(base*decay) * sign)))))
	v[0] = r(v[0] - r(r(lr*scale)*g))
}

func halfFtrl(b *exec.OpConstruction) halfRule {
	byLR := b.Bool("multiply_linear_by_lr")
	return func(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
		k := ftrlScalars{lr: h[0], l1: h[1], l2: s.round(2 * h[2]), power: h[3], byLR: byLR}
		k.step(v, g, g, s)
	}
}

func halfFtrlV2(b *exec.OpConstruction) halfRule {
	byLR := b.Bool("multiply_linear_by_lr")
	return func(v *[maxOperands]float32, h []float32, g float32, s *halfSteps) {
		r := s.round
		k := ftrlScalars{lr: h[0], l1: h[1], l2: r(2 * h[2]), power: h[4], byLR: byLR}
		k.step(v, g, r(g+r(r(2*h[3])*v[0])), s)
	}
}

// ftrlScalars are what Ftrl computes with; l2 is twice the input.
type ftrlScalars struct {
	lr, l1, l2, power float32
	byLR              bool
}

func (k *ftrlScalars) step(v *[maxOperands]float32, g, grad float32, s *halfSteps) {
	r := s.round
	next := r(v[1] + r(g*g))
	root := s.pow(next, -k.power)
	sigma := r(root - s.pow(v[1], -k.power))
	bound, y := k.l1, float32(0)
	if k.byLR {
		grad = r(grad * k.lr)
		bound, y = r(k.l1*k.lr), r(root+r(k.l2*k.lr))
	} else {
		sigma = r(sigma / k.lr)
		y = r(r(root/k.lr) + k.l2)
	}
	if s.alone {
		v[2] = r(r(v[2]+grad) - r(sigma*v[0]))
	} else {
		v[2] = r(v[2] + r(grad-r(sigma*v[0])))
	}
	v[0] = r(r(max(min(v[2], bound), -bound)-v[2]) / y)
	v[1] = next
}
