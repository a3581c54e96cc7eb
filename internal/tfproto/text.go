package tfproto

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// MarshalText returns m in protocol text form, as Python's
// text_format.MessageToString writes it:
//
//	node {
//	  name: "w"
//	  op: "Const"
//	  attr {
//	    key: "dtype"
//	    value {
//	      type: DT_FLOAT
//	    }
//	  }
//	}
//	versions {
//	  producer: 2603
//	}
//
// One field per line, fields in the order of their numbers, maps sorted by key.
// A map entry leaves out a key or a value that is zero, except in the one proto2
// file (GraphDebugInfo). Numbers are Python's
// repr. Strings keep their UTF-8; bytes fields have all but printable ASCII in
// octal. An Any whose message type is known is written out under its URL.
//
// Unknown fields are left out, as Python leaves them out: the text form has no
// names for them.
func MarshalText(m proto.Message) []byte { return Text(m, nil) }

// Text is [MarshalText] for a message that [Marshal] has encoded,
// which nil leaves to Text.
func Text(m proto.Message, encoded []byte) []byte {
	t := textTypeOf(m.ProtoReflect().Descriptor())
	if t == nil {
		return appendText(nil, m.ProtoReflect(), 0)
	}
	if encoded == nil {
		encoded = Marshal(m)
	}
	return appendWireText(make([]byte, 0, 4*len(encoded)), t, encoded, 0)
}

// appendText is the plain form of [MarshalText]: it visits every field by
// reflection. It serves messages that contain an Any, and it is what the tests
// compare the fast form with.
func appendText(b []byte, m protoreflect.Message, depth int) []byte {
	if inner := unpackAny(m); inner != nil {
		b = appendIndent(b, depth)
		b = append(b, '[')
		b = append(b, anyURL(m)...)
		b = append(b, "] "...)
		b = appendTextBlock(b, inner, depth)
		return append(b, '\n')
	}
	for _, fd := range fieldsInOrder(m.Descriptor()) {
		if !m.Has(fd) {
			continue
		}
		v := m.Get(fd)
		switch {
		case fd.IsMap():
			b = appendTextMap(b, fd, v.Map(), depth)
		case fd.IsList():
			for i := range v.List().Len() {
				b = appendTextField(b, fd, v.List().Get(i), depth)
			}
		default:
			b = appendTextField(b, fd, v, depth)
		}
	}
	return b
}

func appendTextField(b []byte, fd protoreflect.FieldDescriptor, v protoreflect.Value, depth int) []byte {
	b = appendIndent(b, depth)
	b = append(b, fd.Name()...)
	if fd.Message() != nil {
		b = append(b, ' ')
		b = appendTextBlock(b, v.Message(), depth)
		return append(b, '\n')
	}
	b = append(b, ": "...)
	b = appendTextScalar(b, fd, v)
	return append(b, '\n')
}

func appendTextBlock(b []byte, m protoreflect.Message, depth int) []byte {
	b = append(b, "{\n"...)
	b = appendText(b, m, depth+1)
	b = appendIndent(b, depth)
	return append(b, '}')
}

func appendTextMap(b []byte, fd protoreflect.FieldDescriptor, m protoreflect.Map, depth int) []byte {
	for _, k := range textKeys(m) {
		b = appendIndent(b, depth)
		b = append(b, fd.Name()...)
		b = append(b, " {\n"...)
		if key := fd.MapKey(); key.HasPresence() || !isZero(key, k.Value()) {
			b = appendTextField(b, fd.MapKey(), k.Value(), depth+1)
		}
		if v := m.Get(k); fd.MapValue().HasPresence() || !isZero(fd.MapValue(), v) {
			b = appendTextField(b, fd.MapValue(), v, depth+1)
		}
		b = appendIndent(b, depth)
		b = append(b, "}\n"...)
	}
	return b
}

func appendIndent(b []byte, depth int) []byte {
	for range depth {
		b = append(b, "  "...)
	}
	return b
}

// isZero reports whether the scalar v is what a map entry has without the field.
func isZero(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	switch x := v.Interface().(type) {
	case string:
		return x == ""
	case []byte:
		return len(x) == 0
	case bool:
		return !x
	case protoreflect.EnumNumber:
		return x == 0
	case float32:
		return math.Float32bits(x) == 0
	case float64:
		return math.Float64bits(x) == 0
	}
	return v.Equal(fd.Default())
}

func appendTextScalar(b []byte, fd protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch x := v.Interface().(type) {
	case bool:
		return strconv.AppendBool(b, x)
	case int32, int64:
		return strconv.AppendInt(b, v.Int(), 10)
	case uint32, uint64:
		return strconv.AppendUint(b, v.Uint(), 10)
	case float32:
		return appendRepr(b, shortestFloat(x))
	case float64:
		return appendRepr(b, x)
	case string:
		return appendQuoted(b, []byte(x), true)
	case []byte:
		return appendQuoted(b, x, false)
	case protoreflect.EnumNumber:
		return appendEnum(b, fd.Enum().Values(), x)
	}
	return b
}

func appendEnum(b []byte, names protoreflect.EnumValueDescriptors, x protoreflect.EnumNumber) []byte {
	if value := names.ByNumber(x); value != nil {
		return append(b, value.Name()...)
	}
	return strconv.AppendInt(b, int64(x), 10)
}

// shortestFloat returns the double that Python prints for a float: rounded to
// the fewest decimal digits that give f back, but never to fewer than six.
// So the least subnormal is 1.4013e-45, where five digits less would do.
func shortestFloat(f float32) float64 {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	for digits := 6; ; digits++ {
		r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
		if err != nil || float32(r) == f {
			return r
		}
	}
}

// appendRepr appends v as Python's repr writes it: shortest digits, an exponent
// below 1e-4 and from 1e16 on, else always a decimal point.
func appendRepr(b []byte, v float64) []byte {
	abs := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return append(b, "nan"...)
	case math.IsInf(v, 1):
		return append(b, "inf"...)
	case math.IsInf(v, -1):
		return append(b, "-inf"...)
	case abs != 0 && abs < 1e-4, abs >= 1e16:
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	start := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	if slices.Contains(b[start:], '.') {
		return b
	}
	return append(b, ".0"...)
}

// appendQuoted appends s in double quotes. Bytes from 0x80 on are written in
// octal, except those of whole characters if keepUTF8 is set.
func appendQuoted(b, s []byte, keepUTF8 bool) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		plain := i
		for i < len(s) && isPlain(s[i]) {
			i++
		}
		b = append(b, s[plain:i]...)
		if i == len(s) {
			break
		}
		if keepUTF8 && s[i] >= utf8.RuneSelf {
			if _, n := utf8.DecodeRune(s[i:]); n > 1 {
				b = append(b, s[i:i+n]...)
				i += n
				continue
			}
		}
		b = appendEscaped(b, s[i])
		i++
	}
	return append(b, '"')
}

// isPlain reports whether a character of a string needs no escape.
func isPlain(c byte) bool {
	return c >= ' ' && c < 0x7f && c != '"' && c != '\'' && c != '\\'
}

// appendEscaped appends a character that is not plain.
func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	case '"', '\'', '\\':
		return append(b, '\\', c)
	}
	return append(b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
}

// TensorFlow's messages are registered in Go under a package name of our own
// (see package tfpb), but the URL in an Any has TensorFlow's.
const (
	publicPrefix  = "tensorflow."
	privatePrefix = "trainerd.tf."
)

// unpackAny returns the message in m if m is an Any that can be unpacked, else nil.
func unpackAny(m protoreflect.Message) protoreflect.Message {
	if m.Descriptor().FullName() != "google.protobuf.Any" {
		return nil
	}
	url := anyURL(m)
	slash := strings.LastIndexByte(url, '/')
	if slash < 0 {
		return nil
	}
	name := url[slash+1:]
	if rest, ok := strings.CutPrefix(name, publicPrefix); ok {
		name = privatePrefix + rest
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	inner := mt.New()
	value := m.Get(m.Descriptor().Fields().ByNumber(anyValue)).Bytes()
	if proto.Unmarshal(value, inner.Interface()) != nil {
		return nil
	}
	return inner
}

// Field numbers of google.protobuf.Any.
const (
	anyTypeURL = 1
	anyValue   = 2
)

func anyURL(m protoreflect.Message) string {
	return m.Get(m.Descriptor().Fields().ByNumber(anyTypeURL)).String()
}
