package hdf5

import (
	"encoding/binary"
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

var le = binary.LittleEndian

// padded appends zeros up to a multiple of 8.
func padded(b []byte) []byte {
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

// undefined is the address of nothing, in the file.
const undefined = 1<<64 - 1

// appendMessage appends a message of a header of version 1.
func appendMessage(b []byte, kind int, body []byte) []byte {
	body = padded(body)
	b = le.AppendUint16(b, uint16(kind))
	b = le.AppendUint16(b, uint16(len(body)))
	b = append(b, 0, 0, 0, 0)
	return append(b, body...)
}

// headerOf makes a header of version 1 of so many messages.
func headerOf(count int, messages []byte) []byte {
	b := []byte{1, 0}
	b = le.AppendUint16(b, uint16(count))
	b = le.AppendUint32(b, 1)
	b = le.AppendUint32(b, uint32(len(messages)))
	b = append(b, 0, 0, 0, 0)
	return append(b, messages...)
}

func dataspaceOf(shape []int64) []byte {
	b := []byte{1, byte(len(shape)), 0, 0, 0, 0, 0, 0}
	for _, n := range shape {
		b = le.AppendUint64(b, uint64(n))
	}
	return b
}

// typeHead begins a datatype of version 1.
func typeHead(class int, bits uint32, size int64) []byte {
	b := le.AppendUint32(nil, bits<<8|uint32(1<<4|class))
	return le.AppendUint32(b, uint32(size))
}

func fixedType(size int64, signed bool) []byte {
	bits := uint32(0)
	if signed {
		bits = 8
	}
	b := le.AppendUint16(typeHead(classFixed, bits, size), 0)
	return le.AppendUint16(b, uint16(size*8))
}

func floatType(d tfpb.DataType) []byte {
	const implied = 0x20 // the first bit of the fraction is not stored
	for f, of := range floatForms {
		if of != d {
			continue
		}
		b := le.AppendUint16(typeHead(classFloat, uint32(implied|f.sign<<8), f.size), 0)
		b = le.AppendUint16(b, uint16(f.size*8))
		b = append(b, byte(f.expAt), byte(f.exp), byte(f.fracAt), byte(f.frac))
		return le.AppendUint32(b, uint32(f.bias))
	}
	return nil
}

// complexType is a compound of r and i, as h5py makes it.
func complexType(d tfpb.DataType) []byte {
	part := tfpb.DataType_DT_FLOAT
	if d == tfpb.DataType_DT_COMPLEX128 {
		part = tfpb.DataType_DT_DOUBLE
	}
	size := dtype.Size(part)
	b := typeHead(classCompound, 2, 2*size)
	for i, name := range []string{"r", "i"} {
		b = append(b, name...)
		b = append(b, make([]byte, 8-len(name))...)
		b = le.AppendUint32(b, uint32(int64(i)*size))
		b = append(b, make([]byte, 4+4+4+16)...) // no dimensions
		b = append(b, floatType(part)...)
	}
	return b
}

// boolType is an enumeration, as h5py makes it.
func boolType() []byte {
	b := typeHead(classEnum, 2, 1)
	b = append(b, fixedType(1, true)...)
	b = append(b, "FALSE\x00\x00\x00TRUE\x00\x00\x00\x00"...)
	return append(b, 0, 1)
}

// typeOf returns the type as h5py would write it; bfloat16 is two opaque bytes.
func typeOf(d tfpb.DataType) ([]byte, error) {
	size := dtype.Size(d)
	switch {
	case d == tfpb.DataType_DT_BFLOAT16:
		return typeHead(classOpaque, 0, 2), nil
	case d == tfpb.DataType_DT_BOOL:
		return boolType(), nil
	case d == tfpb.DataType_DT_COMPLEX64, d == tfpb.DataType_DT_COMPLEX128:
		return complexType(d), nil
	case d == tfpb.DataType_DT_HALF, d == tfpb.DataType_DT_FLOAT, d == tfpb.DataType_DT_DOUBLE:
		return floatType(d), nil
	case size > 0 && signedTypes[size] == d:
		return fixedType(size, true), nil
	case size > 0 && unsignedTypes[size] == d:
		return fixedType(size, false), nil
	}
	if d == tfpb.DataType_DT_STRING {
		return nil, fmt.Errorf("%w: strings are not written to HDF5; .npz and checkpoints hold them", ckptfmt.ErrType)
	}
	return nil, fmt.Errorf("%w: HDF5 has no %s that h5py reads", ckptfmt.ErrType, dtype.Name(d))
}

// stringRef is where a string of variable length is.
type stringRef struct {
	size  int
	heap  uint64
	index int
}

// attributeOf makes an attribute that is one string.
func attributeOf(name string, ref stringRef) []byte {
	const utf8, isString = 1 << 8, 1
	const refSize = 16
	t := append(typeHead(classVarLen, utf8|isString, refSize), fixedType(1, false)...)
	space := dataspaceOf(nil)
	b := []byte{1, 0}
	b = le.AppendUint16(b, uint16(len(name)+1))
	b = le.AppendUint16(b, uint16(len(t)))
	b = le.AppendUint16(b, uint16(len(space)))
	b = padded(append(append(b, name...), 0))
	b = padded(append(b, t...))
	b = padded(append(b, space...))
	b = le.AppendUint32(b, uint32(ref.size))
	b = le.AppendUint64(b, ref.heap)
	return le.AppendUint32(b, uint32(ref.index))
}

// Sizes of blocks. The ranks of the trees are those that h5py writes.
const (
	leafRank    = 4  // half of the entries of a node of symbols
	innerRank   = 16 // half of the children of a node of a tree
	symbolSize  = 8 + 8 + 4 + 4 + symbolScratch
	symbolsSize = 8 + 2*leafRank*symbolSize
	nodeSize    = 24 + (2*innerRank+1)*8 + 2*innerRank*8
	heapMinimum = 4096 // of a collection of strings
	superSize   = 96
)

// symbol is an entry of a group.
type symbol struct {
	nameAt uint64
	header uint64
	tree   uint64 // of a group
	heap   uint64
}

func appendSymbol(b []byte, s symbol) []byte {
	b = le.AppendUint64(b, s.nameAt)
	b = le.AppendUint64(b, s.header)
	if s.heap == 0 {
		return append(b, make([]byte, 8+symbolScratch)...)
	}
	b = append(b, 1, 0, 0, 0, 0, 0, 0, 0) // the addresses of a group follow
	b = le.AppendUint64(b, s.tree)
	return le.AppendUint64(b, s.heap)
}

// superblockOf begins a file of that size.
func superblockOf(size uint64, root symbol) []byte {
	b := append([]byte(Magic), 0, 0, 0, 0, 0, 8, 8, 0)
	b = le.AppendUint16(b, leafRank)
	b = le.AppendUint16(b, innerRank)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, 0)
	b = le.AppendUint64(b, undefined)
	b = le.AppendUint64(b, size)
	b = le.AppendUint64(b, undefined)
	return appendSymbol(b, root)
}
