package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// breaks is a file that cannot be read any more once err is there.
type breaks struct {
	io.ReaderAt
	err error
}

func (f *breaks) ReadAt(b []byte, at int64) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(b, at)
}

// TestFilesThatBreak has files that cannot be read any more after they were opened: elements are
// an error then, and never those of a chunk that was not written.
func TestFilesThatBreak(t *testing.T) {
	const far = 1 << 17 // not on the page that was read for the superblock
	text := typeHead(classString, padTerminated, 2)
	chunks := func(tree uint64) []byte {
		layout := inChunks(2, 1)
		le.PutUint64(layout[3:], tree)
		return layout
	}
	tree := func(at uint64) string {
		return string(chunkTree(placed{2, 0, []uint64{0}, at + 24 + 8 + 2*8 + 8})) + "ab"
	}
	var names []string
	for i := range 600 {
		names = append(names, fmt.Sprintf("w%03d", i))
	}
	two := fixedType(2, false)
	for name, b := range map[string][]byte{
		"in one piece":             made(ofType(two, []int64{1}, contiguous(blocksAt, 2)), "ab"),
		"strings in one piece":     made(ofType(text, []int64{1}, contiguous(blocksAt, 2)), "ab"),
		"a chunk":                  made(ofType(two, []int64{1}, chunks(blocksAt)), tree(blocksAt)),
		"strings in a chunk":       made(ofType(text, []int64{1}, chunks(blocksAt)), tree(blocksAt)),
		"chunks' places":           madeAt(far, ofType(two, []int64{1}, chunks(far)), tree(far)),
		"places of chunks of text": madeAt(far, ofType(text, []int64{1}, chunks(far)), tree(far)),
		"a header":                 written(t, names, nil),
	} {
		f := &breaks{ReaderAt: bytes.NewReader(b)}
		r, err := NewReader(f, int64(len(b)), "f.h5")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p := r.Part(r.Len() - 1)
		if got, err := p.Load(); err != nil || string(got.Data)+string(bytes.Join(got.Strings, nil)) == "" {
			t.Fatalf("%s, before: %v, %v", name, got, err)
		}
		if r, err = NewReader(f, int64(len(b)), "f.h5"); err != nil { // which has read no more than it must
			t.Fatal(err)
		}
		p = r.Part(r.Len() - 1)
		f.err = errors.New("broken")
		if got, err := p.Load(); !errors.Is(err, f.err) || !strings.Contains(err.Error(), "f.h5: ") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if _, err := NewReader(f, int64(len(b)), "f.h5"); !errors.Is(err, f.err) {
			t.Errorf("%s, opened when it is broken: %v", name, err)
		}
		if _, err := r.stringsOf(&dataset{path: "x", at: int64(len(b)), form: &form{t: noType}}); err == nil {
			t.Errorf("%s: strings after the end of the file", name)
		}
	}
}

// TestSuperblockThatCannotBeRead has a file that may begin with a user's block.
func TestSuperblockThatCannotBeRead(t *testing.T) {
	f := &failsOnce{ReaderAt: bytes.NewReader(make([]byte, 2048)), at: 512}
	if _, err := NewReader(f, 2048, "f.h5"); err == nil || err.Error() != "f.h5: broken" {
		t.Errorf("got %v", err)
	}
}

func TestFilesThatAreNotThere(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f.h5")
	if r, err := Open(name); r != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opened: %v, %v", r, err)
	}
}

// TestElementsInAnotherFile are named, and hinder nothing; nor are they counted among those that
// can be verified.
func TestElementsInAnotherFile(t *testing.T) {
	external := body{msgExternalData, make([]byte, 16)}
	madeCase{"in another file", made(numbers([]int64{2}, contiguous(unwritten, 0), external), ""), "", "type: its elements are in another file"}.check(t)
	chunks := body{msgLayout, inChunks(1, 1)}
	b := inGroup(header1Of(usualSpace, usualType, chunks, pipeline(filterFletcher)), header1Of(usualSpace, usualType, chunks, external))
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Checks(), "structure, and Fletcher-32 of every chunk"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSlicesAreNotWritten(t *testing.T) {
	p := ckptfmt.WholePart("x", tfpb.DataType_DT_UINT8, []int64{4}, nil)
	p.Full, p.Slice = []int64{8}, ckptfmt.TensorSlice{Start: []int64{4}, Length: []int64{4}}
	if err := Check(p); !errors.Is(err, ckptfmt.ErrSlices) {
		t.Errorf("got %v", err)
	}
}

// TestMembersAfterDamage stops at the first damage, however many members a compound claims.
func TestMembersAfterDamage(t *testing.T) {
	if list := cursorOf([]byte("r")).members(3, 1<<16-1, 8, 0); len(list) != 1 {
		t.Errorf("there are %d members", len(list))
	}
}
