package tfevents

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Most events hold one scalar, and reading spent most of its time on what a general eventScan
// stores: pointers, which cost a write barrier each. So such an event goes from the bytes to
// its series directly.

// scalarScan is what an event with one simple_value says. Its slices belong to the data
// that was parsed.
type scalarScan struct {
	wallTime float64
	step     int64
	tag      []byte
	raw      []byte // the whole encoded Summary.Value
	number   uint32 // bits of the float32
}

// scanScalar scans an event as appendScalar makes it, if it is short.
func scanScalar(b []byte) (s scalarScan, ok bool) {
	const shortest = 1 + 8 + 2 + 2 + 2 + 5
	if len(b) < shortest || len(b) >= 0x80 || b[0] != keyWallTime {
		return s, false
	}
	s.wallTime = math.Float64frombits(binary.LittleEndian.Uint64(b[1:]))
	b = b[1+8:]
	if b[0] == keyStep {
		step, n := binary.Uvarint(b[1:])
		if n <= 0 {
			return s, false
		}
		s.step = int64(step)
		b = b[1+n:]
	}
	n := len(b)
	if n < 2+2+2+5 || b[0] != keySummary || b[1] != byte(n-2) || b[2] != keyValue || b[3] != byte(n-4) ||
		b[4] != keyTag || b[5] != byte(n-6-5) || b[n-5] != keySimpleValue {
		return s, false
	}
	s.tag, s.raw = b[6:n-5], b[4:]
	s.number = binary.LittleEndian.Uint32(b[n-4:])
	return s, utf8.Valid(s.tag)
}

// setScalar makes e what a scalarScan says.
func (e *eventScan) setScalar(s *scalarScan) {
	if cap(e.values) == 0 {
		e.values = make([]valueScan, 1, 16)
	}
	e.wallTime, e.step, e.values = s.wallTime, s.step, e.values[:1]
	e.values[0] = valueScan{tag: s.tag, raw: s.raw, form: formSimple, number: s.number}
}

// addScalar adds the event in a record if it is a scalar of a known series of scalars, and
// reports whether it is.
func (x *RunData) addScalar(data []byte, file int, at int64) (added bool, err error) {
	one, ok := scanScalar(data)
	if !ok || len(x.all) == 0 {
		return false, nil
	}
	s := x.known(one.tag)
	if s == nil || s.Metadata.GetDataClass() != tfpb.DataClass_DATA_CLASS_SCALAR {
		return false, nil
	}
	x.facts = eventFacts{step: one.step, time: one.wallTime, summary: true, values: true}
	shown, err := x.noteEvent(file)
	if err != nil || !shown {
		return true, err
	}
	if x.rule.purgeFor(&x.facts) {
		x.rule.purgeOwn(s.Tag, one.step)
	}
	if x.rule.purgeTag(s, one.step, one.number, true) {
		return true, nil
	}
	form := formSimple
	if x.o.places {
		form = formNumber
	}
	x.addPoint(s, &cell{form: form, wall: math.Float64bits(one.wallTime), step: one.step, number: one.number,
		file: file, offset: at, size: len(one.raw)})
	return true, nil
}
