package hdf5

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// summed ends a block in its checksum.
func summed(parts ...[]byte) []byte {
	b := slices.Concat(parts...)
	return le.AppendUint32(b, lookup3(b))
}

// inIndex is a layout of version 4 with an index of a kind at blocksAt, for chunks of one byte.
func inIndex(kind byte, params ...byte) []byte {
	b := append([]byte{4, layoutChunked, 0, 2, 1, 1, 1, kind}, params...)
	return le.AppendUint64(b, blocksAt)
}

// arrayOf is a fixed array at blocksAt of n chunks, whose elements are on pages if there are
// more of them than one has. Only pages for which has is true were written. The bytes of the
// chunks follow: a, b, c and so on.
func arrayOf(pageBits, elem byte, n int, has func(page int) bool) string {
	const headSize = 28
	head := summed([]byte(sigArray), []byte{0, 0, elem, pageBits}, u64s(uint64(n), blocksAt+headSize))
	block := append([]byte(sigArrayBlock+"\x00\x00"), u64s(blocksAt)...)
	perPage := 1 << pageBits
	var pages []byte
	data := uint64(blocksAt + headSize + len(block) + 4)
	if n <= perPage {
		data += uint64(n * int(elem))
	} else {
		count := (n + perPage - 1) / perPage
		data += uint64((count+7)/8 + count*4 + n*int(elem))
	}
	elements := func(from, to int) (b []byte) {
		for i := from; i < to; i++ {
			b = append(le.AppendUint64(b, data+uint64(i)), make([]byte, int(elem)-8)...)
		}
		return b
	}
	if n <= perPage {
		block = summed(block, elements(0, n))
	} else {
		bitmap := make([]byte, ((n+perPage-1)/perPage+7)/8)
		for i := 0; i*perPage < n; i++ {
			page := summed(elements(i*perPage, min((i+1)*perPage, n)))
			if has(i) {
				bitmap[i/8] |= 0x80 >> (i % 8)
			} else {
				clear(page)
			}
			pages = append(pages, page...)
		}
		block = summed(block, bitmap)
	}
	b := slices.Concat(head, block, pages)
	for i := range n {
		b = append(b, 'a'+byte(i))
	}
	return string(b)
}

// with returns a block with a changed byte, and the right checksum of its first n bytes.
func with(b string, at int, v byte, n int) string {
	c := []byte(b)
	c[at] = v
	le.PutUint32(c[n-4:], lookup3(c[:n-4]))
	return string(c)
}

func TestArraysOfChunks(t *testing.T) {
	all := func(int) bool { return true }
	file := func(n int64, array string) []byte { return made(numbers([]int64{n}, inIndex(indexFixed, 0)), array) }
	some := arrayOf(3, 8, 5, all)
	const head = 28
	for _, c := range []madeCase{
		{"one block", file(5, some), "abcde", ""},
		{"as many as a page has", file(8, arrayOf(3, 8, 8, all)), "abcdefgh", ""},
		{"one more", file(9, arrayOf(3, 8, 9, all)), "abcdefghi", ""},
		{"eight pages", file(16, arrayOf(1, 8, 16, all)), "abcdefghijklmnop", ""},
		{"nine pages", file(18, arrayOf(1, 8, 18, all)), "abcdefghijklmnopqr", ""},
		{"some of them written", file(18, arrayOf(1, 8, 18, func(i int) bool { return i%3 == 2 })), "\x00\x00\x00\x00ef\x00\x00\x00\x00kl\x00\x00\x00\x00qr", ""},
		{"the first of them written", file(18, arrayOf(1, 8, 18, func(i int) bool { return i == 0 })), "ab" + string(make([]byte, 16)), ""},
		{"never written", file(5, with(with(some, 16, 0xff, head), 17, 0xff, head)), "", "outside of the file"},
		{"of version 1", file(5, with(some, 4, 1, head)), "", "an array has version 1"},
		{"of fewer chunks", file(6, some), "", "an array of 5 elements of 8 bytes for 6 chunks"},
		{"of more", file(4, some), "", "an array of 5 elements of 8 bytes for 4 chunks"},
		{"with elements that are shorter than addresses", file(5, with(some, 6, 7, head)), "", "elements of 7 bytes"},
		{"with longer ones", file(5, with(some, 6, 9, head)), "", "elements of 9 bytes"},
		{"with pages of 2^30", file(5, with(some, 7, 30, head)), "abcde", ""},
		{"with pages of 2^31", file(5, with(some, 7, 31, head)), "", "array of chunks"},
		{"with damage", file(5, some[:20]+"x"+some[21:]), "", "stored is"},
		{"with damage in its block", file(5, some[:50]+"x"+some[51:]), "", "stored is"},
		{"with damage in its bits of pages", file(9, func(b string) string { return b[:43] + "x" + b[44:] }(arrayOf(3, 8, 9, all))), "", "stored is"},
		{"with damage in a page", file(9, func(b string) string { return b[:50] + "x" + b[51:] }(arrayOf(3, 8, 9, all))), "", "stored is"},
		{"with an address that no file has", file(5, with(some[head:], 14+7, 0x80, 14+5*8+4)+""), "", "signature"},
	} {
		c.check(t)
	}
	none := []byte(some)
	copy(none[16:], u64s(unwritten))
	madeCase{"without a block", file(5, with(string(none), 0, 'F', head)), "\x00\x00\x00\x00\x00", ""}.check(t)
	far := []byte(some)
	far[head+14+7] = 0x80
	madeCase{"with a chunk nowhere", file(5, string(far[:head])+with(string(far[head:]), 0, 'F', 14+5*8+4)), "", "address 0x8"}.check(t)
}

// growing is a shape that may become another one.
func growing(shape, most []int64) body {
	b := dataspaceOf(shape)
	b[2] = 1
	for _, n := range most {
		b = le.AppendUint64(b, uint64(n))
	}
	return body{msgDataspace, b}
}

// TestOtherIndexes has chunks without a tree or an array, and shapes that no array has numbers for.
func TestOtherIndexes(t *testing.T) {
	layout := func(kind byte, rest []byte, chunk ...byte) []byte {
		b := append([]byte{4, layoutChunked, 0, byte(len(chunk) + 1), 1}, append(chunk, 1, kind)...)
		return le.AppendUint64(append(b, rest...), blocksAt)
	}
	one := arrayOf(3, 8, 1, func(int) bool { return true })
	square := func(kind byte, rest []byte, most ...int64) []byte {
		shape := []int64{1, 1}
		return made(append([]body{growing(shape, most)}, numbers(shape, layout(kind, rest, 1, 1))[1:]...), one)
	}
	row := func(n int64, most int64) []body {
		return append([]body{growing([]int64{n}, []int64{most})}, numbers([]int64{n}, layout(indexImplicit, nil, 2))[1:]...)
	}
	for _, c := range []madeCase{
		{"one chunk", made(numbers([]int64{3}, layout(indexSingle, nil, 4)), "abcd"), "abc", ""},
		{"one chunk of no dimension", made(numbers(nil, layout(indexSingle, nil)), "a"), "a", ""},
		{"an array of no dimension", made(numbers(nil, layout(indexFixed, []byte{0})), one), "a", ""},
		{"in a row", made(numbers([]int64{3}, layout(indexImplicit, nil, 2)), "abcd"), "abc", ""},
		{"in a row that ends early", made(numbers([]int64{3}, layout(indexImplicit, nil, 2)), "abc"), "", "its chunks are outside of the file"},
		{"in a row for a larger shape", made(row(3, 6), "abcdef"), "abc", ""},
		{"in one that ends early", made(row(3, 6), "abcde"), "", "its chunks are outside of the file"},
		{"in one for a shape that it divides", made(row(4, 5), "abcdef"), "abcd", ""},
		{"in an array for more chunks than can be counted", square(indexFixed, []byte{0}, 1<<40, 1<<40), "", "cannot count the chunks of shape [1099511627776 1099511627776]"},
		{"in one for no fewer, the first dimension alone", square(indexFixed, []byte{0}, 1<<62-1, 1), "", "cannot count the chunks"},
		{"in an array that grows in two dimensions", square(indexExtensible, make([]byte, 5), unlimited, unlimited), "", "cannot count the chunks of shape [-1 -1]"},
		{"in a row of one chunk at the end of the file", made(numbers([]int64{2}, layout(indexImplicit, nil, 2)), "ab"), "ab", ""},
	} {
		c.check(t)
	}
}

// filteredArray is a file with one chunk in an array, whose element has a size of that width and a mask that leaves
// its only filter out.
func filteredArray(width int, change func(element []byte)) []byte {
	elem := 8 + width + 4
	const headSize, blockHead = 28, 14
	size := headSize + blockHead + elem + 4
	element := append(u64s(uint64(blocksAt+size)), make([]byte, width+4)...)
	if width > 0 {
		element[8] = 1
	}
	element[8+width] = 1
	change(element)
	b := slices.Concat(
		summed([]byte(sigArray), []byte{0, 1, byte(elem), 3}, u64s(1, blocksAt+headSize)),
		summed([]byte(sigArrayBlock+"\x00\x01"), u64s(blocksAt), element), []byte("z"))
	return made(numbers([]int64{1}, inIndex(indexFixed, 0), pipeline(filterFletcher)), string(b))
}

// TestArraysOfFilteredChunks has elements with a size, which no file has in 9 bytes, and a mask.
func TestArraysOfFilteredChunks(t *testing.T) {
	for width := range 10 {
		c := madeCase{fmt.Sprintf("sizes of %d bytes", width), filteredArray(width, func([]byte) {}), "z", ""}
		if width == 0 || width == 9 {
			c.want, c.err = "", fmt.Sprintf("elements of %d bytes", 8+width+4)
		}
		c.check(t)
	}
	large := filteredArray(8, func(element []byte) { element[15] = 0x80 })
	madeCase{"a size that no file has", large, "", "9223372036854775809 is larger than any file"}.check(t)
}

// tree2Of is a tree of version 2 at blocksAt, with nodes of 64 bytes: a root with one record
// above two inner nodes with one each, above four leaves with one each. Each record is a chunk
// of one byte, which follow: a, b, c and so on.
func tree2Of(change func(part string, b []byte)) string {
	const nodeSize, headSize = 64, 38
	node := func(i int) uint64 { return uint64(blocksAt + headSize + i*nodeSize) }
	next := uint64(0)
	record := func() []byte {
		next++
		return u64s(node(7)+next-1, next-1)
	}
	end := func(part string, b []byte, size int) []byte {
		change(part, b)
		return append(summed(b), make([]byte, size-len(b)-4)...)
	}
	leaf := func(part string) []byte {
		return end(part, append([]byte(sigTree2Leaf+"\x00\x0a"), record()...), nodeSize)
	}
	// 3 records in a leaf; in an inner node above leaves (64-10-9)/(16+9) = 1, which has 7 under it.
	pointer := func(at uint64, depth int) []byte {
		b := append(u64s(at), 1)
		if depth > 0 {
			b = append(b, 3)
		}
		return b
	}
	inner := func(part string, i, depth int) []byte {
		b := append([]byte(sigTree2Inner+"\x00\x0a"), record()...)
		return end(part, slices.Concat(b, pointer(node(i), depth), pointer(node(i+1), depth)), nodeSize)
	}
	head := append([]byte(sigTree2+"\x00\x0a"), nodeSize, 0, 0, 0, 16, 0, 2, 0, 100, 40)
	head = append(u64sOnto(head, node(0)), 1, 0)
	b := end("head", u64sOnto(head, 7), headSize)
	b = append(b, inner("root", 1, 1)...)
	b = append(b, inner("left", 3, 0)...)
	b = append(b, inner("right", 5, 0)...)
	for i := range 4 {
		b = append(b, leaf(fmt.Sprint("leaf", i))...)
	}
	return string(b) + "abcdefg"
}

func u64sOnto(b []byte, list ...uint64) []byte { return append(b, u64s(list...)...) }

func TestTreesOfVersion2(t *testing.T) {
	for _, c := range []struct {
		name, part string
		at         int
		v          byte
		want, err  string
	}{
		{"as it is", "head", 4, 0, "abcdefg", ""},
		{"of version 1", "head", 4, 1, "", "a tree has version 1"},
		{"of filtered chunks", "head", 5, recordFilteredChunk, "", "it has records of kind 11, want 10"},
		{"that is deeper", "head", 12, 33, "", "depth 33, nodes of 64 bytes, records of 16"},
		{"of empty records", "head", 10, 0, "", "records of 0"},
		{"with nodes that have no room for a record", "head", 6, 26, "", "nodes of 26 bytes, records of 16"},
		{"without records", "head", 24, 0, "\x00\x00\x00\x00\x00\x00\x00", ""},
		{"with too many in the root", "head", 24, 2, "", "2 records are more than a node has"},
		{"with a node of another version", "left", 4, 1, "", "a node has version 1"},
		{"with a node of another signature", "left", 3, 'F', "", `signature is "BTIF", want "BTIN"`},
		{"with too many records in a leaf", "left", 30, 4, "", "4 records are more than a node has"},
		{"with a child at no address of a file", "root", 29, 0x80, "", "address 0x80"},
		{"with a chunk that no file has", "leaf1", 13, 0x80, "", "address 0x80"},
		{"with a chunk twice", "leaf1", 14, 0, "", "chunk 0 is there twice"},
		{"with a chunk outside of the shape", "leaf3", 14, 7, "abcdef\x00", ""},
	} {
		b := tree2Of(func(part string, b []byte) {
			if part == c.part {
				b[c.at] = c.v
			}
		})
		madeCase{c.name, made(numbers([]int64{7}, inIndex(indexTree2, 0, 0, 0, 0, 0, 0)), b), c.want, c.err}.check(t)
	}
	b := tree2Of(func(part string, b []byte) {
		if part == "head" {
			copy(b[16:], u64s(unwritten))
		}
	})
	madeCase{"without a root", made(numbers([]int64{7}, inIndex(indexTree2, 0, 0, 0, 0, 0, 0)), b), string(make([]byte, 7)), ""}.check(t)
}

// TestWidthsInTrees has trees whose numbers just need as many bytes as they do, or one more.
func TestWidthsInTrees(t *testing.T) {
	for _, c := range []struct {
		node   int64
		record int
		count  int
		total  []int
	}{
		{512, 11, 1, []int{0, 2, 2, 3}},  // links of a group, as HDF5 writes them
		{512, 17, 1, []int{0, 2, 2, 3}},  // attributes
		{2048, 24, 1, []int{0, 2, 3, 4}}, // chunks of two dimensions
		{2048, 8, 1, []int{0, 2, 3, 4}},  // 254 records in a leaf
		{10 + 255, 1, 1, []int{0, 2, 3, 3}},
		{10 + 256, 1, 2, []int{0, 2, 3, 3}},
		{64, 16, 1, []int{0, 1, 1, 1}},     // 3, 7, 15, 31
		{256, 20, 1, []int{0, 1, 2, 2, 2}}, // 12, 116, 935, 7487, 59903: 8 in a node above leaves, then 7
		{128, 28, 1, []int{0, 1, 1, 1, 2}}, // 4, 14, 44, 134, 404: 2 in each
	} {
		x := &tree2{s: &store{offsets: 8}, node: c.node, record: c.record}
		x.measure(len(c.total) - 1)
		if x.countLen != c.count || !slices.Equal(x.totalLen, c.total) {
			t.Errorf("nodes of %d bytes, records of %d: %d, %v, want %d, %v", c.node, c.record, x.countLen, x.totalLen, c.count, c.total)
		}
	}
	deep := &tree2{s: &store{offsets: 8}, node: 1 << 20, record: 1}
	if deep.measure(32); !slices.IsSorted(deep.totalLen) || deep.totalLen[32] > 8 {
		t.Errorf("the widths of a deep tree are %v", deep.totalLen)
	}
}

// TestNumbersAtTheEnd reads numbers that end where the block does, or one byte later.
func TestNumbersAtTheEnd(t *testing.T) {
	read := map[int]func(c *cursor) int64{
		1: func(c *cursor) int64 { return int64(c.u8()) },
		2: func(c *cursor) int64 { return int64(c.u16()) },
		3: func(c *cursor) int64 { return int64(c.uint(3)) },
		4: func(c *cursor) int64 { return int64(c.u32()) },
		7: func(c *cursor) int64 { return c.count(7) },
		8: func(c *cursor) int64 { return c.length() },
	}
	for n, f := range read {
		b := []byte{1, 2, 3, 4, 5, 6, 7, 8}[:n]
		var want [8]byte
		copy(want[:], b)
		c := cursorOf(b)
		if got := f(c); got != int64(binary.LittleEndian.Uint64(want[:])) || c.err != nil || c.left() != 0 {
			t.Errorf("%d bytes: %#x, %v, %d left", n, got, c.err, c.left())
		}
		if got := f(c); got != 0 || c.err != errShort {
			t.Errorf("%d bytes after the end: %#x, %v", n, got, c.err)
		}
		failed := cursorOf(b)
		failed.fail("before")
		if got := f(failed); got != 0 || failed.err.Error() != "before" {
			t.Errorf("%d bytes after an error: %#x, %v", n, got, failed.err)
		}
	}
	c := cursorOf(make([]byte, 16))
	if got := c.uint(9); got != 0 || c.err == nil {
		t.Errorf("9 bytes: %d, %v", got, c.err)
	}
	c = cursorOf(make([]byte, 3))
	if c.bytes(-1); c.err != errShort {
		t.Errorf("-1 bytes: %v", c.err)
	}
	c = cursorOf(bytes.Repeat([]byte{0xff}, 8), u64s(1<<62-1), u64s(1<<62))
	if a, b := c.addr(), c.addr(); a != nowhere || b != 1<<62-1 || c.err != nil {
		t.Errorf("addresses are %d and %d, %v", a, b, c.err)
	}
	if a := c.addr(); a != nowhere || c.err == nil {
		t.Errorf("the address is %d, %v", a, c.err)
	}
	c = cursorOf([]byte("xab\x00cd\x00e"))
	c.skip(1)
	if a, b := c.text(), c.text(); a != "ab" || b != "cd" || c.text() != "" || c.err == nil {
		t.Errorf("texts are %q and %q, %v", a, b, c.err)
	}
	for at := 3; at < 12; at++ {
		c := cursor{b: make([]byte, 20), at: at}
		if c.align(3); c.at != map[bool]int{true: 3, false: 11}[at == 3] {
			t.Errorf("%d is aligned to %d", at, c.at)
		}
	}
}

// TestClaims has blocks in a file of 1,000 bytes; the first 100 are the user's.
func TestClaims(t *testing.T) {
	for _, c := range []struct {
		at, n int64
		ok    bool
	}{
		{0, 0, true}, {0, 900, true}, {0, 901, false}, {1, 900, false}, {899, 1, true}, {900, 0, true}, {900, 1, false}, {901, 0, false},
		{-1, 1, false}, {0, -1, false}, {5, -1, false}, {1 << 62, 1 << 62, false}, {1, 1 << 62, false},
	} {
		s := &store{pager: &pager{size: 1000}, base: 100}
		if err := s.claim(c.at, c.n); (err == nil) != c.ok {
			t.Errorf("%d bytes at %d: %v", c.n, c.at, err)
		}
	}
	s := &store{pager: &pager{size: 1000}, spent: 4*1000 + 1<<20 - 10}
	if err := s.claim(0, 10); err != nil {
		t.Error(err)
	}
	if err := s.claim(0, 1); err == nil {
		t.Error("blocks are read over and over")
	}
}
