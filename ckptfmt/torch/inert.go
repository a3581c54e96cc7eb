package torch

import (
	"fmt"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
)

// inertClasses are classes that programs save next to tensors, of the standard
// library and of torch. Their objects have no code of their own to be run, and here
// they are made of nothing but words and numbers. Protocol 2 calls int and str of Python 3
// long and unicode.
var inertClasses = setOf(`
	builtins.set builtins.frozenset builtins.bytearray builtins.bytes builtins.complex builtins.slice
	builtins.range builtins.list builtins.dict builtins.int builtins.float builtins.object builtins.str
	builtins.bool builtins.tuple
	__builtin__.set __builtin__.frozenset __builtin__.bytearray __builtin__.bytes __builtin__.complex
	__builtin__.slice __builtin__.xrange __builtin__.list __builtin__.dict __builtin__.int __builtin__.float
	__builtin__.object __builtin__.str __builtin__.bool __builtin__.tuple __builtin__.long __builtin__.unicode
	_codecs.encode collections.defaultdict collections.Counter collections.deque collections.ChainMap
	collections.UserDict collections.UserList argparse.Namespace functools.partial re._compile types.GenericAlias
	types.SimpleNamespace datetime.datetime datetime.date datetime.timedelta datetime.time datetime.timezone
	zoneinfo.ZoneInfo time.struct_time decimal.Decimal fractions.Fraction uuid.UUID random.Random typing.Any signal.Signals
	builtins.Ellipsis builtins.NotImplemented __builtin__.Ellipsis __builtin__.NotImplemented
	pathlib.PosixPath pathlib.PurePosixPath pathlib.WindowsPath pathlib.PureWindowsPath pathlib._local.PosixPath
	pathlib._local.WindowsPath
	torch.device torch._C.Generator torch.serialization._get_layout torch.storage.TypedStorage torch.per_tensor_affine
	torch.per_channel_affine torch.per_channel_symmetric torch.per_tensor_symmetric
	torch.per_channel_affine_float_qparams
`)

// setOf returns the words of a text.
func setOf(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// isInert reports whether a class or function is one of data. Those that make NumPy's generators of
// random numbers are.
func isInert(name string) bool {
	return inertClasses[name] || strings.HasPrefix(name, "numpy.random.")
}

// isZoneMaker reports whether a call gets what makes the time zone of a date, the only attribute
// that is got from a class.
func isZoneMaker(name string, args pickle.Tuple) bool {
	return strings.HasSuffix(name, ".getattr") && len(args) == 2 &&
		args[0] == any(pickle.Global("zoneinfo.ZoneInfo")) && args[1] == any("_unpickle")
}

// isDict reports whether objects of a class are dicts.
func isDict(class string) bool {
	switch class {
	case "builtins.dict", "__builtin__.dict", "collections.defaultdict", "collections.Counter":
		return true
	}
	return false
}

// inert returns what the call of an inert class would make, as far as it can hold
// tensors, numbers or texts.
func inert(name string, args pickle.Tuple) (any, error) {
	switch {
	case name == "_codecs.encode":
		return encoded(args)
	case strings.HasSuffix(name, ".bytes") && len(args) == 0: // as protocol 2 has those of no length
		return pickle.Bytes(""), nil
	case isDict(name):
		for _, a := range args {
			if d, ok := a.(*pickle.Dict); ok {
				return d, nil
			}
		}
		return pickle.NewDict(), nil
	case name == "collections.deque" || strings.HasSuffix(name, "set") || strings.HasSuffix(name, ".list"):
		if len(args) > 0 {
			if l, ok := args[0].(*pickle.List); ok {
				return l, nil
			}
		}
		return &pickle.List{}, nil
	case strings.HasPrefix(name, "pathlib."):
		return pathOf(args), nil
	case name == "torch.device" && len(args) > 0:
		return args[0], nil
	}
	return &pickle.Object{Class: pickle.Global(name), Args: args}, nil
}

// encoded is how protocol 2 has bytes: as a text in Latin-1.
func encoded(args pickle.Tuple) (any, error) {
	if len(args) != 2 || args[1] != any("latin1") {
		return nil, fmt.Errorf("bytes are in a code that Python does not use for them")
	}
	text, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("bytes are not text")
	}
	b := make([]byte, 0, len(text))
	for _, c := range text {
		if c > 0xff {
			return nil, fmt.Errorf("bytes have the letter %q", c)
		}
		b = append(b, byte(c))
	}
	return pickle.Bytes(b), nil
}

// pathOf joins the parts of a path.
func pathOf(args pickle.Tuple) string {
	var path []byte
	for _, a := range args {
		part, _ := a.(string)
		if len(path) > 0 && path[len(path)-1] != '/' {
			path = append(path, '/')
		}
		path = append(path, part...)
	}
	return string(path)
}
