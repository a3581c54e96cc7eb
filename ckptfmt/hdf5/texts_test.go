package hdf5

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// textOf is what Attr says of a text.
func textOf(r *Reader, path, name string) string {
	if list, err := r.Attr(path, name); err == nil && len(list) == 1 {
		return list[0]
	}
	return ""
}

// TestTexts finds the names of groups in their order and in others, next to what Attr finds.
func TestTexts(t *testing.T) {
	const groups = 2000
	attrs := Attrs{"": {"top": "of the file"}}
	var names, paths []string
	for i := range groups {
		path := fmt.Sprintf("g%04d", i)
		names, paths = append(names, path+"/w"), append(paths, path, path+"/w", path+"x")
		if i%3 != 0 {
			attrs[path] = map[string]string{"name": fmt.Sprintf("the name of layer %d", i), "other": "x"}
		}
	}
	paths = append(paths, "", "g", "h")
	b := written(t, names, attrs)
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
	if err != nil {
		t.Fatal(err)
	}
	texts := r.Texts()
	for range 2 {
		for _, path := range paths {
			for _, name := range []string{"name", "other", "top", "none"} {
				if got, want := string(texts.Find(path, name)), textOf(r, path, name); got != want {
					t.Fatalf("%s of %q is %q, want %q", name, path, got, want)
				}
			}
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	}
	if got, want := string(texts.Find("g0001", "name")), "the name of layer 1"; got != want {
		t.Errorf("the name is %q, want %q", got, want)
	}
}

// TestTextsInManyHeaps finds texts in more heaps than are kept, which are read into the memory of
// each other.
func TestTextsInManyHeaps(t *testing.T) {
	const heaps = 3 * heapsAtOnce
	file := inManyHeaps(heaps)
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), "f.h5")
	if err != nil {
		t.Fatal(err)
	}
	texts := r.Texts()
	for i := range 20 * heaps {
		at := i * (1 + i/heaps) % heaps // in several orders
		if got, want := string(texts.Find("", fmt.Sprintf("n%03d", at))), textInHeap(at); got != want {
			t.Fatalf("text %d is %q, want %q", at, got, want)
		}
	}
}

// TestTextsOfOneElement finds no text in what is none, or several, and none in a collection that
// is damaged, nor the objects of another one.
func TestTextsOfOneElement(t *testing.T) {
	long := append(typeHead(classVarLen, 1, 16), fixedType(1, false)...)
	fixed := append(typeHead(classString, padTerminated, 4), []byte{}...)
	intact, damaged := uint64(blocksAt), uint64(blocksAt+64)
	blocks := append(collection(64, "alpha"), bytes.Replace(collection(64, "betas"), []byte(sigGlobalHeap), []byte("gcol"), 1)...)
	for _, c := range []struct {
		about string
		m     body
		want  string
	}{
		{"of variable length", attributeIn(1, 0, long, dataspaceOf(nil), varText(5, intact, 1)), "alpha"},
		{"a list of one", attributeIn(1, 0, long, dataspaceOf([]int64{1}), varText(5, intact, 1)), "alpha"},
		{"a list of two", attributeIn(1, 0, long, dataspaceOf([]int64{2}), append(varText(5, intact, 1), varText(5, intact, 1)...)), ""},
		{"an empty list", attributeIn(1, 0, long, dataspaceOf([]int64{0}), nil), ""},
		{"in a damaged collection", attributeIn(1, 0, long, dataspaceOf(nil), varText(5, damaged, 1)), ""},
		{"no object of it", attributeIn(1, 0, long, dataspaceOf(nil), varText(5, intact, 2)), ""},
		{"of fixed length", attributeIn(1, 0, fixed, dataspaceOf(nil), []byte("abc\x00")), "abc"},
		{"a number", attributeIn(1, 0, fixedType(4, false), dataspaceOf(nil), []byte("abc\x00")), ""},
	} {
		file := made(numbers([]int64{1}, contiguous(unwritten, 0), c.m), string(blocks))
		r, err := NewReader(bytes.NewReader(file), int64(len(file)), "f.h5")
		if err != nil {
			t.Errorf("%s: %v", c.about, err)
			continue
		}
		texts := r.Texts()
		for range 2 {
			if got := string(texts.Find("", "name")); got != c.want || got != textOf(r, "", "name") {
				t.Errorf("%s: the text is %q, want %q, and that of Attr %q", c.about, got, c.want, textOf(r, "", "name"))
			}
		}
	}
}

// TestWhatTextsKeep has one start from the object that it found last, keep a heap for the next
// text, count what it reads of one text alone, and share no pages.
func TestWhatTextsKeep(t *testing.T) {
	b := written(t, []string{"a/x", "b/x"}, Attrs{"a": {"name": "1"}, "b": {"name": "2"}})
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
	if err != nil {
		t.Fatal(err)
	}
	texts := r.Texts()
	if texts.s.pager == r.store.pager {
		t.Error("the pages are those of the reader")
	}
	texts.s.spent = 1 << 40
	if got := string(texts.Find("b", "name")); got != "2" || texts.at != 1 || texts.s.spent == 0 {
		t.Errorf("the text is %q of object %d, after %d bytes", got, texts.at, texts.s.spent)
	}
	if got := string(texts.Find("a", "name")); got != "1" || texts.s.spent != 0 {
		t.Errorf("the text is %q after %d bytes; want none that were read again", got, texts.s.spent)
	}
	for _, path := range []string{"", "c"} { // the root, whose attributes would be first, has none
		if got, attr := string(texts.Find(path, "name")), textOf(r, path, "name"); got != "" || attr != "" {
			t.Errorf("%q has the texts %q and %q", path, got, attr)
		}
	}
	r.byPath = func() *ownerIndex {
		t.Error("an object was not looked for near the last one")
		return newOwnerIndex(r.attrs)
	}
	texts.at = 0
	texts.Find("b", "name")
}

// TestHeapsOfTexts finds texts of two heaps in turns, and reads each heap once.
func TestHeapsOfTexts(t *testing.T) {
	file := inManyHeaps(2)
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), "f.h5")
	if err != nil {
		t.Fatal(err)
	}
	texts := r.Texts()
	for i := range 4 {
		got, want := string(texts.Find("", fmt.Sprintf("n%03d", i%2))), textInHeap(i%2)
		if got != want || (texts.s.spent == 0) != (i >= 2) {
			t.Errorf("text %d is %q, want %q, after %d bytes", i, got, want, texts.s.spent)
		}
	}
}
