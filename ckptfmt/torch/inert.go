package torch

import (
	"fmt"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
)

// inertClasses are classes that programs save next to tensors, of the standard
// library and of torch. Their objects have no code of their own to be run, and here
// they are made of nothing but words and numbers.
var inertClasses = map[string]bool{
	"builtins.set": true, "__builtin__.set": true, "builtins.frozenset": true, "__builtin__.frozenset": true,
	"builtins.bytearray": true, "__builtin__.bytearray": true, "builtins.bytes": true, "__builtin__.bytes": true,
	"builtins.complex": true, "__builtin__.complex": true, "builtins.slice": true, "__builtin__.slice": true,
	"builtins.range": true, "__builtin__.xrange": true, "_codecs.encode": true,
	"builtins.list": true, "builtins.dict": true, "builtins.int": true, "builtins.float": true, "__builtin__.list": true,
	"__builtin__.dict": true, "__builtin__.int": true, "__builtin__.float": true, "__builtin__.object": true, "builtins.object": true,
	"builtins.str": true, "builtins.bool": true, "builtins.tuple": true, "__builtin__.str": true, "__builtin__.bool": true,
	"__builtin__.tuple": true, "__builtin__.long": true, "__builtin__.unicode": true, // what protocol 2 calls int and str
	"collections.defaultdict": true, "collections.Counter": true, "collections.deque": true,
	"argparse.Namespace": true, "types.SimpleNamespace": true,
	"datetime.datetime": true, "datetime.date": true, "datetime.timedelta": true, "decimal.Decimal": true, "uuid.UUID": true,
	"pathlib.PosixPath": true, "pathlib.PurePosixPath": true, "pathlib.WindowsPath": true, "pathlib.PureWindowsPath": true,
	"pathlib._local.PosixPath": true, "pathlib._local.WindowsPath": true,
	"torch.device": true, "torch.serialization._get_layout": true, "torch.storage.TypedStorage": true,
	"torch.per_tensor_affine": true, "torch.per_channel_affine": true, "torch.per_channel_symmetric": true,
	"torch.per_tensor_symmetric": true, "torch.per_channel_affine_float_qparams": true,
	"lightning_fabric.utilities.data.AttributeDict": true, "lightning.fabric.utilities.data.AttributeDict": true,
	"pytorch_lightning.utilities.parsing.AttributeDict": true,
}

func isInert(name string) bool { return inertClasses[name] }

// isDict reports whether objects of a class are dicts.
func isDict(class string) bool {
	switch class {
	case "builtins.dict", "__builtin__.dict", "collections.defaultdict", "collections.Counter":
		return true
	}
	return strings.HasSuffix(class, ".AttributeDict")
}

// inert returns what the call of an inert class would make, as far as it can hold
// tensors, numbers or texts.
func inert(name string, args pickle.Tuple) (any, error) {
	switch {
	case name == "_codecs.encode":
		return encoded(args)
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
	var path string
	for _, a := range args {
		part, _ := a.(string)
		if path != "" && !strings.HasSuffix(path, "/") {
			path += "/"
		}
		path += part
	}
	return path
}
