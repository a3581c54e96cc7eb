package runtime

import (
	"fmt"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// ranks says how many dimensions an input may have.
type ranks struct{ least, most int }

var (
	anyRank = ranks{0, exec.MaxRank}
	scalar  = ranks{0, 0}
	vector  = ranks{1, 1}
)

// inputRanks are the dimensions that inputs of ops have to have, for TensorFlow's
// kernels as for these, although these would understand others: a program must
// not run here that fails there. Inputs that are left out may have any.
var inputRanks = map[string][]ranks{
	"AdjustContrastv2":         {{3, exec.MaxRank}, scalar},
	"AdjustHue":                {{3, exec.MaxRank}, scalar},
	"AdjustSaturation":         {{3, exec.MaxRank}, scalar},
	"ArgMax":                   {anyRank, scalar},
	"ArgMin":                   {anyRank, scalar},
	"BroadcastArgs":            {vector, vector},
	"BroadcastGradientArgs":    {vector, vector},
	"Cumprod":                  {anyRank, scalar},
	"Cumsum":                   {anyRank, scalar},
	"CumulativeLogsumexp":      {anyRank, scalar},
	"DenseBincount":            {anyRank, scalar},
	"Diag":                     {{1, exec.MaxRank}},
	"MatrixSolveLs":            {anyRank, anyRank, scalar},
	"NthElement":               {anyRank, scalar},
	"SparseFillEmptyRowsGrad":  {vector, vector},
	"SparseToDense":            {anyRank, anyRank, anyRank, scalar},
	"TensorStridedSliceUpdate": {anyRank, vector, vector, vector},
	"Tile":                     {anyRank, vector},
	"TopKV2":                   {anyRank, scalar},
	"Transpose":                {anyRank, vector},
	"ConjugateTranspose":       {anyRank, vector},
	"UnsortedSegmentMax":       {anyRank, anyRank, scalar},
	"UnsortedSegmentMin":       {anyRank, anyRank, scalar},
	"UnsortedSegmentProd":      {anyRank, anyRank, scalar},
	"UnsortedSegmentSum":       {anyRank, anyRank, scalar},
	"UniqueV2":                 {anyRank, vector},
	"UniqueWithCountsV2":       {anyRank, vector},
	"UnravelIndex":             {{0, 1}, vector},
}

func (r ranks) String() string {
	switch r {
	case scalar:
		return "a scalar"
	case vector:
		return "a vector"
	}
	if r.least == 0 {
		return fmt.Sprintf("of at most %d dimensions", r.most)
	}
	return fmt.Sprintf("of at least %d dimensions", r.least)
}

// checkRanks has the kernels of a table look at the dimensions of their inputs.
func checkRanks(t exec.OpTable) {
	for op, list := range inputRanks {
		spec := t[op]
		build := spec.Build
		spec.Build = func(b *exec.OpConstruction) (exec.Kernel, error) {
			k, err := build(b)
			if err != nil {
				return nil, err
			}
			return func(c *exec.KernelContext) error {
				for i, r := range list {
					if x := c.In(i); len(x.Shape) < r.least || len(x.Shape) > r.most {
						return c.Invalid("input %d must be %s, not %s", i, r, x.Describe())
					}
				}
				return k(c)
			}, nil
		}
		t[op] = spec
	}
}
