package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// afterBlock is a file after a user's block of 512 bytes.
func afterBlock(b []byte) []byte { return afterBlockOf(512, b) }

func afterBlockOf(size int, b []byte) []byte {
	b = slices.Clone(b)
	le.PutUint64(b[24:], uint64(size))
	le.PutUint64(b[40:], uint64(len(b)+size))
	return append(make([]byte, size), b...)
}

// TestManyNamesAfterAUserBlock has more names in a group than a page, in a file that is mapped.
func TestManyNamesAfterAUserBlock(t *testing.T) {
	var names []string
	for i := range 600 {
		names = append(names, fmt.Sprintf("%0150d", i))
	}
	file := filepath.Join(t.TempDir(), "f.h5")
	if err := os.WriteFile(file, afterBlockOf(1<<20, written(t, names, nil)), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	for i := range r.Len() {
		got = append(got, r.Name(i))
	}
	if !slices.Equal(got, names) {
		t.Errorf("there are %d names, others than %d", len(got), len(names))
	}
}

// TestChunksOfOtherShapes has chunks that the shape has no longer, shapes that grow in all
// dimensions, and chunks that are not there.
func TestChunksOfOtherShapes(t *testing.T) {
	const unlimitedOnes, dataAt = 3, blocksAt + 24 + 3*(8+3*8+8)
	in := func(kind byte, chunk ...byte) []byte {
		b := append([]byte{4, layoutChunked, 0, byte(len(chunk) + 1), 1}, append(chunk, 1, kind)...)
		return le.AppendUint64(b, blocksAt)
	}
	grows := func(shape, most []int64, layout []byte) []body {
		return append([]body{growing(shape, most)}, numbers(shape, layout)[1:]...)
	}
	row := func(row, column, at uint64) placed { return placed{2, 0, []uint64{row, column}, dataAt + at} }
	const leafAt = blocksAt + 24 + 8 + 2*8 + 8
	above := chunkTree(placed{0, 0, []uint64{0}, leafAt})
	above[treeLevelAt] = 1
	leaf := chunkTree(placed{1, 0, []uint64{0}, leafAt + 24 + 2*(8+2*8+8)}, placed{1, 0, []uint64{1}, leafAt + 24 + 2*(8+2*8+8) + 1})
	many := slices.Repeat([]int64{unlimited}, unlimitedOnes)
	for _, c := range []madeCase{
		{"after the last column", made(numbers([]int64{2, 2}, inChunks(1, 1, 2)), string(chunkTree(row(0, 0, 0), row(0, 2, 4), row(1, 0, 2)))+"abcdxx"), "abcd", ""},
		{"after the last row", made(numbers([]int64{2, 2}, inChunks(1, 1, 2)), string(chunkTree(row(0, 0, 0), row(1, 0, 2), row(2, 0, 4)))+"abcdxx"), "abcd", ""},
		{"that grow in three dimensions", made(grows([]int64{1, 1, 1}, many, inChunks(1, 1, 1, 1)), string(chunkTree(placed{1, 0, []uint64{0, 0, 0}, blocksAt + 24 + 48}))+"a"), "a", ""},
		{"in a tree of two levels", made(numbers([]int64{2}, inChunks(1, 1)), string(above)+string(leaf)+"ab"), "ab", ""},
		{"in a row after a user's block", afterBlock(made(numbers([]int64{3}, in(indexImplicit, 2)), "abcd")), "abc", ""},
		{"in one that ends early", afterBlock(made(numbers([]int64{3}, in(indexImplicit, 2)), "abc")), "", "its chunks are outside of the file"},
		{"of no dimension, after the end", made(numbers(nil, in(indexSingle)), ""), "", "are outside of the file"},
	} {
		c.check(t)
	}
}

// TestRowsAtOnce bounds what is in memory of chunks that are larger.
func TestRowsAtOnce(t *testing.T) {
	const columns = 1 << 10
	for _, c := range []struct{ rows, columns, want int64 }{
		{maxSlab / columns, columns, maxSlab / columns}, {maxSlab/columns + 1, columns, maxSlab / columns}, {7, columns, 7}, {2, maxSlab + 1, 1},
	} {
		empty := string(chunkTree()) + strings.Repeat("x", 1<<17) // a file of a few bytes cannot have so many elements
		b := made(numbers([]int64{c.rows, c.columns}, inChunks(1, uint32(c.rows), uint32(c.columns))), empty)
		r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
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
		if got := from.(*slab).rows; got != c.want {
			t.Errorf("%d of %d rows at once, want %d", got, c.rows, c.want)
		}
	}
}

// TestLastBytes has what ends with the file, and what ends a byte after it.
func TestLastBytes(t *testing.T) {
	long := append(typeHead(classVarLen, 1, 16), fixedType(1, false)...)
	inline := func(n byte, b string) []byte { return append([]byte{3, layoutCompact, n, 0}, b...) }
	text := func(at uint64) []byte {
		return afterBlock(made(ofType(long, []int64{1}, contiguous(blocksAt, 16)), string(varText(5, at, 1))+string(collection(64, "alpha"))))
	}
	claims := func(more int64) []byte {
		const size = 70_000
		empty := string(chunkTree())
		return made(numbers([]int64{1100 * (size + more)}, inChunks(1, 1<<20)), empty+strings.Repeat("x", size-blocksAt-len(empty)))
	}
	for _, c := range []madeCase{
		{"elements in the header", made(numbers([]int64{2}, inline(2, "ab")), ""), "ab", ""},
		{"more than the header has", made(numbers([]int64{3}, inline(2, "ab")), ""), "", "shape [3] needs 3 bytes, 2 are there"},
		{"a heap after a user's block", text(blocksAt + 16), "alpha", ""},
		{"a heap whose head ends after the file", text(blocksAt + 16 + 64 - 15), "", "16 bytes at 1089 are outside of the file"},
		{"a heap whose strings do", text(blocksAt + 16 + 1), "", "signature"},
		{"more elements than zeros of the file make", claims(1), "", "it claims 77001100 bytes, which a file of 70000 cannot hold"},
	} {
		c.check(t)
	}
	b := claims(0)
	if _, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5"); err != nil {
		t.Error(err)
	}
}

// TestChecksOfOneDataset has the checksum of chunks, which other layouts never have.
func TestChecksOfOneDataset(t *testing.T) {
	for _, c := range []struct {
		about  string
		layout []byte
		more   []body
		want   string
	}{
		{"chunks with checksums", inChunks(1, 2), []body{pipeline(filterFletcher)}, "structure, and Fletcher-32 of every chunk"},
		{"chunks with another filter", inChunks(1, 2), []body{pipeline(filterDeflate)}, "structure and sizes only: the file has no checksums of its elements"},
		{"chunks without a filter", inChunks(1, 2), nil, "structure and sizes only: the file has no checksums of its elements"},
		{"one piece, whatever the filters", contiguous(blocksAt, 2), []body{pipeline(filterFletcher)}, "structure and sizes only: the file has no checksums of its elements"},
	} {
		b := made(numbers([]int64{2}, c.layout, c.more...), string(chunkTree()))
		r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Checks(); got != c.want {
			t.Errorf("%s: %s", c.about, got)
		}
	}
}

// TestTypesThatAreNotWritten has types that no file of Keras has, and what to do about strings.
func TestTypesThatAreNotWritten(t *testing.T) {
	for d, want := range map[tfpb.DataType]string{
		tfpb.DataType_DT_STRING:   "strings are not written to HDF5; .npz and checkpoints hold them",
		tfpb.DataType_DT_INVALID:  "HDF5 has no ",
		tfpb.DataType_DT_RESOURCE: "HDF5 has no resource that h5py reads",
		tfpb.DataType_DT_INT4:     "HDF5 has no int4 that h5py reads",
	} {
		if b, err := typeOf(d); !errors.Is(err, ckptfmt.ErrType) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v is %x, %v, want %q", d, b, err, want)
		}
	}
}
