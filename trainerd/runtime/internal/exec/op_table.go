package exec

import (
	"fmt"
	"maps"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Kernel computes one node. It reads [KernelContext.In], writes
// [KernelContext.Out], and returns an error made by [KernelContext.Invalid] or
// [KernelContext.Errorf].
type Kernel func(c *KernelContext) error

// OpSpec is what the compiler must know about an op in addition to its kernel and
// its definition in package opdef.
type OpSpec struct {
	// Types limits attribute TypeAttr ("T" when empty). Zero means no limit.
	Types    TypeSet
	TypeAttr string
	// Build parses the attributes once and returns the kernel.
	Build func(b *OpConstruction) (Kernel, error)

	Flags OpFlags
}

// OpFlags say what the compiler and the executor must know about a kernel.
type OpFlags uint16

// The flags of ops.
const (
	Stateful     OpFlags = 1 << iota // not to be folded into a constant
	ReadsState                       // needs the state lock for reading
	WritesState                      // needs the state lock for writing
	AliasesFirst                     // outputs may share the memory of input 0
	AliasesAny                       // outputs may share the memory of any input
	Blocking                         // may wait for other runs, without the state lock
	ForwardsRef                      // output 0 is the variable of input 0
	SeesDead                         // runs although inputs are dead
	PassThrough                      // output 0 is input 0
	SetsWhole                        // changes variables by Assign alone, whatever they hold
	TakesInput                       // moves the input of the graph: see inputGate
	ReadsTable                       // looks at a table, which other runs may change
	Ordered                          // changes what other calls see, other than variables: calls keep their order
)

// OpTable maps op types to their specs.
type OpTable map[string]OpSpec

// JoinOps makes one table of several. A name that is in two of them, or that has
// no kernel, is an error.
func JoinOps(tables ...OpTable) (OpTable, error) {
	all := OpTable{}
	for _, t := range tables {
		for name, spec := range t {
			if _, twice := all[name]; twice {
				return nil, fmt.Errorf("op %s is in two tables", name)
			}
			if spec.Build == nil {
				return nil, fmt.Errorf("op %s has no kernel", name)
			}
			all[name] = spec
		}
	}
	return all, nil
}

// WithHalves returns the table with the named ops also for the types of 16 bits:
// computed in float32 and rounded once. TensorFlow's kernels round some partial
// results as well, so the last bits may differ.
func (t OpTable) WithHalves(names ...string) OpTable {
	all := maps.Clone(t)
	for _, name := range names {
		spec, ok := t[name]
		if ok {
			attr := spec.CheckedAttr()
			spec.Types |= Halves
			spec.Build = Widened(attr, spec.Build)
		}
		all[name] = spec // without a kernel where there is none: JoinOps says so
	}
	return all
}

// WithIntegers returns the table with the named ops also for integers of 8 and 16
// bits and for uint32, built as [WidenedIntegers] says.
func (t OpTable) WithIntegers(names ...string) OpTable {
	all := maps.Clone(t)
	for _, name := range names {
		spec, ok := t[name]
		if ok {
			attr := spec.CheckedAttr()
			spec.Types |= SetOf(Int8, Int16, Uint8, Uint16, Uint32)
			spec.Build = WidenedIntegers(attr, spec.Build)
		}
		all[name] = spec // without a kernel where there is none: JoinOps says so
	}
	return all
}

// WithSteps returns the table with the named ops also for the types of 16 bits, built
// as [Stepwise] says.
func (t OpTable) WithSteps(steps map[string]Steps) OpTable {
	all := maps.Clone(t)
	for name, step := range steps {
		spec, ok := t[name]
		if ok {
			attr := spec.CheckedAttr()
			spec.Types |= Halves
			spec.Build = Stepwise(attr, spec.Build, step)
		}
		all[name] = spec // without a kernel where there is none: JoinOps says so
	}
	return all
}

// FirstForms returns the ops of a table whose names end in a suffix, such as
// "V2", under their names without it: those of TensorFlow's first releases, whose
// handles are references to strings. They do the same.
func (t OpTable) FirstForms(suffix string) OpTable {
	first := make(OpTable)
	for name, spec := range t {
		if name, later := strings.CutSuffix(name, suffix); later {
			first[name] = spec
		}
	}
	return first
}

// WithoutAttrs wraps a kernel that has no attributes.
func WithoutAttrs(k Kernel) func(*OpConstruction) (Kernel, error) {
	return func(*OpConstruction) (Kernel, error) { return k, nil }
}

// ByType picks the kernel for a dtype out of those for the four common types.
func ByType(dt tfpb.DataType, f32, f64, i32, i64 Kernel) (Kernel, error) {
	var k Kernel
	switch dt {
	case Float32:
		k = f32
	case Float64:
		k = f64
	case Int32:
		k = i32
	case Int64:
		k = i64
	}
	if k == nil {
		return nil, noKernel{dt}
	}
	return k, nil
}

// ByFloat picks the kernel for a floating-point dtype.
func ByFloat(dt tfpb.DataType, f32, f64 Kernel) (Kernel, error) {
	return ByType(dt, f32, f64, nil, nil)
}

// ByIndex picks the kernel for an index dtype.
func ByIndex(dt tfpb.DataType, i32, i64 Kernel) (Kernel, error) {
	return ByType(dt, nil, nil, i32, i64)
}

// BySize picks the kernel that moves elements of a dtype without looking at
// them.
func BySize(dt tfpb.DataType, k8, k16, k32, k64, k128, str Kernel) (Kernel, error) {
	if dt == String {
		return str, nil
	}
	switch ElemSize(dt) {
	case 1:
		return k8, nil
	case 2:
		return k16, nil
	case 4:
		return k32, nil
	case 8:
		return k64, nil
	case 16:
		return k128, nil
	}
	return nil, noKernel{dt}
}

// BuildIdentity builds the kernel that passes its input on.
func BuildIdentity(*OpConstruction) (Kernel, error) {
	return func(c *KernelContext) error { c.Alias(0, c.In(0), c.In(0).Shape); return nil }, nil
}
