package variant

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// RaggedRows is a tensor of variants, each of them a ragged tensor.
type RaggedRows struct{ List []Ragged }

// Ragged is a ragged tensor: where the rows of each dimension end, from the outermost on,
// and the values.
type Ragged struct {
	Splits [][]int
	Values *exec.Tensor
}

// Rows returns how many rows it has.
func (r *Ragged) Rows() int {
	if len(r.Splits) > 0 {
		return len(r.Splits[0]) - 1
	}
	return r.Values.Shape[0]
}

// Slice returns rows of it.
func (r *Ragged) Slice(from, to int) Ragged {
	part := Ragged{Splits: make([][]int, len(r.Splits))}
	for i, splits := range r.Splits {
		ends := make([]int, to-from+1)
		for k := range ends {
			ends[k] = splits[from+k] - splits[from]
		}
		part.Splits[i] = ends
		from, to = splits[from], splits[to]
	}
	part.Values = Rows(r.Values, from, to-from, append([]int{to - from}, r.Values.Shape[1:]...))
	return part
}
