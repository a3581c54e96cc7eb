package hdf5

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// growth is an array of chunks of one byte that can grow, whose header is at blocksAt; the bytes
// of the chunks are a, b, c and so on.
type growth struct {
	elem, maxBits, direct, least, leastSuper, pageBits byte

	n      int                         // chunks
	lost   map[int]bool                // chunks that were never written, with all blocks of nothing else
	change func(part string, b []byte) // before the checksum is made
	b      []byte
	next   int
}

// usualGrowth has 2 chunks in the index block, 2 and 4 in data blocks that this has, then two blocks of
// 4 below a super block, two of 8 in two pages each below the next one, and four such ones.
func usualGrowth(n int) *growth {
	return &growth{elem: 8, maxBits: 9, direct: 2, least: 2, leastSuper: 2, pageBits: 2, n: n, change: func(string, []byte) {}}
}

// place appends a block with its checksum, and returns its address.
func (g *growth) place(part string, b []byte) uint64 {
	at := uint64(blocksAt + len(g.b))
	g.b = append(g.b, g.sum(part, b)...)
	return at
}

func (g *growth) sum(part string, b []byte) []byte {
	g.change(part, b)
	return summed(b)
}

const growthHead, growthIndex = 4 + 8 + 6*8 + 8 + 4, 4 + 2 + 8

// elements are the addresses of the next chunks, and whether any of them was written.
func (g *growth) elements(n int) (b []byte, any bool) {
	data := uint64(blocksAt + growthHead)
	for range n {
		if g.next < g.n && !g.lost[g.next] {
			b, any = le.AppendUint64(b, data+uint64(g.next)), true
		} else {
			b = le.AppendUint64(b, unwritten)
		}
		b = append(b, make([]byte, g.elem-8)...)
		g.next++
	}
	return b, any
}

// head is what a data block or a super block begins with.
func (g *growth) head(signature string) []byte {
	return append(append([]byte(signature+"\x00\x00"), u64s(blocksAt)...), make([]byte, (g.maxBits+7)/8)...)
}

// dataBlock makes one of so many chunks, and returns its address and which of its pages were written.
func (g *growth) dataBlock(size, page int) (at uint64, pages []bool) {
	part := fmt.Sprint("data", g.next)
	if size <= page {
		b, any := g.elements(size)
		if !any {
			return unwritten, nil
		}
		return g.place(part, append(g.head(sigGrowingBlock), b...)), nil
	}
	b := g.sum(part, g.head(sigGrowingBlock))
	for range size / page {
		part := fmt.Sprint("page", g.next)
		elements, any := g.elements(page)
		if pages = append(pages, any); any {
			b = append(b, g.sum(part, elements)...)
		} else {
			b = append(b, make([]byte, len(elements)+4)...)
		}
	}
	if !slices.Contains(pages, true) {
		return unwritten, pages
	}
	at = uint64(blocksAt + len(g.b))
	g.b = append(g.b, b...)
	return at, pages
}

// superBlock makes one of so many data blocks of so many chunks. It has room for whole bytes of the bits
// of each, but the bits follow each other.
func (g *growth) superBlock(part string, blocks, size int) uint64 {
	page := 1 << g.pageBits
	var pages []bool
	var places []byte
	for range blocks {
		at, more := g.dataBlock(size, page)
		pages, places = append(pages, more...), le.AppendUint64(places, at)
	}
	var bitmap []byte
	if size > page {
		bitmap = make([]byte, blocks*((size/page+7)/8))
	}
	for i, is := range pages {
		if is {
			bitmap[i/8] |= 0x80 >> (i % 8)
		}
	}
	return g.place(part, append(append(g.head(sigGrowingSuper), bitmap...), places...))
}

// block makes a whole array.
func (g *growth) block() string {
	g.b = make([]byte, growthHead, 1<<12)
	for i := range g.n {
		g.b = append(g.b, 'a'+byte(i))
	}
	index, _ := g.elements(int(g.direct))
	count := func(super int) (blocks, size int) { return 1 << (super / 2), int(g.least) << ((super + 1) / 2) }
	log2 := func(v byte) (n int) {
		for ; v > 1; v /= 2 {
			n++
		}
		return n
	}
	within, all := 2*log2(g.leastSuper), 1+int(g.maxBits)-log2(g.least)
	for super := range all {
		blocks, size := count(super)
		switch {
		case super < within:
			for range blocks {
				at, _ := g.dataBlock(size, size)
				index = le.AppendUint64(index, at)
			}
		case g.next < g.n:
			index = le.AppendUint64(index, g.superBlock(fmt.Sprint("super", super), blocks, size))
		default:
			index = le.AppendUint64(index, unwritten)
		}
	}
	at := g.place("index", append(append([]byte(sigGrowingIndex+"\x00\x00"), u64s(blocksAt)...), index...))
	head := append([]byte(sigGrowing), 0, 0, g.elem, g.maxBits, g.direct, g.least, g.leastSuper, g.pageBits)
	copy(g.b, g.sum("head", u64sOnto(append(head, make([]byte, 6*8)...), at)))
	return string(g.b)
}

// file has a dataset of those chunks, which can grow without a limit.
func (g *growth) file() []byte {
	list := append([]body{growing([]int64{int64(g.n)}, []int64{unlimited})}, numbers(nil, inIndex(indexExtensible, 0, 0, 0, 0, 0))[1:]...)
	return made(list, g.block())
}

// letters are the bytes of the chunks, zero where one was never written.
func (g *growth) letters() string {
	b := make([]byte, g.n)
	for i := range b {
		if !g.lost[i] {
			b[i] = 'a' + byte(i)
		}
	}
	return string(b)
}

// TestArraysThatGrow has as many chunks as each kind of block takes, and one more; some never written.
func TestArraysThatGrow(t *testing.T) {
	for n := 1; n <= 70; n++ {
		g := usualGrowth(n)
		madeCase{fmt.Sprint(n, " chunks"), g.file(), g.letters(), ""}.check(t)
	}
	for first := range 32 {
		for _, count := range []int{1, 4, 8, 16} {
			g := usualGrowth(70)
			g.lost = make(map[int]bool)
			for i := range count {
				g.lost[first+i] = true
			}
			madeCase{fmt.Sprintf("%d chunks lost from %d", count, first), g.file(), g.letters(), ""}.check(t)
		}
	}
	for name, change := range map[string]func(g *growth){
		"blocks of one chunk":                func(g *growth) { g.least = 1 },
		"no data blocks in the index block":  func(g *growth) { g.leastSuper = 1 },
		"no chunks in it":                    func(g *growth) { g.direct = 0 },
		"pages of one chunk":                 func(g *growth) { g.pageBits = 0 },
		"no pages":                           func(g *growth) { g.pageBits = 10 },
		"pages as large as none":             func(g *growth) { g.pageBits = 10; g.change = set("head", 11, 255) },
		"offsets of one byte":                func(g *growth) { g.maxBits = 8 },
		"as many chunks as there may be":     func(g *growth) { g.maxBits = mostBits },
		"all data blocks in the index block": func(g *growth) { g.n, g.maxBits = 8, 2 },
	} {
		g := usualGrowth(40)
		change(g)
		madeCase{name, g.file(), g.letters(), ""}.check(t)
	}
}

// set changes a byte of a part.
func set(part string, at int, v byte) func(name string, b []byte) {
	return func(name string, b []byte) {
		if name == part {
			b[at] = v
		}
	}
}

func TestDamagedArraysThatGrow(t *testing.T) {
	const element, data, paged = growthIndex, 4 + 2 + 8 + 2, 0
	for _, c := range []struct {
		name, part string
		at         int
		v          byte
		err        string
	}{
		{"of version 1", "head", 4, 1, "an array has version 1"},
		{"with elements of 7 bytes", "head", 6, 7, "elements of 7 bytes, at most 2^9, in blocks of 2, 2 to a block"},
		{"with elements of 9 bytes", "head", 6, 9, "elements of 9 bytes"},
		{"for more chunks than there are", "head", 7, mostBits + 1, "at most 2^49"},
		{"with blocks of nothing", "head", 9, 0, "in blocks of 0"},
		{"with blocks of 3", "head", 9, 3, "in blocks of 3"},
		{"without a super block", "head", 10, 0, "0 to a block"},
		{"with super blocks of 3", "head", 10, 3, "3 to a block"},
		{"with less than its index block has", "head", 7, 1, "1 super blocks, 2 of them in the index block"},
		{"with more in its index block", "head", 8, 20, "outside of the file"},
		{"without its index block", "index", 3, 'X', `signature is "EAIX"`},
		{"with a chunk at no address of a file", "index", element + 7, 0x80, "address 0x8"},
		{"with a data block at none", "index", element + 2*8 + 7, 0x80, "address 0x8"},
		{"with a super block at none", "index", element + 4*8 + 7, 0x80, "address 0x8"},
		{"with a data block after the end", "index", element + 2*8 + 5, 1, "outside of the file"},
		{"with a super block after the end", "index", element + 4*8 + 5, 1, "outside of the file"},
		{"with a data block that is none", "data2", 3, 'X', `signature is "EADX"`},
		{"with a chunk of a data block at no address", "data4", data + 7, 0x80, "address 0x8"},
		{"with a super block that is none", "super2", 3, 'X', `signature is "EASX"`},
		{"with a block of a super block at no address", "super2", data + 7, 0x80, "address 0x8"},
		{"with one after the end", "super2", data + 5, 1, "outside of the file"},
		{"with a paged block that is none", "data16", 3, 'X', `signature is "EADX"`},
		{"with a chunk of a page at no address", "page20", paged + 7, 0x80, "address 0x8"},
		{"with a chunk twice", "page20", paged, byte((blocksAt + growthHead) & 0xff), ""},
	} {
		g := usualGrowth(40)
		g.change = set(c.part, c.at, c.v)
		_, err := readMade(g.file())
		if c.err == "" {
			continue // a place is not a number: two chunks may share one
		}
		if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), "array of chunks") {
			t.Errorf("%s: %v, want %q", c.name, err, c.err)
		}
	}
	whole := []byte(usualGrowth(40).block())
	for i := growthHead + 40; i < len(whole); i++ {
		b := []byte(usualGrowth(40).file())
		b[blocksAt+i] ^= 0x10
		if got, err := readMade(b); err == nil && string(got.Data) != usualGrowth(40).letters() {
			t.Fatalf("byte %d: %q", i, got.Data)
		}
	}
}
