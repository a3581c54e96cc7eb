// Package random has the kernels that draw random numbers: the stateful ops, whose
// streams the session keeps, the stateless ones, and candidate samplers.
package random

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{
		randomOps,
		rngStateOps,
		rngDrawsOps,
		statelessV2Ops,
		statelessGammaPoissonOps,
		gammaPoissonOps.WithHalves("RandomGamma"),
		multinomialOps.WithHalves("Multinomial", "StatelessMultinomial"),
		candidateSamplerOps,
		unigramSamplerOps,
	}
}
