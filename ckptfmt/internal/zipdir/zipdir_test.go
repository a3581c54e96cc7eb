package zipdir_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/zipdir"
)

// archive returns an archive with a stored and a packed member of each text.
func archive(t testing.TB, comment string, texts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i, text := range texts {
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			f, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%d/%d", i, method), Comment: comment, Method: method})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(f, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.SetComment(comment); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(b []byte) (*zipdir.Archive, error) {
	return zipdir.Read(bytes.NewReader(b), int64(len(b)))
}

// readAll reads every member.
func readAll(a *zipdir.Archive) (map[string]string, error) {
	got := make(map[string]string)
	for i := range a.Members {
		m := &a.Members[i]
		r, err := a.Open(m)
		if err != nil {
			return got, err
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return got, err
		}
		got[m.Name] = string(b) + m.Comment
	}
	return got, nil
}

func TestReadsWhatArchiveZipWrites(t *testing.T) {
	for _, comment := range []string{"", "words", strings.Repeat("PK\x05\x06", 500)} {
		for _, before := range []string{"", "#!/bin/sh\n"} {
			b := append([]byte(before), archive(t, comment, "", "a", strings.Repeat("long ", 1000))...)
			a, err := read(b)
			if err != nil {
				t.Fatalf("comment of %d bytes: %v", len(comment), err)
			}
			got, err := readAll(a)
			if err != nil || len(got) != 6 || got["1/0"] != "a"+comment || got["2/8"] != strings.Repeat("long ", 1000)+comment {
				t.Errorf("got %d members, %v", len(got), err)
			}
		}
	}
}

// TestManyMembers has more than a number of 16 bits counts, so that there is a second
// end.
func TestManyMembers(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	const n = 1<<16 + 3
	for i := range n {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := read(b.Bytes())
	if err != nil || len(a.Members) != n || a.Members[n-1].Name != fmt.Sprint(n-1) {
		t.Fatalf("%d members, %v", len(a.Members), err)
	}
}

// TestSizesOf64Bits has them in an extra field, as torch writes them.
func TestSizesOf64Bits(t *testing.T) {
	b := archive(t, "", "text")
	a, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte("PK\x01\x02"))
	le := binary.LittleEndian
	extra := le.AppendUint16(le.AppendUint16(nil, 1), 24)
	for _, v := range []int64{a.Members[0].Size, a.Members[0].Packed, 0} {
		extra = le.AppendUint64(extra, uint64(v))
	}
	entry := bytes.Clone(b[at : at+46+len(a.Members[0].Name)])
	for _, field := range []int{20, 24, 42} {
		le.PutUint32(entry[field:], 1<<32-1)
	}
	le.PutUint16(entry[30:], uint16(len(extra)))
	entry = append(entry, extra...)
	whole := append(bytes.Clone(b[:at]), entry...)
	end := bytes.Clone(b[len(b)-22:])
	le.PutUint16(end[10:], 1)
	le.PutUint32(end[12:], uint32(len(entry)))
	if a, err = read(append(whole, end...)); err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(a); err != nil || got["0/0"] != "text" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestCutsAndFlips has every cut of an archive, and every changed byte: no content is
// ever another one.
func TestCutsAndFlips(t *testing.T) {
	whole := archive(t, "", "first", "second")
	want, err := readAll(must(t, whole))
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if a, err := read(whole[:n]); err == nil {
			t.Errorf("the first %d bytes are an archive of %d members", n, len(a.Members))
		}
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0x10
		a, err := read(b)
		if err != nil {
			continue
		}
		got, _ := readAll(a)
		for name, text := range got {
			if w, ok := want[name]; ok && text != w {
				t.Errorf("byte %d: %s is %q, want %q", i, name, text, w)
			}
		}
	}
}

func must(t *testing.T, b []byte) *zipdir.Archive {
	t.Helper()
	a, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestDamageIsNamed(t *testing.T) {
	b := archive(t, "", "text")
	b[bytes.Index(b, []byte("text"))]++
	if _, err := readAll(must(t, b)); !errors.Is(err, ckptfmt.ErrChecksum) {
		t.Errorf("got %v", err)
	}
	if _, err := read([]byte("no archive at all, of twenty-two bytes or more")); !errors.Is(err, zipdir.ErrFormat) {
		t.Errorf("got %v", err)
	}
	// A directory that claims to be larger than the file.
	b = archive(t, "", "text")
	binary.LittleEndian.PutUint32(b[len(b)-10:], 1<<31)
	if _, err := read(b); !errors.Is(err, zipdir.ErrFormat) {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(archive(f, "", "a", "b"))
	f.Add(append([]byte("before"), archive(f, "words", "a")...))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := read(b)
		if err != nil {
			return
		}
		for i := range a.Members {
			r, err := a.Open(&a.Members[i])
			if err != nil {
				continue
			}
			if n, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20)); err == nil && n < min(a.Members[i].Size, 1<<20) {
				t.Errorf("%d bytes of %d without an error", n, a.Members[i].Size)
			}
		}
	})
}
