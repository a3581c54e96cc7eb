package tfproto

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The text of a message is written from its encoding: reflection asks each
// message for each field that its type has, which takes four times as long for
// a graph, whose attributes have a dozen fields and set one.

// A textType is what the text form needs to know of a message type.
type textType struct {
	fields []textField // by number, up to the greatest; unused numbers have no name
}

type textField struct {
	name   string
	kind   protoreflect.Kind
	wire   protowire.Type // of a single value
	enum   protoreflect.EnumValueDescriptors
	inner  *textType // of a message
	packed bool
	// Of a map: its key and its value.
	key, value *textField
	// presence: the field of a map entry is written even if it is zero.
	presence bool
}

// maxTextField is the greatest field number of a type that is written from its
// encoding.
const maxTextField = 1 << 10

var textTypes sync.Map // protoreflect.MessageDescriptor -> *textType, nil for those that need reflection

// textTypeOf returns nil for types that contain what the encoding alone does
// not determine: Any, whose content is another message, and groups.
func textTypeOf(d protoreflect.MessageDescriptor) *textType {
	if t, ok := textTypes.Load(d); ok {
		return t.(*textType)
	}
	made := make(map[protoreflect.MessageDescriptor]*textType)
	t := makeTextType(d, made)
	for _, inner := range made {
		if inner == nil {
			t = nil // one that refers to it is no use either
		}
	}
	textTypes.Store(d, t)
	return t
}

// makeTextType notes nil in made for a type that needs reflection. Types refer
// to each other in circles, so a type is entered before its fields are looked at.
func makeTextType(d protoreflect.MessageDescriptor, made map[protoreflect.MessageDescriptor]*textType) *textType {
	if t, ok := made[d]; ok {
		return t
	}
	fields := fieldsInOrder(d)
	if d.FullName() == "google.protobuf.Any" || len(fields) > 0 && fields[len(fields)-1].Number() > maxTextField {
		made[d] = nil
		return nil
	}
	t := new(textType)
	made[d] = t
	if len(fields) > 0 {
		t.fields = make([]textField, fields[len(fields)-1].Number()+1)
	}
	for _, fd := range fields {
		t.fields[fd.Number()] = makeTextField(fd, made)
		if fd.Kind() == protoreflect.GroupKind {
			made[d] = nil
		}
	}
	return t
}

func makeTextField(fd protoreflect.FieldDescriptor, made map[protoreflect.MessageDescriptor]*textType) textField {
	f := textField{
		name: string(fd.Name()), kind: fd.Kind(), wire: wireType(fd.Kind()),
		packed: fd.IsPacked(), presence: fd.HasPresence(),
	}
	switch {
	case fd.IsMap():
		key, value := makeTextField(fd.MapKey(), made), makeTextField(fd.MapValue(), made)
		f.key, f.value = &key, &value
	case fd.Enum() != nil:
		f.enum = fd.Enum().Values()
	case fd.Message() != nil:
		f.inner = makeTextType(fd.Message(), made)
	}
	return f
}

// field returns nil for an unknown number.
func (t *textType) field(number protowire.Number) *textField {
	if int(number) >= len(t.fields) || t.fields[number].name == "" {
		return nil
	}
	return &t.fields[number]
}

// appendWireText appends the text of an encoded message, whose fields are in the
// order of their numbers.
func appendWireText(b []byte, t *textType, wire []byte, depth int) []byte {
	for len(wire) > 0 {
		number, kind, tag := protowire.ConsumeTag(wire)
		if tag < 0 {
			return b // not from the encoder: unknown fields that are not fields
		}
		size := protowire.ConsumeFieldValue(number, kind, wire[tag:])
		if size < 0 {
			return b
		}
		value := wire[tag : tag+size]
		f := t.field(number)
		switch {
		case f == nil:
		case f.key != nil:
			b, wire = appendWireMap(b, f, number, wire, depth)
			continue
		case f.packed && kind == protowire.BytesType:
			b = appendPackedText(b, f, value, depth)
		case f.wire == kind:
			b = appendWireField(b, f, value, depth)
		}
		wire = wire[tag+size:]
	}
	return b
}

// appendWireField appends a field with its value, which is encoded without its tag.
func appendWireField(b []byte, f *textField, value []byte, depth int) []byte {
	b = appendIndent(b, depth)
	b = append(b, f.name...)
	if f.inner == nil {
		b = append(b, ": "...)
		b = appendWireScalar(b, f, value)
		return append(b, '\n')
	}
	body, _ := protowire.ConsumeBytes(value)
	b = append(b, " {\n"...)
	b = appendWireText(b, f.inner, body, depth+1)
	b = appendIndent(b, depth)
	return append(b, "}\n"...)
}

func appendPackedText(b []byte, f *textField, value []byte, depth int) []byte {
	list, _ := protowire.ConsumeBytes(value)
	for len(list) > 0 {
		size := protowire.ConsumeFieldValue(1, f.wire, list)
		if size < 0 {
			return b
		}
		b = appendWireField(b, f, list[:size], depth)
		list = list[size:]
	}
	return b
}

// A textEntry is an entry of a map: key and value, encoded without their tags.
type textEntry struct{ key, value []byte }

// consumeEntries appends the entries of a map at the beginning of wire, and returns
// what follows them.
func consumeEntries(entries []textEntry, number protowire.Number, wire []byte) ([]textEntry, []byte) {
	for len(wire) > 0 {
		n, kind, tag := protowire.ConsumeTag(wire)
		if tag < 0 || n != number {
			break
		}
		size := protowire.ConsumeFieldValue(n, kind, wire[tag:])
		if size < 0 {
			return entries, nil
		}
		if entry, ok := protowire.ConsumeBytes(wire[tag : tag+size]); kind == protowire.BytesType && ok >= 0 {
			entries = append(entries, splitEntry(entry))
		}
		wire = wire[tag+size:]
	}
	return entries, wire
}

func splitEntry(entry []byte) (e textEntry) {
	for len(entry) > 0 {
		n, kind, tag := protowire.ConsumeTag(entry)
		if tag < 0 {
			return e
		}
		size := protowire.ConsumeFieldValue(n, kind, entry[tag:])
		if size < 0 {
			return e
		}
		switch n {
		case 1:
			e.key = entry[tag : tag+size]
		case 2:
			e.value = entry[tag : tag+size]
		}
		entry = entry[tag+size:]
	}
	return e
}

// appendWireMap appends the map at the beginning of wire, and returns what follows it.
func appendWireMap(b []byte, f *textField, number protowire.Number, wire []byte, depth int) (text, rest []byte) {
	var few [16]textEntry // as many as a node has attributes
	entries, rest := consumeEntries(few[:0], number, wire)
	slices.SortFunc(entries, func(a, c textEntry) int { return f.key.compare(a.key, c.key) })
	for _, e := range entries {
		b = appendIndent(b, depth)
		b = append(b, f.name...)
		b = append(b, " {\n"...)
		if f.key.presence || !f.key.isZero(e.key) {
			b = appendWireField(b, f.key, e.key, depth+1)
		}
		if f.value.presence || !f.value.isZero(e.value) {
			b = appendWireField(b, f.value, e.value, depth+1)
		}
		b = appendIndent(b, depth)
		b = append(b, "}\n"...)
	}
	return b, rest
}

// compare orders the keys of a map upwards.
func (f *textField) compare(a, c []byte) int {
	switch f.kind {
	case protoreflect.StringKind:
		x, _ := protowire.ConsumeBytes(a)
		y, _ := protowire.ConsumeBytes(c)
		return bytes.Compare(x, y)
	case protoreflect.BoolKind, protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return cmp.Compare(f.bits(a), f.bits(c))
	}
	return cmp.Compare(f.integer(a), f.integer(c))
}

func (f *textField) isZero(value []byte) bool {
	if f.wire == protowire.BytesType {
		body, _ := protowire.ConsumeBytes(value)
		return len(body) == 0
	}
	return f.bits(value) == 0
}

// bits returns an encoded number as it is encoded.
func (f *textField) bits(value []byte) uint64 {
	switch {
	case f.wire == protowire.Fixed32Type && len(value) >= 4:
		return uint64(binary.LittleEndian.Uint32(value))
	case f.wire == protowire.Fixed64Type && len(value) >= 8:
		return binary.LittleEndian.Uint64(value)
	}
	v, _ := protowire.ConsumeVarint(value)
	return v
}

// integer returns an encoded number that has a sign.
func (f *textField) integer(value []byte) int64 {
	bits := f.bits(value)
	switch f.kind {
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind, protoreflect.EnumKind:
		return int64(int32(bits))
	case protoreflect.Sint32Kind:
		return int64(int32(protowire.DecodeZigZag(bits & math.MaxUint32)))
	case protoreflect.Sint64Kind:
		return protowire.DecodeZigZag(bits)
	}
	return int64(bits)
}

func appendWireScalar(b []byte, f *textField, value []byte) []byte {
	switch f.kind {
	case protoreflect.StringKind, protoreflect.BytesKind:
		text, _ := protowire.ConsumeBytes(value)
		return appendQuoted(b, text, f.kind == protoreflect.StringKind)
	case protoreflect.BoolKind:
		return strconv.AppendBool(b, f.bits(value) != 0)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return strconv.AppendUint(b, uint64(uint32(f.bits(value))), 10)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return strconv.AppendUint(b, f.bits(value), 10)
	case protoreflect.FloatKind:
		return appendRepr(b, shortestFloat(math.Float32frombits(uint32(f.bits(value)))))
	case protoreflect.DoubleKind:
		return appendRepr(b, math.Float64frombits(f.bits(value)))
	case protoreflect.EnumKind:
		return appendEnum(b, f.enum, protoreflect.EnumNumber(f.integer(value)))
	}
	return strconv.AppendInt(b, f.integer(value), 10)
}
