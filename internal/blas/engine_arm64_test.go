//go:build arm64 && !noasm

package blas

type enginePair struct {
	single *engine[float32]
	double *engine[float64]
}

func enginesHere() map[string]enginePair { return map[string]enginePair{"NEON": {single, double}} }
