// Package math has the kernels of the ops that compute element by element and
// along axes: arithmetic, comparisons, casts, reductions, special functions and
// Fourier transforms.
package math

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{
		bitwiseOps,
		arithmeticOps.WithHalves("Add", "AddV2", "Sub", "Mul", "Pow", "Maximum", "Minimum", "AddN", "MulNoNan").WithSteps(arithmeticSteps),
		unaryOps.WithHalves("Exp", "Expm1", "Log", "Log1p", "Sqrt", "Rsqrt", "Sin", "Cos", "Tanh", "Erf", "Erfc", "Ceil", "Floor", "Rint",
			"Reciprocal", "Inv", "Relu", "Relu6", "Neg", "Abs", "Sign", "Square", "Round", "IsNan", "IsInf", "IsFinite",
			"ReluGrad", "Relu6Grad").WithSteps(unarySteps),
		compareOps.WithHalves("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"),
		divideOps.WithHalves("RealDiv", "Div", "DivNoNan"),
		reduceOps.WithHalves("Sum", "Mean", "Prod", "Max", "Min", "L2Loss", "ArgMax"),
		castOps,
		complexOps,
		fourierOps,
		bincountOps,
		histogramOps,
		specialOps,
	}
}
