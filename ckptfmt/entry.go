package ckptfmt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/slab"
	tfpb "github.com/trainerd/trainerd/proto"
)

// TensorInfo describes a tensor in a checkpoint.
type TensorInfo struct {
	Name  string
	DType tfpb.DataType
	Shape []int64
	// Foreign names the type of elements that TensorFlow does not have, such as "float8_e8m0fnu", or
	// not in the form of the file, such as the packed "F4"; DType is then DT_INVALID. Such elements
	// are copied, hashed and compared as bytes, and not converted to values.
	Foreign string
	// Bytes is the size in the data files. A partitioned tensor has the sum of
	// its slices.
	Bytes int64
	// Shard, Offset and CRC (masked, as stored) are the position of the bytes
	// and their checksum. They are meaningless if Slices is not empty.
	Shard  int
	Offset int64
	CRC    uint32
	// Slices lists the parts that a partitioned tensor is stored in.
	Slices []TensorSlice
}

// TypeName returns the name of the type of the elements.
func (t *TensorInfo) TypeName() string { return typeName(t.DType, t.Foreign) }

func typeName(d tfpb.DataType, foreign string) string {
	if foreign != "" {
		return foreign
	}
	return dtype.Name(d)
}

// bundleEntry is what an index holds under a key: a BundleEntryProto. It is
// read and written by hand, because an index may have a million of them.
type bundleEntry struct {
	dtype  tfpb.DataType
	shape  []int64
	shard  int32
	offset int64
	size   int64
	crc    uint32 // masked
	slices []TensorSlice
}

// Tags of BundleEntryProto, TensorShapeProto and Dim: the field number and
// the wire type.
const (
	entryDType  = 1<<3 | uint64(protowire.VarintType)
	entryShape  = 2<<3 | uint64(protowire.BytesType)
	entryShard  = 3<<3 | uint64(protowire.VarintType)
	entryOffset = 4<<3 | uint64(protowire.VarintType)
	entrySize   = 5<<3 | uint64(protowire.VarintType)
	entryCRC    = 6<<3 | uint64(protowire.Fixed32Type)
	entrySlices = 7<<3 | uint64(protowire.BytesType)

	shapeDim         = 2<<3 | uint64(protowire.BytesType)
	shapeUnknownRank = 3<<3 | uint64(protowire.VarintType)
	dimSize          = 1<<3 | uint64(protowire.VarintType)
)

// append appends e's encoding: all fields in order, without zeros, but always with the shape.
func (e *bundleEntry) append(b []byte) []byte {
	varint := func(tag, v uint64) {
		if v != 0 {
			b = protowire.AppendVarint(protowire.AppendVarint(b, tag), v)
		}
	}
	varint(entryDType, uint64(e.dtype))
	b = protowire.AppendVarint(b, entryShape)
	b = protowire.AppendBytes(b, appendShape(nil, e.shape))
	varint(entryShard, uint64(e.shard))
	varint(entryOffset, uint64(e.offset))
	varint(entrySize, uint64(e.size))
	if e.crc != 0 {
		b = protowire.AppendFixed32(protowire.AppendVarint(b, entryCRC), e.crc)
	}
	for _, s := range e.slices {
		p, _ := proto.Marshal(s.proto()) // only a string that is not UTF-8 could fail
		b = protowire.AppendBytes(protowire.AppendVarint(b, entrySlices), p)
	}
	return b
}

func appendShape(b []byte, shape []int64) []byte {
	for _, d := range shape {
		b = protowire.AppendVarint(b, shapeDim)
		if d == 0 {
			b = protowire.AppendVarint(b, 0)
			continue
		}
		size := 1 + protowire.SizeVarint(uint64(d))
		b = protowire.AppendVarint(b, uint64(size))
		b = protowire.AppendVarint(b, dimSize)
		b = protowire.AppendVarint(b, uint64(d))
	}
	return b
}

// parse decodes and checks an entry into e, which is empty. Unknown fields are
// skipped. The memory of its shape is from shapes, unless that is nil.
func (e *bundleEntry) parse(b []byte, shapes *[]int64) error {
	f := fields{rest: b}
	for f.next() {
		switch f.tag {
		case entryDType:
			e.dtype = tfpb.DataType(int32(f.v))
		case entryShape:
			f.fail(e.parseShape(f.body, shapes))
		case entryShard:
			e.shard = int32(f.v)
		case entryOffset:
			e.offset = int64(f.v)
		case entrySize:
			e.size = int64(f.v)
		case entryCRC:
			e.crc = uint32(f.v)
		case entrySlices:
			f.fail(e.parseSlice(f.body))
		}
	}
	if f.err != nil {
		*e = bundleEntry{}
		return f.err
	}
	return e.check()
}

func (e *bundleEntry) parseShape(b []byte, shapes *[]int64) error {
	var room [8]int64 // collects most shapes, so that one slice is made for each
	shape := append(room[:0], e.shape...)
	f := fields{rest: b}
	for f.next() {
		switch f.tag {
		case shapeUnknownRank:
			if f.v != 0 {
				return errors.New("shape of unknown rank")
			}
		case shapeDim:
			d, err := parseDim(f.body)
			f.fail(err)
			shape = append(shape, d)
		}
	}
	switch {
	case len(shape) == 0:
	case shapes != nil:
		e.shape = slab.Copy(shapes, shape)
	default:
		e.shape = slices.Clone(shape)
	}
	return f.err
}

func parseDim(b []byte) (size int64, err error) {
	f := fields{rest: b}
	for f.next() {
		if f.tag == dimSize {
			size = int64(f.v)
		}
	}
	return size, f.err
}

func (e *bundleEntry) parseSlice(b []byte) error {
	p := &tfpb.TensorSliceProto{}
	if err := proto.Unmarshal(b, p); err != nil {
		return err
	}
	s, err := sliceFromProto(p)
	e.slices = append(e.slices, s)
	return err
}

// maxRank is the largest rank that TensorFlow's shapes have.
const maxRank = 254

// check refuses what no reader can use.
func (e *bundleEntry) check() error {
	if len(e.shape) > maxRank {
		return fmt.Errorf("shape of rank %d", len(e.shape))
	}
	n, err := dtype.NumElements(e.shape)
	if err != nil {
		return err
	}
	for _, s := range e.slices {
		if _, err := s.Shape(e.shape); err != nil {
			return err
		}
		if s.isWhole() { // TensorFlow would look for its bytes under the tensor's own name
			return fmt.Errorf("%w: the list of slices has all of the tensor, %q", ErrSlices, s)
		}
	}
	if len(e.slices) > 0 {
		return nil
	}
	if e.shard < 0 || e.offset < 0 || e.size < 0 || e.offset+e.size < 0 {
		return fmt.Errorf("location out of range: shard %d, offset %d, size %d", e.shard, e.offset, e.size)
	}
	if hasStrings(e.dtype) {
		if n > e.size {
			return fmt.Errorf("invalid size: %d bytes for %d strings", e.size, n)
		}
		return nil
	}
	size := dtype.Size(e.dtype)
	if size == 0 {
		return fmt.Errorf("%w: %s is not stored in checkpoints", ErrType, dtype.Name(e.dtype))
	}
	if e.size/size != n || e.size%size != 0 {
		return fmt.Errorf("invalid size: stored size %d, expected %d elements of %d bytes", e.size, n, size)
	}
	return nil
}

func (e *bundleEntry) info(name string) TensorInfo {
	return TensorInfo{
		Name: name, DType: e.dtype, Shape: e.shape, Bytes: e.size,
		Shard: int(e.shard), Offset: e.offset, CRC: e.crc, Slices: e.slices,
	}
}

// fields walks the fields of a message: a number is in v, a string or message
// in body.
type fields struct {
	rest   []byte
	tag, v uint64
	body   []byte
	err    error
}

// next goes to the next field. It returns false at the end, and for damage.
func (f *fields) next() bool {
	if len(f.rest) == 0 || f.err != nil {
		return false
	}
	if f.nextShort() {
		return true
	}
	num, typ, n := protowire.ConsumeTag(f.rest)
	if n < 0 {
		f.fail(protowire.ParseError(n))
		return false
	}
	b := f.rest[n:]
	f.tag, f.v, f.body = uint64(num)<<3|uint64(typ), 0, nil
	switch typ {
	case protowire.VarintType:
		f.v, n = protowire.ConsumeVarint(b)
	case protowire.Fixed32Type:
		var x uint32
		x, n = protowire.ConsumeFixed32(b)
		f.v = uint64(x)
	case protowire.BytesType:
		f.body, n = protowire.ConsumeBytes(b)
	default:
		n = protowire.ConsumeFieldValue(num, typ, b)
	}
	if n < 0 {
		f.fail(protowire.ParseError(n))
		return false
	}
	f.rest = b[n:]
	return true
}

// nextShort goes to the next field if its key is one byte, and its number or length one
// byte, or four, as most are.
func (f *fields) nextShort() bool {
	b := f.rest
	if len(b) < 2 || b[0] < 1<<3 || b[0] >= 0x80 {
		return false
	}
	kind := protowire.Type(b[0] & 7)
	if kind == protowire.Fixed32Type && len(b) > 4 {
		f.tag, f.v, f.body, f.rest = uint64(b[0]), uint64(binary.LittleEndian.Uint32(b[1:])), nil, b[5:]
		return true
	}
	if b[1] >= 0x80 {
		return false
	}
	switch n := int(b[1]); kind {
	case protowire.VarintType:
		f.tag, f.v, f.body, f.rest = uint64(b[0]), uint64(n), nil, b[2:]
		return true
	case protowire.BytesType:
		if n > len(b)-2 {
			return false
		}
		f.tag, f.v, f.body, f.rest = uint64(b[0]), 0, b[2:2+n], b[2+n:]
		return true
	}
	return false
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}
