package parsing

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Parsing of tf.SequenceExample messages: features that hold once, the context,
// and lists of features, one for each step.
var sequenceExampleOps = exec.OpTable{
	"ParseSequenceExample":       {Build: buildParseSequence},
	"ParseSequenceExampleV2":     {Build: buildParseSequenceV2},
	"ParseSingleSequenceExample": {Build: buildParseSingleSequence},
}

// sequenceSpec says which features of sequence examples become which outputs:
// those of the context, then those of the lists.
type sequenceSpec struct {
	context, lists exampleSpec
	lengths        bool // an output says how many steps each dense list has
}

// sequenceKeys are the names of the features, and which of the dense lists may
// be absent.
type sequenceKeys struct {
	context, lists *exampleKeys
	mayLack        map[string]bool
}

// newSequenceSpec reads the attributes; after the defaults come so many inputs.
func newSequenceSpec(b *exec.OpConstruction, trailing int) *sequenceSpec {
	s := &sequenceSpec{
		context: exampleSpec{sparseTypes: b.Types("context_sparse_types"), denseTypes: b.Types("Tcontext_dense"), denseShapes: b.Shapes("context_dense_shapes")},
		lists:   exampleSpec{sparseTypes: b.Types("feature_list_sparse_types"), denseTypes: b.Types("feature_list_dense_types"), denseShapes: b.Shapes("feature_list_dense_shapes")},
	}
	s.context.defaults = b.NumInputs() - trailing - len(s.context.denseTypes)
	s.lists.defaults = 1 // they have none
	raggedSpec(b, &s.context, "context_ragged_value_types", "context_ragged_split_types")
	raggedSpec(b, &s.lists, "feature_list_ragged_value_types", "feature_list_ragged_split_types")
	for _, shape := range append(append([][]int{}, s.context.denseShapes...), s.lists.denseShapes...) {
		if _, ok := exec.CheckedNumElements(shape); !ok {
			b.Fail("a dense feature of shape %s", exec.ShapeString(shape))
		}
	}
	return s
}

// outputs returns the number of outputs.
func (s *sequenceSpec) outputs() int {
	n := s.context.outputs() + s.lists.outputs() + len(s.lists.raggedTypes)
	if s.lengths {
		n += len(s.lists.denseTypes)
	}
	return n
}

func setOfStrings(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}

func buildParseSequence(b *exec.OpConstruction) (exec.Kernel, error) {
	s := newSequenceSpec(b, 0)
	s.lengths = true
	b.CheckOutputs(s.outputs())
	keys := sequenceKeys{mayLack: setOfStrings(b.Strings("feature_list_dense_missing_assumed_empty"))}
	keys.context = newExampleKeys(b.Strings("context_sparse_keys"), b.Strings("context_dense_keys"), nil)
	keys.lists = newExampleKeys(b.Strings("feature_list_sparse_keys"), b.Strings("feature_list_dense_keys"), nil)
	return func(c *exec.KernelContext) error { return s.parse(c, keys, false) }, nil
}

func buildParseSequenceV2(b *exec.OpConstruction) (exec.Kernel, error) {
	s := newSequenceSpec(b, 0)
	s.lengths = true
	b.CheckOutputs(s.outputs())
	var context, lists keyCache
	return func(c *exec.KernelContext) error {
		keys := sequenceKeys{
			context: context.of(c.In(2).Strings, c.In(3).Strings, c.In(4).Strings),
			lists:   lists.of(c.In(5).Strings, c.In(6).Strings, c.In(7).Strings),
			mayLack: map[string]bool{},
		}
		for i, may := range exec.Elems[bool](c.In(8)) {
			if i < len(keys.lists.dense) {
				keys.mayLack[keys.lists.dense[i]] = may
			}
		}
		return s.parse(c, keys, len(c.In(0).Shape) == 0)
	}, nil
}

// buildParseSingleSequence builds the op whose keys are inputs of one string
// each.
func buildParseSingleSequence(b *exec.OpConstruction) (exec.Kernel, error) {
	s := newSequenceSpec(b, 1)
	b.CheckOutputs(s.outputs())
	return func(c *exec.KernelContext) error {
		at := 2
		var bad error
		read := func(n int) []string {
			var list []string
			for ; n > 0 && bad == nil && at < s.context.defaults; n-- {
				var key string
				key, bad = c.StringScalar(at, "a key")
				list = append(list, key)
				at++
			}
			return list
		}
		if s.context.defaults < 2 || c.In(1).DType != exec.String {
			return c.Invalid("%d inputs where the op takes the names of lists that may be missing", c.NumInputs())
		}
		keys := sequenceKeys{mayLack: setOfStrings(stringsOf(c.In(1).Strings))}
		contextSparse, contextDense := read(len(s.context.sparseTypes)), read(len(s.context.denseTypes))
		listsSparse, listsDense := read(len(s.lists.sparseTypes)), read(len(s.lists.denseTypes))
		if bad != nil {
			return bad
		}
		keys.context, keys.lists = newExampleKeys(contextSparse, contextDense, nil), newExampleKeys(listsSparse, listsDense, nil)
		return s.parse(c, keys, true)
	}, nil
}

// parse decodes the sequence examples of input 0.
func (s *sequenceSpec) parse(c *exec.KernelContext, keys sequenceKeys, single bool) error {
	in := c.In(0)
	if single && len(in.Strings) != 1 || !single && len(in.Shape) != 1 {
		return c.Invalid("the examples have the shape %s", exec.ShapeString(in.Shape))
	}
	context, err := newFeatureTable(c, in, keys.context)
	if err != nil {
		return err
	}
	all := make([]lists, len(in.Strings))
	finder := newKeyFinder(c, keys.lists)
	for i, data := range in.Strings {
		if all[i], err = newLists(data, &finder); err != nil {
			return c.Invalid("example %d cannot be parsed: %v", i, err)
		}
	}
	if err := s.context.features(s.context.into(c), keys.context, context, single); err != nil {
		return err
	}
	if len(keys.lists.sparse) != len(s.lists.sparseTypes) || len(keys.lists.dense) != len(s.lists.denseTypes) || len(keys.lists.ragged) != len(s.lists.raggedTypes) {
		return c.Invalid("%d sparse, %d dense and %d ragged keys for %d, %d and %d lists of features", len(keys.lists.sparse), len(keys.lists.dense), len(keys.lists.ragged),
			len(s.lists.sparseTypes), len(s.lists.denseTypes), len(s.lists.raggedTypes))
	}
	p := listParser{sequenceSpec: s, c: c, first: s.context.outputs(), lists: all, single: single}
	for k, key := range keys.lists.sparse {
		if err := p.sparse(k, key); err != nil {
			return err
		}
	}
	for k, key := range keys.lists.dense {
		if err := p.dense(k, key, keys.mayLack[key]); err != nil {
			return err
		}
	}
	for k, key := range keys.lists.ragged {
		if err := p.ragged(k, key); err != nil {
			return err
		}
	}
	return nil
}

// listParser writes the outputs, from the first on, for lists of features.
type listParser struct {
	*sequenceSpec
	c      *exec.KernelContext
	first  int
	lists  []lists
	single bool
}

// sizes returns the number of values of every step of every example.
func (p *listParser) sizes(key string, dt tfpb.DataType) (sizes [][]int, total, steps, widest int, err error) {
	sizes = make([][]int, len(p.lists))
	for i, l := range p.lists {
		list := l[key]
		steps = max(steps, len(list))
		for j := range list {
			n, err := list[j].len(dt)
			if err != nil {
				return nil, 0, 0, 0, p.c.Invalid("Name: <unknown>, Feature list: %s, Index: %d (example %d): %v", key, j, i, err)
			}
			sizes[i] = append(sizes[i], n)
			total += n
			widest = max(widest, n)
		}
	}
	return sizes, total, steps, widest, nil
}

// copy stores the values of step j of example i from element at on.
func (p *listParser) copy(d *exec.Tensor, at int, key string, i, j int) error {
	if err := p.lists[i][key][j].copyTo(d, at); err != nil {
		return p.c.Invalid("Name: <unknown>, Feature list: %s, Index: %d (example %d): %v", key, j, i, err)
	}
	return nil
}

func (p *listParser) sparse(k int, key string) error {
	dt, n := p.spec().sparseTypes[k], len(p.spec().sparseTypes)
	sizes, total, steps, widest, err := p.sizes(key, dt)
	if err != nil {
		return err
	}
	width := 3
	if p.single {
		width = 2
	}
	index := exec.Elems[int64](p.c.Out(p.first+k, exec.Int64, total, width))
	values := p.c.Out(p.first+n+k, dt, total)
	at := 0
	for i, steps := range sizes {
		for j, size := range steps {
			if err := p.copy(values, at, key, i, j); err != nil {
				return err
			}
			for v := range size {
				place := index[at*width : (at+1)*width]
				place[0] = int64(i)
				place[width-2], place[width-1] = int64(j), int64(v)
				at++
			}
		}
	}
	shape := p.c.Out(p.first+2*n+k, exec.Int64, width)
	exec.SetInt(shape, 0, len(p.lists))
	exec.SetInt(shape, width-2, steps)
	exec.SetInt(shape, width-1, widest)
	return nil
}

func (p *listParser) spec() *exampleSpec { return &p.sequenceSpec.lists }

// dense writes a tensor for all steps, padded to those of the longest example.
func (p *listParser) dense(k int, key string, mayLack bool) error {
	s := p.spec()
	dt, shape := s.denseTypes[k], s.denseShapes[k]
	sizes, _, steps, _, err := p.sizes(key, dt)
	if err != nil {
		return err
	}
	row := exec.NumElements(shape)
	out := append([]int{steps}, shape...)
	if !p.single {
		out = append([]int{len(p.lists)}, out...)
	}
	first := p.first + 3*len(s.sparseTypes)
	d := p.c.Out(first+k, dt, out...)
	elem.Zero(d)
	for i, list := range p.lists {
		if list[key] == nil && !mayLack {
			return p.c.Invalid("Name: <unknown>, Feature list '%s' is required but could not be found.  Did you mean to include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults? (example %d)", key, i)
		}
		for j, n := range sizes[i] {
			if n != row {
				return p.c.Invalid("Name: <unknown>, Key: %s, Index: %d.  Number of %s values != expected.  values size: %d but output shape: %s (example %d)", key, j, exec.TypeName(dt), n, exec.ShapeString(shape), i)
			}
			if err := p.copy(d, (i*steps+j)*row, key, i, j); err != nil {
				return err
			}
		}
	}
	if !p.lengths {
		return nil
	}
	var lengths *exec.Tensor
	if p.single {
		lengths = p.c.Out(first+len(s.denseTypes)+k, exec.Int64)
	} else {
		lengths = p.c.Out(first+len(s.denseTypes)+k, exec.Int64, len(p.lists))
	}
	for i := range p.lists {
		exec.SetInt(lengths, i, len(sizes[i]))
	}
	return nil
}

// ragged writes the values of all steps, where those of each step end, and
// where the steps of each example do.
func (p *listParser) ragged(k int, key string) error {
	s, c := p.spec(), p.c
	dt, n := s.raggedTypes[k], len(s.raggedTypes)
	sizes, total, _, _, err := p.sizes(key, dt)
	if err != nil {
		return err
	}
	first := p.first + 3*len(s.sparseTypes) + 2*len(s.denseTypes)
	values := c.Out(first+k, dt, total)
	outer, inner := []int{0}, []int{0}
	at := 0
	for i, steps := range sizes {
		for j, size := range steps {
			if err := p.copy(values, at, key, i, j); err != nil {
				return err
			}
			at += size
			inner = append(inner, at)
		}
		outer = append(outer, len(inner)-1)
	}
	d := c.Out(first+2*n+k, s.splitTypes[k], len(inner))
	for j, v := range inner {
		exec.SetInt(d, j, v)
	}
	if p.single { // there is nothing to split
		exec.SetInt(c.Out(first+n+k, s.splitTypes[k]), 0, 0)
		return nil
	}
	d = c.Out(first+n+k, s.splitTypes[k], len(outer))
	for j, v := range outer {
		exec.SetInt(d, j, v)
	}
	return nil
}
