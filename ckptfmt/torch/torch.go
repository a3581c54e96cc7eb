// Package torch reads and writes the state dicts of torch.save, in .pt, .pth and
// .bin files. It never executes anything in a file.
//
// # Format
//
// A file is a zip archive of stored members, all in one folder:
//
//	NAME/data.pkl    what was saved, as a Python pickle
//	NAME/byteorder   "little"; files of older versions have none
//	NAME/data/0      the elements of storage "0", little-endian
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
// It has no checksums.
//
// Several tensors may share a storage. A member's CRC-32 is verified the first
// time that one of its tensors is read.
//
// # What is understood
//
// The opcodes and the globals that state dicts need: dicts, OrderedDict, lists,
// sets, tuples, numbers, texts, storages, tensors and parameters, arrays of NumPy,
// and some classes of the standard library that programs save with them, such as
// argparse.Namespace. Anything else, above all any other global, is a
// [*RefusedError] with its offset. Nothing in the pickle is ever called: to this
// package, the allowed names are only words.
//
// Nested dicts become names with dots: {"model": {"w": t}} has "model.w";
// elements of lists have their index. A tensor saved alone is named "tensor".
// Numbers and texts that were saved with the tensors are in [Reader.Metadata].
//
// A tensor that is not a plain array, such as a sparse or a quantised one, is listed
// with the reason why it cannot be read. Big-endian files and compressed members are
// refused.
package torch

import (
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Limits of what a file may ask for.
const (
	maxPickle   = 64 << 20 // bytes of data.pkl, and so many more for each storage
	morePickle  = 512
	maxValues   = 8 << 20 // made by the pickle, and met when names are given; more for each storage
	moreValues  = 64
	maxDepth    = 100 // of dicts in dicts
	maxNames    = 256 << 20
	maxExpanded = 1 << 20 // elements of a tensor that has more than its storage
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
	return fmt.Sprintf("%s: offset %d: %s; save a state dict with torch.save(model.state_dict(), ...)", e.Name, e.Offset, e.What)
}

// storageTypes are the globals that stand for typed storages.
var storageTypes = map[string]tfpb.DataType{
	"torch.FloatStorage": tfpb.DataType_DT_FLOAT, "torch.DoubleStorage": tfpb.DataType_DT_DOUBLE, "torch.HalfStorage": tfpb.DataType_DT_HALF,
	"torch.BFloat16Storage": tfpb.DataType_DT_BFLOAT16, "torch.LongStorage": tfpb.DataType_DT_INT64, "torch.IntStorage": tfpb.DataType_DT_INT32,
	"torch.ShortStorage": tfpb.DataType_DT_INT16, "torch.CharStorage": tfpb.DataType_DT_INT8, "torch.ByteStorage": tfpb.DataType_DT_UINT8,
	"torch.BoolStorage": tfpb.DataType_DT_BOOL, "torch.ComplexFloatStorage": tfpb.DataType_DT_COMPLEX64,
	"torch.ComplexDoubleStorage": tfpb.DataType_DT_COMPLEX128,
	untypedStorage:               tfpb.DataType_DT_UINT8,
}

// quantisedStorages are those of tensors that are listed and not read.
var quantisedStorages = map[string]tfpb.DataType{
	"torch.QInt8Storage": tfpb.DataType_DT_INT8, "torch.QUInt8Storage": tfpb.DataType_DT_UINT8, "torch.QInt32Storage": tfpb.DataType_DT_INT32,
	"torch.QUInt4x2Storage": tfpb.DataType_DT_UINT8, "torch.QUInt2x4Storage": tfpb.DataType_DT_UINT8,
}

// storageType returns the type of the elements of a storage by its class.
func storageType(class string) (tfpb.DataType, bool) {
	if d, ok := storageTypes[class]; ok {
		return d, true
	}
	d, ok := quantisedStorages[class]
	return d, ok
}

// otherTypes are types of torch that no other library has.
var otherTypes = map[string]bool{
	"torch.complex32": true, "torch.float8_e8m0fnu": true, "torch.float4_e2m1fn_x2": true, "torch.quint8": true, "torch.qint8": true,
	"torch.qint32": true, "torch.quint4x2": true, "torch.quint2x4": true, "torch.bits8": true, "torch.bits16": true, "torch.bits1x8": true,
	"torch.bits2x4": true, "torch.bits4x2": true,
}

const untypedStorage = "torch.storage.UntypedStorage"

// dtypes are the globals of types, which follow an untyped storage.
var dtypes = map[string]tfpb.DataType{
	"torch.float32": tfpb.DataType_DT_FLOAT, "torch.float64": tfpb.DataType_DT_DOUBLE, "torch.float16": tfpb.DataType_DT_HALF,
	"torch.bfloat16": tfpb.DataType_DT_BFLOAT16, "torch.int64": tfpb.DataType_DT_INT64, "torch.int32": tfpb.DataType_DT_INT32,
	"torch.int16": tfpb.DataType_DT_INT16, "torch.int8": tfpb.DataType_DT_INT8, "torch.uint8": tfpb.DataType_DT_UINT8,
	"torch.uint16": tfpb.DataType_DT_UINT16, "torch.uint32": tfpb.DataType_DT_UINT32, "torch.uint64": tfpb.DataType_DT_UINT64,
	"torch.bool": tfpb.DataType_DT_BOOL, "torch.complex64": tfpb.DataType_DT_COMPLEX64, "torch.complex128": tfpb.DataType_DT_COMPLEX128,
	"torch.float8_e4m3fn": tfpb.DataType_DT_FLOAT8_E4M3FN, "torch.float8_e5m2": tfpb.DataType_DT_FLOAT8_E5M2,
	"torch.float8_e4m3fnuz": tfpb.DataType_DT_FLOAT8_E4M3FNUZ, "torch.float8_e5m2fnuz": tfpb.DataType_DT_FLOAT8_E5M2FNUZ,
}

// DType returns the type with that name in a pickle, such as "torch.float32".
func DType(name string) (tfpb.DataType, bool) {
	d, ok := dtypes[name]
	return d, ok
}

// storageRef is a storage as the pickle names it. For an untyped one numel is
// the number of bytes.
type storageRef struct {
	key   string
	dtype tfpb.DataType
	numel int64
}

// refused is a tensor that has no array of elements.
type refused struct{ why string }

// tensor is a tensor as the pickle describes it, all in elements.
type tensor struct {
	storage       *storageRef
	dtype         tfpb.DataType
	offset        int64
	shape, stride []int64
}

// check insists that a tensor lies within its storage.
func (t *tensor) check() error {
	if len(t.shape) != len(t.stride) {
		return fmt.Errorf("a tensor of shape %v has strides %v", t.shape, t.stride)
	}
	n, err := dtype.NumElements(t.shape)
	if err != nil {
		return err
	}
	numel := t.numel()
	if n > max(numel, maxExpanded) {
		return fmt.Errorf("a tensor of shape %v has more elements than its storage of %d", t.shape, numel)
	}
	if t.offset < 0 || t.offset > numel {
		return fmt.Errorf("a tensor begins at %d of a storage of %d", t.offset, numel)
	}
	left := numel - t.offset - 1 // the largest index of the last element
	for i, d := range t.shape {
		if t.stride[i] < 0 {
			return fmt.Errorf("a tensor has strides %v", t.stride)
		}
		if n == 0 || d < 2 || t.stride[i] == 0 {
			continue
		}
		if t.stride[i] > left/(d-1) {
			return fmt.Errorf("a tensor of shape %v and strides %v at %d is larger than its storage of %d", t.shape, t.stride, t.offset, numel)
		}
		left -= t.stride[i] * (d - 1)
	}
	if n > 0 && left < 0 {
		return fmt.Errorf("a tensor begins at %d of a storage of %d", t.offset, numel)
	}
	return nil
}

// numel returns the number of the tensor's elements that fit into the storage.
func (t *tensor) numel() int64 {
	return t.storage.numel * dtype.Size(t.storage.dtype) / dtype.Size(t.dtype)
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
