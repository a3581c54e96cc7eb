package ckptfmt

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/trainerd/trainerd/internal/crc32c"
)

// Elements without a fixed size are stored so that a damaged length is found before it is used.
//
// Strings: the lengths as varints, the masked CRC-32C of the lengths, then the
// strings. That checksum takes each length as a uint32, or as a uint64 when it
// needs one. The entry's checksum continues from there, over the four masked
// bytes and the strings.
//
// Variants: for each its length as a varint, the bytes, and the masked
// checksum so far, which takes the length as a uint64. The entry's checksum
// continues over the four masked bytes.

const crcSize = 4

// encodeStrings returns the stored form of the strings up to the first of
// them, and the checksum over everything.
func encodeStrings(vals [][]byte) (head []byte, crc uint32) {
	for _, v := range vals {
		head = binary.AppendUvarint(head, uint64(len(v)))
		crc = extendLength(crc, uint64(len(v)), binary.LittleEndian)
	}
	head = binary.LittleEndian.AppendUint32(head, crc32c.Mask(crc))
	crc = crc32c.Extend(crc, head[len(head)-crcSize:])
	for _, v := range vals {
		crc = crc32c.Extend(crc, v)
	}
	return head, crc
}

func extendLength(crc uint32, n uint64, order binary.AppendByteOrder) uint32 {
	if n <= math.MaxUint32 {
		return crc32c.Extend(crc, order.AppendUint32(nil, uint32(n)))
	}
	return crc32c.Extend(crc, order.AppendUint64(nil, n))
}

// decodeStrings splits the stored form of n strings and checks the lengths'
// checksum; order is that of the machine that wrote it. The strings share
// memory with b. It also returns the checksum over everything.
func decodeStrings(b []byte, n int64, order byteOrder) ([][]byte, uint32, error) {
	if n > int64(len(b)) {
		return nil, 0, fmt.Errorf("%d bytes cannot hold %d strings", len(b), n)
	}
	lengths := make([]uint64, n)
	rest, crc := b, uint32(0)
	for i := range lengths {
		v, m := binary.Uvarint(rest)
		if m <= 0 {
			return nil, 0, fmt.Errorf("length of string %d is not a varint", i)
		}
		lengths[i], rest = v, rest[m:]
		crc = extendLength(crc, v, order)
	}
	if len(rest) < crcSize {
		return nil, 0, fmt.Errorf("no room for the lengths' checksum")
	}
	if stored := order.Uint32(rest); stored != crc32c.Mask(crc) {
		return nil, 0, fmt.Errorf("the length %w: stored %#08x, computed %#08x", ErrChecksum, stored, crc32c.Mask(crc))
	}
	crc = crc32c.Extend(crc, rest)
	rest = rest[crcSize:]
	vals := make([][]byte, n)
	for i, size := range lengths {
		if size > uint64(len(rest)) {
			return nil, 0, fmt.Errorf("string %d of %d bytes runs past the tensor's end", i, size)
		}
		vals[i], rest = rest[:size:size], rest[size:]
	}
	if len(rest) > 0 {
		return nil, 0, fmt.Errorf("%d bytes after the last string", len(rest))
	}
	return vals, crc, nil
}

// byteOrder is the order of the machine that wrote a bundle.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// encodeVariants returns the stored form of the variants and its checksum.
func encodeVariants(vals [][]byte) (b []byte, crc uint32) {
	for _, v := range vals {
		b = binary.AppendUvarint(b, uint64(len(v)))
		crc = crc32c.Extend(crc, binary.LittleEndian.AppendUint64(nil, uint64(len(v))))
		b = append(b, v...)
		crc = crc32c.Extend(crc, v)
		b = binary.LittleEndian.AppendUint32(b, crc32c.Mask(crc))
		crc = crc32c.Extend(crc, b[len(b)-crcSize:])
	}
	return b, crc
}

// decodeVariants splits the stored form of n variants and checks each one's
// checksum. They share memory with b.
func decodeVariants(b []byte, n int64) ([][]byte, uint32, error) {
	if n > int64(len(b)) {
		return nil, 0, fmt.Errorf("%d bytes cannot hold %d variants", len(b), n)
	}
	vals := make([][]byte, n)
	crc := uint32(0)
	for i := range vals {
		size, m := binary.Uvarint(b)
		if m <= 0 || uint64(len(b)-m) < crcSize || size > uint64(len(b)-m-crcSize) {
			return nil, 0, fmt.Errorf("variant %d runs past the tensor's end", i)
		}
		crc = crc32c.Extend(crc, binary.LittleEndian.AppendUint64(nil, size))
		vals[i], b = b[m:m+int(size):m+int(size)], b[m+int(size):]
		crc = crc32c.Extend(crc, vals[i])
		if stored := binary.LittleEndian.Uint32(b); stored != crc32c.Mask(crc) {
			return nil, 0, fmt.Errorf("variant %d: %w: stored %#08x, computed %#08x", i, ErrChecksum, stored, crc32c.Mask(crc))
		}
		crc = crc32c.Extend(crc, b[:crcSize])
		b = b[crcSize:]
	}
	if len(b) > 0 {
		return nil, 0, fmt.Errorf("%d bytes after the last variant", len(b))
	}
	return vals, crc, nil
}
