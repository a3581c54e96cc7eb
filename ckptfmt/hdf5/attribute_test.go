package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

// attributeIn is an attribute message called name.
func attributeIn(version, flags byte, t, space, value []byte) body {
	name := []byte("name\x00")
	b := []byte{version, flags}
	for _, part := range [][]byte{name, t, space} {
		b = le.AppendUint16(b, uint16(len(part)))
	}
	if version == 3 {
		b = append(b, 0)
	}
	for _, part := range [][]byte{name, t, space} {
		if b = append(b, part...); version == 1 {
			b = append(b, make([]byte, tail(int64(len(part))))...)
		}
	}
	return body{msgAttribute, append(b, value...)}
}

// collection is a heap of strings with so many bytes, whose last object is at their end.
func collection(size int, objects ...string) []byte {
	b := append([]byte(sigGlobalHeap+"\x01\x00\x00\x00"), u64s(uint64(size))...)
	for i, text := range objects {
		b = append(b, byte(i+1), 0, 0, 0, 0, 0, 0, 0)
		b = append(u64sOnto(b, uint64(len(text))), text...)
		if i+1 < len(objects) {
			b = append(b, make([]byte, tail(int64(len(text))))...)
		}
	}
	return append(b, make([]byte, max(size-len(b), 0))...)
}

// varText refers to a string of a collection.
func varText(size uint32, at uint64, index uint32) []byte {
	return le.AppendUint32(u64sOnto(le.AppendUint32(nil, size), at), index)
}

func TestAttributes(t *testing.T) {
	text := typeHead(classString, padTerminated, 4)
	long := append(typeHead(classVarLen, 1, 16), fixedType(1, false)...)
	one, two, none := dataspaceOf(nil), dataspaceOf([]int64{2}), dataspaceOf([]int64{0})
	short := collection(8+8+2*24, "alpha", "bet") // to the end of the heap, without free space
	of := func(messages ...body) []byte {
		return made(numbers([]int64{1}, contiguous(unwritten, 0), messages...), string(short))
	}
	ofText := func(value []byte) []byte { return of(attributeIn(1, 0, long, one, value)) }
	limit := attributeIn(1, 0, typeHead(classString, 0, 4), dataspaceOf([]int64{maxAttribute / 4}), nil)
	over := attributeIn(1, 0, typeHead(classString, 0, 4), dataspaceOf([]int64{maxAttribute/4 + 1}), nil)
	for _, c := range []struct {
		name string
		file []byte
		want string
		err  string
	}{
		{"of version 1", of(attributeIn(1, 0, text, two, []byte("ab\x00xabcd"))), "ab abcd", ""},
		{"of version 2", of(attributeIn(2, 0, text, one, []byte("abcd"))), "abcd", ""},
		{"of version 3", of(attributeIn(3, 0, text, one, []byte("abcd"))), "abcd", ""},
		{"of version 1, whose flags mean nothing", of(attributeIn(1, 1, text, one, []byte("abcd"))), "abcd", ""},
		{"of a type that is elsewhere", of(attributeIn(2, 1, text, one, []byte("abcd"))), "", "not found"},
		{"of a shape that is elsewhere", of(attributeIn(3, 2, text, one, []byte("abcd"))), "", "not found"},
		{"of types 32 in each other", of(attributeIn(1, 0, vlens(maxRank), one, make([]byte, 16))), "", "is not a string"},
		{"of types 33 in each other", of(attributeIn(1, 0, vlens(maxRank+1), one, make([]byte, 16))), "", "is too deep"},
		{"of version 0", of(attributeIn(0, 0, text, one, nil)), "", "an attribute has version 0"},
		{"of version 4", of(attributeIn(4, 0, text, one, nil)), "", "an attribute has version 4"},
		{"without elements", of(attributeIn(1, 0, text, none, nil)), "", ""},
		{"a number", of(attributeIn(1, 0, fixedType(4, true), one, []byte("abcd"))), "", "is not a string"},
		{"of a damaged type", of(attributeIn(1, 0, text[:6], one, []byte("abcd"))), "", "it ends early"},
		{"of a damaged shape", of(attributeIn(1, 0, text, two[:12], []byte("abcdabcd"))), "", "it ends early"},
		{"that ends early", of(attributeIn(1, 0, text, two, nil)), "", "it ends early"},
		{"with as many elements as an attribute may have", of(limit), "", "it ends early"},
		{"with one more", of(over), "", "has too many elements"},
		{"with more than can be counted", of(attributeIn(1, 0, text, dataspaceOf([]int64{1 << 40, 1 << 40}), nil)), "", "has too many elements"},
		{"text in a heap", ofText(varText(5, blocksAt, 1)), "alpha", ""},
		{"at the heap's end", ofText(varText(3, blocksAt, 2)), "bet", ""},
		{"a part of it", ofText(varText(2, blocksAt, 2)), "be", ""},
		{"more than it", ofText(varText(4, blocksAt, 2)), "", "string 2 of the heap at 1024 has 3 bytes of 4"},
		{"another one", ofText(varText(1, blocksAt, 3)), "", "string 3 of the heap at 1024 has 0 bytes of 1"},
		{"nowhere", ofText(varText(4, unwritten, 0)), "", ""},
		{"empty", ofText(varText(0, blocksAt, 1)), "", ""},
		{"at an address of no file", ofText(varText(5, 1<<63, 1)), "", "outside of any file"},
		{"in what is no heap", ofText(varText(4, 0, 1)), "", "heap of strings"},
	} {
		got, err := attrOf(c.file)
		if c.err == "" && (err != nil || strings.Join(got, " ") != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: got %q, %v, want %q, %q", c.name, got, err, c.want, c.err)
		}
	}
}

// attrOf returns the attribute of the root.
func attrOf(b []byte) ([]string, error) {
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
	if err != nil {
		return nil, err
	}
	return r.Attr("", "name")
}

// TestPlacesOfAttributes locates damage of a value at its attribute.
func TestPlacesOfAttributes(t *testing.T) {
	long := append(typeHead(classVarLen, 1, 16), fixedType(1, false)...)
	file := made(numbers([]int64{1}, contiguous(unwritten, 0), attributeIn(1, 0, long, dataspaceOf(nil), varText(4, 0, 1))), "")
	_, err := attrOf(file)
	damage := new(ckptfmt.CorruptError)
	if at := int64(bytes.Index(file, []byte("name")) - 8); !errors.As(err, &damage) || damage.Offset != at {
		t.Errorf("got %v, want offset %d", err, at)
	}
}

// TestAttributesInAHeap has an object with its one attribute in a heap, to which a tree leads.
func TestAttributesInAHeap(t *testing.T) {
	text := typeHead(classString, padTerminated, 4)
	stored := attributeIn(3, 0, text, dataspaceOf(nil), []byte("abcd")).b
	const heapAt, treeAt, leafAt, rootAt = blocksAt, blocksAt + 256, blocksAt + 320, blocksAt + 512
	info := func(version, flags byte, places ...uint64) []byte {
		b := []byte{version, flags}
		if flags&1 != 0 {
			b = append(b, 9, 9)
		}
		return append(b, u64s(places...)...)
	}
	file := func(info, id []byte, value []byte) []byte {
		h := heapSizes
		h.root = rootAt
		b := make([]byte, 512+64)
		copy(b, h.block())
		record := append(append(id, make([]byte, 8-len(id))...), make([]byte, 9)...)
		if len(id) == 0 {
			record = make([]byte, 7)
		}
		head := append([]byte(sigTree2+"\x00\x08"), 0, 2, 0, 0, byte(len(record)), 0, 0, 0, 100, 40)
		copy(b[treeAt-blocksAt:], summed(u64sOnto(append(u64sOnto(head, leafAt), 1, 0), 1)))
		copy(b[leafAt-blocksAt:], summed([]byte(sigTree2Leaf+"\x00\x08"), record))
		copy(b[rootAt-blocksAt:], value)
		return made(numbers([]int64{1}, contiguous(unwritten, 0), body{msgAttrInfo, info}), string(b))
	}
	whole := managed(0, byte(len(stored)))
	good := info(0, 0, heapAt, treeAt)
	shared := attributeIn(3, 1, text, dataspaceOf(nil), []byte("abcd")).b
	for _, c := range []struct {
		name string
		file []byte
		want string
		err  string
	}{
		{"as it is", file(good, whole, stored), "abcd", ""},
		{"with an order", file(info(0, 1, heapAt, treeAt), whole, stored), "abcd", ""},
		{"of version 1", file(info(1, 0, heapAt, treeAt), whole, stored), "", "attribute info has version 1"},
		{"that ends early", file(info(0, 0, heapAt)[:6], whole, stored), "", "attribute info"},
		{"without a heap", file(info(0, 0, unwritten, treeAt), whole, stored), "", "not found"},
		{"without a tree", file(info(0, 0, heapAt, unwritten), whole, stored), "", "not found"},
		{"with another tree", file(info(0, 0, heapAt, leafAt), whole, stored), "", "signature"},
		{"with another heap", file(info(0, 0, leafAt, treeAt), whole, stored), "", "signature"},
		{"outside of the heap", file(good, managed(60, byte(len(stored))), stored), "", "outside of a block"},
		{"in a record without room for an identifier", file(good, nil, stored), "", "it ends early"},
		{"of another version", file(good, whole, append([]byte{9}, stored[1:]...)), "", "an attribute has version 9"},
		{"of a type that is elsewhere", file(good, whole, shared), "", "not found"},
		{"too large for the heap", file(good, []byte{objectHuge << 4}, stored), "", "not found"},
	} {
		got, err := attrOf(c.file)
		if c.err == "" && (err != nil || strings.Join(got, " ") != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: got %q, %v, want %q, %q", c.name, got, err, c.want, c.err)
		}
	}
}

func TestHeapsOfStrings(t *testing.T) {
	long := append(typeHead(classVarLen, 1, 16), fixedType(1, false)...)
	swapped := slices.Concat(collection(64, "alpha", "bet"), varText(3, blocksAt, 1), varText(5, blocksAt, 2))
	swapped[16], swapped[40] = 2, 1 // the numbers of the strings
	for _, c := range []madeCase{
		{"with free space", made(ofType(long, []int64{1}, contiguous(blocksAt+64, 16)), string(append(collection(64, "alpha"), varText(5, blocksAt, 1)...))), "alpha", ""},
		{"in another order", made(ofType(long, []int64{2}, contiguous(blocksAt+64, 32)), string(swapped)), "bet|alpha", ""},
		{"of version 0", made(ofType(long, []int64{1}, contiguous(blocksAt+64, 16)), strings.Replace(string(append(collection(64, "alpha"), varText(5, blocksAt, 1)...)), "GCOL\x01", "GCOL\x00", 1)), "", "a heap has version 0"},
		{"of version 2", made(ofType(long, []int64{1}, contiguous(blocksAt+64, 16)), strings.Replace(string(append(collection(64, "alpha"), varText(5, blocksAt, 1)...)), "GCOL\x01", "GCOL\x02", 1)), "", "a heap has version 2"},
		{"outside of the file", made(ofType(long, []int64{1}, contiguous(blocksAt, 16)), string(varText(5, 1<<20, 1))), "", "outside of the file"},
		{"with an object that is longer than it", made(ofType(long, []int64{1}, contiguous(blocksAt+64, 16)), string(append(collection(64, strings.Repeat("x", 33))[:64], varText(5, blocksAt, 1)...))), "", "heap of strings: it ends early"},
	} {
		c.check(t)
	}
	heaps := make(map[int64]heap)
	s := &store{pager: &pager{from: bytes.NewReader(collection(64, "alpha")), size: 64}, offsets: 8, lengths: 8}
	for range 10 { // a heap is read once
		b, err := s.strings(varText(5, 0, 1), &datatype{size: 16, varString: true}, keptIn(heaps))
		if err != nil || string(b[0]) != "alpha" || s.spent > 64+16 {
			t.Fatalf("%q, %v, after %d bytes", b, err, s.spent)
		}
	}
}

// TestOwnersOfAttributes has objects with other attributes each.
func TestOwnersOfAttributes(t *testing.T) {
	b := written(t, []string{"a/x", "b/x"}, Attrs{"": {"top": "0"}, "a": {"own": "1"}, "b": {"other": "2"}, "b/x": {"last": "3"}})
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range r.attrs {
		if len(o.list) != 1 {
			t.Errorf("%s has %d attributes", printablePath(o.path), len(o.list))
		}
	}
	if got, want := slices.Collect(r.Paths()), []string{"", "a", "b", "b/x"}; !slices.Equal(got, want) {
		t.Errorf("attributes are at %q, want %q", got, want)
	}
	for range r.Paths() { // which ends with the loop
		break
	}
	for _, c := range [][3]string{{"", "top", "0"}, {"a", "own", "1"}, {"b", "other", "2"}, {"b/x", "last", "3"}} {
		if got, err := r.Attr(c[0], c[1]); err != nil || !slices.Equal(got, c[2:]) {
			t.Errorf("%s is %q, %v", c, got, err)
		}
	}
}

// textInHeap is the text in one of many heaps. Each is longer than the one before it, up to
// some length: where a heap is read into the memory of another one, nothing of that is right.
func textInHeap(i int) string { return fmt.Sprintf("t%04d", i) + "xxxxxx"[:i%7] }

// inManyHeaps is a file whose root has attributes n000, n001 and so on, each with a text in a
// heap of its own.
func inManyHeaps(heaps int) []byte {
	long := append(typeHead(classVarLen, 1, 16), fixedType(1, false)...)
	var messages []body
	var blocks []byte
	for i := range heaps {
		m := attributeIn(1, 0, long, dataspaceOf(nil), varText(uint32(len(textInHeap(i))), uint64(blocksAt+2048+64*i), 1))
		m.b = bytes.Replace(m.b, []byte("name"), fmt.Appendf(nil, "n%03d", i), 1)
		messages = append(messages, m)
		blocks = append(blocks, collection(64, textInHeap(i))...)
	}
	return madeAt(blocksAt+2048, numbers([]int64{1}, contiguous(unwritten, 0), messages...), string(blocks))
}

// TestHeapsThatAreKept bounds what a reader keeps of the strings of attributes.
func TestHeapsThatAreKept(t *testing.T) {
	const heaps = 3 * heapsAtOnce
	file := inManyHeaps(heaps)
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), "f.h5")
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for range 2 {
		for i := range heaps {
			got, err := r.Attr("", fmt.Sprintf("n%03d", i))
			if err != nil || !slices.Equal(got, []string{textInHeap(i)}) {
				t.Fatalf("attribute %d is %q, %v", i, got, err)
			}
			most = max(most, len(r.heaps))
		}
	}
	if most != heapsAtOnce+1 {
		t.Errorf("%d heaps were kept at once, want %d", most, heapsAtOnce+1)
	}
	if _, err := r.Attr("no such path", "name"); !errors.Is(err, ckptfmt.ErrNotFound) {
		t.Errorf("the error is %v", err)
	}
}
