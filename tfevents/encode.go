package tfevents

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trainerd/trainerd/internal/crc32c"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// WallTime returns t as events carry it: seconds since 1970. It rounds as
// Python's time.time does.
func WallTime(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// appendEventRecord appends e to b as one record.
func appendEventRecord(b []byte, e *tfpb.Event) []byte {
	start := len(b)
	return endRecord(tfproto.Append(beginRecord(b), e), start)
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

// maxScalarSize is the size of the largest scalar record without its tag.
const maxScalarSize = frameSize + (1 + 8) + (1 + binary.MaxVarintLen64) +
	3*(1+binary.MaxVarintLen64) + (1 + 4)

// appendScalarRecord appends the record of an event that holds one
// simple_value: what appendEventRecord gives for the same message, without
// building the message.
func appendScalarRecord(b []byte, wallTime float64, step int64, tag string, v float32) []byte {
	start := len(b)
	b = slices.Grow(b, maxScalarSize+len(tag))
	r := b[start : start+maxScalarSize+len(tag)]
	n := headerSize
	if bits := math.Float64bits(wallTime); bits != 0 {
		r[n] = keyWallTime
		binary.LittleEndian.PutUint64(r[n+1:], bits)
		n += 1 + 8
	}
	if step != 0 {
		r[n] = keyStep
		n = putVarint(r, n+1, uint64(step))
	}
	value := 1 + 4
	if tag != "" {
		value += 1 + protowire.SizeBytes(len(tag))
	}
	r[n] = keySummary
	n = putVarint(r, n+1, uint64(1+protowire.SizeBytes(value)))
	r[n] = keyValue
	n = putVarint(r, n+1, uint64(value))
	if tag != "" {
		r[n] = keyTag
		n = putVarint(r, n+1, uint64(len(tag)))
		n += copy(r[n:], tag)
	}
	r[n] = keySimpleValue
	binary.LittleEndian.PutUint32(r[n+1:], math.Float32bits(v))
	n += 1 + 4
	putHeader(r, n-headerSize)
	binary.LittleEndian.PutUint32(r[n:], crc32c.Masked(r[headerSize:n]))
	return b[:start+n+crcSize]
}

// putVarint puts v at b[n:] and returns the place behind it.
func putVarint(b []byte, n int, v uint64) int {
	for ; v >= 0x80; v >>= 7 {
		b[n] = byte(v) | 0x80
		n++
	}
	b[n] = byte(v)
	return n + 1
}
