package program

import (
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
)

// Binding feeds one tensor.
type Binding struct {
	Tensor string
	// Fixed is the value for every step; nil if it comes from the data.
	Fixed *ckptfmt.Tensor
	// Make makes the value from a batch of the data.
	Make func(b Batch) (*ckptfmt.Tensor, error)
}

// Batch is examples of the data.
type Batch struct {
	Features, Label *ckptfmt.Tensor
	Weight          *ckptfmt.Tensor // nil for data without weights
}

// Overlay returns base with the bindings of over in place of those of the same
// tensors.
func Overlay(base, over []Binding) []Binding {
	all := slices.Clone(over)
	for _, b := range base {
		if !slices.ContainsFunc(over, func(o Binding) bool { return o.Tensor == b.Tensor }) {
			all = append(all, b)
		}
	}
	return all
}
