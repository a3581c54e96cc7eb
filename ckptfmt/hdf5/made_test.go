package hdf5

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

// body is the body of a message of a kind.
type body struct {
	kind int
	b    []byte
}

// made is a file whose root is a dataset: a header of those messages, and the blocks that
// they refer to, the first at blocksAt.
func made(messages []body, blocks string) []byte { return madeAt(blocksAt, messages, blocks) }

// madeAt is made with the blocks at another place.
func madeAt(blocksAt int, messages []body, blocks string) []byte {
	var b []byte
	for _, m := range messages {
		b = appendMessage(b, m.kind, slices.Clone(m.b))
	}
	b = append(make([]byte, superSize), headerOf(len(messages), b)...)
	b = append(append(b, make([]byte, blocksAt-len(b))...), blocks...)
	copy(b, superblockOf(uint64(len(b)), symbol{header: superSize}))
	return b
}

// blocksAt is where blocks of a made file are.
const blocksAt = 1024

// numbers is a dataset of bytes of that shape, with a layout.
func numbers(shape []int64, layout []byte, more ...body) []body {
	return ofType(fixedType(1, false), shape, layout, more...)
}

func ofType(t []byte, shape []int64, layout []byte, more ...body) []body {
	return append([]body{{msgDataspace, dataspaceOf(shape)}, {msgDatatype, t}, {msgLayout, layout}}, more...)
}

func contiguous(at, size uint64) []byte {
	return le.AppendUint64(le.AppendUint64([]byte{3, layoutContiguous}, at), size)
}

// inChunks is a layout of version 3, whose tree is at blocksAt.
func inChunks(elem uint32, chunk ...uint32) []byte {
	b := le.AppendUint64([]byte{3, layoutChunked, byte(len(chunk) + 1)}, blocksAt)
	for _, n := range append(chunk, elem) {
		b = le.AppendUint32(b, n)
	}
	return b
}

// placed is a chunk in a tree of version 1.
type placed struct {
	size, mask uint32
	coords     []uint64
	at         uint64
}

// chunkTree is one leaf.
func chunkTree(list ...placed) []byte {
	b := []byte(sigTree + "\x01\x00")
	b = le.AppendUint16(b, uint16(len(list)))
	b = append(b, bytes.Repeat([]byte{0xff}, 16)...)
	for _, c := range list {
		b = le.AppendUint32(le.AppendUint32(b, c.size), c.mask)
		for _, at := range append(c.coords, 0) {
			b = le.AppendUint64(b, at)
		}
		b = le.AppendUint64(b, c.at)
	}
	return b
}

// pipeline is filters of version 1.
func pipeline(ids ...uint16) body {
	b := []byte{1, byte(len(ids)), 0, 0, 0, 0, 0, 0}
	for _, id := range ids {
		b = append(le.AppendUint16(b, id), 0, 0, 0, 0, 0, 0)
	}
	return body{msgFilters, b}
}

// readMade returns the elements of the one dataset of a file, or the first error.
func readMade(b []byte) (*ckptfmt.Tensor, error) {
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
	if err != nil {
		return nil, err
	}
	if r.Len() != 1 {
		return nil, errors.New("there is no dataset")
	}
	p := r.Part(0)
	if p.Err != nil {
		return nil, p.Err
	}
	return p.Load()
}

// madeCase is a file and what its dataset has, or a part of the error of one that is damaged
// or, if that begins with "type: ", not supported.
type madeCase struct {
	name string
	file []byte
	want string // elements
	err  string
}

func (c madeCase) check(t *testing.T) {
	t.Helper()
	got, err := readMade(c.file)
	if c.err == "" {
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if have := string(got.Data) + string(bytes.Join(got.Strings, []byte("|"))); have != c.want {
			t.Errorf("%s: got %q, want %q", c.name, have, c.want)
		}
		return
	}
	want, unsupported := strings.CutPrefix(c.err, "type: ")
	damaged := errors.As(err, new(*ckptfmt.CorruptError))
	if err == nil || !strings.Contains(err.Error(), want) || damaged == unsupported || errors.Is(err, ckptfmt.ErrType) != unsupported {
		t.Errorf("%s: got %v, want %q", c.name, err, c.err)
	}
}

// unwritten is the address of elements that were never written.
const unwritten = uint64(undefined)

func TestDatasetsThatClaimTooMuch(t *testing.T) {
	four := numbers([]int64{4}, contiguous(blocksAt, 4))
	fill := func(n byte) body { return body{msgFill, append([]byte{2, 2, 2, 1, n, 0, 0, 0}, "xyz"[:n]...)} }
	for _, c := range []madeCase{
		{"to the end of the file", made(four, "abcd"), "abcd", ""},
		{"one byte after it", made(four, "abc"), "", "shape [4] needs 4 bytes; 4 are at 1024 in a file of 1027"},
		{"at an address after it", made(numbers([]int64{4}, contiguous(blocksAt+1, 4)), "abcd"), "", "shape [4] needs 4 bytes; 4 are at 1025"},
		{"fewer bytes than elements", made(numbers([]int64{4}, contiguous(blocksAt, 3)), "abcd"), "", "needs 4 bytes; 3 are at 1024"},
		{"more bytes than elements", made(numbers([]int64{4}, contiguous(blocksAt, 5)), "abcdefg"), "abcd", ""},
		{"none of them written", made(numbers([]int64{4}, contiguous(unwritten, 0)), ""), "\x00\x00\x00\x00", ""},
		{"more elements than can be counted", made(numbers([]int64{1 << 60, 16}, contiguous(unwritten, 0)), ""), "", "more elements than an int64 can count"},
		{"more bytes than can be counted", made(ofType(fixedType(8, false), []int64{1 << 59}, contiguous(unwritten, 0)), ""), "", "more than any file has"},
		{"fill values that a file of that size cannot have", made(numbers([]int64{1<<26 + 1}, contiguous(unwritten, 0)), ""), "", "it claims 67108865 bytes, which a file of 1024 cannot hold"},
		{"elements of 2 bytes likewise", made(ofType(fixedType(2, false), []int64{1 << 26}, contiguous(unwritten, 0)), ""), "", "it claims 134217728 bytes"},
		{"a fill value", made(numbers([]int64{2}, contiguous(unwritten, 0), fill(1)), ""), "xx", ""},
		{"a fill value of another size", made(numbers([]int64{2}, contiguous(unwritten, 0), fill(2)), ""), "", "the fill value has 2 bytes, an element 1"},
		{"a fill value of a byte", made(ofType(fixedType(2, false), []int64{2}, contiguous(unwritten, 0), fill(1)), ""), "", "the fill value has 1 bytes, an element 2"},
		{"too few within the header", made(numbers([]int64{3}, []byte{3, layoutCompact, 2, 0, 'a', 'b'}), ""), "", "shape [3] needs 3 bytes, 2 are there"},
		{"enough within the header", made(numbers([]int64{2}, []byte{3, layoutCompact, 3, 0, 'a', 'b', 'c'}), ""), "ab", ""},
		{"no elements", made(numbers([]int64{0, 5}, contiguous(blocksAt, 0)), ""), "", ""},
		{"a shape that ends early", made([]body{{msgDataspace, []byte{1, 2, 0, 0, 0, 0, 0, 0}}, {msgDatatype, fixedType(1, false)}, {msgLayout, contiguous(unwritten, 0)}}, ""), "", "message of type 1"},
	} {
		c.check(t)
	}
	for _, shape := range [][]int64{{1 << 26}, {1 << 20}} { // deflate makes a thousand bytes of one, and few may be anything
		if _, err := open1(made(numbers(shape, contiguous(unwritten, 0)), "")); err != nil {
			t.Errorf("%v: %v", shape, err)
		}
	}
	if _, err := open1(made(numbers([]int64{1<<26 + 1100}, contiguous(unwritten, 0)), string(make([]byte, 1<<16)))); err != nil {
		t.Errorf("in a larger file: %v", err)
	}
}

// TestFillValuesInPieces reads elements that were never written a few bytes at a time.
func TestFillValuesInPieces(t *testing.T) {
	for n := 1; n < 8; n++ {
		f := &filled{value: []byte("abc")}
		var got []byte
		b := make([]byte, n)
		for len(got) < 30 {
			if k, err := f.Read(b); k != n || err != nil {
				t.Fatalf("%d bytes, %v", k, err)
			}
			got = append(got, b...)
		}
		if want := strings.Repeat("abc", 20)[:len(got)]; string(got) != want {
			t.Errorf("%d at a time: %q", n, got)
		}
	}
}

// open1 opens a file of one dataset, and returns its size.
func open1(b []byte) (int64, error) {
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
	if err != nil {
		return 0, err
	}
	info, err := r.Info(0)
	return info.Bytes, err
}

func TestShapesOfChunks(t *testing.T) {
	empty := string(chunkTree())
	for _, c := range []madeCase{
		{"of another rank", made(numbers([]int64{4}, inChunks(1, 2, 2)), empty), "", "chunks are [2 2] of 1 bytes, the dataset is [4] of 1"},
		{"of other elements", made(numbers([]int64{4}, inChunks(2, 2)), empty), "", "chunks are [2] of 2 bytes, the dataset is [4] of 1"},
		{"empty", made(numbers([]int64{4}, inChunks(1, 0)), empty), "", "chunks of [0] elements"},
		{"of a GiB", made(numbers([]int64{4}, inChunks(1, 1<<30)), empty), "\x00\x00\x00\x00", ""},
		{"of a byte more", made(numbers([]int64{4}, inChunks(1, 1<<30+1)), empty), "", "are larger than 1073741824 bytes"},
		{"of elements of a GiB and more", made(ofType(fixedType(4, false), []int64{4}, inChunks(4, 1<<28+1)), empty), "", "are larger than"},
		{"of two dimensions with more than a GiB", made(numbers([]int64{4, 4}, inChunks(1, 1<<15+1, 1<<15)), empty), "", "are larger than"},
		{"of two dimensions with a GiB", made(numbers([]int64{1, 4}, inChunks(1, 1<<15, 1<<15)), empty), "\x00\x00\x00\x00", ""},
		{"with a filter of others", made(numbers([]int64{4}, inChunks(1, 4), pipeline(4)), empty), "", "type: filter 4 (szip) is not supported"},
		{"with one that has no name", made(numbers([]int64{4}, inChunks(1, 4), pipeline(77)), empty), "", "type: filter 77 is not supported"},
	} {
		c.check(t)
	}
}

// TestChunksOfATree has chunks that are where they cannot be, and others at the last place that they can.
func TestChunksOfATree(t *testing.T) {
	const treeSize = 24 + 2*(8+16+8) // of two chunks
	const data = blocksAt + treeSize
	file := func(blocks string, a, b placed, more ...body) []byte {
		return made(numbers([]int64{3}, inChunks(1, 2), more...), string(append(chunkTree(a, b), blocks...)))
	}
	at := func(i uint64, size uint32, at uint64) placed { return placed{size: size, coords: []uint64{i}, at: at} }
	first := at(0, 2, data)
	second := at(2, 2, data+2)
	for _, c := range []madeCase{
		{"both", file("abcd", first, second), "abc", ""},
		{"in another order", file("abcd", at(2, 2, data), at(0, 2, data+2)), "cda", ""},
		{"after the end", file("abc", first, second), "", "2 bytes at 1114 are outside of the file"},
		{"larger than the file", file("abcd", first, at(2, 1<<20, data)), "", "1048576 bytes at 1112"},
		{"too short", file("abcd", first, at(2, 1, data+2)), "", "a chunk has 1 bytes, want 2"},
		{"without bytes", file("abcd", first, at(2, 0, data+2)), "", "a chunk has 0 bytes, want 2"},
		{"twice", file("abcd", first, at(0, 2, data+2)), "", "chunk 0 is there twice"},
		{"never written", file("abcd", first, at(2, 2, unwritten)), "ab\x00", ""},
		{"left over from a larger shape", file("abcd", first, at(4, 2, data+2)), "ab\x00", ""},
		{"that no filter made, by its mask", file("abcd", first, second, pipeline(filterFletcher)), "", "it ends early"},
		{"that left its filter out", file("abcd", placed{2, 1, []uint64{0}, data}, placed{2, 1, []uint64{2}, data + 2}, pipeline(filterFletcher)), "abc", ""},
		{"at an address that no file has", file("abcd", first, at(2, 2, 1<<63)), "", "address 0x8000000000000000"},
		{"at coordinates that no file has", file("abcd", first, at(1<<63, 2, data)), "", "larger than any file"},
	} {
		c.check(t)
	}
}

// TestChunksAfterAUserBlock has chunks at the end of a file, and after it, in one that begins with
// bytes of the user.
func TestChunksAfterAUserBlock(t *testing.T) {
	for data, want := range map[string]string{"ab": "", "a": "2 bytes at 1080 are outside of the file"} {
		b := made(numbers([]int64{2}, inChunks(1, 2)), string(chunkTree(placed{2, 0, []uint64{0}, blocksAt + 24 + 32}))+data)
		le.PutUint64(b[24:], 512)
		le.PutUint64(b[40:], uint64(len(b)+512))
		madeCase{"after a user's block", append(make([]byte, 512), b...), "ab", want}.check(t)
	}
	for data, want := range map[string]string{"ab": "", "a": "shape [2] needs 2 bytes; 2 are at 1024"} {
		b := made(numbers([]int64{2}, contiguous(blocksAt, 2)), data)
		le.PutUint64(b[24:], 512)
		le.PutUint64(b[40:], uint64(len(b)+512))
		madeCase{"after a user's block", append(make([]byte, 512), b...), "ab", want}.check(t)
	}
}

// TestChunksLargerThanTheirElements has chunks with more bytes than compression that makes nothing smaller ever takes.
func TestChunksLargerThanTheirElements(t *testing.T) {
	const most = 2*2 + 1<<16
	zipped := []byte{0x78, 0x01, 1, 2, 0, 0xfd, 0xff, 'a', 'b', 0x01, 0x26, 0x00, 0xc4} // stored as it is
	for size, want := range map[uint32]string{most: "", most + 1: "more than a chunk of 2"} {
		blocks := append(chunkTree(placed{size, 0, []uint64{0}, blocksAt + 24 + 32}), zipped...)
		blocks = append(blocks, make([]byte, 1<<17)...)
		madeCase{"zipped", made(numbers([]int64{2}, inChunks(1, 2), pipeline(filterDeflate)), string(blocks)), "ab", want}.check(t)
	}
}

// TestManyDimensions reads chunks of three dimensions that do not divide the shape, and rows
// that no chunk was written for.
func TestManyDimensions(t *testing.T) {
	shape, chunk := []int64{3, 5, 4}, []uint32{2, 2, 3}
	var want [60]byte
	var list []placed
	var data []byte
	for i := range 2 {
		for j := range 3 {
			for k := range 2 {
				c := placed{12, 0, []uint64{uint64(2 * i), uint64(2 * j), uint64(3 * k)}, uint64(len(data))}
				for n := range 12 {
					a, b, d := 2*i+n/6, 2*j+n/3%2, 3*k+n%3
					v := byte(100*a + 10*b + d)
					data = append(data, v)
					if a < 3 && b < 5 && d < 4 && (i != 1 || j != 1) {
						want[a*20+b*4+d] = v
					}
				}
				if i != 1 || j != 1 {
					list = append(list, c)
				}
			}
		}
	}
	for i := range list {
		list[i].at += blocksAt + 24 + 10*(8+4*8+8)
	}
	madeCase{"three dimensions", made(numbers(shape, inChunks(1, chunk...)), string(append(chunkTree(list...), data...))), string(want[:]), ""}.check(t)
}

// TestRowsOfLargeChunks reads chunks whose rows do not fit into memory at once.
func TestRowsOfLargeChunks(t *testing.T) {
	const rows, inChunk, columns = 7, 3, 1 << 12
	var list []placed
	var data []byte
	for i := range uint64(3) {
		for j := range uint64(4) {
			list = append(list, placed{inChunk << 10, 0, []uint64{inChunk * i, j << 10}, blocksAt + 24 + 12*(8+3*8+8) + uint64(len(data))})
			for k := range inChunk << 10 {
				data = append(data, byte(i)+byte(j)+byte(k>>10)+byte(k%7))
			}
		}
	}
	b := made(numbers([]int64{rows, columns}, inChunks(1, inChunk, 1<<10)), string(append(chunkTree(list...), data...)))
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
	if err != nil {
		t.Fatal(err)
	}
	p := r.Part(0)
	want, err := p.Load()
	if err != nil {
		t.Fatal(err)
	}
	x, err := r.detail(r.datasets[0])
	if err != nil {
		t.Fatal(err)
	}
	from, err := r.chunks(x)
	if err != nil {
		t.Fatal(err)
	}
	from.(*slab).rows = 2
	if got, err := io.ReadAll(from); err != nil || len(got) != rows*columns || !bytes.Equal(got, want.Data) {
		t.Errorf("two rows at a time: %d bytes, %v", len(got), err)
	}
}
