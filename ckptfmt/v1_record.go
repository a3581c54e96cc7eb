package ckptfmt

import (
	"encoding/binary"
	"io"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"google.golang.org/protobuf/encoding/protowire"
)

// v1Record is a value of a V1 checkpoint: SavedTensorSlices{data}, a tensor in a message in a
// message. It is written from the tensor's bytes without building the message first: its lists of
// floats are these very bytes.
type v1Record struct {
	head []byte // all before the elements
	size int64
	t    *Tensor
}

// Tags of the messages around a list.
const (
	savedData     = 2<<3 | uint64(protowire.BytesType)
	savedName     = 1<<3 | uint64(protowire.BytesType)
	savedSlice    = 2<<3 | uint64(protowire.BytesType)
	savedTensor   = 3<<3 | uint64(protowire.BytesType)
	tensorStrings = 8<<3 | uint64(protowire.BytesType)
)

// listTag returns the tag of the list in a TensorProto that elements of type d
// are in.
func listTag(d tfpb.DataType) uint64 {
	field := uint64(7) // int_val
	switch d {
	case tfpb.DataType_DT_FLOAT:
		field = 5
	case tfpb.DataType_DT_DOUBLE:
		field = 6
	case tfpb.DataType_DT_COMPLEX64:
		field = 9
	case tfpb.DataType_DT_INT64:
		field = 10
	case tfpb.DataType_DT_BOOL:
		field = 11
	case tfpb.DataType_DT_COMPLEX128:
		field = 12
	case tfpb.DataType_DT_HALF:
		field = 13
	}
	return field<<3 | uint64(protowire.BytesType)
}

// isFixed reports whether a list of type d stores the elements unchanged.
func isFixed(d tfpb.DataType) bool {
	switch d {
	case tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_DOUBLE, tfpb.DataType_DT_COMPLEX64, tfpb.DataType_DT_COMPLEX128:
		return true
	}
	return false
}

// newV1Record prepares the value for a slice of a named tensor, whose type is
// one that V1 can hold.
func newV1Record(name string, s *tfpb.TensorSliceProto, t *Tensor) *v1Record {
	list := listSize(t)
	elements := list // with the list's own tag and length
	if list > 0 && t.DType != tfpb.DataType_DT_STRING {
		elements += sizeOfLength(listTag(t.DType), list)
	}
	slice := tfproto.Marshal(s)
	inner := protowire.AppendVarint(nil, savedName)
	inner = protowire.AppendString(inner, name)
	inner = protowire.AppendVarint(inner, savedSlice)
	inner = protowire.AppendBytes(inner, slice)
	inner = protowire.AppendVarint(inner, savedTensor)
	inner = protowire.AppendVarint(inner, uint64(elements))
	head := protowire.AppendVarint(nil, savedData)
	head = protowire.AppendVarint(head, uint64(int64(len(inner))+elements))
	head = append(head, inner...)
	if elements > list {
		head = protowire.AppendVarint(head, listTag(t.DType))
		head = protowire.AppendVarint(head, uint64(list))
	}
	return &v1Record{head: head, size: int64(len(head)) + list, t: t}
}

// sizeOfLength returns the bytes of a tag and the length after it.
func sizeOfLength(tag uint64, n int64) int64 {
	return int64(protowire.SizeVarint(tag) + protowire.SizeVarint(uint64(n)))
}

// listSize returns the bytes that t's elements take; those of strings include
// their tags.
func listSize(t *Tensor) int64 {
	n := int64(0)
	switch {
	case t.DType == tfpb.DataType_DT_STRING:
		for _, s := range t.Strings {
			n += sizeOfLength(tensorStrings, int64(len(s))) + int64(len(s))
		}
	case isFixed(t.DType):
		n = int64(len(t.Data))
	default:
		size := int(dtype.Size(t.DType))
		for b := t.Data; len(b) > 0; b = b[size:] {
			n += int64(protowire.SizeVarint(listVarint(t.DType, b)))
		}
	}
	return n
}

// listVarint returns the number that encodes an element in its list.
func listVarint(d tfpb.DataType, b []byte) uint64 {
	switch d {
	case tfpb.DataType_DT_INT64:
		return binary.LittleEndian.Uint64(b)
	case tfpb.DataType_DT_BOOL:
		return uint64(min(b[0], 1))
	case tfpb.DataType_DT_HALF:
		return uint64(binary.LittleEndian.Uint16(b))
	}
	return uint64(int64(intVal(d, b)))
}

// write writes the value, a piece at a time.
func (r *v1Record) write(w io.Writer) error {
	if _, err := w.Write(r.head); err != nil {
		return err
	}
	switch {
	case r.t.DType == tfpb.DataType_DT_STRING:
		return r.writeStrings(w)
	case isFixed(r.t.DType):
		_, err := w.Write(r.t.Data)
		return err
	}
	buf := pieces.Get().(*[sumPiece]byte)
	defer pieces.Put(buf)
	out, size := buf[:0], int(dtype.Size(r.t.DType))
	for b := r.t.Data; len(b) > 0; b = b[size:] {
		out = protowire.AppendVarint(out, listVarint(r.t.DType, b))
		if len(out) > len(buf)-binary.MaxVarintLen64 {
			if _, err := w.Write(out); err != nil {
				return err
			}
			out = buf[:0]
		}
	}
	_, err := w.Write(out)
	return err
}

func (r *v1Record) writeStrings(w io.Writer) error {
	var head []byte
	for _, s := range r.t.Strings {
		head = protowire.AppendVarint(head[:0], tensorStrings)
		head = protowire.AppendVarint(head, uint64(len(s)))
		if _, err := w.Write(head); err != nil {
			return err
		}
		if _, err := w.Write(s); err != nil {
			return err
		}
	}
	return nil
}
