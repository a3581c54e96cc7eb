package hdf5

import (
	"slices"
	"testing"
)

// inGroup is a file whose root has links, named a, b and so on, to those blocks.
func inGroup(blocks ...[]byte) []byte { return inGroupAfter(nil, blocks...) }

// inGroupAfter is inGroup with something at blocksAt, before them.
func inGroupAfter(rest []byte, blocks ...[]byte) []byte {
	messages := [][]byte{message2(msgLinkInfo, 0, append([]byte{0, 0}, u64s(unwritten, unwritten)...))}
	all := slices.Clone(rest)
	for i, b := range blocks {
		at := u64s(uint64(blocksAt + len(all)))
		messages = append(messages, message2(msgLink, 0, slices.Concat([]byte{1, 0, 1, 'a' + byte(i)}, at)))
		all = append(all, b...)
	}
	return file2(header2Of(0, nil, messages...), string(all))
}

// header1Of is a header of version 1 with those messages.
func header1Of(messages ...body) []byte {
	var b []byte
	for _, m := range messages {
		b = appendMessage(b, m.kind, slices.Clone(m.b))
	}
	return headerOf(len(messages), b)
}

// TestMessagesThatAreMissing has objects that have lost a message, by damage to its type or to
// their number: no object is left out for that.
func TestMessagesThatAreMissing(t *testing.T) {
	space, kind, place := body{msgDataspace, dataspaceOf([]int64{2})}, body{msgDatatype, fixedType(1, false)}, body{msgLayout, contiguous(blocksAt, 2)}
	const other = 0x12 // a message of no interest
	counted := func(n byte) []byte {
		b := header1Of(space, kind, place)
		b[2] = n
		return b
	}
	const none = "object /a: it is neither a group nor a dataset nor a type"
	for _, c := range []struct {
		name   string
		header []byte
		want   []string
		err    string
	}{
		{"all of them", counted(3), []string{"a"}, ""},
		{"one less than there are", counted(2), nil, "it has more messages than 2"},
		{"none", counted(0), nil, "it has more messages than 0"},
		{"one more than there are", counted(4), []string{"a"}, ""},
		{"no layout", header1Of(space, kind, body{other, nil}), nil, none},
		{"a shape alone", header1Of(space), nil, none},
		{"a type alone, which has a name", header1Of(kind), nil, ""},
		{"no table of a group", header1Of(body{other, u64s(blocksAt, blocksAt)}), nil, none},
		{"no layout, in version 2", header2Of(0, nil, message2(msgDataspace, 0, space.b), message2(msgDatatype, 0, kind.b)), nil, none},
		{"no messages, in version 2", header2Of(0, nil, make([]byte, 3)), nil, none},
	} {
		checkPaths(t, c.name, inGroup(c.header), c.want, c.err)
	}
}

// TestEndsOfHeaders has headers whose last message is as short as any, or a gap that is none, and
// prefixes that are as long as any.
func TestEndsOfHeaders(t *testing.T) {
	list := numbers([]int64{2}, contiguous(blocksAt, 2))
	file1 := func(rest ...byte) []byte {
		b := header1Of(list...)
		le.PutUint32(b[8:], uint32(len(b)-16+len(rest)))
		b[2]++
		b = append(append(make([]byte, superSize), b...), rest...)
		b = append(append(b, make([]byte, blocksAt-len(b))...), "ab"...)
		copy(b, superblockOf(uint64(len(b)), symbol{header: superSize}))
		return b
	}
	messages := func(more ...byte) (all [][]byte) {
		for _, m := range list {
			all = append(all, message2(byte(m.kind), 0, m.b, more...))
		}
		return all
	}
	version0 := file1()
	version0[superSize] = 0
	wide := header2Of(flagTimes|flagPhases|flagChunkSize, make([]byte, 20), messages()...)
	at := 6 + 20
	wide = summed(slices.Concat(wide[:at+1], make([]byte, 7), wide[at+1:len(wide)-checksumSize]))
	for _, c := range []madeCase{
		{"a gap of 7 bytes", file1(make([]byte, 7)...), "ab", ""},
		{"a message without a body", file1(msgDataspace, 0, 0, 0, 0, 0, 0, 0), "", "message of type 1: it ends early"},
		{"of version 0", version0, "", "it has version 0; only 1 to 1 are known"},
		{"a message without a body, in version 2", file2(header2Of(0, nil, append(messages(), message2(msgDataspace, 0, nil))...), "ab"), "", "message of type 1: it ends early"},
		{"one of 6 bytes, with an order", file2(header2Of(flagOrdered, nil, append(messages(0, 0), message2(msgDataspace, 0, nil, 0, 0))...), "ab"), "", "message of type 1: it ends early"},
		{"a size of 8 bytes after times and phases", file2(wide, "ab"), "ab", ""},
	} {
		c.check(t)
	}
}

// TestNarrowFiles has addresses of 2 bytes, lengths of 4, and no byte that is not needed.
func TestNarrowFiles(t *testing.T) {
	nothing := []byte{0xff, 0xff}
	group := header2Of(0, nil, message2(msgLinkInfo, 0, slices.Concat([]byte{0, 0}, nothing, nothing)))
	file := func(user int, version byte) []byte {
		const superSize = 24
		end := le.AppendUint16(nil, uint16(user+superSize+len(group)))
		super := summed([]byte(Magic), []byte{version, 2, 4, 0}, le.AppendUint16(nil, uint16(user)), nothing, end, []byte{superSize, 0})
		return slices.Concat(make([]byte, user), super, group)
	}
	checkPaths(t, "without a user's block", file(0, 2), nil, "")
	checkPaths(t, "with one", file(512, 2), nil, "")
}

// TestLayoutsDamagedOrUnknown has layouts that no file has, which are damage, and others that this
// package does not know, which hide no other dataset.
func TestLayoutsDamagedOrUnknown(t *testing.T) {
	file := func(layout []byte) []byte { return made(numbers([]int64{2}, layout), "ab") }
	at := u64s(1 << 63)
	for _, c := range []madeCase{
		{"at no address", file(contiguous(1<<63, 2)), "", "offset 168: message of type 8: address 0x8000000000000000"},
		{"with a size of none", file(contiguous(blocksAt, 1<<63)), "", "message of type 8: 9223372036854775808 is larger"},
		{"chunks at no address", file(slices.Concat([]byte{3, layoutChunked, 2}, at, []byte{1, 0, 0, 0, 1, 0, 0, 0})), "", "message of type 8: address 0x8"},
		{"chunks of no dimension", file(slices.Concat([]byte{3, layoutChunked, 0}, at)), "", "message of type 8: address 0x8"},
		{"of version 4, at no address", file(slices.Concat([]byte{4, layoutChunked, 0, 2, 1, 1, 1, indexSingle}, at)), "", "message of type 8: address 0x8"},
		{"with a number of 9 bytes", file([]byte{4, layoutChunked, 0, 2, 9}), "", "message of type 8: a number has 9 bytes"},
		{"of version 2", file([]byte{2, layoutContiguous}), "", "type: a layout has version 2"},
		{"virtual", file([]byte{4, 3}), "", "type: layouts of class 3"},
		{"of another index", file(slices.Concat([]byte{4, layoutChunked, 0, 2, 1, 1, 1, 9}, at)), "", "type: an index of chunks of kind 9"},
		{"with edges without filters", file(slices.Concat([]byte{4, layoutChunked, 1, 2, 1, 1, 1, indexSingle}, at)), "", "type: filters leave out"},
	} {
		c.check(t)
	}
}
