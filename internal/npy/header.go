package npy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	tfpb "github.com/trainerd/trainerd/proto"
)

// header is what the dict says.
type header struct {
	descr     string
	kind      kind
	raw       bool // bytes (V), of a type that the header does not tell
	bigEndian bool
	fortran   bool
	shape     []int64
}

// kind is a type of elements.
type kind struct {
	dtype tfpb.DataType
	size  int // bytes of an element
	unit  int // bytes that a byte order applies to: half an element when it is complex
}

var kinds = map[string]kind{
	"b1": {tfpb.DataType_DT_BOOL, 1, 1},
	"i1": {tfpb.DataType_DT_INT8, 1, 1}, "i2": {tfpb.DataType_DT_INT16, 2, 2},
	"i4": {tfpb.DataType_DT_INT32, 4, 4}, "i8": {tfpb.DataType_DT_INT64, 8, 8},
	"u1": {tfpb.DataType_DT_UINT8, 1, 1}, "u2": {tfpb.DataType_DT_UINT16, 2, 2},
	"u4": {tfpb.DataType_DT_UINT32, 4, 4}, "u8": {tfpb.DataType_DT_UINT64, 8, 8},
	"f2": {tfpb.DataType_DT_HALF, 2, 2}, "f4": {tfpb.DataType_DT_FLOAT, 4, 4}, "f8": {tfpb.DataType_DT_DOUBLE, 8, 8},
	"V2": {tfpb.DataType_DT_BFLOAT16, 2, 2}, "f1": {tfpb.DataType_DT_FLOAT8_E5M2, 1, 1},
	"V1": {tfpb.DataType_DT_INVALID, 1, 1}, // any type of one byte
	"c8": {tfpb.DataType_DT_COMPLEX64, 8, 4}, "c16": {tfpb.DataType_DT_COMPLEX128, 16, 8},
}

// refused says of the kinds that are not numbers what they are.
var refused = map[byte]string{
	'U': "strings", 'S': "strings", 'a': "strings", 'T': "strings",
	'O': "pickled Python objects", 'V': "raw bytes", 'M': "dates", 'm': "time spans",
}

// unsupportedError is a type of elements that NumPy has and tensors have not.
type unsupportedError struct{ kind, reason string }

func (e *unsupportedError) Error() string { return e.reason }

// kindName is what NumPy calls a type in a header, such as "datetime64[D]" for M8[D].
func kindName(name string) string {
	switch name[0] {
	case 'O':
		return "object"
	case 'M':
		return "datetime64" + strings.TrimPrefix(name, "M8")
	case 'm':
		return "timedelta64" + strings.TrimPrefix(name, "m8")
	case 'f', 'c':
		if n, err := strconv.Atoi(name[1:]); err == nil {
			return map[byte]string{'f': "float", 'c': "complex"}[name[0]] + strconv.Itoa(8*n)
		}
	}
	return name
}

// isWider reports whether a type is one of the long doubles, whose width depends on
// the machine.
func isWider(name string) bool {
	return slices.Contains([]string{"f12", "f16", "c24", "c32"}, name)
}

// setDescr reads the type of the elements.
func (h *header) setDescr(descr string) error {
	h.descr = strconv.Quote(descr)
	if len(descr) < 2 {
		return fmt.Errorf("the type %q of the elements is not known", descr)
	}
	order, name := descr[0], descr[1:]
	if k, ok := stringKind(name); ok && strings.ContainsRune("<>|", rune(order)) {
		h.kind, h.bigEndian = k, order == '>'
		return nil
	}
	k, ok := kinds[name]
	if width, isRaw := rawWidth(name); isRaw {
		h.raw = true
		if !ok {
			k, ok = kind{tfpb.DataType_DT_INVALID, width, 1}, true
		}
	}
	if what := refused[name[0]]; what != "" && !ok {
		return &unsupportedError{kindName(name), fmt.Sprintf("the elements are %s (%q); only numbers, bools and strings can be read", what, descr)}
	}
	if isWider(name) {
		return &unsupportedError{kindName(name), fmt.Sprintf("the type %q of the elements is not known", descr)}
	}
	if !ok || !strings.ContainsRune("<>|", rune(order)) || order == '|' && k.unit > 1 && name[0] != 'V' {
		return fmt.Errorf("the type %q of the elements is not known", descr)
	}
	h.kind, h.bigEndian = k, order == '>'
	return nil
}

// parseHeader reads the dict. The offset in an error is one in the text.
func parseHeader(text []byte) (*header, *Error) {
	p := &parser{text: text}
	h := &header{}
	seen := map[string]bool{}
	if err := p.dict(func(key string) error {
		if seen[key] {
			return fmt.Errorf("the key %q comes twice", key)
		}
		seen[key] = true
		return p.value(h, key)
	}); err != nil {
		bad := &Error{Offset: int64(p.pos), Reason: "header: " + err.Error()}
		if of, ok := errors.AsType[*unsupportedError](err); ok {
			bad.Unsupported, bad.Type = true, of.kind
		}
		return nil, bad
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return nil, &Error{Offset: int64(p.pos), Reason: fmt.Sprintf("header: the key %q is missing", key)}
		}
	}
	return h, nil
}

// value reads what belongs to a key.
func (p *parser) value(h *header, key string) (err error) {
	switch key {
	case "descr":
		if p.peek() == '[' || p.peek() == '(' {
			return &unsupportedError{"record", "the elements are records; only numbers, bools and strings can be read"}
		}
		var descr string
		if descr, err = p.str(); err != nil {
			return err
		}
		return h.setDescr(descr)
	case "fortran_order":
		h.fortran, err = p.boolean()
	case "shape":
		h.shape, err = p.tuple()
	default:
		err = fmt.Errorf("the key %q is not known", key)
	}
	return err
}

// parser reads the part of Python's literals that headers are made of.
type parser struct {
	text []byte
	pos  int
}

// peek skips blanks and returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	for ; p.pos < len(p.text); p.pos++ {
		if c := p.text[p.pos]; c != ' ' && c != '\t' && c != '\n' {
			return c
		}
	}
	return 0
}

func (p *parser) accept(c byte) bool {
	if p.peek() != c || p.pos == len(p.text) {
		return false
	}
	p.pos++
	return true
}

func (p *parser) expect(c byte) error {
	if p.accept(c) {
		return nil
	}
	if p.pos == len(p.text) {
		return fmt.Errorf("it ends; want %q", c)
	}
	return fmt.Errorf("found %q; want %q", p.text[p.pos], c)
}

// dict calls value after each key, and insists that nothing follows the dict.
func (p *parser) dict(value func(key string) error) error {
	if err := p.expect('{'); err != nil {
		return err
	}
	for !p.accept('}') {
		key, err := p.str()
		if err != nil {
			return err
		}
		if err := p.expect(':'); err != nil {
			return err
		}
		if err := value(key); err != nil {
			return err
		}
		if p.accept(',') {
			continue
		}
		if err := p.expect('}'); err != nil {
			return err
		}
		break
	}
	if p.peek(); p.pos < len(p.text) {
		return fmt.Errorf("found %q after the dict", p.text[p.pos])
	}
	return nil
}

// str reads a string without escapes: keys and types need none.
func (p *parser) str() (string, error) {
	quote := byte('\'')
	if p.peek() == '"' {
		quote = '"'
	}
	if err := p.expect(quote); err != nil {
		return "", err
	}
	start := p.pos
	for ; p.pos < len(p.text); p.pos++ {
		switch c := p.text[p.pos]; {
		case c == quote:
			p.pos++
			return string(p.text[start : p.pos-1]), nil
		case c == '\\' || c < ' ' || c >= utf8.RuneSelf:
			return "", fmt.Errorf("found %q in a string", c)
		}
	}
	return "", fmt.Errorf("it ends within a string")
}

func (p *parser) boolean() (bool, error) {
	p.peek()
	for _, v := range []bool{true, false} {
		word := map[bool]string{true: "True", false: "False"}[v]
		if strings.HasPrefix(string(p.text[p.pos:]), word) {
			p.pos += len(word)
			return v, nil
		}
	}
	return false, fmt.Errorf("fortran_order is neither True nor False")
}

// tuple reads the dimensions: (), (3,) or (2, 3).
func (p *parser) tuple() ([]int64, error) {
	if err := p.expect('('); err != nil {
		return nil, err
	}
	var dims []int64
	for comma := true; !p.accept(')'); {
		if !comma {
			return nil, fmt.Errorf("a comma is missing in the shape")
		}
		d, err := p.dimension()
		if err != nil {
			return nil, err
		}
		if dims = append(dims, d); len(dims) > maxRank {
			return nil, fmt.Errorf("the shape has more than %d dimensions", maxRank)
		}
		if comma = p.accept(','); !comma && len(dims) == 1 {
			return nil, fmt.Errorf("the shape is not a tuple")
		}
	}
	return dims, nil
}

func (p *parser) dimension() (int64, error) {
	p.peek()
	start := p.pos
	for p.pos < len(p.text) && '0' <= p.text[p.pos] && p.text[p.pos] <= '9' {
		p.pos++
	}
	d, err := strconv.ParseInt(string(p.text[start:p.pos]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("a dimension of the shape is not a whole number from 0 to 2^63-1")
	}
	if p.pos < len(p.text) && p.text[p.pos] == 'L' { // a long of Python 2
		p.pos++
	}
	return d, nil
}
