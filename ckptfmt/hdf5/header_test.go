package hdf5

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

// superblock2 is one of version 2 or 3, for a file of so many bytes.
func superblock2(version byte, size uint64) []byte {
	return summed([]byte(Magic), []byte{version, 8, 8, 0}, u64s(0, unwritten, size, 48))
}

// header2Of is a header of version 2 with some messages, and what a test changes of it.
func header2Of(flags byte, prefix []byte, messages ...[]byte) []byte {
	all := slices.Concat(messages...)
	b := append([]byte(sigHeader), 2, flags)
	return summed(append(append(b, prefix...), byte(len(all))), all)
}

func message2(kind, flags byte, body []byte, more ...byte) []byte {
	b := append([]byte{kind}, le.AppendUint16(nil, uint16(len(body)))...)
	return slices.Concat(b, []byte{flags}, more, body)
}

// file2 is a file of version 2 whose root has that header, and blocks at blocksAt.
func file2(header []byte, blocks string) []byte {
	b := append(make([]byte, 48), header...)
	b = append(append(b, make([]byte, blocksAt-len(b))...), blocks...)
	copy(b, superblock2(2, uint64(len(b))))
	return b
}

func TestHeadersOfVersion2(t *testing.T) {
	space, kind, where := dataspaceOf([]int64{2}), fixedType(1, false), contiguous(blocksAt, 2)
	m := [][]byte{message2(msgDataspace, 0, space), message2(msgDatatype, 0, kind), message2(msgLayout, 0, where)}
	ordered := [][]byte{message2(msgDataspace, 0, space, 0, 0), message2(msgDatatype, 0, kind, 1, 0), message2(msgLayout, 0, where, 2, 0)}
	next := func(b []byte) string { return "ab" + string(b) }
	block := summed([]byte(sigHeaderNext), m[2])
	rest := message2(msgContinuation, 0, u64s(blocksAt+2, uint64(len(block))))
	far := message2(msgContinuation, 0, u64s(1<<20, uint64(len(block))))
	wrong := summed([]byte(sigHeader), m[2])
	typed := append([]byte{1, 0, 1, 0, 1, 0, 0, 0, byte(8 + len(padded(slices.Clone(kind)))), 0, 0, 0, 0, 0, 0, 0}, appendMessage(nil, msgDatatype, kind)...)
	elsewhere := func(version byte, at ...uint64) []byte {
		b := []byte{version, 0}
		if version == 1 {
			b = append(b, 0, 0, 0, 0, 0, 0)
		}
		return message2(msgDatatype, 2, append(b, u64s(at...)...))
	}
	for _, c := range []madeCase{
		{"as it is", file2(header2Of(0, nil, m...), "ab"), "ab", ""},
		{"with times", file2(header2Of(flagTimes, make([]byte, 16), m...), "ab"), "ab", ""},
		{"with phases", file2(header2Of(flagPhases, make([]byte, 4), m...), "ab"), "ab", ""},
		{"with both", file2(header2Of(flagTimes|flagPhases, make([]byte, 20), m...), "ab"), "ab", ""},
		{"with an order", file2(header2Of(flagOrdered, nil, ordered...), "ab"), "ab", ""},
		{"with an order and a gap", file2(header2Of(flagOrdered, nil, append(ordered, make([]byte, 5))...), "ab"), "ab", ""},
		{"with a gap", file2(header2Of(0, nil, append(m, make([]byte, 3))...), "ab"), "ab", ""},
		{"of version 1", file2(func() []byte { b := header2Of(0, nil, m...); b[4] = 1; return summed(b[:len(b)-4]) }(), "ab"), "", "it has version 1; only 2 to 2"},
		{"of version 3", file2(func() []byte { b := header2Of(0, nil, m...); b[4] = 3; return summed(b[:len(b)-4]) }(), "ab"), "", "it has version 3"},
		{"damaged", file2(func() []byte { b := header2Of(0, nil, m...); b[40] ^= 1; return b }(), "ab"), "", "stored is"},
		{"that continues elsewhere", file2(header2Of(0, nil, m[0], m[1], rest), next(block)), "ab", ""},
		{"in a block without messages", file2(header2Of(0, nil, m[0], m[1], m[2], message2(msgContinuation, 0, u64s(blocksAt+2, 8))), next(summed([]byte(sigHeaderNext)))), "ab", ""},
		{"in a block of 3 bytes", file2(header2Of(0, nil, m[0], m[1], m[2], message2(msgContinuation, 0, u64s(blocksAt+2, 3))), next(summed([]byte(sigHeaderNext)))), "", "it ends early"},
		{"in a damaged block", file2(header2Of(0, nil, m[0], m[1], rest), next(append(block[:len(block)-1:len(block)-1], 0))), "", "stored is"},
		{"in a block that is none", file2(header2Of(0, nil, m[0], m[1], rest), next(wrong)), "", `signature is "OHDR", want "OCHK"`},
		{"outside of the file", file2(header2Of(0, nil, m[0], m[1], far), next(block)), "", "outside of the file"},
		{"of version 1 in a block that has no place", made([]body{{msgContinuation, make([]byte, 8)}}, ""), "", "continuation of a header"},
		{"in a block that has no place", file2(header2Of(0, nil, m[0], message2(msgContinuation, 0, make([]byte, 9))), ""), "", "continuation of a header"},
		{"with a type that is elsewhere", file2(header2Of(0, nil, m[0], elsewhere(2, blocksAt+2), m[2]), next(typed)), "ab", ""},
		{"with one of version 1", file2(header2Of(0, nil, m[0], elsewhere(1, blocksAt+2), m[2]), next(typed)), "ab", ""},
		{"with one of version 3", file2(header2Of(0, nil, m[0], elsewhere(3, blocksAt+2), m[2]), next(typed)), "ab", ""},
		{"with one of version 0", file2(header2Of(0, nil, m[0], elsewhere(0, blocksAt+2), m[2]), next(typed)), "", "a shared message has version 0"},
		{"with one of version 4", file2(header2Of(0, nil, m[0], elsewhere(4, blocksAt+2), m[2]), next(typed)), "", "a shared message has version 4"},
		{"with one in a heap", file2(header2Of(0, nil, m[0], message2(msgDatatype, 2, append([]byte{3, 1}, u64s(7)...)), m[2]), next(typed)), "", "type: several objects share in a heap"},
		{"with one outside of the file", file2(header2Of(0, nil, m[0], elsewhere(2, 1<<20), m[2]), next(typed)), "", "outside of the file"},
		{"with one that has no address", file2(header2Of(0, nil, m[0], message2(msgDatatype, 2, []byte{2, 0, 1}), m[2]), next(typed)), "", "shared message: it ends early"},
		{"with one that is itself", file2(header2Of(0, nil, m[0], elsewhere(2, 48), m[2]), "ab"), "", "there is no message of type 3"},
		{"with one of what has no type", file2(header2Of(0, nil, m[0], elsewhere(2, blocksAt+2), m[2]), next(headerOf(1, appendMessage(nil, msgDataspace, space)))), "", "there is no message of type 3"},
	} {
		c.check(t)
	}
}

func TestSuperblocks(t *testing.T) {
	file := func(change func(b []byte)) []byte {
		b := made(numbers([]int64{2}, contiguous(blocksAt, 2)), "ab")
		change(b)
		return b
	}
	user := func(n int) []byte {
		return append(bytes.Repeat([]byte{'#'}, n), file(func(b []byte) { le.PutUint64(b[24:], uint64(n)); le.PutUint64(b[40:], uint64(len(b)+n)) })...)
	}
	newer := file2(header2Of(0, nil, message2(msgDataspace, 0, dataspaceOf([]int64{2})), message2(msgDatatype, 0, fixedType(1, false)), message2(msgLayout, 0, contiguous(blocksAt, 2))), "ab")
	version3 := slices.Clone(newer)
	copy(version3, superblock2(3, uint64(len(newer))))
	// Version 1 has 4 more bytes, after which all is 4 bytes later; its entry is not needed.
	first := file(func([]byte) {})
	version1 := slices.Concat(first[:24], make([]byte, 4), first[24:92], first[superSize:])
	version1[8] = 1
	le.PutUint64(version1[28+32+8:], superSize)
	for _, c := range []madeCase{
		{"of version 0", first, "ab", ""},
		{"of version 1", version1, "ab", ""},
		{"of version 2", newer, "ab", ""},
		{"of version 3", version3, "ab", ""},
		{"of version 4", file(func(b []byte) { b[8] = 4 }), "", "the superblock has version 4; only 0 to 3 are known"},
		{"with a user's block", user(512), "ab", ""},
		{"with a larger one", user(2048), "ab", ""},
		{"at a place that is none", append(make([]byte, 256), first...), "", "this is not HDF5"},
		{"that is short", first[:7], "", "this is not HDF5"},
		{"without the last byte", first[:len(first)-1], "", "offset 0: superblock: the file has 1025 bytes of 1026: it was cut off"},
		{"of a file with more bytes", append(slices.Clone(first), 'x'), "ab", ""},
		{"that counts from elsewhere", file(func(b []byte) { b[24] = 1 }), "", "addresses count from 1, the superblock is at 0"},
		{"with addresses of 3 bytes", file(func(b []byte) { b[13] = 3 }), "", "addresses and lengths have 3 and 8 bytes"},
		{"with lengths of 16 bytes", file(func(b []byte) { b[14] = 16 }), "", "addresses and lengths have 8 and 16 bytes"},
		{"with damage", func() []byte { b := slices.Clone(newer); b[36] ^= 1; return b }(), "", "stored is"},
		{"that is cut", newer[:40], "", "superblock"},
	} {
		c.check(t)
	}
	b := slices.Clone(newer)
	b[47] ^= 1 // of its checksum
	if _, err := readMade(b); !errors.Is(err, ckptfmt.ErrChecksum) {
		t.Errorf("the error of another checksum is %v", err)
	}
}

// TestPlacesOfErrors counts offsets from the beginning of the file, with what is before the superblock.
func TestPlacesOfErrors(t *testing.T) {
	b := made(numbers([]int64{2}, contiguous(blocksAt, 1)), "ab")
	le.PutUint64(b[24:], 512)
	le.PutUint64(b[40:], uint64(len(b)+512))
	_, err := readMade(append(make([]byte, 512), b...))
	if want := "offset 608: dataset: "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestLinks reads links of each kind.
func TestLinks(t *testing.T) {
	hard := func(flags byte, middle ...byte) []byte {
		return slices.Concat([]byte{1, flags}, middle, []byte{1, 'a'}, u64s(77))
	}
	for _, m := range []struct {
		name string
		b    []byte
		want string
		at   int64
		err  string
	}{
		{"hard", hard(0), "a", 77, ""},
		{"with a kind", hard(8, linkHard), "a", 77, ""},
		{"with an order", hard(4, 1, 2, 3, 4, 5, 6, 7, 8), "a", 77, ""},
		{"with a set of letters", hard(16, 1), "a", 77, ""},
		{"with all of them", hard(28, linkHard, 1, 2, 3, 4, 5, 6, 7, 8, 1), "a", 77, ""},
		{"with a length of 2 bytes", slices.Concat([]byte{1, 1, 2, 0, 'a', 'b'}, u64s(77)), "ab", 77, ""},
		{"with a length of 8 bytes", slices.Concat([]byte{1, 3}, u64s(2), []byte("ab"), u64s(77)), "ab", 77, ""},
		{"soft", []byte{1, 8, linkSoft, 1, 'a', 1, 0, '/'}, "", nowhere, ""},
		{"external", []byte{1, 8, linkExternal, 1, 'a', 1, 0, '/'}, "a", nowhere, ""},
		{"of a program's own kind", []byte{1, 8, 65, 1, 'a'}, "", 0, `link "a" is of kind 65`},
		{"of version 0", []byte{0, 0, 1, 'a'}, "", 0, "a link has version 0"},
		{"of version 2", []byte{2, 0, 1, 'a'}, "", 0, "a link has version 2"},
		{"with a name that ends early", []byte{1, 0, 9, 'a'}, "", 0, "it ends early"},
		{"with a name longer than any file", slices.Concat([]byte{1, 3}, u64s(1<<63), []byte("ab")), "", 0, "larger than any file"},
	} {
		c := cursorOf(m.b)
		l, ok := c.link()
		switch {
		case m.err != "" && (ok || c.err == nil || !strings.Contains(c.err.Error(), m.err)):
			t.Errorf("%s: %v, %v, want %q", m.name, ok, c.err, m.err)
		case m.err == "" && (c.err != nil || ok != (m.want != "") || ok && (string(l.name) != m.want || l.at != m.at || l.external != (m.name == "external"))):
			t.Errorf("%s: %q at %d, %v, %v", m.name, l.name, l.at, ok, c.err)
		}
	}
}
