package tfproto

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// An entryKey is the key of a map entry. Only one of its fields is in use in
// the entries of one map.
type entryKey struct {
	text []byte
	bits uint64 // of a number or a bool, sign-extended
}

// compare is the order of entries in what Python writes when it is asked for a
// deterministic encoding, found by experiment: numbers downwards, a negative
// one being above all others; strings upwards by their bytes, except that a
// string comes before its own beginnings ("Tidx" before "T").
func (k entryKey) compare(other entryKey) int {
	if c := cmp.Compare(other.bits, k.bits); c != 0 {
		return c
	}
	return compareTextKeys(k.text, other.text)
}

// compareTextKeys is that order for two strings.
func compareTextKeys[T string | []byte](a, b T) int {
	n := min(len(a), len(b))
	if c := cmp.Compare(string(a[:n]), string(b[:n])); c != 0 {
		return c
	}
	return cmp.Compare(len(b), len(a))
}

// keyOfEntry returns the key of an encoded map entry, which begins with it.
func keyOfEntry(entry []byte) entryKey {
	_, wire, tag := protowire.ConsumeTag(entry)
	if tag < 0 {
		return entryKey{}
	}
	var k entryKey
	switch value := entry[tag:]; wire {
	case protowire.BytesType:
		k.text, _ = protowire.ConsumeBytes(value)
	case protowire.VarintType:
		k.bits, _ = protowire.ConsumeVarint(value)
	case protowire.Fixed64Type:
		k.bits, _ = protowire.ConsumeFixed64(value)
	case protowire.Fixed32Type:
		bits, _ := protowire.ConsumeFixed32(value)
		k.bits = uint64(bits)
	}
	return k
}

// entryKeyOf returns the same for a key that is not encoded.
func entryKeyOf(k protoreflect.MapKey) entryKey {
	switch x := k.Interface().(type) {
	case string:
		return entryKey{text: []byte(x)}
	case bool:
		return entryKey{bits: protowire.EncodeBool(x)}
	case int32, int64:
		return entryKey{bits: uint64(k.Int())}
	}
	return entryKey{bits: k.Uint()}
}

// wireKeys returns the keys of m in the order of the binary form.
func wireKeys(m protoreflect.Map) []protoreflect.MapKey {
	keys := mapKeys(m)
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return entryKeyOf(a).compare(entryKeyOf(b)) })
	return keys
}

// textKeys returns the keys of m in the order of the text form: upwards.
func textKeys(m protoreflect.Map) []protoreflect.MapKey {
	keys := mapKeys(m)
	slices.SortFunc(keys, compareUpwards)
	return keys
}

func mapKeys(m protoreflect.Map) []protoreflect.MapKey {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	return keys
}

func compareUpwards(a, b protoreflect.MapKey) int {
	switch a.Interface().(type) {
	case string:
		return cmp.Compare(a.String(), b.String())
	case int32, int64:
		return cmp.Compare(a.Int(), b.Int())
	case bool:
		return cmp.Compare(protowire.EncodeBool(a.Bool()), protowire.EncodeBool(b.Bool()))
	}
	return cmp.Compare(a.Uint(), b.Uint())
}
