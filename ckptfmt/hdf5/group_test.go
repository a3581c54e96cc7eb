package hdf5

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

// TestOldGroups changes bytes of the blocks of a group with two datasets, which is the first
// in the file. One dataset alone has the form that is read at once.
func TestOldGroups(t *testing.T) {
	two := written(t, []string{"a/x", "a/y", "b"}, nil)
	one := written(t, []string{"a/x", "b"}, nil)
	whole := []string{"a/x", "a/y", "b"}
	const entry = 8 // the first one of a node
	for _, c := range []struct {
		name, block string
		at          int
		v           byte
		want        []string
		err         string
	}{
		{"as it is", sigSymbols, 5, 0, whole, ""},
		{"a node without a signature", sigSymbols, 0, 'X', nil, `signature is "XNOD"`},
		{"a node of no entries", sigSymbols, 6, 0, []string{"b"}, ""},
		{"a node of more than there are in the file", sigSymbols, 7, 0xff, nil, "outside of the file"},
		{"a name outside of the heap", sigSymbols, entry + 1, 1, nil, "outside of the heap"},
		{"an object outside of the file", sigSymbols, entry + 8 + 5, 1, nil, "outside of the file"},
		{"an object at an address of no file", sigSymbols, entry + 8 + 7, 0x80, nil, "outside of any file"},
		{"a soft link", sigSymbols, entry + 16, softLink, []string{"a/y", "b"}, ""},
		{"a tree without a signature", sigTree, 0, 'X', nil, `signature is "XREE"`},
		{"a tree of chunks", sigTree, 4, 1, nil, "it is a tree of kind 1, want 0"},
		{"a tree that is deeper", sigTree, 5, 1, nil, `signature is "SNOD", want "TREE"`},
		{"a tree as deep as any", sigTree, 5, maxDepth, nil, `signature is "SNOD", want "TREE"`},
		{"a tree that is too deep", sigTree, 5, maxDepth + 1, nil, "it is of level 101"},
		{"a tree without children", sigTree, 6, 0, []string{"b"}, ""},
		{"a tree with more than are in the file", sigTree, 7, 0xff, nil, "outside of the file"},
		{"a child at an address of no file", sigTree, 24 + 8 + 7, 0x80, nil, "outside of any file"},
		{"a child outside of the file", sigTree, 24 + 8 + 5, 1, nil, "outside of the file"},
		{"a heap without a signature", sigLocalHeap, 0, 'X', nil, `signature is "XEAP"`},
		{"a heap without room", sigLocalHeap, 8, 0, nil, "outside of the heap"},
		{"a heap that ends in a name", sigLocalHeap, 8, 9, nil, "a name does not end"},
		{"a heap larger than the file", sigLocalHeap, 13, 1, nil, "outside of the file"},
		{"a heap larger than any", sigLocalHeap, 15, 0x80, nil, "larger than any file"},
		{"a heap elsewhere", sigLocalHeap, 24 + 5, 1, nil, "outside of the file"},
		{"a heap at an address of no file", sigLocalHeap, 24 + 7, 0x80, nil, "outside of any file"},
	} {
		for _, file := range [][]byte{two, one} {
			b := slices.Clone(file)
			b[bytes.Index(b, []byte(c.block))+c.at] = c.v
			want := c.want
			if &file[0] == &one[0] {
				want = slices.DeleteFunc(slices.Clone(want), func(name string) bool { return name == "a/y" })
			}
			checkPaths(t, c.name, b, want, c.err)
		}
	}
}

// checkPaths compares the datasets of a file, by one goroutine and by two.
func checkPaths(t *testing.T, name string, b []byte, want []string, damage string) {
	t.Helper()
	for _, n := range []int{1, 2} {
		found, err := walkedBy(t, b, n)
		var got []string
		for _, d := range found.datasets {
			got = append(got, d.path)
		}
		switch {
		case damage != "" && (!errors.As(err, new(*ckptfmt.CorruptError)) || !strings.Contains(err.Error(), damage)):
			t.Errorf("%s, %d goroutines: %v, want %q", name, n, err, damage)
		case damage == "" && (err != nil || !slices.Equal(got, want)):
			t.Errorf("%s, %d goroutines: %q, %v, want %q", name, n, got, err, want)
		}
	}
}

// TestNewGroups has links in the header of a group, and in a heap.
func TestNewGroups(t *testing.T) {
	const dataset, heapAt, treeAt, leafAt, rootAt = blocksAt, blocksAt + 256, blocksAt + 512, blocksAt + 576, blocksAt + 768
	link := func(name string, at uint64) []byte {
		return slices.Concat([]byte{1, 0, byte(len(name))}, []byte(name), u64s(at))
	}
	external := []byte{1, 8, linkExternal, 1, 'e', 1, 0, '/'}
	soft := []byte{1, 8, linkSoft, 1, 's', 1, 0, '/'}
	under := func(id, info, inHeap []byte, links ...[]byte) []byte {
		header := headerOf(3, slices.Concat(appendMessage(nil, msgDataspace, dataspaceOf(nil)), appendMessage(nil, msgDatatype, fixedType(1, false)), appendMessage(nil, msgLayout, contiguous(unwritten, 0))))
		b := make([]byte, 1024)
		copy(b, header)
		h := heapSizes
		h.root = rootAt
		copy(b[heapAt-blocksAt:], h.block())
		head := append([]byte(sigTree2+"\x00\x05"), 0, 2, 0, 0, byte(4+len(id)), 0, 0, 0, 100, 40)
		copy(b[treeAt-blocksAt:], summed(u64sOnto(append(u64sOnto(head, leafAt), 1, 0), 1)))
		copy(b[leafAt-blocksAt:], summed([]byte(sigTree2Leaf+"\x00\x05"), []byte{1, 2, 3, 4}, id))
		copy(b[rootAt-blocksAt:], inHeap)
		messages := [][]byte{message2(msgLinkInfo, 0, info)}
		for _, l := range links {
			messages = append(messages, message2(msgLink, 0, l))
		}
		return file2(header2Of(0, nil, messages...), string(b))
	}
	file := func(info, inHeap []byte, links ...[]byte) []byte {
		return under(managed(0, byte(len(inHeap))), info, inHeap, links...)
	}
	info := func(version, flags byte, places ...uint64) []byte {
		b := []byte{version, flags}
		if flags&1 != 0 {
			b = append(b, 9, 9, 9, 9, 9, 9, 9, 9)
		}
		return append(b, u64s(places...)...)
	}
	none, dense := info(0, 0, unwritten, unwritten), info(0, 0, heapAt, treeAt)
	x := link("x", dataset)
	for _, c := range []struct {
		name string
		file []byte
		want []string
		err  string
	}{
		{"in the header", file(none, nil, x, link("y", dataset)), []string{"x", "y"}, ""},
		{"external and soft ones", file(none, nil, external, soft, x), []string{"e", "x"}, ""},
		{"in a heap", file(dense, x), []string{"x"}, ""},
		{"with an order", file(info(0, 1, heapAt, treeAt), x), []string{"x"}, ""},
		{"in both", file(dense, x, link("y", dataset)), []string{"y", "x"}, ""},
		{"a soft one in a heap", file(dense, soft), nil, ""},
		{"an external one in a heap", file(dense, external), []string{"e"}, ""},
		{"of version 1", file(info(1, 0, heapAt, treeAt), x), nil, "link info has version 1"},
		{"that end early", file(info(0, 0, heapAt), x), nil, "link info"},
		{"without a heap", file(info(0, 0, unwritten, treeAt), x), nil, ""},
		{"without a tree", file(info(0, 0, heapAt, unwritten), x), nil, ""},
		{"with another heap", file(info(0, 0, treeAt, treeAt), x), nil, "signature"},
		{"with another tree", file(info(0, 0, heapAt, leafAt), x), nil, "signature"},
		{"outside of the heap", under(managed(250, byte(len(x))), dense, x), nil, "are outside of a block"},
		{"under an identifier of 9 bytes", under(append(managed(0, byte(len(x))), 0, 0), dense, x), nil, "an identifier in a heap has 9 bytes"},
		{"damaged in the header", file(none, nil, append([]byte{9}, x[1:]...)), nil, "a link has version 9"},
		{"damaged in a heap", file(dense, append([]byte{9}, x[1:]...)), nil, "a link has version 9"},
		{"to nothing, in a heap", file(dense, link("x", 1<<20)), nil, "outside of the file"},
		{"with a table of half a size", made([]body{{msgSymbolTable, make([]byte, 8)}}, ""), nil, "symbol table"},
		{"to itself", file(none, nil, link("x", 48)), nil, "it is within itself"},
		{"to nothing", file(none, nil, link("x", 1<<20)), nil, "outside of the file"},
	} {
		checkPaths(t, c.name, c.file, c.want, c.err)
	}
}

// TestDepthOfGroups has groups in groups, as many as there may be, and one more.
func TestDepthOfGroups(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("g/", n) + "x" }
	checkPaths(t, "as deep as any", written(t, []string{deep(maxDepth - 1)}, nil), []string{deep(maxDepth - 1)}, "")
	checkPaths(t, "too deep", written(t, []string{deep(maxDepth + 1)}, nil), nil, "too deep")
}

// TestNamesInAHeap has names at the first and the last place that a heap of names has.
func TestNamesInAHeap(t *testing.T) {
	for at, want := range map[int64]string{nowhere: "", 0: "ab", 1: "b", 2: "", 3: "c", 5: ""} {
		name, err := nameIn([]byte("ab\x00c\x00"), at)
		outside := at == nowhere || at == 5
		if string(name) != want || (err != nil) != outside || outside && !strings.Contains(err.Error(), "outside of the heap") {
			t.Errorf("at %d: %q, %v, want %q", at, name, err, want)
		}
	}
	if name, err := nameIn([]byte("ab"), 0); err == nil {
		t.Errorf("a name without an end is %q", name)
	}
}
