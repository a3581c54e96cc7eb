package dataset

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// An IDX file is an array, all numbers big-endian:
//
//	0 0 TYPE RANK   one byte each
//	SIZE ...        RANK sizes of 32 bits
//	elements        the last index moves fastest
const (
	idxUint8   = 0x08
	idxInt8    = 0x09
	idxInt16   = 0x0b
	idxInt32   = 0x0c
	idxFloat32 = 0x0d
	idxFloat64 = 0x0e
)

var idxTypes = map[byte]tfpb.DataType{
	idxUint8: tfpb.DataType_DT_UINT8, idxInt8: tfpb.DataType_DT_INT8, idxInt16: tfpb.DataType_DT_INT16,
	idxInt32: tfpb.DataType_DT_INT32, idxFloat32: tfpb.DataType_DT_FLOAT, idxFloat64: tfpb.DataType_DT_DOUBLE,
}

// maxIDXRank is more than any data set has.
const maxIDXRank = 8

// isIDX reports whether a file begins with the head of an IDX file.
func isIDX(head []byte) bool {
	return len(head) >= 4 && head[0] == 0 && head[1] == 0 && idxTypes[head[2]] != 0 && head[3] <= maxIDXRank
}

func parseIDX(r io.Reader, limit int64) (*array, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if !isIDX(head[:]) || head[3] < 1 {
		return nil, &Error{Reason: fmt.Sprintf("is not an IDX file: it begins with % x", head), Hint: "check data.format"}
	}
	kind := idxTypes[head[2]]
	total, shape := dtype.Size(kind), []int(nil)
	for range head[3] {
		var n [4]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return nil, err
		}
		d := int64(binary.BigEndian.Uint32(n[:]))
		if d == 0 || total > limit/d {
			return nil, sizeError(shape, d, limit)
		}
		total *= d
		shape = append(shape, int(d))
	}
	data, err := readGrowing(r, total)
	if err != nil {
		return nil, err
	}
	if n, _ := io.ReadFull(r, head[:1]); n > 0 {
		return nil, &Error{Reason: fmt.Sprintf("continues after its %v elements", shape), Hint: "it is damaged; get it again"}
	}
	for size, left := int(dtype.Size(kind)), data; size > 1 && len(left) > 0; left = left[size:] {
		slices.Reverse(left[:size])
	}
	return newArray(kind, shape, data)
}

// sizeError is for an array that has a size after others.
func sizeError(shape []int, size, limit int64) *Error {
	return &Error{Reason: fmt.Sprintf("its header has the size %d after %v, which makes it empty, or more than data.memory_mb = %d", size, shape, limit>>20),
		Hint: "it is damaged, or raise data.memory_mb"}
}

// readGrowing reads n bytes; memory grows with what is really there.
func readGrowing(r io.Reader, n int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, n))
	if err == nil && int64(len(data)) < n {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}
