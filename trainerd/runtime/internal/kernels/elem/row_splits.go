package elem

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// RowSplits returns the row splits of a ragged tensor in input i, which must divide
// so many values; negative: as many as they say.
func RowSplits(c *exec.KernelContext, i, values int) ([]int, error) {
	t := c.In(i)
	if !exec.Indices.Has(t.DType) || len(t.Shape) != 1 || t.Shape[0] == 0 {
		return nil, c.Invalid("row splits must be a vector of integers that is not empty, not %s", t.Describe())
	}
	splits := make([]int, t.Shape[0])
	for k := range splits {
		splits[k] = t.IntAt(k)
		if k == 0 && splits[0] != 0 || k > 0 && splits[k] < splits[k-1] {
			return nil, c.Invalid("Ragged splits must start with 0 and be sorted: split %d is %d", k, splits[k])
		}
	}
	if last := splits[len(splits)-1]; values >= 0 && last != values {
		return nil, c.Invalid("Ragged splits must sum to the number of values: %d instead of %d", last, values)
	}
	return splits, nil
}
