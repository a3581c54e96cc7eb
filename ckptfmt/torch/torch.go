// Package torch reads and writes the state dicts of torch.save, in .pt, .pth and
// .bin files. It never executes anything in a file.
//
// # Format
//
// A file is a zip archive of stored members, all in one folder:
//
//	NAME/data.pkl    what was saved, as a Python pickle
//	NAME/byteorder   "little" or "big"; files of older versions have none
//	NAME/data/0      the elements of storage "0"
//	NAME/data/1      ...
//	NAME/version     "3\n"
//
// A tensor in the pickle is a call of _rebuild_tensor_v2 with a storage, an offset,
// a shape and strides, all counted in elements:
//
//	GLOBAL 'torch._utils _rebuild_tensor_v2'
//	( ( 'storage', torch.FloatStorage, '0', 'cpu', 12 ) BINPERSID
//	  0, (3, 4), (4, 1), False, OrderedDict() ) REDUCE
//
// Before version 1.6, and with _use_new_zipfile_serialization=False, a file is five
// pickles in a row, and the storages:
//
//	magic number | 1001 | about the machine | what was saved | [ keys of storages ]
//	for each key: number of elements: int64 LE | elements
//
// It has no checksums. Elements are little-endian, whatever the machine was; only a storage
// without a type has the machine's order.
//
// Several tensors may share a storage. A member's CRC-32 is verified the first
// time that one of its tensors is read.
//
// # What is understood
//
// The opcodes that state dicts need, and the calls that make dicts, lists, sets, tuples, numbers,
// texts, storages, tensors, parameters and NumPy arrays. An object of a program's own class is read
// as the state that was saved with it. The result of a program's own function of tensors is listed,
// with the function's name, but cannot be read. A call of anything in Python's own library, except
// classes of plain data such as argparse.Namespace, is a [*RefusedError] with its offset, and so is
// any other opcode. Nothing in the pickle is ever called: this package takes all names as mere
// text.
//
// Nested dicts become names with dots: {"model": {"w": t}} has "model.w";
// elements of lists have their index. A tensor saved alone is named "tensor". The tensors of a whole
// module are named as those of its state_dict.
// Numbers and texts that were saved with the tensors are in [Reader.Metadata].
//
// Elements of types that TensorFlow does not have, such as float8_e8m0fnu, are read as
// bytes. A tensor that is not a plain array, such as a sparse or a quantised one, is listed
// with the reason why it cannot be read. Compressed members are refused.
package torch

import (
	"fmt"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Limits of what a file may request.
const (
	maxPickle   = 64 << 20 // bytes of data.pkl, and so many more for each storage
	morePickle  = 512
	maxValues   = 8 << 20 // made by the pickle, and met when names are given; more for each storage
	moreValues  = 64
	maxDepth    = 100       // of dicts in dicts
	maxNames    = 256 << 20 // bytes of names and shapes
	maxDims     = 254       // of a tensor, as in TensorFlow
	maxExpanded = 1 << 20   // elements of a tensor that has more than its storage
	maxLoaded   = 64 << 20
	onlyTensor  = "tensor" // name of a tensor that was saved alone
)

// RefusedError is something in a pickle that state dicts do not need. It may be
// harmless, or an attack: the rest of the file was not read.
type RefusedError struct {
	Name   string // of the file
	Offset int64  // in it
	What   string
}

// Error implements error.
func (e *RefusedError) Error() string {
	next := "save a state dict with torch.save(model.state_dict(), ...)"
	if strings.Contains(e.What, `"torch.distributed.`) { // as state dicts of FSDP have them
		next = "it has the shards of one rank: save all with torch.distributed.checkpoint, or full_tensor() of each"
	}
	return fmt.Sprintf("%s: offset %d: %s; %s", e.Name, e.Offset, e.What, next)
}

// element is a type of elements.
type element struct {
	dtype   tfpb.DataType
	foreign string // what Part.Foreign is, where TensorFlow does not have the type
	size    int64
}

// number returns the size of one of the numbers that an element is made of.
func (e *element) number() int64 {
	if e.dtype == tfpb.DataType_DT_COMPLEX64 || e.dtype == tfpb.DataType_DT_COMPLEX128 || e.foreign == "complex32" {
		return e.size / 2
	}
	return e.size
}

// storageTypes are the dtypes of the globals that name typed storages.
var storageTypes = map[string]string{
	"torch.FloatStorage": "torch.float32", "torch.DoubleStorage": "torch.float64", "torch.HalfStorage": "torch.float16",
	"torch.BFloat16Storage": "torch.bfloat16", "torch.LongStorage": "torch.int64", "torch.IntStorage": "torch.int32",
	"torch.ShortStorage": "torch.int16", "torch.CharStorage": "torch.int8", "torch.ByteStorage": "torch.uint8",
	"torch.BoolStorage": "torch.bool", "torch.ComplexFloatStorage": "torch.complex64", "torch.ComplexDoubleStorage": "torch.complex128",
	untypedStorage: "torch.uint8",

	// Of tensors that are listed and not read.
	"torch.QInt8Storage": "torch.int8", "torch.QUInt8Storage": "torch.uint8", "torch.QInt32Storage": "torch.int32",
	"torch.QUInt4x2Storage": "torch.uint8", "torch.QUInt2x4Storage": "torch.uint8",
}

const (
	untypedStorage = "torch.storage.UntypedStorage"
	quantised      = "torch.Q" // begins the names of their storages
)

// storageType returns the type of the elements of a storage by its class.
func storageType(class string) (*element, bool) {
	e, ok := dtypes[storageTypes[class]]
	return e, ok
}

// dtypes are the globals of types, which follow an untyped storage.
var dtypes = func() map[string]*element {
	all := make(map[string]*element)
	for name, d := range map[string]tfpb.DataType{
		"float32": tfpb.DataType_DT_FLOAT, "float64": tfpb.DataType_DT_DOUBLE, "float16": tfpb.DataType_DT_HALF,
		"bfloat16": tfpb.DataType_DT_BFLOAT16, "int64": tfpb.DataType_DT_INT64, "int32": tfpb.DataType_DT_INT32,
		"int16": tfpb.DataType_DT_INT16, "int8": tfpb.DataType_DT_INT8, "uint8": tfpb.DataType_DT_UINT8,
		"uint16": tfpb.DataType_DT_UINT16, "uint32": tfpb.DataType_DT_UINT32, "uint64": tfpb.DataType_DT_UINT64,
		"bool": tfpb.DataType_DT_BOOL, "complex64": tfpb.DataType_DT_COMPLEX64, "complex128": tfpb.DataType_DT_COMPLEX128,
		"float8_e4m3fn": tfpb.DataType_DT_FLOAT8_E4M3FN, "float8_e5m2": tfpb.DataType_DT_FLOAT8_E5M2,
		"float8_e4m3fnuz": tfpb.DataType_DT_FLOAT8_E4M3FNUZ, "float8_e5m2fnuz": tfpb.DataType_DT_FLOAT8_E5M2FNUZ,
	} {
		all["torch."+name] = &element{dtype: d, size: dtype.Size(d)}
	}
	// Those that TensorFlow does not have, and does not call so.
	for name, size := range map[string]int64{
		"complex32": 4, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1, "bits8": 1, "bits16": 2, "bits1x8": 1, "bits2x4": 1, "bits4x2": 1,
	} {
		all["torch."+name] = &element{foreign: name, size: size}
	}
	return all
}()

// otherType matches types that this package does not know, such as those of later versions of
// torch: a tensor of such a type is listed, but not read.
var otherType = lazyregexp.New(`^torch\.q?(?:u?int|float|bfloat|complex|bits)[0-9][0-9a-z_]*$`)

// DType returns the type of elements with that name in a pickle, such as "torch.float32",
// and the size of one. For a type that TensorFlow does not have it returns the name as
// foreign, with size 0 if this package does not know it either. Both are empty if the
// name is not that of a type.
func DType(name string) (d tfpb.DataType, foreign string, size int64) {
	if e := dtypes[name]; e != nil {
		return e.dtype, e.foreign, e.size
	}
	if otherType().MatchString(name) {
		return tfpb.DataType_DT_INVALID, strings.TrimPrefix(name, "torch."), 0
	}
	return tfpb.DataType_DT_INVALID, "", 0
}

// storageRef is a storage as the pickle names it.
type storageRef struct {
	key string
	content
}

// content is what is in a storage. For an untyped one numel is the number of bytes.
type content struct {
	of    *element
	numel int64
}

func (c *content) bytes() int64 { return c.numel * c.of.size }

// refused is a tensor that has no array of elements.
type refused struct{ kind, why string }

// tensor is a tensor as the pickle describes it: the key of its storage, and what many
// others have too.
type tensor struct {
	key string
	*form
}

// form is how the elements of a tensor lie in its storage, all in elements.
type form struct {
	storage       content
	of            *element
	offset        int64
	shape, stride []int64
}

// check insists that a tensor lies within its storage. One without elements, such as a piece of an
// empty tensor, may begin anywhere.
func (f *form) check() error {
	if len(f.shape) > maxDims {
		return fmt.Errorf("a tensor has %d dimensions, more than %d", len(f.shape), maxDims)
	}
	if len(f.shape) != len(f.stride) {
		return fmt.Errorf("a tensor of shape %v has strides %v", f.shape, f.stride)
	}
	n, err := dtype.NumElements(f.shape)
	if err != nil {
		return err
	}
	numel := f.numel()
	if n > max(numel, maxExpanded) {
		return fmt.Errorf("a tensor of shape %v has more elements than its storage of %d", f.shape, numel)
	}
	if f.offset < 0 {
		return fmt.Errorf("a tensor begins at %d of a storage of %d", f.offset, numel)
	}
	left := numel - f.offset - 1 // the largest index of the last element
	for i, d := range f.shape {
		if f.stride[i] < 0 {
			return fmt.Errorf("a tensor has strides %v", f.stride)
		}
		if n == 0 || d < 2 || f.stride[i] == 0 {
			continue
		}
		if f.stride[i] > left/(d-1) {
			return fmt.Errorf("a tensor of shape %v and strides %v at %d is larger than its storage of %d", f.shape, f.stride, f.offset, numel)
		}
		left -= f.stride[i] * (d - 1)
	}
	if n > 0 && left < 0 {
		return fmt.Errorf("a tensor begins at %d of a storage of %d", f.offset, numel)
	}
	return nil
}

// numel returns the number of the tensor's elements that fit into the storage.
func (f *form) numel() int64 {
	return f.storage.bytes() / f.of.size
}

// contiguous reports whether the elements lie in row-major order.
func (t *tensor) contiguous() bool {
	want := int64(1)
	for i := len(t.shape) - 1; i >= 0; i-- {
		if t.shape[i] != 1 && t.stride[i] != want {
			return false
		}
		want *= max(t.shape[i], 1)
	}
	return true
}
