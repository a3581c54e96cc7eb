//go:build !(amd64 || arm64) || noasm

package blas

// There are no kernels for this processor.
var (
	single *engine[float32]
	double *engine[float64]
)
