package tfevents

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// WallTime returns t as events carry it: seconds since 1970. It rounds as
// Python's time.time does.
func WallTime(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// appendEventRecord appends e to b as one record.
func appendEventRecord(b []byte, e *tfpb.Event) []byte {
	start := len(b)
	b = appendEvent(b, e)
	tfrecord.Sum(b[start:])
	return b
}

// appendEvent appends e to b as one record, for [tfrecord.Sum] to complete.
func appendEvent(b []byte, e *tfpb.Event) []byte {
	start := len(b)
	if n := len(e.GetGraphDef()) + len(e.GetMetaGraphDef()); n > 0 {
		const others = 64 // bytes of the record
		b = slices.Grow(b, n+others)
	}
	return tfrecord.End(tfproto.Append(tfrecord.Begin(b), e), start)
}

// Wire format: the keys (field number and type) of an event with one scalar.
const (
	keyWallTime    = 1<<3 | 1
	keyStep        = 2 << 3
	keySummary     = 5<<3 | 2
	keyValue       = 1<<3 | 2 // Summary.value
	keyTag         = 1<<3 | 2 // Summary.Value.tag
	keySimpleValue = 2<<3 | 5
)

// maxScalarSize is the size of the largest scalar record without what its tag
// contributes.
const maxScalarSize = tfrecord.FrameSize + (1 + 8) + (1 + binary.MaxVarintLen64) + 4

// appendScalar appends the record of an event that holds one simple_value, as appendEvent does, but
// without building the message. The tag is given as encoded by appendScalarTag.
func appendScalar(b []byte, wallTime float64, step int64, tag []byte, v float32) []byte {
	start := len(b)
	b = slices.Grow(b, maxScalarSize+len(tag))
	r := b[start : start+maxScalarSize+len(tag)]
	n := tfrecord.HeaderSize
	if bits := math.Float64bits(wallTime); bits != 0 {
		r[n] = keyWallTime
		binary.LittleEndian.PutUint64(r[n+1:], bits)
		n += 1 + 8
	}
	if step != 0 {
		r[n] = keyStep
		n = putVarint(r, n+1, uint64(step))
	}
	n += copy(r[n:], tag)
	binary.LittleEndian.PutUint32(r[n:], math.Float32bits(v))
	n += 4
	binary.LittleEndian.PutUint64(r, uint64(n-tfrecord.HeaderSize))
	return b[:start+n+tfrecord.FooterSize]
}

// appendScalarTag appends the part of an event with one simple_value that is the
// same for all of a tag: what is between the step and the four bytes of the
// value.
func appendScalarTag(b []byte, tag string) []byte {
	value := 1 + 4
	if tag != "" {
		value += 1 + protowire.SizeBytes(len(tag))
	}
	b = protowire.AppendVarint(append(b, keySummary), uint64(1+protowire.SizeBytes(value)))
	b = protowire.AppendVarint(append(b, keyValue), uint64(value))
	if tag != "" {
		b = protowire.AppendVarint(append(b, keyTag), uint64(len(tag)))
		b = append(b, tag...)
	}
	return append(b, keySimpleValue)
}

// tagCache remembers encoded tags, each in a slot that depends on the tag. It
// is not safe for concurrent use.
type tagCache [64]knownTag

type knownTag struct {
	tag     string
	encoded []byte // what appendScalarTag gives; nil where there is no tag yet
}

// encode returns what appendScalarTag appends, valid until the next call, or an
// error if the tag is not UTF-8.
func (c *tagCache) encode(tag string) ([]byte, error) {
	k := c.place(tag)
	if k.tag == tag && k.encoded != nil {
		return k.encoded, nil
	}
	return k.become(tag)
}

// place returns the slot of tag, where it is if it is known.
func (c *tagCache) place(tag string) *knownTag {
	n := uint(len(tag))
	if n > 0 {
		n += uint(tag[n-1]) + 7*uint(tag[n/2])
	}
	return &c[n%uint(len(c))]
}

func (k *knownTag) become(tag string) ([]byte, error) {
	if err := tfproto.CheckString(tag); err != nil {
		return nil, err
	}
	k.tag, k.encoded = tag, appendScalarTag(k.encoded[:0], tag)
	return k.encoded, nil
}

// putVarint puts v at b[n:] and returns the offset after it.
func putVarint(b []byte, n int, v uint64) int {
	for ; v >= 0x80; v >>= 7 {
		b[n] = byte(v) | 0x80
		n++
	}
	b[n] = byte(v)
	return n + 1
}
