package tfproto

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A layout says what must be moved in the generated encoder's output for one
// message type. A nil *layout: nothing, neither here nor further in.
type layout struct {
	// sort: the type's own fields may be out of order.
	sort bool
	// fields holds every field if sort is set, else those with a layout.
	fields map[protowire.Number]fieldLayout
}

type fieldLayout struct {
	wire  protowire.Type // as the generated encoder writes the field
	inner *layout        // of a message field; nil if it is in order
	isMap bool           // the field's entries are put in the order of their keys
}

var layouts struct {
	sync.RWMutex
	byType map[protoreflect.MessageDescriptor]*layout
}

func layoutOf(d protoreflect.MessageDescriptor) *layout {
	layouts.RLock()
	l, ok := layouts.byType[d]
	layouts.RUnlock()
	if ok {
		return l
	}
	layouts.Lock()
	defer layouts.Unlock()
	if layouts.byType == nil {
		layouts.byType = make(map[protoreflect.MessageDescriptor]*layout)
	}
	return buildLayout(d)
}

// buildLayout requires layouts to be locked. Message types refer to each other
// in circles, so a type is entered before its fields are looked at.
func buildLayout(d protoreflect.MessageDescriptor) *layout {
	if l, ok := layouts.byType[d]; ok {
		return l
	}
	if !reachesUnordered(d, make(map[protoreflect.MessageDescriptor]bool)) {
		layouts.byType[d] = nil
		return nil
	}
	l := &layout{sort: unordered(d), fields: make(map[protowire.Number]fieldLayout)}
	layouts.byType[d] = l
	for _, fd := range fieldsInOrder(d) {
		f := fieldLayout{wire: wireType(fd.Kind()), isMap: fd.IsMap()}
		if fd.IsPacked() {
			f.wire = protowire.BytesType
		}
		if fd.Kind() == protoreflect.MessageKind {
			f.inner = buildLayout(fd.Message())
		}
		if l.sort || f.inner != nil {
			l.fields[fd.Number()] = f
		}
	}
	return l
}

// unordered reports whether Go's encoder may write the fields of d in another
// order than TensorFlow: it leaves oneofs to the end, and map entries as they come.
func unordered(d protoreflect.MessageDescriptor) bool {
	oneofs, firstMember, lastOrdinary := 0, protowire.Number(math.MaxInt32), protowire.Number(0)
	for i := range d.Oneofs().Len() {
		if !d.Oneofs().Get(i).IsSynthetic() {
			oneofs++
		}
	}
	for _, fd := range fieldsInOrder(d) {
		if fd.IsMap() {
			return true
		}
		if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() {
			firstMember = min(firstMember, fd.Number())
		} else {
			lastOrdinary = fd.Number()
		}
	}
	return oneofs > 1 || firstMember < lastOrdinary
}

func reachesUnordered(d protoreflect.MessageDescriptor, seen map[protoreflect.MessageDescriptor]bool) bool {
	if seen[d] {
		return false
	}
	seen[d] = true
	if unordered(d) {
		return true
	}
	for _, fd := range fieldsInOrder(d) {
		if fd.Kind() == protoreflect.MessageKind && reachesUnordered(fd.Message(), seen) {
			return true
		}
	}
	return false
}

// A sorter puts the fields of an encoded message in order, and those of the
// messages in it. Its slices are reused from one message to the next.
type sorter struct {
	runs    []run // a stack: those of the enclosing messages come first
	scratch []byte
}

var sorters = sync.Pool{New: func() any { return new(sorter) }}

func sortFields(l *layout, b []byte) {
	s := sorters.Get().(*sorter)
	s.message(l, b)
	clear(s.runs[:cap(s.runs)]) // keys point into b
	sorters.Put(s)
}

// A run is a stretch of neighbouring fields with one number, or one map entry.
type run struct {
	number     protowire.Number
	start, end int
	key        entryKey // of a map entry
}

// unknownNumber is the number under which unknown fields are sorted: after all others.
const unknownNumber = math.MaxInt32

func (s *sorter) message(l *layout, b []byte) {
	base := len(s.runs)
	for off := 0; off < len(b); {
		number, wire, tag := protowire.ConsumeTag(b[off:])
		size := -1
		if tag > 0 {
			size = protowire.ConsumeFieldValue(number, wire, b[off+tag:])
		}
		if size < 0 {
			// Not from the encoder: somebody set unknown fields that are not fields.
			s.push(l, base, run{number: unknownNumber, start: off, end: len(b)}, false)
			break
		}
		r := run{number: number, start: off, end: off + tag + size}
		f, known := l.fields[number]
		if known = known && f.wire == wire; !known {
			r.number = unknownNumber
		} else if f.inner != nil || f.isMap {
			body, _ := protowire.ConsumeBytes(b[off+tag : r.end])
			s.body(f, body, &r)
		}
		s.push(l, base, r, known && f.isMap)
		off = r.end
	}
	s.arrange(b, s.runs[base:])
	s.runs = s.runs[:base]
}

// body looks into the message that a field holds.
func (s *sorter) body(f fieldLayout, body []byte, r *run) {
	if f.inner != nil {
		s.message(f.inner, body)
	}
	if f.isMap {
		r.key = keyOfEntry(body)
	}
}

// push notes r, as part of the run before it if that has the same number and
// neither is an entry.
func (s *sorter) push(l *layout, base int, r run, entry bool) {
	if !l.sort {
		return
	}
	if last := len(s.runs) - 1; !entry && last >= base && s.runs[last].number == r.number {
		s.runs[last].end = r.end
		return
	}
	s.runs = append(s.runs, r)
}

// arrange rewrites b with its runs in order. The keys of runs lie in b, so it
// is not written before all are sorted.
func (s *sorter) arrange(b []byte, runs []run) {
	if slices.IsSortedFunc(runs, run.compare) {
		return
	}
	slices.SortStableFunc(runs, run.compare)
	s.scratch = append(s.scratch[:0], b...)
	n := 0
	for _, r := range runs {
		n += copy(b[n:], s.scratch[r.start:r.end])
	}
}

func (r run) compare(q run) int {
	if c := cmp.Compare(r.number, q.number); c != 0 {
		return c
	}
	return r.key.compare(q.key)
}
