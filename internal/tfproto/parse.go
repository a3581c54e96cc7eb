package tfproto

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	//lint:ignore SA1019 prototext refuses forms that TensorFlow's parsers take and words its errors at random; the classic parser is frozen, which suits a frozen format.
	classic "github.com/golang/protobuf/proto"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A TextError reports text that [UnmarshalText] cannot read.
type TextError struct {
	// Line and Column, from 1, say where in the text; Column counts bytes.
	// Both are 0 if Field is set.
	Line, Column int
	// Field is the path of the field whose value is at fault, as in
	// "node[3].name", if the fault is in the value and not in the text.
	Field string
	Err   error
}

func (e *TextError) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("field %s: %v", e.Field, e.Err)
	}
	return fmt.Sprintf("line %d:%d: %v", e.Line, e.Column, e.Err)
}

func (e *TextError) Unwrap() error { return e.Err }

// errNotUTF8 reports bytes that are not text: TensorFlow would refuse to load
// a message with such a string.
var errNotUTF8 = errors.New("invalid UTF-8")

// UnmarshalText replaces m with the message that text, in protocol text form,
// represents: what [MarshalText] wrote, or what a person wrote in that form,
// with # comments, single quotes, lists in brackets, or all on one line.
//
// An unknown field is an error, and so is a singular field given twice. Every
// error is a *[TextError]; m is then empty.
func UnmarshalText(text []byte, m proto.Message) error {
	proto.Reset(m)
	err := unmarshalText(string(text), m)
	if err != nil {
		proto.Reset(m)
	}
	return err
}

func unmarshalText(text string, m proto.Message) error {
	if i := invalidUTF8(text); i >= 0 {
		return textErrorAt(text, i, errNotUTF8)
	}
	s := scanner{text: text}
	private, err := s.scan()
	if err != nil {
		return err
	}
	if err := parseClassic(private, m); err != nil {
		var pe *classic.ParseError
		if errors.As(err, &pe) {
			//lint:ignore SA1019 the parser gives no other position that counts bytes
			return textErrorAt(text, s.original(pe.Offset), errors.New(pe.Message))
		}
		return &TextError{Line: 1, Column: 1, Err: err}
	}
	return settle(m.ProtoReflect())
}

// parseClassic calls the classic parser. That one dereferences nil for an
// expanded Any ("[url/type] {...}") in a message that is not an Any.
func parseClassic(text string, m proto.Message) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("misplaced [type/url] field: %v", r)
		}
	}()
	return classic.UnmarshalText(text, classic.MessageV1(m))
}

func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r != utf8.RuneError {
			continue
		}
		if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
			return i
		}
	}
	return -1
}

func textErrorAt(text string, offset int, err error) *TextError {
	offset = min(max(offset, 0), len(text))
	before := text[:offset]
	return &TextError{
		Line:   strings.Count(before, "\n") + 1,
		Column: offset - strings.LastIndexByte(before, '\n'),
		Err:    err,
	}
}

// settle finishes a message that the classic parser has read: it gives every
// Any TensorFlow's own type name and form, every NaN Python's bits, and refuses
// strings that escapes have made invalid UTF-8.
func settle(m protoreflect.Message) error {
	if inner := unpackAny(m); inner != nil {
		return settleAny(m, inner)
	}
	for _, fd := range fieldsInOrder(m.Descriptor()) {
		if !m.Has(fd) {
			continue
		}
		v := m.Get(fd)
		var err error
		switch {
		case fd.IsMap():
			err = settleMap(fd, v.Map())
		case fd.IsList():
			err = settleList(fd, v.List())
		case isDoubleNaN(fd, v):
			m.Set(fd, pythonNaN)
		default:
			err = inField(string(fd.Name()), settleValue(fd, v))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func settleAny(m, inner protoreflect.Message) error {
	if err := settle(inner); err != nil {
		return err
	}
	url := anyURL(m)
	slash := strings.LastIndexByte(url, '/') + 1
	if rest, ok := strings.CutPrefix(url[slash:], privatePrefix); ok {
		url = url[:slash] + publicPrefix + rest
	}
	fields := m.Descriptor().Fields()
	m.Set(fields.ByNumber(anyTypeURL), protoreflect.ValueOfString(url))
	m.Set(fields.ByNumber(anyValue), protoreflect.ValueOfBytes(Marshal(inner.Interface())))
	return nil
}

func settleMap(fd protoreflect.FieldDescriptor, m protoreflect.Map) error {
	for _, k := range textKeys(m) {
		name := fmt.Sprintf("%s[%q]", fd.Name(), k.String())
		if err := inField(name, settleValue(fd.MapKey(), k.Value())); err != nil {
			return err
		}
		if err := inField(name, settleValue(fd.MapValue(), m.Get(k))); err != nil {
			return err
		}
	}
	return nil
}

func settleList(fd protoreflect.FieldDescriptor, list protoreflect.List) error {
	for i := range list.Len() {
		if isDoubleNaN(fd, list.Get(i)) {
			list.Set(i, pythonNaN)
		}
		if err := settleValue(fd, list.Get(i)); err != nil {
			return inField(fmt.Sprintf("%s[%d]", fd.Name(), i), err)
		}
	}
	return nil
}

func settleValue(fd protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch {
	case fd.Message() != nil:
		return settle(v.Message())
	case fd.Kind() == protoreflect.StringKind && !utf8.ValidString(v.String()):
		if fd.ParentFile().Syntax() == protoreflect.Proto2 {
			return nil // proto2 does not ask for it
		}
		return errNotUTF8
	}
	return nil
}

// pythonNaN is what "nan" means in text. Go's own NaN has another payload,
// which would show in the binary form.
var pythonNaN = protoreflect.ValueOfFloat64(math.Float64frombits(0x7ff8 << 48))

func isDoubleNaN(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	return fd.Kind() == protoreflect.DoubleKind && math.IsNaN(v.Float())
}

// inField puts name before the path of the field that err is about.
func inField(name string, err error) error {
	if err == nil {
		return nil
	}
	inner, ok := err.(*TextError)
	if !ok {
		return &TextError{Field: name, Err: err}
	}
	inner.Field = name + "." + inner.Field
	return inner
}
