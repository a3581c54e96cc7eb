package parsing

import (
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var exampleOps = exec.OpTable{
	"ParseExampleV2":     {Build: buildParseExampleV2},
	"ParseExample":       {Build: buildParseExample},
	"ParseSingleExample": {Build: buildParseSingleExample},
}

// exampleSpec says which features of tf.Example messages become which outputs:
// for sparse ones indices, values and shapes, then the dense ones.
type exampleSpec struct {
	sparseTypes []tfpb.DataType
	denseTypes  []tfpb.DataType
	denseShapes [][]int
	raggedTypes []tfpb.DataType
	splitTypes  []tfpb.DataType // of the ends of the rows of ragged features
	defaults    int             // first input that holds a default
}

func newExampleSpec(b *exec.OpConstruction) exampleSpec {
	s := exampleSpec{sparseTypes: b.Types("sparse_types"), denseTypes: b.Types("Tdense"), denseShapes: b.Shapes("dense_shapes")}
	s.defaults = b.NumInputs() - len(s.denseTypes)
	checkFeatures(b, &s)
	return s
}

// outputs returns the number of outputs.
func (s *exampleSpec) outputs() int {
	return 3*len(s.sparseTypes) + len(s.denseTypes) + 2*len(s.raggedTypes)
}

// raggedSpec adds the ragged features whose types are in attributes.
func raggedSpec(b *exec.OpConstruction, s *exampleSpec, values, splits string) {
	s.raggedTypes, s.splitTypes = b.Types(values), b.Types(splits)
	if len(s.splitTypes) != len(s.raggedTypes) {
		b.Fail("%d types of row splits for %d ragged features", len(s.splitTypes), len(s.raggedTypes))
	}
	for _, dt := range s.splitTypes {
		if !exec.Indices.Has(dt) {
			b.Fail("row splits of type %s", exec.TypeName(dt))
		}
	}
	checkFeatures(b, s)
}

// checkFeatures checks the types and shapes.
func checkFeatures(b *exec.OpConstruction, s *exampleSpec) {
	if len(s.denseShapes) != len(s.denseTypes) {
		b.Fail("%d shapes for %d dense features", len(s.denseShapes), len(s.denseTypes))
	}
	for _, dt := range slices.Concat(s.sparseTypes, s.denseTypes, s.raggedTypes) {
		if dt != exec.Float32 && dt != exec.Int64 && dt != exec.String {
			b.Fail("features are float32, int64 or string, not %s", exec.TypeName(dt))
		}
	}
	for _, shape := range s.denseShapes {
		if shape == nil || len(shape) > 0 && exec.HasUnknownDim(shape[1:]) {
			b.Fail("a dense feature of shape %s", exec.ShapeString(shape))
		}
	}
	if s.defaults < 1 {
		b.Fail("%d inputs for %d dense features", b.NumInputs(), len(s.denseTypes))
	}
}

func buildParseExampleV2(b *exec.OpConstruction) (exec.Kernel, error) {
	s := newExampleSpec(b)
	raggedSpec(b, &s, "ragged_value_types", "ragged_split_types")
	b.CheckOutputs(s.outputs())
	var keys keyCache
	return func(c *exec.KernelContext) error {
		return s.parse(c, keys.of(c.In(2).Strings, c.In(3).Strings, c.In(4).Strings), len(c.In(0).Shape) == 0)
	}, nil
}

func buildParseExample(b *exec.OpConstruction) (exec.Kernel, error) {
	s := newExampleSpec(b)
	b.CheckOutputs(s.outputs())
	var cache keyCache
	return func(c *exec.KernelContext) error {
		var keys [][]byte
		for i := 2; i < s.defaults; i++ {
			if c.In(i).DType != exec.String {
				return c.Invalid("key %d is %s", i-2, c.In(i).Describe())
			}
			keys = append(keys, c.In(i).Strings...)
		}
		if len(keys) != len(s.sparseTypes)+len(s.denseTypes) {
			return c.Invalid("%d keys for %d features", len(keys), len(s.sparseTypes)+len(s.denseTypes))
		}
		return s.parse(c, cache.of(keys[:len(s.sparseTypes)], keys[len(s.sparseTypes):], nil), false)
	}, nil
}

func buildParseSingleExample(b *exec.OpConstruction) (exec.Kernel, error) {
	s := newExampleSpec(b)
	b.CheckOutputs(s.outputs())
	keys := newExampleKeys(b.Strings("sparse_keys"), b.Strings("dense_keys"), nil)
	return func(c *exec.KernelContext) error { return s.parse(c, keys, true) }, nil
}

// parse decodes the examples of input 0. For a single one the outputs have no
// batch dimension.
func (s *exampleSpec) parse(c *exec.KernelContext, keys *exampleKeys, single bool) error {
	in := c.In(0)
	if single && len(in.Strings) != 1 || !single && len(in.Shape) != 1 {
		return c.Invalid("the examples have the shape %s", exec.ShapeString(in.Shape))
	}
	features, err := newFeatureTable(c, in, keys)
	if err != nil {
		return err
	}
	return s.features(s.into(c), keys, features, single)
}

// exampleTarget is where the defaults of dense features are, and where outputs go.
type exampleTarget struct {
	*exec.KernelContext
	defaultOf func(k int) *exec.Tensor
	output    func(i int, dt tfpb.DataType, shape ...int) *exec.Tensor
}

// Out returns output i, with memory for a type and shape.
func (t exampleTarget) Out(i int, dt tfpb.DataType, shape ...int) *exec.Tensor {
	return t.output(i, dt, shape...)
}

// into returns the inputs and outputs of a kernel.
func (s *exampleSpec) into(c *exec.KernelContext) exampleTarget {
	return exampleTarget{c, func(k int) *exec.Tensor { return c.In(s.defaults + k) }, c.Out}
}

// features writes the outputs for the features of examples.
func (s *exampleSpec) features(c exampleTarget, keys *exampleKeys, t *featureTable, single bool) error {
	if len(keys.sparse) != len(s.sparseTypes) || len(keys.dense) != len(s.denseTypes) || len(keys.ragged) != len(s.raggedTypes) {
		return c.Invalid("%d sparse, %d dense and %d ragged keys for %d, %d and %d features", len(keys.sparse), len(keys.dense), len(keys.ragged),
			len(s.sparseTypes), len(s.denseTypes), len(s.raggedTypes))
	}
	for k, key := range keys.sparse {
		if err := s.sparse(c, k, key, t.column(key), single); err != nil {
			return err
		}
	}
	for k, key := range keys.dense {
		if err := s.dense(c, k, key, t.column(key), single); err != nil {
			return err
		}
	}
	for k, key := range keys.ragged {
		if err := s.ragged(c, k, key, t.column(key), single); err != nil {
			return err
		}
	}
	return nil
}

func (s *exampleSpec) sparse(c exampleTarget, k int, key string, features column, single bool) error {
	dt := s.sparseTypes[k]
	total, longest := 0, 0
	for i := range features.rows {
		n, err := features.of(i).len(dt)
		if err != nil {
			return c.Invalid("example %d, feature %q: %v", i, key, err)
		}
		total += n
		longest = max(longest, n)
	}
	width := 2
	if single {
		width = 1
	}
	n := len(s.sparseTypes)
	idx := exec.Elems[int64](c.Out(k, exec.Int64, total, width))
	values := c.Out(n+k, dt, total)
	shape := exec.Elems[int64](c.Out(2*n+k, exec.Int64, width))
	shape[0], shape[width-1] = int64(features.rows), int64(longest)
	at := 0
	for i := range features.rows {
		f := features.of(i)
		if err := f.copyTo(values, at); err != nil {
			return c.Invalid("example %d, feature %q: %v", i, key, err)
		}
		size := f.n
		for j := range size {
			idx[(at+j)*width] = int64(i)
			idx[(at+j)*width+width-1] = int64(j)
		}
		at += size
	}
	return nil
}

// ragged writes the values of all examples, and where those of each begin and
// end; for a single one there is no need to tell.
func (s *exampleSpec) ragged(c exampleTarget, k int, key string, features column, single bool) error {
	dt, first := s.raggedTypes[k], 3*len(s.sparseTypes)+len(s.denseTypes)
	ends := []int{0}
	for i := range features.rows {
		n, err := features.of(i).len(dt)
		if err != nil {
			return c.Invalid("example %d, feature %q: %v", i, key, err)
		}
		ends = append(ends, ends[i]+n)
	}
	values := c.Out(first+k, dt, ends[features.rows])
	for i := range features.rows {
		if err := features.of(i).copyTo(values, ends[i]); err != nil {
			return c.Invalid("example %d, feature %q: %v", i, key, err)
		}
	}
	if single {
		ends = nil
	}
	splits := c.Out(first+len(s.raggedTypes)+k, s.splitTypes[k], len(ends))
	for i, v := range ends {
		exec.SetInt(splits, i, v)
	}
	return nil
}

func (s *exampleSpec) dense(c exampleTarget, k int, key string, features column, single bool) error {
	dt, shape := s.denseTypes[k], append([]int(nil), s.denseShapes[k]...)
	def := c.defaultOf(k)
	if def.DType != dt {
		return c.Invalid("the default of feature %q is %s, not %s", key, def.Describe(), exec.TypeName(dt))
	}
	varies := len(shape) > 0 && shape[0] < 0
	if varies {
		shape[0] = 0
		row := max(1, exec.NumElements(shape[1:]))
		for i := range features.rows {
			shape[0] = max(shape[0], features.of(i).n/row)
		}
	}
	out := shape
	if !single {
		out = append([]int{features.rows}, shape...)
	}
	d := c.Out(3*len(s.sparseTypes)+k, dt, out...)
	size := exec.NumElements(shape)
	for i := range features.rows {
		n, err := features.of(i).len(dt)
		if err != nil {
			return c.Invalid("example %d, feature %q: %v", i, key, err)
		}
		if err := s.denseRow(c, d, i*size, size, n, def, features.of(i), key, varies); err != nil {
			return err
		}
	}
	return nil
}

// denseRow stores the size values of one example, or the default.
func (s *exampleSpec) denseRow(c exampleTarget, d *exec.Tensor, at, size, n int, def *exec.Tensor, f *feature, key string, varies bool) error {
	switch {
	case varies:
		if n > size || size > 0 && def.NumElements() > 0 && def.NumElements() != 1 {
			return c.Invalid("feature %q has %d values for a row of %d", key, n, size)
		}
		row := exec.Tensor{DType: d.DType, Shape: []int{size}}
		row.Data, row.Strings = rowOf(d, at, size)
		elem.Zero(&row)
		if def.NumElements() == 1 {
			elem.Fill(&row, def)
		}
	case n == 0 && size > 0:
		if def.NumElements() == 0 {
			return c.Invalid("feature %q (%s) is required but could not be found", key, exec.TypeName(d.DType))
		}
		if def.NumElements() != size {
			return c.Invalid("the default of feature %q is %s, for %d values", key, def.Describe(), size)
		}
		exec.CopyElems(d, at, def, 0, size)
		return nil
	case n != size:
		return c.Invalid("feature %q has %d values, its shape asks for %d", key, n, size)
	}
	if err := f.copyTo(d, at); err != nil {
		return c.Invalid("feature %q: %v", key, err)
	}
	return nil
}

// rowOf returns the memory of n elements of d.
func rowOf(d *exec.Tensor, at, n int) ([]byte, [][]byte) {
	if d.DType == exec.String {
		return nil, d.Strings[at : at+n]
	}
	size := exec.ElemSize(d.DType)
	return d.Data[at*size : (at+n)*size], nil
}
