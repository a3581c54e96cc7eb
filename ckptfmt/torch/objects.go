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
	rebuildFromType  = "torch._tensor._rebuild_from_type_v2"
	torchSize        = "torch.Size"
)

// allowed reports whether a pickle may name a global.
func allowed(name string) bool {
	switch name {
	case orderedDict, rebuildTensor, rebuildTensorV2, rebuildTensorV3, rebuildParameter, rebuildFromType, torchSize,
		"torch.Tensor", "torch.nn.parameter.Parameter":
		return true
	}
	_, storage := storageTypes[name]
	_, dtype := dtypes[name]
	return storage || dtype
}

// rules are those of state dicts.
var rules = pickle.Rules{Allowed: allowed, Call: call, Persistent: storageOf}

// storageOf reads the tuple that describes a storage.
func storageOf(id any) (any, error) {
	t, ok := id.(pickle.Tuple)
	if !ok || len(t) != 5 || t[0] != any("storage") {
		return nil, fmt.Errorf("a persistent id is not that of a storage")
	}
	kind, isGlobal := t[1].(pickle.Global)
	key, isText := t[2].(string)
	numel, isNumber := t[4].(int64)
	dtype, isStorage := storageTypes[string(kind)]
	if !isGlobal || !isText || !isNumber || !isStorage || numel < 0 || numel > 1<<50 {
		return nil, fmt.Errorf("a storage has no type, key or size")
	}
	return storageRef{key, dtype, numel}, nil
}

// call returns what calling an allowed global would make. Only what is here is
// ever made.
func call(name string, args pickle.Tuple) (any, error) {
	switch {
	case name == orderedDict:
		return orderedDictOf(args)
	case name == torchSize && len(args) == 1:
		if l, ok := args[0].(*pickle.List); ok {
			return pickle.Tuple(l.Items), nil
		}
		return args[0], nil
	case name == rebuildTensor && len(args) == 4, name == rebuildTensorV2 && len(args) >= 6 && len(args) <= 7:
		if len(args) == 7 && !isEmpty(args[6]) {
			return nil, fmt.Errorf("a tensor is conjugated or negated")
		}
		return tensorOf(args, tfpb.DataType_DT_INVALID)
	case name == rebuildTensorV3 && len(args) >= 7 && len(args) <= 8:
		dtype, isGlobal := args[6].(pickle.Global)
		d, ok := dtypes[string(dtype)]
		if !isGlobal || !ok || len(args) == 8 && !isEmpty(args[7]) {
			return nil, fmt.Errorf("a tensor has no type, or is conjugated or negated")
		}
		return tensorOf(args, d)
	case name == rebuildParameter && len(args) == 3:
		if t, ok := args[0].(*tensor); ok {
			return t, nil
		}
	case name == rebuildFromType && len(args) == 4: // function, class, arguments, state
		f, isGlobal := args[0].(pickle.Global)
		inner, isTuple := args[2].(pickle.Tuple)
		if isGlobal && isTuple && f != rebuildFromType {
			return call(string(f), inner)
		}
	}
	return nil, fmt.Errorf("%s is called with %d arguments of other kinds than a state dict has", name, len(args))
}

func isEmpty(v any) bool {
	d, ok := v.(*pickle.Dict)
	return v == nil || ok && len(d.Keys) == 0
}

// orderedDictOf makes a dict, which as a rule is filled afterwards.
func orderedDictOf(args pickle.Tuple) (any, error) {
	d := pickle.NewDict()
	if len(args) == 0 {
		return d, nil
	}
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
func tensorOf(args pickle.Tuple, dtype tfpb.DataType) (*tensor, error) {
	s, isStorage := args[0].(storageRef)
	offset, isNumber := args[1].(int64)
	shape, hasShape := numbers(args[2])
	stride, hasStride := numbers(args[3])
	if !isStorage || !isNumber || !hasShape || !hasStride {
		return nil, fmt.Errorf("a tensor has no storage, offset, shape or strides")
	}
	if dtype == tfpb.DataType_DT_INVALID {
		dtype = s.dtype
	}
	t := &tensor{s, dtype, offset, shape, stride}
	return t, t.check()
}

func numbers(v any) ([]int64, bool) {
	t, ok := v.(pickle.Tuple)
	out := make([]int64, len(t))
	for i, n := range t {
		var isNumber bool
		if out[i], isNumber = n.(int64); !isNumber {
			return nil, false
		}
	}
	return out, ok
}
