package tfevents

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

// Decoding an event with the general decoder takes longer than all the rest of reading it, and
// copies images although only their positions are needed. An eventScan looks at the bytes instead.
// It understands what writers usually write, and leaves the rest to the general decoder: parse
// returns true only for an event that this decoder would accept and decode to the same values.

// eventScan is the content of an event with a summary. Its slices belong to the data that was
// parsed.
type eventScan struct {
	wallTime float64
	step     int64
	values   []valueScan
}

// valueScan is one value of a summary.
type valueScan struct {
	tag     []byte
	raw     []byte              // the whole encoded Summary.Value
	decoded *tfpb.Summary_Value // in its place, if the general decoder was needed
	meta    []byte              // the encoded metadata, nil if there is none
	tensor  []byte              // the encoded tensor, nil if there is none
	form    byte                // how a column keeps it
	number  uint32              // of a simple_value, or of a tensor that is one float32
}

// Wire format: field numbers of Event and Summary.Value.
const (
	fieldWallTime    = 1
	fieldStep        = 2
	fieldSummary     = 5
	fieldTag         = 1
	fieldSimpleValue = 2
	fieldTensor      = 8
	fieldMetadata    = 9
	fieldStringVal   = 8 // of a tensor
)

// parse scans an encoded event. It also returns false for an event without a summary.
func (e *eventScan) parse(b []byte) bool {
	if one, ok := scanScalar(b); ok {
		e.setScalar(&one)
		return true
	}
	*e = eventScan{values: e.values[:0]}
	var seen uint32
	for len(b) > 0 {
		field, content, rest := nextField(b)
		if seen&(1<<field.number) != 0 {
			return false
		}
		seen |= 1 << field.number
		switch field {
		case wireField{fieldWallTime, protowire.Fixed64Type}:
			e.wallTime = math.Float64frombits(binary.LittleEndian.Uint64(content))
		case wireField{fieldStep, protowire.VarintType}:
			step, _ := protowire.ConsumeVarint(content)
			e.step = int64(step)
		case wireField{fieldSummary, protowire.BytesType}:
			if !e.parseSummary(content) {
				return false
			}
		default:
			return false
		}
		b = rest
	}
	return seen&(1<<fieldSummary) != 0
}

func (e *eventScan) parseSummary(b []byte) bool {
	for len(b) > 0 {
		field, content, rest := nextField(b)
		if field != (wireField{1, protowire.BytesType}) {
			return false
		}
		e.values = append(e.values, valueScan{})
		if !e.values[len(e.values)-1].parse(content) {
			return false
		}
		b = rest
	}
	return true
}

// parse scans an encoded Summary.Value.
func (v *valueScan) parse(b []byte) bool {
	v.raw, v.form = b, formOther
	var seen uint32
	for len(b) > 0 {
		field, content, rest := nextField(b)
		if !valueShape.has(field) || seen&(1<<field.number) != 0 || !valueShape.accepts(field, content, maxScanDepth) {
			return false
		}
		seen |= 1 << field.number
		switch field.number {
		case fieldTag:
			v.tag = content
		case fieldSimpleValue:
			v.setNumber(content)
		case fieldTensor:
			v.tensor = content
			v.setNumber(floatOf(content))
		case fieldMetadata:
			v.meta = content
		}
		b = rest
	}
	if seen == 1<<fieldTag|1<<fieldSimpleValue {
		v.form = formSimple
	}
	// Of several values the last one counts.
	return bits.OnesCount32(seen&valueShape.oneof) <= 1
}

// setNumber sets the value to the float32 that b holds, if any.
func (v *valueScan) setNumber(b []byte) {
	if b != nil {
		v.form, v.number = formNumber, binary.LittleEndian.Uint32(b)
	}
}

// fill sets e from an event that the general decoder has decoded.
func (e *eventScan) fill(from *tfpb.Event) eventFacts {
	values := valuesOf(from)
	*e = eventScan{wallTime: from.GetWallTime(), step: from.GetStep(), values: e.values[:0]}
	for _, v := range values {
		scan := valueScan{tag: []byte(v.GetTag()), decoded: v, form: formOther}
		if x, ok := v.GetValue().(*tfpb.Summary_Value_SimpleValue); ok {
			scan.form, scan.number = formNumber, math.Float32bits(x.SimpleValue)
		}
		e.values = append(e.values, scan)
	}
	return factsOf(from, values)
}

// size returns the size of the encoded value.
func (v *valueScan) size() int {
	if v.raw != nil {
		return len(v.raw)
	}
	return proto.Size(v.decoded)
}

// message returns the decoded value.
func (v *valueScan) message() *tfpb.Summary_Value {
	if v.decoded == nil {
		v.decoded = new(tfpb.Summary_Value)
		// It cannot fail: the scan has accepted what lies there.
		_ = proto.Unmarshal(v.raw, v.decoded)
	}
	return v.decoded
}

// outline returns the value without the content of its tensor, which may be large. That is enough
// for the metadata of its series.
func (v *valueScan) outline() *tfpb.Summary_Value {
	if v.decoded != nil || v.tensor == nil {
		return v.message()
	}
	out := &tfpb.Summary_Value{Tag: string(v.tag), Value: &tfpb.Summary_Value_Tensor{Tensor: new(tfpb.TensorProto)}}
	if v.meta != nil {
		out.Metadata = new(tfpb.SummaryMetadata)
		// It cannot fail: the scan has accepted what lies there.
		_ = proto.Unmarshal(v.meta, out.Metadata)
	}
	return out
}

// countBlobs returns how many blobs the value holds, without copying them.
func (v *valueScan) countBlobs() int {
	if v.decoded != nil || v.tensor == nil {
		return len(decode.Blobs(v.message()))
	}
	t := new(tfpb.TensorProto)
	var strings [][]byte
	for b := v.tensor; len(b) > 0; {
		field, content, rest := nextField(b)
		if field == (wireField{fieldStringVal, protowire.BytesType}) {
			strings = append(strings, content)
		} else {
			// It cannot fail: the scan has accepted what lies there.
			_ = proto.UnmarshalOptions{Merge: true}.Unmarshal(b[:len(b)-len(rest)], t)
		}
		b = rest
	}
	t.StringVal = strings
	return len(decode.TensorBlobs(t))
}

// floatOf returns the four bytes of a tensor that is one float32 without
// dimensions, in one of the forms that writers use, or nil.
func floatOf(b []byte) (number []byte) {
	float := false
	for len(b) > 0 {
		field, content, rest := nextField(b)
		switch field {
		case wireField{1, protowire.VarintType}: // dtype
			float = len(content) == 1 && content[0] == byte(tfpb.DataType_DT_FLOAT)
		case wireField{2, protowire.BytesType}: // tensor_shape
			if len(content) > 0 {
				return nil
			}
		case wireField{4, protowire.BytesType}, wireField{5, protowire.BytesType}, wireField{5, protowire.Fixed32Type}:
			if number != nil || len(content) != 4 { // tensor_content or float_val
				return nil
			}
			number = content
		default:
			return nil
		}
		b = rest
	}
	if !float {
		return nil
	}
	return number
}

// maxScanDepth is how deep messages may nest before they count as unusual.
const maxScanDepth = 20

// wireField is the decoded key of a field.
type wireField struct {
	number protowire.Number
	kind   protowire.Type
}

// nextField splits the first field off b. It returns number 0 for anything but a field of a usual
// kind.
func nextField(b []byte) (field wireField, content, rest []byte) {
	key, n := protowire.ConsumeVarint(b)
	if n < 0 || key > math.MaxUint16 {
		return wireField{}, nil, nil
	}
	field = wireField{protowire.Number(key >> 3), protowire.Type(key & 7)}
	b = b[n:]
	var size int
	switch field.kind {
	case protowire.VarintType:
		_, size = protowire.ConsumeVarint(b)
	case protowire.Fixed32Type:
		size = 4
	case protowire.Fixed64Type:
		size = 8
	case protowire.BytesType:
		length, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return wireField{}, nil, nil
		}
		b, size = b[n:], int(length)
	default:
		return wireField{}, nil, nil
	}
	if size < 0 || size > len(b) {
		return wireField{}, nil, nil
	}
	return field, b[:size:size], b[size:]
}

// shape says which fields a message may have, as its descriptor does.
type shape struct {
	fields [32]fieldShape // by number; none of those read here is larger
	oneof  uint32         // fields that exclude each other, by number
}

type fieldShape struct {
	kinds   uint8 // types on the wire, 1<<protowire.Type
	packed  protoreflect.Kind
	utf8    bool
	message *shape
}

var valueShape = newShapes().of((*tfpb.Summary_Value)(nil).ProtoReflect().Descriptor())

// shapes remembers the shapes made so far: message types may be recursive.
type shapes map[protoreflect.FullName]*shape

func newShapes() shapes { return make(shapes) }

func (all shapes) of(d protoreflect.MessageDescriptor) *shape {
	if s := all[d.FullName()]; s != nil {
		return s
	}
	s := new(shape)
	all[d.FullName()] = s
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		s.fields[f.Number()] = all.ofField(f)
		if f.ContainingOneof() != nil {
			s.oneof |= 1 << f.Number()
		}
	}
	return s
}

func (all shapes) ofField(f protoreflect.FieldDescriptor) fieldShape {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return fieldShape{kinds: 1 << protowire.BytesType, message: all.of(f.Message())}
	case protoreflect.BytesKind, protoreflect.StringKind:
		return fieldShape{kinds: 1 << protowire.BytesType, utf8: f.Kind() == protoreflect.StringKind}
	}
	shape := fieldShape{kinds: 1 << wireType(f.Kind())}
	if f.IsList() {
		shape.kinds |= 1 << protowire.BytesType
		shape.packed = f.Kind()
	}
	return shape
}

// wireType returns the type on the wire of a number.
func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return protowire.Fixed64Type
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return protowire.Fixed32Type
	}
	return protowire.VarintType
}

// has reports whether the message has the field, with that type on the wire.
func (s *shape) has(f wireField) bool {
	return int(f.number) < len(s.fields) && s.fields[f.number].kinds&(1<<f.kind) != 0
}

// accepts reports whether the general decoder accepts the content of a field that the message has.
func (s *shape) accepts(f wireField, content []byte, depth int) bool {
	field := &s.fields[f.number]
	switch {
	case f.kind != protowire.BytesType:
		return true
	case field.message != nil:
		return field.message.acceptsMessage(content, depth-1)
	case field.utf8:
		return utf8.Valid(content)
	case field.packed != 0:
		return acceptsPacked(wireType(field.packed), content)
	}
	return true
}

func (s *shape) acceptsMessage(b []byte, depth int) bool {
	for len(b) > 0 {
		field, content, rest := nextField(b)
		if depth == 0 || !s.has(field) || !s.accepts(field, content, depth) {
			return false
		}
		b = rest
	}
	return true
}

func acceptsPacked(kind protowire.Type, b []byte) bool {
	switch kind {
	case protowire.Fixed32Type:
		return len(b)%4 == 0
	case protowire.Fixed64Type:
		return len(b)%8 == 0
	}
	for len(b) > 0 {
		_, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return false
		}
		b = b[n:]
	}
	return true
}
