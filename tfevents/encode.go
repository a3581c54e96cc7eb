package tfevents

import (
	"encoding/binary"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

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

// appendScalarRecord appends the record of an event that holds one
// simple_value: what appendEventRecord gives for the same message, without
// building the message.
func appendScalarRecord(b []byte, wallTime float64, step int64, tag string, v float32) []byte {
	start := len(b)
	b = beginRecord(b)
	if bits := math.Float64bits(wallTime); bits != 0 {
		b = binary.LittleEndian.AppendUint64(append(b, keyWallTime), bits)
	}
	if step != 0 {
		b = appendVarint(append(b, keyStep), uint64(step))
	}
	value := 1 + 4
	if tag != "" {
		value += 1 + protowire.SizeBytes(len(tag))
	}
	b = appendVarint(append(b, keySummary), uint64(1+protowire.SizeBytes(value)))
	b = appendVarint(append(b, keyValue), uint64(value))
	if tag != "" {
		b = appendVarint(append(b, keyTag), uint64(len(tag)))
		b = append(b, tag...)
	}
	b = binary.LittleEndian.AppendUint32(append(b, keySimpleValue), math.Float32bits(v))
	return endRecord(b, start)
}

// appendVarint is protowire.AppendVarint, inlined for what most lengths are.
func appendVarint(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	return protowire.AppendVarint(b, v)
}
