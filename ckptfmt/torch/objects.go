package torch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
	"github.com/trainerd/trainerd/ckptfmt/internal/slab"
)

// The globals that mean something when they are called.
const (
	orderedDict      = "collections.OrderedDict"
	rebuildTensor    = "torch._utils._rebuild_tensor"
	rebuildTensorV2  = "torch._utils._rebuild_tensor_v2"
	rebuildTensorV3  = "torch._utils._rebuild_tensor_v3"
	rebuildParameter = "torch._utils._rebuild_parameter"
	rebuildWithState = "torch._utils._rebuild_parameter_with_state"
	rebuildFromType  = "torch._tensor._rebuild_from_type_v2"
	torchSize        = "torch.Size"
)

// refusedTensors are calls that make tensors of other kinds than arrays in memory.
// Such a tensor is listed with the reason, and hinders no other.
var refusedTensors = map[string]refused{
	"torch._utils._rebuild_sparse_tensor":                 {"sparse", "it is sparse; to_dense() makes an array of it"},
	"torch._utils._rebuild_sparse_csr_tensor":             {"sparse", "it is sparse; to_dense() makes an array of it"},
	"torch._utils._rebuild_qtensor":                       {"quantised", "it is quantised; dequantize() or int_repr() makes an array of it"},
	"torch._utils._rebuild_nested_tensor":                 {"nested", "it is nested; to_padded_tensor() makes an array of it"},
	"torch._utils._rebuild_meta_tensor_no_storage":        {"meta", "it is on the device meta, and has no elements"},
	"torch._utils._rebuild_wrapper_subclass":              {"subclass", "it is of a class of its own, whose code is not executed"},
	"torch._utils._rebuild_device_tensor_from_numpy":      {"device", "it is of a device that keeps arrays of NumPy"},
	"torch._utils._rebuild_device_tensor_from_cpu_tensor": {"device", "it is of a device that keeps other tensors"},
}

// allowed reports whether a pickle may name a global. A name does nothing: what it is used for
// decides. Only a shard of a tensor is refused at once.
func allowed(name string) bool {
	return isKnown(name) || !strings.HasPrefix(name, "torch.distributed.")
}

// isKnown reports whether a global is one of torch, NumPy or the standard library that is in state
// dicts and the values next to them.
func isKnown(name string) bool {
	switch name {
	case orderedDict, rebuildTensor, rebuildTensorV2, rebuildTensorV3, rebuildParameter, rebuildWithState, rebuildFromType, torchSize,
		"torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer",
		"builtins.getattr", "__builtin__.getattr":
		return true
	}
	_, refused := refusedTensors[name]
	_, storage := storageType(name)
	_, dtype := dtypes[name]
	return refused || storage || dtype || isInert(name) || isNumPy(name) || otherType().MatchString(name)
}

// rules returns the rules for state dicts. Everything that they make has the memory of one maker.
func rules() pickle.Rules {
	return new(maker).rules()
}

func (m *maker) rules() pickle.Rules {
	return pickle.Rules{Allowed: allowed, Call: m.call, New: newObject, Persistent: m.storageOf, Short: m.short, Alike: m.alike}
}

// maker makes the objects that a pickle has very many of, and allocates their memory together.
type maker struct {
	tensors  []tensor
	storages []storageRef
	dicts    []pickle.Dict
	numbers  []int64
	forms    []form
	known    [64]*form // that were met lately

	keys slab.Texts // of the storages

	kind pickle.Global // of the last storage, which as a rule the next one has too
	of   *element      // of that

	types map[string]*element // of the storages by their keys, where they are needed
}

const madeAtOnce = 256

// next returns one of many that have their memory together.
func next[T any](slab *[]T) *T {
	if len(*slab) == 0 {
		*slab = make([]T, madeAtOnce)
	}
	v := &(*slab)[0]
	*slab = (*slab)[1:]
	return v
}

// form returns a form that must not be changed: most tensors share the form of another one.
func (m *maker) form(in content, of *element, offset int64, shape, stride []int64) *form {
	h := uint64(len(shape)) ^ uint64(offset)
	for _, dims := range [2][]int64{shape, stride} {
		for _, d := range dims {
			h = (h ^ uint64(d)) * 0x9e3779b97f4a7c15
		}
	}
	place := &m.known[h>>58]
	if f := *place; f != nil && f.storage == in && f.of == of && f.offset == offset &&
		slices.Equal(f.shape, shape) && slices.Equal(f.stride, stride) {
		return f
	}
	*place = next(&m.forms)
	**place = form{in, of, offset, slab.Copy(&m.numbers, shape), slab.Copy(&m.numbers, stride)}
	return *place
}

// newObject makes an object of a class that has no code to be run.
func newObject(class string, args pickle.Tuple) (any, error) {
	switch {
	case isDict(class):
		return pickle.NewDict(), nil
	case isInert(class):
		return &pickle.Object{Class: pickle.Global(class), Args: args}, nil
	case !isKnown(class):
		return objectOf(class, args)
	}
	return nil, fmt.Errorf("an object of %s is made", class)
}

// storageOf reads the tuple that describes a storage. Files from before torch 1.6
// have a sixth element, which is about views.
func (m *maker) storageOf(id any) (any, error) {
	t, ok := id.(pickle.Tuple)
	if ok && len(t) > 1 && t[0] == any("module") { // a class of modules, and its code
		if class, isGlobal := t[1].(pickle.Global); isGlobal {
			return class, nil
		}
	}
	if !ok || len(t) < 5 || len(t) > 6 || t[0] != any("storage") {
		return nil, fmt.Errorf("a persistent id is not that of a storage")
	}
	if len(t) == 6 && t[5] != nil {
		return nil, fmt.Errorf("a storage is a view of another one, which torch has not written since version 0.4")
	}
	kind, isGlobal := t[1].(pickle.Global)
	key, isText := t[2].(string)
	numel, isNumber := t[4].(int64)
	if !isGlobal || !isText || !isNumber {
		return nil, fmt.Errorf("a storage has no type, key or size")
	}
	s, err := m.storage(kind, key, numel)
	if err != nil {
		return nil, err
	}
	to := next(&m.storages)
	*to = s
	return to, nil
}

// storage returns a storage of a class.
func (m *maker) storage(kind pickle.Global, key string, numel int64) (storageRef, error) {
	if kind != m.kind || m.of == nil {
		m.kind = kind
		m.of, _ = storageType(string(kind))
	}
	if m.of == nil || numel < 0 || numel > 1<<50 {
		return storageRef{}, fmt.Errorf("a storage has no type or size")
	}
	if m.types != nil {
		m.types[key] = m.of
	}
	return storageRef{key, content{m.of, numel}}, nil
}

// short reads the arguments of _rebuild_tensor_v2, which nearly all tensors are made by.
func (m *maker) short(callee pickle.Global, c *pickle.Cursor) any {
	if callee != rebuildTensorV2 {
		return nil
	}
	c.Op('(')
	isStorage := c.Text() == "storage"
	kind, key := c.Global(), c.OwnText()
	c.Text() // the device
	numel := c.Int()
	c.Op('t')
	c.Drop()
	c.Op('Q')
	offset := c.Int()
	var room [2][8]int64
	shape, stride := c.Ints(room[0][:0]), c.Ints(room[1][:0])
	c.Bool() // requires_grad
	isDict := c.Global() == orderedDict
	c.Op(')')
	c.Op('R')
	c.Drop()
	if c.Bad() || !isStorage || !isDict {
		return nil
	}
	s, err := m.storage(kind, key, numel)
	if err != nil {
		return nil
	}
	f := m.form(s.content, s.of, offset, shape, stride)
	if f.check() != nil {
		return nil
	}
	to := next(&m.tensors)
	*to = tensor{m.keys.KeepString(key), f}
	return to
}

// alike is short of a call that differs from another one in the key of the storage alone.
func (m *maker) alike(like any, key string) any {
	to := next(&m.tensors)
	*to = tensor{m.keys.KeepString(key), like.(*tensor).form}
	if m.types != nil {
		m.types[to.key] = to.storage.of
	}
	return to
}

// call returns what calling an allowed global would make. Nothing else is ever made.
func (m *maker) call(name string, args pickle.Tuple) (any, error) {
	switch { // what a pickle has most of comes first
	case name == orderedDict && len(args) == 0:
		return next(&m.dicts), nil
	case name == orderedDict:
		return orderedDictOf(args)
	case name == torchSize && len(args) == 1:
		if l, ok := args[0].(*pickle.List); ok {
			return pickle.Tuple(l.Items), nil
		}
		return args[0], nil
	case name == rebuildTensor && len(args) == 4, name == rebuildTensorV2 && len(args) >= 6 && len(args) <= 7:
		if len(args) == 7 && !isEmpty(args[6]) {
			return &conjugated, nil
		}
		return m.tensorOf(args, nil)
	case name == rebuildTensorV3 && len(args) >= 7 && len(args) <= 8:
		name, isGlobal := args[6].(pickle.Global)
		e, ok := dtypes[string(name)]
		switch {
		case !isGlobal || !ok && !otherType().MatchString(string(name)):
			return nil, fmt.Errorf("a tensor has no type")
		case !ok:
			return &refused{strings.TrimPrefix(string(name), "torch."), fmt.Sprintf("it is of %s, which TensorFlow and this package do not have", name)}, nil
		case len(args) == 8 && !isEmpty(args[7]):
			return &conjugated, nil
		}
		return m.tensorOf(args, e)
	case name == rebuildParameter && len(args) == 3, name == rebuildWithState && len(args) == 4:
		switch t := args[0].(type) {
		case *tensor, *refused, *pickle.Object:
			return t, nil
		}
	case name == rebuildFromType && len(args) == 4: // function, class, arguments, state
		f, isGlobal := args[0].(pickle.Global)
		inner, isTuple := args[2].(pickle.Tuple)
		if isGlobal && isTuple && f != rebuildFromType {
			return m.call(string(f), inner)
		}
	case isZoneMaker(name, args):
		return args[0], nil
	case isInert(name):
		return inert(name, args)
	case isNumPy(name):
		return &pickle.Object{Class: pickle.Global(name), Args: args}, nil
	case !isKnown(name):
		return madeBy(name, args)
	}
	if r, ok := refusedTensors[name]; ok {
		return &r, nil
	}
	return nil, fmt.Errorf("%s is called with %d arguments of other kinds than a state dict has", name, len(args))
}

var conjugated = refused{"conjugated", "it is conjugated or negated; resolve_conj() and resolve_neg() make an array of it"}

func isEmpty(v any) bool {
	d, ok := v.(*pickle.Dict)
	return v == nil || ok && len(d.Keys) == 0
}

// orderedDictOf makes a dict, which as a rule is filled afterwards.
func orderedDictOf(args pickle.Tuple) (any, error) {
	d := pickle.NewDict()
	pairs, ok := args[0].(*pickle.List)
	if !ok || len(args) > 1 {
		return nil, fmt.Errorf("an OrderedDict has items that are not pairs")
	}
	for _, p := range pairs.Items {
		pair, ok := p.(pickle.Tuple)
		if l, isList := p.(*pickle.List); isList {
			pair, ok = pickle.Tuple(l.Items), true
		}
		if !ok || len(pair) != 2 {
			return nil, fmt.Errorf("an OrderedDict has items that are not pairs")
		}
		if err := d.Set(pair[0], pair[1]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// tensorOf reads storage, offset, shape and strides. A nil type is that of the storage.
func (m *maker) tensorOf(args pickle.Tuple, of *element) (*tensor, error) {
	s, isStorage := args[0].(*storageRef)
	offset, isNumber := args[1].(int64)
	var room [2][8]int64
	shape, hasShape := dims(room[0][:0], args[2])
	stride, hasStride := dims(room[1][:0], args[3])
	if !isStorage || !isNumber || !hasShape || !hasStride {
		return nil, fmt.Errorf("a tensor has no storage, offset, shape or strides")
	}
	if of == nil {
		of = s.of
	}
	t := next(&m.tensors)
	*t = tensor{s.key, m.form(s.content, of, offset, shape, stride)}
	return t, t.check()
}

// dims appends the numbers of a tuple to a list, unless there are more than any tensor has.
func dims(list []int64, v any) ([]int64, bool) {
	t, ok := v.(pickle.Tuple)
	if len(t) > maxDims {
		return nil, false
	}
	for _, n := range t {
		d, isNumber := n.(int64)
		if !isNumber {
			return nil, false
		}
		list = append(list, d)
	}
	return list, ok
}
