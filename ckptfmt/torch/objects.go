package torch

import (
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
	tfpb "github.com/trainerd/trainerd/proto"
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
var refusedTensors = map[string]string{
	"torch._utils._rebuild_sparse_tensor":                 "it is sparse; to_dense() makes an array of it",
	"torch._utils._rebuild_sparse_csr_tensor":             "it is sparse; to_dense() makes an array of it",
	"torch._utils._rebuild_qtensor":                       "it is quantised; dequantize() or int_repr() makes an array of it",
	"torch._utils._rebuild_nested_tensor":                 "it is nested; to_padded_tensor() makes an array of it",
	"torch._utils._rebuild_meta_tensor_no_storage":        "it is on the device meta, and has no elements",
	"torch._utils._rebuild_wrapper_subclass":              "it is of a class of its own, whose code is not executed",
	"torch._utils._rebuild_device_tensor_from_numpy":      "it is of a device that keeps arrays of NumPy",
	"torch._utils._rebuild_device_tensor_from_cpu_tensor": "it is of a device that keeps other tensors",
}

// allowed reports whether a pickle may name a global.
func allowed(name string) bool {
	switch name {
	case orderedDict, rebuildTensor, rebuildTensorV2, rebuildTensorV3, rebuildParameter, rebuildWithState, rebuildFromType, torchSize,
		"torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer":
		return true
	}
	_, refused := refusedTensors[name]
	_, storage := storageType(name)
	_, dtype := dtypes[name]
	return refused || storage || dtype || otherTypes[name] || isInert(name) || isNumPy(name)
}

// rules are those of state dicts. What is made has the memory of one maker.
func rules() pickle.Rules {
	m := new(maker)
	return pickle.Rules{Allowed: allowed, Call: m.call, New: newObject, Persistent: m.storageOf}
}

// maker makes what a pickle has very many of, with the memory of many together.
type maker struct {
	tensors  []tensor
	storages []storageRef
	dicts    []pickle.Dict
	numbers  []int64

	kind      pickle.Global // of the last storage, which as a rule the next one has too
	kindDType tfpb.DataType
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

// newObject makes an object of a class that has no code to be run.
func newObject(class string, args pickle.Tuple) (any, error) {
	switch {
	case isDict(class):
		return pickle.NewDict(), nil
	case isInert(class):
		return &pickle.Object{Class: pickle.Global(class), Args: args}, nil
	}
	return nil, fmt.Errorf("an object of %s is made", class)
}

// storageOf reads the tuple that describes a storage. Files from before torch 1.6
// have a sixth element, which is about views.
func (m *maker) storageOf(id any) (any, error) {
	t, ok := id.(pickle.Tuple)
	if ok && len(t) > 0 && t[0] == any("module") {
		return nil, fmt.Errorf("a whole module was saved, with its code")
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
	if isGlobal && kind != m.kind {
		m.kind = ""
		if m.kindDType, isGlobal = storageType(string(kind)); isGlobal {
			m.kind = kind
		}
	}
	if !isGlobal || !isText || !isNumber || numel < 0 || numel > 1<<50 {
		return nil, fmt.Errorf("a storage has no type, key or size")
	}
	s := next(&m.storages)
	*s = storageRef{key, m.kindDType, numel}
	return s, nil
}

// call returns what calling an allowed global would make. Only what is here is
// ever made.
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
			return &refused{conjugated}, nil
		}
		return m.tensorOf(args, tfpb.DataType_DT_INVALID)
	case name == rebuildTensorV3 && len(args) >= 7 && len(args) <= 8:
		dtype, isGlobal := args[6].(pickle.Global)
		d, ok := dtypes[string(dtype)]
		switch {
		case !isGlobal || !ok && !otherTypes[string(dtype)]:
			return nil, fmt.Errorf("a tensor has no type")
		case !ok:
			return &refused{fmt.Sprintf("it is of %s, which TensorFlow and this package do not have", dtype)}, nil
		case len(args) == 8 && !isEmpty(args[7]):
			return &refused{conjugated}, nil
		}
		return m.tensorOf(args, d)
	case name == rebuildParameter && len(args) == 3, name == rebuildWithState && len(args) == 4:
		switch t := args[0].(type) {
		case *tensor, *refused:
			return t, nil
		}
	case name == rebuildFromType && len(args) == 4: // function, class, arguments, state
		f, isGlobal := args[0].(pickle.Global)
		inner, isTuple := args[2].(pickle.Tuple)
		if isGlobal && isTuple && f != rebuildFromType {
			return m.call(string(f), inner)
		}
	case isInert(name):
		return inert(name, args)
	case isNumPy(name):
		return &pickle.Object{Class: pickle.Global(name), Args: args}, nil
	}
	if why, ok := refusedTensors[name]; ok {
		return &refused{why}, nil
	}
	return nil, fmt.Errorf("%s is called with %d arguments of other kinds than a state dict has", name, len(args))
}

const conjugated = "it is conjugated or negated; resolve_conj() and resolve_neg() make an array of it"

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

// tensorOf reads storage, offset, shape and strides.
func (m *maker) tensorOf(args pickle.Tuple, dtype tfpb.DataType) (*tensor, error) {
	s, isStorage := args[0].(*storageRef)
	offset, isNumber := args[1].(int64)
	shape, hasShape := m.dims(args[2])
	stride, hasStride := m.dims(args[3])
	if !isStorage || !isNumber || !hasShape || !hasStride {
		return nil, fmt.Errorf("a tensor has no storage, offset, shape or strides")
	}
	if dtype == tfpb.DataType_DT_INVALID {
		dtype = s.dtype
	}
	t := next(&m.tensors)
	*t = tensor{s, dtype, offset, shape, stride}
	return t, t.check()
}

// dims reads a tuple of numbers.
func (m *maker) dims(v any) ([]int64, bool) {
	t, ok := v.(pickle.Tuple)
	if len(t) > len(m.numbers) {
		m.numbers = make([]int64, max(len(t), madeAtOnce))
	}
	out := m.numbers[:len(t):len(t)]
	m.numbers = m.numbers[len(t):]
	for i, n := range t {
		var isNumber bool
		if out[i], isNumber = n.(int64); !isNumber {
			return nil, false
		}
	}
	return out, ok
}
