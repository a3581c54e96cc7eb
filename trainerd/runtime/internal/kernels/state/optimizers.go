package state

import (
	"math"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// The optimizers' update rules. Each op exists for reference variables, which
// it returns, and for resource variables; many also in a sparse form, whose
// gradient has rows for some indices only. All run the same rule over a
// variable, its slots and a gradient.
var optimizerOps = applyOps(map[string]optimizer{
	"GradientDescent":         {vars: 1, dense: "alpha grad", f16: always(halfDescent), f32: gradientDescent[float32], f64: gradientDescent[float64]},
	"Momentum":                {vars: 2, dense: "lr grad momentum", sparse: "lr grad indices momentum", f16: halfMomentum, f32: momentum[float32], f64: momentum[float64]},
	"KerasMomentum":           {vars: 2, onlyResources: true, dense: "lr grad momentum", sparse: "lr grad indices momentum", f16: halfKerasMomentum, f32: kerasMomentum[float32], f64: kerasMomentum[float64]},
	"Adagrad":                 {vars: 2, dense: "lr grad", sparse: "lr grad indices", f16: halfAdagrad, f32: adagrad[float32], f64: adagrad[float64]},
	"AdagradV2":               {vars: 2, dense: "lr epsilon grad", sparse: "lr epsilon grad indices", f16: halfAdagradV2, f32: adagradV2[float32], f64: adagradV2[float64]},
	"AdagradDA":               {vars: 3, dense: "grad lr l1 l2 step", sparse: "grad indices lr l1 l2 step", f32: adagradDA[float32], f64: adagradDA[float64]},
	"Adadelta":                {vars: 3, dense: "lr rho epsilon grad", sparse: "lr rho epsilon grad indices", f16: always(halfAdadelta), f32: adadelta[float32], f64: adadelta[float64]},
	"Adam":                    {vars: 3, dense: "beta1_power beta2_power lr beta1 beta2 epsilon grad", f16: halfAdam, f32: adam[float32], f64: adam[float64]},
	"AdamWithAmsgrad":         {vars: 4, onlyResources: true, dense: "beta1_power beta2_power lr beta1 beta2 epsilon grad", f16: always(halfAmsgrad), f32: amsgrad[float32], f64: amsgrad[float64]},
	"AdaMax":                  {vars: 3, dense: "beta1_power lr beta1 beta2 epsilon grad", f16: always(halfAdaMax), f32: adaMax[float32], f64: adaMax[float64]},
	"RMSProp":                 {vars: 3, dense: "lr rho momentum epsilon grad", sparse: "lr rho momentum epsilon grad indices", f16: always(halfRMSProp), f32: rmsProp[float32], f64: rmsProp[float64]},
	"CenteredRMSProp":         {vars: 4, dense: "lr rho momentum epsilon grad", sparse: "lr rho momentum epsilon grad indices", f16: always(halfCenteredRMSProp), f32: centeredRMSProp[float32], f64: centeredRMSProp[float64]},
	"Ftrl":                    {vars: 3, dense: "grad lr l1 l2 lr_power", sparse: "grad indices lr l1 l2 lr_power", f16: halfFtrl, f32: ftrl[float32], f64: ftrl[float64]},
	"FtrlV2":                  {vars: 3, dense: "grad lr l1 l2 l2_shrinkage lr_power", sparse: "grad indices lr l1 l2 l2_shrinkage lr_power", f16: halfFtrlV2, f32: ftrlV2[float32], f64: ftrlV2[float64]},
	"ProximalGradientDescent": {vars: 1, dense: "alpha l1 l2 grad", sparse: "alpha l1 l2 grad indices", f32: proximalDescent[float32], f64: proximalDescent[float64]},
	"ProximalAdagrad":         {vars: 2, dense: "lr l1 l2 grad", sparse: "lr l1 l2 grad indices", f32: proximalAdagrad[float32], f64: proximalAdagrad[float64]},
	"AddSign":                 {vars: 2, dense: "lr alpha sign_decay beta grad", f16: always(halfAddSign), f32: addSign[float32], f64: addSign[float64]},
	"PowerSign":               {vars: 2, dense: "lr logbase sign_decay beta grad", f16: always(halfPowerSign), f32: powerSign[float32], f64: powerSign[float64]},
})

// optimizer describes one update rule: how many variables it changes (the
// model's and its slots) and what inputs follow them.
type optimizer struct {
	vars          int
	onlyResources bool                                  // there is no op for reference variables
	dense, sparse string                                // inputs after the variables, by name
	f16           func(b *exec.OpConstruction) halfRule // nil where there are no variables of 16 bits
	f32           func(b *exec.OpConstruction) rule[float32]
	f64           func(b *exec.OpConstruction) rule[float64]
}

// rule updates v[0] and its slots v[1:] from the gradient g; h are the scalar
// inputs in the op's order. It works element by element, so it may be given
// any part of the variables.
type rule[T exec.Float] func(v [][]T, h, g []T)

func applyOps(list map[string]optimizer) exec.OpTable {
	t := exec.OpTable{}
	add := func(prefix, name, inputs string, o optimizer) {
		if inputs == "" {
			return
		}
		build := o.build(strings.Fields(inputs))
		types := exec.Floats
		if o.f16 != nil {
			types |= exec.Halves
		}
		if !o.onlyResources {
			t[prefix+name] = exec.OpSpec{Types: types, Flags: exec.Stateful | exec.WritesState | exec.ForwardsRef, Build: build}
		}
		t["Resource"+prefix+name] = exec.OpSpec{Types: types, Flags: exec.Stateful | exec.WritesState, Build: build}
	}
	for name, o := range list {
		add("Apply", name, o.dense, o)
		add("SparseApply", name, o.sparse, o)
	}
	return t
}

func (o optimizer) build(inputs []string) func(*exec.OpConstruction) (exec.Kernel, error) {
	grad, rows := o.vars+slices.Index(inputs, "grad"), 0
	if i := slices.Index(inputs, "indices"); i >= 0 {
		rows = o.vars + i
	}
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		switch dt := b.DType("T"); {
		case exec.Halves.Has(dt):
			return applyHalfRule(dt, o.vars, grad, rows, o.f16(b)), nil
		case dt == exec.Float32:
			return applyRule(o.vars, grad, rows, o.f32(b)), nil
		}
		return applyRule(o.vars, grad, rows, o.f64(b)), nil
	}
}

// maxOperands bounds the variables and the scalars of a rule.
const maxOperands = 8

// operands are what a rule is applied to.
type operands[T exec.Float] struct {
	updateInputs[T, T]

	// A long update is shared between processors, each with its parts of the
	// variables in here.
	rule  rule[T]
	width int
	grad  []T
	parts [][maxOperands][]T

	short shortRows[T]
}

// apply runs a rule on the first vars variables.
func (o *operands[T]) apply(f rule[T], vars int, grad []T) {
	if len(grad) < elem.ParallelElements {
		f(o.vars[:vars], o.scalars[:o.n], grad)
		return
	}
	if o.parts == nil {
		o.parts = make([][maxOperands][]T, exec.MaxParts)
	}
	o.rule, o.width, o.grad = f, vars, grad
	parallel.Run(exec.MaxParts, o)
}

// Part implements [parallel.Job].
func (o *operands[T]) Part(i, n int) {
	from, to := parallel.Span(len(o.grad), elem.SpreadStep, i, n)
	own := &o.parts[i]
	for k := range o.width {
		own[k] = o.vars[k][from:to]
	}
	o.rule(own[:o.width], o.scalars[:o.n], o.grad[from:to])
}

// applyRule is the kernel of an optimizer. rows is the input that holds the
// indices of a sparse gradient, 0 for a dense one.
func applyRule[T exec.Float](vars, grad, rows int, f rule[T]) exec.Kernel {
	return func(c *exec.KernelContext) error {
		o := operandsIn[T](c)
		if err := o.load(c, exec.DTypeOf[T](), vars, grad, rows, same[T]); err != nil {
			return err
		}
		g := c.In(grad)
		if rows > 0 {
			return applyRows(c, o, vars, g, c.In(rows), f)
		}
		if err := checkGradient(c, o.first, g); err != nil {
			return err
		}
		o.apply(f, vars, exec.Elems[T](g))
		return nil
	}
}

// operandsIn returns the frame's operands, empty, so that a step does not
// allocate them.
func operandsIn[T exec.Float](c *exec.KernelContext) *operands[T] {
	p := exec.InFrame[operands[T]](c)
	*p = operands[T]{parts: p.parts, short: p.short}
	return p
}

func power[T exec.Float](x, y T) T {
	switch y {
	case -0.5:
		return 1 / elem.Sqrt(x)
	case 0.5:
		return elem.Sqrt(x)
	}
	return T(math.Pow(float64(x), float64(y)))
}

func gradientDescent[T exec.Float](*exec.OpConstruction) rule[T] {
	return func(v [][]T, h, g []T) {
		w, lr := v[0][:len(g)], h[0]
		vec.Descend(w, g, lr)
	}
}

func momentum[T exec.Float](b *exec.OpConstruction) rule[T] {
	nesterov := b.Bool("use_nesterov")
	return func(v [][]T, h, g []T) {
		w, acc, lr, m := v[0][:len(g)], v[1][:len(g)], h[0], h[1]
		if nesterov {
			vec.Nesterov(w, acc, g, lr, m)
		} else {
			vec.Momentum(w, acc, g, lr, m)
		}
	}
}

func kerasMomentum[T exec.Float](b *exec.OpConstruction) rule[T] {
	nesterov := b.Bool("use_nesterov")
	return func(v [][]T, h, g []T) {
		w, acc, lr, m := v[0][:len(g)], v[1][:len(g)], h[0], h[1]
		for i, d := range g {
			acc[i] = acc[i]*m - d*lr
			if nesterov {
				w[i] += acc[i]*m - d*lr
			} else {
				w[i] += acc[i]
			}
		}
	}
}

func adagrad[T exec.Float](b *exec.OpConstruction) rule[T] {
	update := b.Bool("update_slots")
	return func(v [][]T, h, g []T) {
		w, acc, lr := v[0][:len(g)], v[1][:len(g)], h[0]
		if update {
			vec.Adagrad(w, acc, g, lr, 0)
			return
		}
		for i, d := range g {
			w[i] -= d * lr / elem.Sqrt(acc[i])
		}
	}
}

func adagradV2[T exec.Float](b *exec.OpConstruction) rule[T] {
	update := b.Bool("update_slots")
	return func(v [][]T, h, g []T) {
		w, acc, lr, eps := v[0][:len(g)], v[1][:len(g)], h[0], h[1]
		if update {
			vec.Adagrad(w, acc, g, lr, eps)
			return
		}
		for i, d := range g {
			w[i] -= d * lr / (elem.Sqrt(acc[i]) + eps)
		}
	}
}

// adagradDA follows Duchi et al., "Adaptive subgradient methods" (JMLR 2011),
// dual averaging; the variables are the model's and the accumulators of the
// gradient and of its square.
func adagradDA[T exec.Float](*exec.OpConstruction) rule[T] {
	return func(v [][]T, h, g []T) {
		w, acc, squared := v[0][:len(g)], v[1][:len(g)], v[2][:len(g)]
		lr, l1, l2, step := h[0], h[1], h[2], h[3]
		for i, d := range g {
			acc[i] += d
			squared[i] += d * d
			t := acc[i]
			if l1 > 0 {
				t = elem.Sign(t) * max(elem.Absolute(t)-l1*step, 0)
			}
			w[i] = -lr * t / (l2*step*lr + elem.Sqrt(squared[i]))
		}
	}
}

func adadelta[T exec.Float](*exec.OpConstruction) rule[T] {
	return func(v [][]T, h, g []T) {
		lr, rho, eps := h[0], h[1], h[2]
		vec.Adadelta(v[0][:len(g)], v[1], v[2], g, lr, rho, 1-rho, eps)
	}
}

func adam[T exec.Float](b *exec.OpConstruction) rule[T] {
	nesterov := b.Bool("use_nesterov")
	return func(s [][]T, h, g []T) {
		w, m, v := s[0][:len(g)], s[1][:len(g)], s[2][:len(g)]
		beta1Power, beta2Power, lr, beta1, beta2, eps := h[0], h[1], h[2], h[3], h[4], h[5]
		alpha := lr * elem.Sqrt(1-beta2Power) / (1 - beta1Power)
		if !nesterov {
			vec.Adam(w, m, v, g, alpha, 1-beta1, 1-beta2, eps)
			return
		}
		for i, d := range g {
			m[i] += (d - m[i]) * (1 - beta1)
			v[i] += (d*d - v[i]) * (1 - beta2)
			w[i] -= (d*(1-beta1) + beta1*m[i]) * alpha / (elem.Sqrt(v[i]) + eps)
		}
	}
}

func amsgrad[T exec.Float](*exec.OpConstruction) rule[T] {
	return func(s [][]T, h, g []T) {
		w, m, v, top := s[0][:len(g)], s[1][:len(g)], s[2][:len(g)], s[3][:len(g)]
		beta1Power, beta2Power, lr, beta1, beta2, eps := h[0], h[1], h[2], h[3], h[4], h[5]
		alpha := lr * elem.Sqrt(1-beta2Power) / (1 - beta1Power)
		for i, d := range g {
			m[i] += (d - m[i]) * (1 - beta1)
			v[i] += (d*d - v[i]) * (1 - beta2)
			top[i] = max(top[i], v[i])
			w[i] -= m[i] * alpha / (elem.Sqrt(top[i]) + eps)
		}
	}
}

func adaMax[T exec.Float](*exec.OpConstruction) rule[T] {
	return func(s [][]T, h, g []T) {
		w, m, v := s[0][:len(g)], s[1][:len(g)], s[2][:len(g)]
		beta1Power, lr, beta1, beta2, eps := h[0], h[1], h[2], h[3], h[4]
		for i, d := range g {
			m[i] += (d - m[i]) * (1 - beta1)
			v[i] = max(beta2*v[i], elem.Absolute(d))
			w[i] -= lr / (1 - beta1Power) * (m[i] / (v[i] + eps))
		}
	}
}

func rmsProp[T exec.Float](*exec.OpConstruction) rule[T] {
	return func(s [][]T, h, g []T) {
		w, ms, mom := s[0][:len(g)], s[1][:len(g)], s[2][:len(g)]
		lr, rho, m, eps := h[0], h[1], h[2], h[3]
		vec.RMSProp(w, ms, mom, g, lr, 1-rho, m, eps)
	}
}

func centeredRMSProp[T exec.Float](*exec.OpConstruction) rule[T] {
	return func(s [][]T, h, g []T) {
		lr, rho, m, eps := h[0], h[1], h[2], h[3]
		vec.CenteredRMSProp(s[0][:len(g)], s[1], s[2], s[3], g, lr, 1-rho, m, eps)
	}
}

func ftrl[T exec.Float](b *exec.OpConstruction) rule[T] {
	linear := b.Bool("multiply_linear_by_lr")
	return func(s [][]T, h, g []T) { ftrlStep(s, g, h[0], h[1], h[2], 0, h[3], linear) }
}

func ftrlV2[T exec.Float](b *exec.OpConstruction) rule[T] {
	linear := b.Bool("multiply_linear_by_lr")
	return func(s [][]T, h, g []T) { ftrlStep(s, g, h[0], h[1], h[2], h[3], h[4], linear) }
}

// ftrlStep follows McMahan et al., "Ad click prediction" (KDD 2013); lr enters
// the linear term when byLR is set.
func ftrlStep[T exec.Float](s [][]T, g []T, lr, l1, l2, shrinkage, lrPower T, byLR bool) {
	w, acc, linear := s[0][:len(g)], s[1][:len(g)], s[2][:len(g)]
	if lrPower == -.5 && !byLR {
		vec.Ftrl(w, acc, linear, g, lr, l1, l2, shrinkage)
		return
	}
	for i, d := range g {
		grad := d + 2*shrinkage*w[i]
		next := acc[i] + d*d
		root := power(next, -lrPower)
		sigma := root - power(acc[i], -lrPower)
		scale, bound := T(1), l1
		if byLR {
			scale, bound = lr, l1*lr
			linear[i] += grad*lr - sigma*w[i]
		} else {
			linear[i] += grad - sigma/lr*w[i]
		}
		if elem.Absolute(linear[i]) > bound {
			quadratic := root/lr*scale + 2*l2*scale
			w[i] = (elem.Sign(linear[i])*bound - linear[i]) / quadratic
		} else {
			w[i] = 0
		}
		acc[i] = next
	}
}

// shrink is the proximal step of the l1 and l2 regularisers.
func shrink[T exec.Float](w, lr, l1, l2 T) T {
	if l1 > 0 {
		return elem.Sign(w) * max(elem.Absolute(w)-lr*l1, 0) / (1 + l2*lr)
	}
	return w / (1 + l2*lr)
}

func proximalDescent[T exec.Float](*exec.OpConstruction) rule[T] {
	return func(v [][]T, h, g []T) {
		w, lr, l1, l2 := v[0][:len(g)], h[0], h[1], h[2]
		for i, d := range g {
			w[i] = shrink(w[i]-d*lr, lr, l1, l2)
		}
	}
}

func proximalAdagrad[T exec.Float](*exec.OpConstruction) rule[T] {
	return func(v [][]T, h, g []T) {
		w, acc, lr, l1, l2 := v[0][:len(g)], v[1][:len(g)], h[0], h[1], h[2]
		for i, d := range g {
			acc[i] += d * d
			rate := lr / elem.Sqrt(acc[i])
			w[i] = shrink(w[i]-d*rate, rate, l1, l2)
		}
	}
}

func addSign[T exec.Float](*exec.OpConstruction) rule[T] {
	return func(v [][]T, h, g []T) {
		w, m, lr, alpha, decay, beta := v[0][:len(g)], v[1][:len(g)], h[0], h[1], h[2], h[3]
		for i, d := range g {
			m[i] = m[i]*beta + d*(1-beta)
			w[i] -= lr * (alpha + decay*elem.Sign(d)*elem.Sign(m[i])) * d
		}
	}
}

func powerSign[T exec.Float](*exec.OpConstruction) rule[T] {
	return func(v [][]T, h, g []T) {
		w, m, lr, base, decay, beta := v[0][:len(g)], v[1][:len(g)], h[0], h[1], h[2], h[3]
		for i, d := range g {
			m[i] = m[i]*beta + d*(1-beta)
			w[i] -= lr * T(math.Exp(float64(base*decay*elem.Sign(d)*elem.Sign(m[i])))) * d
		}
	}
}
