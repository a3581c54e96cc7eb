package tfproto

import (
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

// decodeNodes decodes nodes, which are parts of b. What a node seldom has is left to
// proto.Unmarshal. It reports whether all are valid. share says that equal attributes may
// be one message.
func decodeNodes(b []byte, encoded []span, nodes []*tfpb.NodeDef, share bool) bool {
	const usual = 4 << 10 // bytes; more are a constant's, which is not to be in memory twice
	var d nodeDecoder
	if share {
		d.shared = map[string]*tfpb.AttrValue{}
	}
	for len(nodes) > 0 {
		// The nodes up to a large one have one string.
		n := 0
		for n < len(nodes) && encoded[n].to-encoded[n].from <= usual {
			n++
		}
		if n == 0 {
			if proto.Unmarshal(b[encoded[0].from:encoded[0].to], nodes[0]) != nil {
				return false
			}
			encoded, nodes = encoded[1:], nodes[1:]
			continue
		}
		first := encoded[0].from
		text := string(b[first:encoded[n-1].to])
		for i, e := range encoded[:n] {
			if !d.node(text[e.from-first:e.to-first], nodes[i]) && proto.Unmarshal(b[e.from:e.to], nodes[i]) != nil {
				return false
			}
		}
		encoded, nodes = encoded[n:], nodes[n:]
	}
	return true
}

// nodeDecoder decodes nodes that have what nodes usually have, each field once, as
// encoders write them. Its methods report whether that is so. The strings of a node
// share the memory of its encoding, and small messages are allocated by the dozen,
// for a graph is kept or dropped as a whole.
type nodeDecoder struct {
	shared map[string]*tfpb.AttrValue // by their encoding; nil for none

	types  slab[typeAttr]
	lists  slab[listAttr]
	shapes slab[tfpb.TensorShapeProto]
	dims   slab[tfpb.TensorShapeProto_Dim]

	inputs  []string // of the node at hand
	strings [][]byte // of the list at hand, and so on
	rows    []*tfpb.TensorShapeProto
	sizes   []*tfpb.TensorShapeProto_Dim
}

// slab allocates many values of one type at a time.
type slab[T any] struct{ free []T }

func (s *slab[T]) get() *T {
	const many = 64
	if len(s.free) == 0 {
		s.free = make([]T, many)
	}
	p := &s.free[0]
	s.free = s.free[1:]
	return p
}

// owned returns a copy of what is in use of a buffer, nil for nothing.
func owned[T any](buffer []T) []T { return append([]T(nil), buffer...) }

// typeAttr and listAttr are the attributes that nodes have most of, with the messages
// that they consist of.
type (
	typeAttr struct {
		attr  tfpb.AttrValue
		value tfpb.AttrValue_Type
	}
	listAttr struct {
		attr  tfpb.AttrValue
		value tfpb.AttrValue_List
		list  tfpb.AttrValue_ListValue
	}
)

// Tags of fields: the number and the type.
const (
	field1Bytes  = 1<<3 | uint64(protowire.BytesType)
	field2Bytes  = 2<<3 | uint64(protowire.BytesType)
	field3Bytes  = 3<<3 | uint64(protowire.BytesType)
	field4Bytes  = 4<<3 | uint64(protowire.BytesType)
	field5Bytes  = 5<<3 | uint64(protowire.BytesType)
	field6Bytes  = 6<<3 | uint64(protowire.BytesType)
	field7Bytes  = 7<<3 | uint64(protowire.BytesType)
	field8Bytes  = 8<<3 | uint64(protowire.BytesType)
	field1Varint = 1<<3 | uint64(protowire.VarintType)
	field3Varint = 3<<3 | uint64(protowire.VarintType)
	field5Varint = 5<<3 | uint64(protowire.VarintType)
	field6Varint = 6<<3 | uint64(protowire.VarintType)
	field4Fixed  = 4<<3 | uint64(protowire.Fixed32Type)
)

func (d *nodeDecoder) node(encoded string, n *tfpb.NodeDef) bool {
	d.inputs = d.inputs[:0]
	var attrs map[string]*tfpb.AttrValue
	w := wire{rest: encoded}
	for w.more() {
		switch w.varint() {
		case field1Bytes:
			n.Name = w.text()
		case field2Bytes:
			n.Op = w.text()
		case field3Bytes:
			d.inputs = append(d.inputs, w.text())
		case field4Bytes:
			n.Device = w.text()
		case field5Bytes:
			if attrs == nil {
				attrs = make(map[string]*tfpb.AttrValue)
			}
			if !d.entry(w.bytes(), attrs) {
				return false
			}
		default:
			return false
		}
	}
	n.Input, n.Attr = owned(d.inputs), attrs
	return !w.bad
}

// entry decodes an attribute with its name.
func (d *nodeDecoder) entry(encoded string, attrs map[string]*tfpb.AttrValue) bool {
	w := wire{rest: encoded}
	if w.varint() != field1Bytes {
		return false
	}
	name := w.text()
	if w.varint() != field2Bytes {
		return false
	}
	value := w.bytes()
	if w.bad || w.more() {
		return false
	}
	if attr := d.shared[value]; attr != nil {
		attrs[name] = attr
		return true
	}
	attr, ok := d.attr(value)
	attrs[name] = attr
	if ok && d.shared != nil {
		d.shared[value] = attr
	}
	return ok
}

func (d *nodeDecoder) attr(encoded string) (*tfpb.AttrValue, bool) {
	w := wire{rest: encoded}
	var a *tfpb.AttrValue
	switch w.varint() {
	case field6Varint:
		t := d.types.get()
		t.value.Type = tfpb.DataType(w.varint())
		t.attr.Value = &t.value
		a = &t.attr
	case field1Bytes:
		l := d.lists.get()
		if !d.list(w.bytes(), &l.list) {
			return nil, false
		}
		l.value.List = &l.list
		l.attr.Value = &l.value
		a = &l.attr
	case field7Bytes:
		s := d.shapes.get()
		if !d.shape(w.bytes(), s) {
			return nil, false
		}
		a = &tfpb.AttrValue{Value: &tfpb.AttrValue_Shape{Shape: s}}
	case field8Bytes:
		t := &tfpb.TensorProto{}
		if !d.tensor(w.bytes(), t) {
			return nil, false
		}
		a = &tfpb.AttrValue{Value: &tfpb.AttrValue_Tensor{Tensor: t}}
	case field2Bytes:
		a = &tfpb.AttrValue{Value: &tfpb.AttrValue_S{S: []byte(w.bytes())}}
	case field3Varint:
		a = &tfpb.AttrValue{Value: &tfpb.AttrValue_I{I: int64(w.varint())}}
	case field4Fixed:
		a = &tfpb.AttrValue{Value: &tfpb.AttrValue_F{F: math.Float32frombits(w.fixed32())}}
	case field5Varint:
		a = &tfpb.AttrValue{Value: &tfpb.AttrValue_B{B: w.varint() != 0}}
	default:
		return nil, false
	}
	return a, !w.bad && !w.more()
}

// list decodes a list of strings, as in _class, of shapes, as in _output_shapes, of
// types or of integers.
func (d *nodeDecoder) list(encoded string, l *tfpb.AttrValue_ListValue) bool {
	d.strings, d.rows = d.strings[:0], d.rows[:0]
	w := wire{rest: encoded}
	for w.more() {
		switch w.varint() {
		case field2Bytes:
			d.strings = append(d.strings, []byte(w.bytes()))
		case field3Bytes:
			for numbers := (wire{rest: w.bytes()}); numbers.more(); w.bad = w.bad || numbers.bad {
				l.I = append(l.I, int64(numbers.varint()))
			}
		case field6Bytes:
			for types := (wire{rest: w.bytes()}); types.more(); w.bad = w.bad || types.bad {
				l.Type = append(l.Type, tfpb.DataType(types.varint()))
			}
		case field7Bytes:
			s := d.shapes.get()
			if !d.shape(w.bytes(), s) {
				return false
			}
			d.rows = append(d.rows, s)
		default:
			return false
		}
	}
	l.S, l.Shape = owned(d.strings), owned(d.rows)
	return !w.bad
}

func (d *nodeDecoder) shape(encoded string, s *tfpb.TensorShapeProto) bool {
	d.sizes = d.sizes[:0]
	w := wire{rest: encoded}
	for w.more() {
		switch w.varint() {
		case field2Bytes:
			dim := d.dims.get()
			if size := (wire{rest: w.bytes()}); size.more() {
				if size.varint() != field1Varint {
					return false
				}
				dim.Size = int64(size.varint())
				w.bad = w.bad || size.bad || size.more()
			}
			d.sizes = append(d.sizes, dim)
		case field3Varint:
			s.UnknownRank = w.varint() != 0
		default:
			return false
		}
	}
	s.Dim = owned(d.sizes)
	return !w.bad
}

// tensor decodes a tensor whose elements are bytes, or one number.
func (d *nodeDecoder) tensor(encoded string, t *tfpb.TensorProto) bool {
	w := wire{rest: encoded}
	for w.more() {
		switch w.varint() {
		case field1Varint:
			t.Dtype = tfpb.DataType(w.varint())
		case field2Bytes:
			if t.TensorShape != nil {
				return false
			}
			t.TensorShape = d.shapes.get()
			if !d.shape(w.bytes(), t.TensorShape) {
				return false
			}
		case field4Bytes:
			t.TensorContent = []byte(w.bytes())
		case field5Bytes:
			for numbers := (wire{rest: w.bytes()}); numbers.more(); w.bad = w.bad || numbers.bad {
				t.FloatVal = append(t.FloatVal, math.Float32frombits(numbers.fixed32()))
			}
		case field7Bytes:
			for numbers := (wire{rest: w.bytes()}); numbers.more(); w.bad = w.bad || numbers.bad {
				t.IntVal = append(t.IntVal, int32(numbers.varint()))
			}
		default:
			return false
		}
	}
	return !w.bad
}

// wire reads an encoded message. What ends too early makes it bad, with nothing left
// to read.
type wire struct {
	rest string
	bad  bool
}

func (w *wire) more() bool { return w.rest != "" }

func (w *wire) fail() {
	w.rest, w.bad = "", true
}

func (w *wire) varint() uint64 {
	var v uint64
	for i := range min(len(w.rest), 10) {
		b := w.rest[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if i == 9 && b > 1 {
				break
			}
			w.rest = w.rest[i+1:]
			return v
		}
	}
	w.fail()
	return 0
}

func (w *wire) fixed32() uint32 {
	if len(w.rest) < 4 {
		w.fail()
		return 0
	}
	s := w.rest
	w.rest = s[4:]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func (w *wire) bytes() string {
	n := w.varint()
	if n > uint64(len(w.rest)) {
		w.fail()
		return ""
	}
	s := w.rest[:n]
	w.rest = w.rest[n:]
	return s
}

// text is bytes that must be UTF-8.
func (w *wire) text() string {
	s := w.bytes()
	if !utf8.ValidString(s) {
		w.fail()
	}
	return s
}
