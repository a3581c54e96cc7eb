// Package math has the kernels of the ops that compute element by element and
// along axes: arithmetic, comparisons, casts, reductions, special functions and
// Fourier transforms.
package math

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{
		bitwiseOps.WithIntegers("BitwiseAnd", "BitwiseOr", "BitwiseXor"),
		withComplex(arithmeticOps).WithHalves("Add", "AddV2", "Sub", "Mul", "Pow", "Maximum", "Minimum", "AddN", "MulNoNan", "Atan2", "ClipByValue").WithSteps(arithmeticSteps).
			WithIntegers("Pow", "ClipByValue"),
		withComplex(unaryOps).WithHalves("Exp", "Expm1", "Log", "Log1p", "Sqrt", "Rsqrt", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan",
			"Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Erf", "Erfc", "Ceil", "Floor", "Rint",
			"Reciprocal", "Inv", "Relu", "Relu6", "Neg", "Abs", "Sign", "Square", "Round", "IsNan", "IsInf", "IsFinite",
			"ReluGrad", "Relu6Grad").WithSteps(unarySteps).
			WithIntegers("Relu", "Relu6", "ReluGrad", "Relu6Grad", "Neg", "Abs", "Sign", "Square", "Invert"),
		compareOps.WithHalves("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"),
		withComplex(divideOps).WithHalves("RealDiv", "Div", "DivNoNan", "FloorMod", "Xdivy").WithSteps(divideSteps).
			WithIntegers("Div", "TruncateDiv", "FloorDiv", "FloorMod"),
		reduceOps.WithHalves("Sum", "Mean", "Prod", "Max", "Min", "L2Loss", "ArgMax", "ArgMin", "EuclideanNorm").
			WithIntegers("Mean", "Prod", "Max", "Min", "ArgMax", "ArgMin", "Cumsum", "Cumprod"),
		castOps,
		complexOps,
		fourierOps,
		bincountOps,
		countOps,
		histogramOps.WithHalves("LowerBound", "UpperBound").WithIntegers("LowerBound", "UpperBound"),
		specialOps,
		isotonicOps,
		clusterOps,
		besselOps,
	}
}
