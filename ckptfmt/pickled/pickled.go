// Package pickled reads the contents of Python pickles, so that two can be compared:
// checkpoints of JAX, NumPy and scikit-learn are often pickles, or joblib's. Equal objects may
// have different bytes, because a pickle stores an object that is used twice only
// once. Nothing in a pickle is called. The package has no state.
package pickled

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
)

// The limits on a pickle's depth, number of leaves and what is made for them: a value that is in
// a pickle once may be used very often.
const (
	maxDepth  = 100
	maxLeaves = 1 << 20
	maxMade   = 256 << 20 // bytes of names and digits
	maxDims   = 64        // of an array of NumPy
)

var errMore = errors.New("there is something after the pickle")

var errTooMuch = errors.New("it is too deep or too large, or refers to itself")

// storage is what PyTorch keeps elsewhere, and tensors is what makes tensors of that.
const storage, tensors = "torch.storage", "torch._"

const inFortransOrder = " in Fortran's order"

// Array is a NumPy array or number.
type Array struct {
	Type, Shape string // as in "<f4" and "[2 3]"
	Data        string // its elements as in the pickle
}

// Whole is a whole number that no int64 has, in decimal digits: the state of a random
// generator, as NumPy's.
type Whole string

// Is reports whether a file that begins with b may be a pickle.
func Is(b []byte) bool {
	return len(b) > 1 && b[0] == 0x80 && b[1] <= 5 && bytes.HasSuffix(b, []byte("."))
}

// Leaves returns the texts, numbers and arrays in a pickle by their path in it, as
// "params/dense/kernel". Values can be compared by ==. Whole numbers that a float64
// has are one. PyTorch's tensors, whose elements are not in the pickle, are left out.
func Leaves(b []byte) (map[string]any, error) {
	v, end, err := load(string(b), 0)
	if err == nil && end != len(b) {
		err = errMore
	}
	if err != nil {
		return nil, err
	}
	w := &walk{leaves: map[string]any{}}
	return w.leaves, w.visit("", v, 0)
}

// load reads a pickle, which may be in others.
func load(b string, depth int) (value any, end int, err error) {
	return pickle.Load(b, pickle.Rules{
		Allowed: func(string) bool { return true },
		Call:    call,
		New: func(class string, args pickle.Tuple) (any, error) {
			return &pickle.Object{Class: pickle.Global(class), Args: args}, nil
		},
		Persistent: func(any) (any, error) { return &pickle.Object{Class: storage}, nil },
		Built:      func(o *pickle.Object, rest string) (int, error) { return readJoblib(o, rest, depth) },
	})
}

// call returns what represents the result of a call.
func call(name string, args pickle.Tuple) (any, error) {
	switch name {
	case "collections.OrderedDict", "collections.defaultdict", "builtins.dict":
		return pickle.NewDict(), nil
	case "_codecs.encode":
		if len(args) > 0 {
			return args[0], nil
		}
	}
	return &pickle.Object{Class: pickle.Global(name), Args: args}, nil
}

// walk finds the leaves of a value.
type walk struct {
	leaves map[string]any
	made   int
}

func (w *walk) visit(name string, value any, depth int) error {
	if w.made += len(name); depth > maxDepth || len(w.leaves) > maxLeaves || w.made > maxMade {
		return errTooMuch
	}
	switch v := value.(type) {
	case *pickle.Dict:
		if len(v.Keys) == 0 {
			w.leaves[name] = "{}"
		}
		for i, key := range v.Keys {
			if err := w.visit(joined(name, keyName(key)), v.Values[i], depth+1); err != nil {
				return err
			}
		}
		return nil
	case *pickle.List:
		return w.visitAll(name, v.Items, depth)
	case pickle.Tuple:
		return w.visitAll(name, v, depth)
	case *pickle.Object:
		return w.visitObject(name, v, depth)
	case int64:
		if f := float64(v); int64(f) == v {
			value = f
		}
	case float64:
		if math.IsNaN(v) {
			value = "nan" // which is not equal to itself
		}
	case *big.Int:
		digits := v.String()
		w.made += len(digits) * len(digits) // as it takes time
		value = Whole(digits)
	case nil, bool, string, pickle.Bytes, pickle.Global:
	default:
		value = fmt.Sprint(v)
	}
	w.leaves[name] = value
	return nil
}

func (w *walk) visitAll(name string, items []any, depth int) error {
	if len(items) == 0 {
		w.leaves[name] = "[]"
	}
	for i, v := range items {
		if err := w.visit(joined(name, strconv.Itoa(i)), v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// visitObject visits an array, or what an object was made of and its attributes.
func (w *walk) visitObject(name string, o *pickle.Object, depth int) error {
	if a, ok := arrayOf(o); ok {
		w.leaves[name] = a
		return nil
	}
	class := string(o.Class)
	if class == storage || strings.HasPrefix(class, tensors) {
		return nil
	}
	name = joined(name, class[strings.LastIndexByte(class, '.')+1:])
	if err := w.visitAll(name, o.Args, depth); err != nil {
		return err
	}
	for _, v := range []any{o.Items, o.State} {
		if v == nil {
			continue
		}
		if err := w.visit(name, v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// arrayOf reads an array of NumPy:
//
//	_reconstruct(ndarray, (0,), b"b"), state (1, shape, dtype, fortran, elements)
//	scalar(dtype, elements)
//	_frombuffer(elements, dtype, shape, "C"), of protocol 5
func arrayOf(o *pickle.Object) (a Array, ok bool) {
	state, _ := o.State.(pickle.Tuple)
	var typ, elements any
	switch {
	case strings.HasSuffix(string(o.Class), "multiarray.scalar") && len(o.Args) == 2:
		typ, elements = o.Args[0], o.Args[1]
	case strings.HasSuffix(string(o.Class), "numeric._frombuffer") && len(o.Args) == 4:
		elements, typ, a.Shape = o.Args[0], o.Args[1], printed(o.Args[2])
		if o.Args[3] != any("C") {
			a.Shape += inFortransOrder
		}
	case strings.HasSuffix(string(o.Class), "multiarray._reconstruct") && len(state) == 5:
		a.Shape = printed(state[1])
		if state[3] == any(true) {
			a.Shape += inFortransOrder
		}
		typ, elements = state[2], state[4]
	default:
		return a, false
	}
	switch data := elements.(type) {
	case pickle.Bytes:
		a.Data = string(data)
	case string:
		a.Data = data // of an older protocol, by _codecs.encode
	default:
		return a, false
	}
	a.Type = typeOf(typ)
	return a, true
}

// typeOf reads dtype("f8", False, True) with the state (3, "<", ...).
func typeOf(v any) string {
	o, _ := v.(*pickle.Object)
	if o == nil || len(o.Args) == 0 {
		return printed(v)
	}
	code := printed(o.Args[0])
	if state, _ := o.State.(pickle.Tuple); len(state) > 1 {
		code = printed(state[1]) + code
	}
	return code
}

// printed prints a value, or the few values in a tuple such as a shape, but not what these contain,
// which may be very much.
func printed(v any) string {
	t, ok := v.(pickle.Tuple)
	if !ok || len(t) > maxDims {
		return printedAlone(v)
	}
	words := make([]string, len(t))
	for i, v := range t {
		words[i] = printedAlone(v)
	}
	return "[" + strings.Join(words, " ") + "]"
}

func printedAlone(v any) string {
	switch v.(type) {
	case pickle.Tuple, *pickle.List, *pickle.Dict, *pickle.Object:
		return fmt.Sprintf("%T", v)
	}
	return fmt.Sprint(v)
}

func joined(name, key string) string {
	if name == "" {
		return key
	}
	return name + "/" + key
}

func keyName(key any) string {
	if o, ok := key.(*pickle.Object); ok {
		return string(o.Class)
	}
	return fmt.Sprint(key)
}
