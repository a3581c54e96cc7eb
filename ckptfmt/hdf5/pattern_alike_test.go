package hdf5

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// version2Of is a header of version 2 with those messages, as header1Of is one of version 1.
func version2Of(list ...body) []byte {
	var all [][]byte
	for _, m := range list {
		all = append(all, message2(byte(m.kind), 0, m.b))
	}
	return header2Of(0, nil, all...)
}

// usualSpace and usualType are of a dataset of one byte, which is oneAt.
var usualSpace, usualType = body{msgDataspace, dataspaceOf([]int64{1})}, body{msgDatatype, fixedType(1, false)}

func oneAt(at uint64) body { return body{msgLayout, contiguous(at, 1)} }

// formsOf returns the forms of the datasets of a file, as they are read by one goroutine.
func formsOf(t *testing.T, b []byte) []*form {
	t.Helper()
	found, err := walkedBy(t, b, 1)
	if err != nil {
		t.Fatal(err)
	}
	var list []*form
	for _, d := range found.datasets {
		list = append(list, d.form)
	}
	return list
}

// TestDatasetsAlike has datasets that differ in what says nothing about their form: one form is kept
// of them.
func TestDatasetsAlike(t *testing.T) {
	modified := func(n byte) body { return body{msgModified, []byte{1, 0, 0, 0, n, 0, 0, n}} }
	newFill, chunk := body{msgFill, []byte{3, 0x0a, 0, 0, 0, 0, 0, 0}}, func(at byte) body {
		b := inChunks(1, 1)
		b[3] = at
		return body{msgLayout, b}
	}
	times := func(n byte, at uint64) []byte {
		b := version2Of(usualSpace, usualType, oneAt(at))
		b[flagsAt] = flagTimes
		return summed(slices.Concat(b[:timesAt], bytes.Repeat([]byte{n}, timesSize), b[timesAt:len(b)-checksumSize]))
	}
	cases := map[string][][]byte{"times of headers": {times(1, 7), times(2, 8), times(3, 9)}}
	for version, header := range []func(list ...body) []byte{header1Of, version2Of} {
		for name, of := range map[string]func(i byte) []byte{
			"elements":              func(i byte) []byte { return header(usualSpace, usualType, oneAt(uint64(i))) },
			"before other messages": func(i byte) []byte { return header(oneAt(uint64(i)), usualSpace, newFill, usualType) },
			"after them":            func(i byte) []byte { return header(newFill, usualSpace, usualType, oneAt(uint64(i))) },
			"times":                 func(i byte) []byte { return header(usualSpace, modified(i), usualType, oneAt(uint64(i))) },
			"chunks":                func(i byte) []byte { return header(usualSpace, usualType, chunk(i)) },
		} {
			cases[fmt.Sprint(name, ", version ", version+1)] = [][]byte{of(1), of(2), of(3)}
		}
	}
	written, never := header1Of(usualSpace, usualType, oneAt(7)), header1Of(usualSpace, usualType, oneAt(unwritten))
	cases["some never written"] = [][]byte{written, never, written}
	for name, blocks := range cases {
		if got := formsOf(t, inGroup(blocks...)); len(got) != 3 || got[0] != got[1] || got[0] != got[2] {
			t.Errorf("%s: not one form of three datasets, but %d", name, len(got))
		}
	}
}

// TestDatasetsNotAlike has datasets whose headers have the same bytes, or nearly, but are not read
// as if they were the same: the second one of them is read itself.
func TestDatasetsNotAlike(t *testing.T) {
	layout4 := body{msgLayout, inIndex(indexSingle)}
	attribute := body{msgAttribute, attributeOf("name", stringRef{})}
	inHeap := body{msgAttrInfo, append([]byte{0, 0}, u64s(unwritten, unwritten)...)}
	space2 := func(n byte) body { return body{msgDataspace, append([]byte{2, 1, 0, spaceSimple}, u64s(uint64(n))...)} }
	three := body{msgLayout, contiguous(7, 3)}
	for name, blocks := range map[string][2][]byte{
		"attributes":                {header1Of(usualSpace, usualType, oneAt(7), attribute), nil},
		"attributes in a heap":      {header1Of(usualSpace, usualType, oneAt(7), inHeap), nil},
		"two layouts":               {header1Of(usualSpace, usualType, oneAt(7), oneAt(8)), nil},
		"chunks of version 4":       {header1Of(usualSpace, usualType, layout4), nil},
		"elements in the header":    {header1Of(usualSpace, usualType, body{msgLayout, []byte{3, layoutCompact, 1, 0, 'a'}}), nil},
		"shapes where times may be": {version2Of(usualSpace, usualType, three), version2Of(body{msgDataspace, dataspaceOf([]int64{2})}, usualType, three)},
		"shapes of version 2":       {version2Of(space2(1), usualType, three), version2Of(space2(2), usualType, three)},
		"their last bytes":          {version2Of(usualType, three, space2(1)), version2Of(usualType, three, space2(2))},
	} {
		if blocks[1] == nil {
			blocks[1] = blocks[0]
		}
		got := formsOf(t, inGroup(blocks[0], blocks[1]))
		if len(got) != 2 || got[0] == got[1] {
			t.Errorf("%s: one form of two datasets", name)
		} else if want := int64(1); blocks[0][4] == 2 && !bytes.Equal(blocks[0], blocks[1]) && (got[0].shape[0] != want || got[1].shape[0] != 2) {
			t.Errorf("%s: shapes %v and %v", name, got[0].shape, got[1].shape)
		}
	}
}

// TestDamageAmongAlikes has datasets like one that was read, but for damage.
func TestDamageAmongAlikes(t *testing.T) {
	first := header1Of(usualSpace, usualType, oneAt(7))
	at := func(at uint64) []byte { return header1Of(usualSpace, usualType, oneAt(at)) }
	long := header1Of(body{msgDataspace, dataspaceOf([]int64{1<<56 + 1})}, usualType, oneAt(7))
	size := uint64(len(inGroup(first, first)))
	zero := func(at uint64) []byte { return header1Of(usualSpace, usualType, body{msgLayout, contiguous(at, 0)}) }
	sum := version2Of(usualSpace, usualType, oneAt(8))
	sum[len(sum)-1] ^= 1
	for _, c := range []struct {
		name string
		file []byte
		want []string
		err  string
	}{
		{"at the last place", inGroup(first, at(size-1)), []string{"a", "b"}, ""},
		{"one byte later", inGroup(first, at(size)), nil, "dataset /b: f.h5: offset"},
		{"at no address", inGroup(first, at(1<<63)), nil, "address 0x8000000000000000"},
		{"another last byte of the shape", inGroup(first, long), nil, "dataset /b: f.h5: offset"},
		{"a header that ends in another byte", inGroup(header1Of(usualType, oneAt(7), usualSpace), header1Of(usualType, oneAt(7), body{msgDataspace, dataspaceOf([]int64{1<<56 + 1})})), nil, "it claims 72057594037927937 bytes"},
		{"no room for elements", inGroup(zero(unwritten), zero(7)), nil, "needs 1 bytes; 0 are at 7"},
		{"another checksum", inGroup(version2Of(usualSpace, usualType, oneAt(7)), sum), nil, "stored is"},
	} {
		checkPaths(t, c.name, c.file, c.want, c.err)
	}
	for _, to := range []uint64{unwritten, size + 60, size + 600, 1 << 40} { // of no header
		checkPaths(t, fmt.Sprint("a link to ", to), linksTo(first, to), nil, "outside of the file")
		checkPaths(t, fmt.Sprint("a link to ", to, " after a user's block"), afterUser(linksTo(first, to)), nil, "outside of the file")
	}
	checkPaths(t, "after a user's block", afterUser(inGroup(first, at(size))), nil, "dataset /b: f.h5: offset")
	checkPaths(t, "at the last place after one", afterUser(inGroup(first, at(size-1))), []string{"a", "b"}, "")
}

// linksTo is a file with a dataset, and a link to an address.
func linksTo(dataset []byte, at uint64) []byte {
	link := func(name byte, at uint64) []byte {
		return message2(msgLink, 0, slices.Concat([]byte{1, 0, 1, name}, u64s(at)))
	}
	info := message2(msgLinkInfo, 0, append([]byte{0, 0}, u64s(unwritten, unwritten)...))
	return file2(header2Of(0, nil, info, link('a', blocksAt), link('b', at)), string(dataset))
}

// afterUser is a file of version 2 with 512 bytes of a user before it.
func afterUser(b []byte) []byte {
	super := summed([]byte(Magic), []byte{2, 8, 8, 0}, u64s(512, unwritten, uint64(len(b)+512), 48))
	return slices.Concat(make([]byte, 512), super, b[len(super):])
}

// TestLayoutsElsewhere has headers that continue, or have their layout in another one. No header is
// recognised by a part of itself.
func TestLayoutsElsewhere(t *testing.T) {
	rest := appendMessage(nil, msgLayout, oneAt(7).b)
	next := summed([]byte(sigHeaderNext), message2(msgLayout, 0, oneAt(7).b))
	older := header1Of(usualSpace, usualType, body{msgContinuation, u64s(blocksAt, uint64(len(rest)))})
	older[2]++
	newer := version2Of(usualSpace, usualType, body{msgContinuation, u64s(blocksAt, uint64(len(next)))})
	sharing := header2Of(0, nil, message2(msgDataspace, 0, usualSpace.b), message2(msgDatatype, 0, usualType.b), message2(msgLayout, 2, append([]byte{2, 0}, u64s(blocksAt)...)))
	for name, file := range map[string][]byte{
		"headers that continue":                 inGroupAfter(rest, older, older),
		"those of version 2":                    inGroupAfter(next, newer, newer),
		"a layout in the header of another one": inGroupAfter(header1Of(oneAt(7)), sharing, sharing),
	} {
		checkPaths(t, name, file, []string{"a", "b"}, "")
	}
}

// TestNarrowAlikes has addresses of 4 bytes, so that what follows them is in no place of an address.
func TestNarrowAlikes(t *testing.T) {
	u32s := func(list ...uint32) (b []byte) {
		for _, v := range list {
			b = le.AppendUint32(b, v)
		}
		return b
	}
	file := func(size uint32) []byte {
		space := []byte{1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}
		dataset := func(size uint32) []byte {
			return version2Of(body{msgDataspace, space}, usualType, body{msgLayout, append([]byte{3, layoutContiguous}, u32s(7, size)...)})
		}
		const superSize = 8 + 4 + 4*4 + 4
		info := message2(msgLinkInfo, 0, append([]byte{0, 0}, u32s(1<<32-1, 1<<32-1)...))
		one, two := dataset(1), dataset(size)
		link := func(name byte, at int) []byte {
			return message2(msgLink, 0, append([]byte{1, 0, 1, name}, u32s(uint32(at))...))
		}
		group := header2Of(0, nil, info, link('a', 512), link('b', 512+len(one)))
		b := slices.Concat(make([]byte, superSize), group)
		b = slices.Concat(b, make([]byte, 512-len(b)), one, two)
		copy(b, summed([]byte(Magic), []byte{2, 4, 4, 0}, u32s(0, 1<<32-1, uint32(len(b)), superSize)))
		return b
	}
	checkPaths(t, "of the same size", file(1), []string{"a", "b"}, "")
	checkPaths(t, "of none", file(0), nil, "needs 1 bytes; 0 are at 7")
}
