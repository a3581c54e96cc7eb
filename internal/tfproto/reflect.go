package tfproto

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fieldsByType holds each message type's fields in the order of their numbers.
var fieldsByType sync.Map // protoreflect.MessageDescriptor -> []protoreflect.FieldDescriptor

func fieldsInOrder(d protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	if v, ok := fieldsByType.Load(d); ok {
		return v.([]protoreflect.FieldDescriptor)
	}
	fields := d.Fields()
	list := make([]protoreflect.FieldDescriptor, fields.Len())
	for i := range list {
		list[i] = fields.Get(i)
	}
	slices.SortFunc(list, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
	fieldsByType.Store(d, list)
	return list
}

// appendMessage is the plain form of [Append]: it visits every field by
// reflection. It serves the messages that the fast encoder refuses, and it is
// what the tests compare that encoder with. A signalling NaN in a float field
// comes out quiet, for reflection widens a float to a double.
func appendMessage(b []byte, m protoreflect.Message) []byte {
	for _, fd := range fieldsInOrder(m.Descriptor()) {
		if !m.Has(fd) {
			continue
		}
		v := m.Get(fd)
		switch {
		case fd.IsMap():
			b = appendMap(b, fd, v.Map())
		case fd.IsList():
			b = appendList(b, fd, v.List())
		default:
			b = appendField(b, fd, v)
		}
	}
	return append(b, m.GetUnknown()...)
}

func appendField(b []byte, fd protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	b = protowire.AppendTag(b, fd.Number(), wireType(fd.Kind()))
	b = appendValue(b, fd, v)
	if fd.Kind() == protoreflect.GroupKind {
		b = protowire.AppendTag(b, fd.Number(), protowire.EndGroupType)
	}
	return b
}

func appendList(b []byte, fd protoreflect.FieldDescriptor, list protoreflect.List) []byte {
	if !fd.IsPacked() {
		for i := range list.Len() {
			b = appendField(b, fd, list.Get(i))
		}
		return b
	}
	b = protowire.AppendTag(b, fd.Number(), protowire.BytesType)
	return appendPrefixed(b, func(b []byte) []byte {
		for i := range list.Len() {
			b = appendValue(b, fd, list.Get(i))
		}
		return b
	})
}

func appendMap(b []byte, fd protoreflect.FieldDescriptor, m protoreflect.Map) []byte {
	for _, k := range wireKeys(m) {
		b = protowire.AppendTag(b, fd.Number(), protowire.BytesType)
		b = appendPrefixed(b, func(b []byte) []byte {
			b = appendField(b, fd.MapKey(), k.Value())
			return appendField(b, fd.MapValue(), m.Get(k))
		})
	}
	return b
}

func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	}
	return protowire.VarintType
}

func appendValue(b []byte, fd protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protowire.AppendVarint(b, protowire.EncodeBool(v.Bool()))
	case protoreflect.EnumKind:
		return protowire.AppendVarint(b, uint64(v.Enum()))
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		return protowire.AppendVarint(b, uint64(v.Int()))
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return protowire.AppendVarint(b, protowire.EncodeZigZag(v.Int()))
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return protowire.AppendVarint(b, v.Uint())
	case protoreflect.Fixed32Kind:
		return protowire.AppendFixed32(b, uint32(v.Uint()))
	case protoreflect.Sfixed32Kind:
		return protowire.AppendFixed32(b, uint32(v.Int()))
	case protoreflect.FloatKind:
		return protowire.AppendFixed32(b, math.Float32bits(float32(v.Float())))
	case protoreflect.Fixed64Kind:
		return protowire.AppendFixed64(b, v.Uint())
	case protoreflect.Sfixed64Kind:
		return protowire.AppendFixed64(b, uint64(v.Int()))
	case protoreflect.DoubleKind:
		return protowire.AppendFixed64(b, math.Float64bits(v.Float()))
	case protoreflect.StringKind:
		return protowire.AppendString(b, v.String())
	case protoreflect.BytesKind:
		return protowire.AppendBytes(b, v.Bytes())
	case protoreflect.GroupKind:
		return appendMessage(b, v.Message())
	}
	return appendPrefixed(b, func(b []byte) []byte { return appendMessage(b, v.Message()) })
}

// appendPrefixed appends what body appends, after its length. Most parts are
// shorter than 128 bytes, so one byte is set aside and the rare longer part is
// moved up.
func appendPrefixed(b []byte, body func([]byte) []byte) []byte {
	start := len(b)
	b = body(append(b, 0))
	size := uint64(len(b) - start - 1)
	extra := protowire.SizeVarint(size) - 1
	if extra > 0 {
		b = slices.Insert(b, start, make([]byte, extra)...)
	}
	protowire.AppendVarint(b[:start], size)
	return b
}
