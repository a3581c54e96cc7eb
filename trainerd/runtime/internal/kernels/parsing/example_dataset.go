package parsing

import (
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// ExampleParser makes elements of a data set out of examples: a component for each
// feature, ordered by name, with three variants for a sparse one. It does not change.
type ExampleParser struct {
	spec  exampleSpec
	keys  *exampleKeys
	order []int // of the sparse features, then the dense ones, the place in the element
}

// NewExampleParser reads the attributes of an op whose last inputs are the defaults of
// the dense features.
func NewExampleParser(b *exec.OpConstruction) *ExampleParser {
	p := &ExampleParser{spec: newExampleSpec(b), keys: newExampleKeys(b.Strings("sparse_keys"), b.Strings("dense_keys"), nil)}
	if len(b.Strings("ragged_keys")) > 0 {
		b.Fail("no kernel for ragged_keys")
	}
	all := slices.Concat(p.keys.sparse, p.keys.dense)
	if len(p.keys.sparse) != len(p.spec.sparseTypes) || len(p.keys.dense) != len(p.spec.denseTypes) {
		b.Fail("%d sparse and %d dense keys for %d and %d types", len(p.keys.sparse), len(p.keys.dense), len(p.spec.sparseTypes), len(p.spec.denseTypes))
	}
	sorted := slices.Sorted(slices.Values(all))
	for _, key := range all {
		at, _ := slices.BinarySearch(sorted, key)
		p.order = append(p.order, at)
	}
	if len(slices.Compact(sorted)) < len(all) {
		b.Fail("a key is there twice")
	}
	return p
}

// NumDefaults returns how many dense features there are.
func (p *ExampleParser) NumDefaults() int { return len(p.keys.dense) }

// Parse makes an element of a vector of examples.
func (p *ExampleParser) Parse(c *exec.KernelContext, in *exec.Tensor, defaults variant.Tuple) (variant.Tuple, error) {
	if in.DType != exec.String || len(in.Shape) != 1 {
		return nil, c.Invalid("an element is %s; want a vector of serialized examples", in.Describe())
	}
	features, err := newFeatureTable(c, in, p.keys)
	if err != nil {
		return nil, err
	}
	parts := make([]*exec.Tensor, p.spec.outputs())
	to := exampleTarget{c, func(k int) *exec.Tensor { return defaults[k] }, func(i int, dt tfpb.DataType, shape ...int) *exec.Tensor {
		parts[i] = c.NewTensor(dt, shape)
		return parts[i]
	}}
	if err := p.spec.features(to, p.keys, features, false); err != nil {
		return nil, err
	}
	out := make(variant.Tuple, len(p.order))
	n := len(p.keys.sparse)
	for k := range n {
		out[p.order[k]] = variant.Sparse(parts[k], parts[n+k], parts[2*n+k])
	}
	for k := range p.keys.dense {
		out[p.order[n+k]] = parts[3*n+k]
	}
	return out, nil
}
