package hdf5

import (
	"bytes"
	"compress/zlib"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

func zipped(b string) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if _, err := w.Write([]byte(b)); err != nil {
		panic(err)
	}
	w.Close()
	return out.Bytes()
}

// flipped has a changed bit in its last byte.
func flipped(b []byte) []byte {
	b[len(b)-1] ^= 1
	return b
}

func TestFiltersAreTakenBack(t *testing.T) {
	fletcher := func(b string) []byte { return le.AppendUint32([]byte(b), fletcher32([]byte(b))) }
	long := strings.Repeat("abcdefgh", 300)
	for _, c := range []struct {
		name   string
		ids    []int
		elem   int64
		mask   uint32
		b      []byte
		want   string
		damage string
	}{
		{"none", nil, 1, 0, []byte("abc"), "abc", ""},
		{"deflate", []int{filterDeflate}, 1, 0, zipped("abc"), "abc", ""},
		{"deflate that was left out", []int{filterDeflate}, 1, 1, []byte("abc"), "abc", ""},
		{"deflate of too much", []int{filterDeflate}, 1, 0, zipped("abcd"), "abc", "a chunk has 4 bytes, want 3"},
		{"deflate of too little", []int{filterDeflate}, 1, 0, zipped("ab"), "abc", "a chunk has 2 bytes, want 3"},
		{"deflate of very much", []int{filterDeflate}, 1, 0, zipped(long), "abc", "a chunk has 8 bytes, want 3"},
		{"deflate with another checksum", []int{filterDeflate}, 1, 0, flipped(zipped("abc")), "abc", "checksum"},
		{"cut deflate", []int{filterDeflate}, 1, 0, zipped(long)[:20], long, "unexpected EOF"},
		{"no deflate", []int{filterDeflate}, 1, 0, []byte("abc"), "abc", "zlib"},
		{"shuffle of 2 bytes", []int{filterShuffle}, 2, 0, []byte("acbd"), "abcd", ""},
		{"shuffle of 1 byte", []int{filterShuffle}, 1, 0, []byte("acbd"), "acbd", ""},
		{"shuffle of 3 bytes", []int{filterShuffle}, 3, 0, []byte("adbecf"), "abcdef", ""},
		{"shuffle of one element", []int{filterShuffle}, 3, 0, []byte("abc"), "abc", ""},
		{"shuffle with a rest", []int{filterShuffle}, 2, 0, []byte("acbdx"), "abcdx", ""},
		{"Fletcher-32", []int{filterFletcher}, 1, 0, fletcher("abc"), "abc", ""},
		{"Fletcher-32 of nothing", []int{filterFletcher}, 1, 0, []byte("abc"), "", "it ends early"},
		{"damaged Fletcher-32", []int{filterFletcher}, 1, 0, append([]byte("x"), fletcher("abc")[1:]...), "abc", "Fletcher-32 is"},
		{"two filters", []int{filterShuffle, filterDeflate}, 2, 0, zipped("acbd"), "abcd", ""},
		{"the first was left out", []int{filterShuffle, filterDeflate}, 2, 1, zipped("acbd"), "acbd", ""},
		{"the second was left out", []int{filterShuffle, filterDeflate}, 2, 2, []byte("acbd"), "abcd", ""},
		{"a checksum that was compressed", []int{filterFletcher, filterDeflate}, 1, 0, zipped(string(fletcher("abc"))), "abc", ""},
		{"LZF: literals", []int{filterLZF}, 1, 0, []byte("\x02abc"), "abc", ""},
		{"LZF: 32 literals", []int{filterLZF}, 1, 0, []byte("\x1f" + long[:32]), long[:32], ""},
		{"LZF: 33 literals", []int{filterLZF}, 1, 0, []byte("\x1f" + long[:32] + "\x00a"), long[:33], ""},
		{"LZF: a copy of the three before", []int{filterLZF}, 1, 0, []byte("\x02abc\x20\x02"), "abcabc", ""},
		{"LZF: a copy of itself", []int{filterLZF}, 1, 0, []byte("\x00a\x60\x00"), "aaaaaa", ""},
		{"LZF: a long copy", []int{filterLZF}, 1, 0, []byte("\x00a\xe0\x10\x00"), strings.Repeat("a", 1+7+16+2), ""},
		{"LZF: from far before", []int{filterLZF}, 1, 0, lzfFar(), string(bytes.Repeat([]byte("x"), 288)) + "yxxx", ""},
		{"LZF: from before the start", []int{filterLZF}, 1, 0, []byte("\x02abc\x20\x03"), "abcabc", "no LZF"},
		{"LZF: too few literals", []int{filterLZF}, 1, 0, []byte("\x03abc"), "abcd", "no LZF"},
		{"LZF: a copy without a length", []int{filterLZF}, 1, 0, []byte("\x00a\xe0"), "aaaa", "no LZF"},
		{"LZF: a long copy without a place", []int{filterLZF}, 1, 0, []byte("\x00a\xe0\x01"), "aaaa", "no LZF"},
		{"LZF: a copy without a place", []int{filterLZF}, 1, 0, []byte("\x00a\x20"), "aaaa", "no LZF"},
		{"LZF: up to a checksum more", []int{filterLZF}, 1, 0, []byte("\x00a\x40\x00"), "a", "a chunk has 5 bytes, want 1"},
		{"LZF: more than that", []int{filterLZF}, 1, 0, []byte("\x00a\x60\x00"), "a", "no LZF"},
	} {
		d := &detail{dataset: dataset{form: &form{t: &datatype{size: c.elem}}}}
		for _, id := range c.ids {
			d.filters = append(d.filters, filter{id: id})
		}
		got, err := d.undo(c.b, c.mask, int64(len(c.want)))
		switch {
		case c.damage == "" && (err != nil || string(got) != c.want):
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		case c.damage != "" && (err == nil || !strings.Contains(err.Error(), c.damage)):
			t.Errorf("%s: %q, %v, want the error %q", c.name, got, err, c.damage)
		}
	}
	if _, err := checkFletcher([]byte("abcdefgh")); !errors.Is(err, ckptfmt.ErrChecksum) {
		t.Errorf("the error is %v", err)
	}
}

// lzfFar is 288 letters, another one, and a copy of three that are 289 letters before.
func lzfFar() []byte {
	b := []byte("\x00x")
	b = append(b, 0xe0, 255, 0) // 264 of them
	b = append(b, 0xe0, 288-265-9, 0)
	return append(b, "\x00y\x21\x20"...)
}

// TestFletcher32 has sums that h5py stores, of lengths around which the sums are folded.
func TestFletcher32(t *testing.T) {
	var ones [1500]byte
	for i := range ones {
		ones[i] = 0xff - byte(i%7)
	}
	for n := range len(ones) {
		one, two := uint64(0), uint64(0)
		for i := 0; i < n; i += 2 {
			word := uint64(ones[i]) << 8
			if i+1 < n {
				word |= uint64(ones[i+1])
			}
			one = (one + word) % 0xffff
			two = (two + one) % 0xffff
		}
		got := fletcher32(ones[:n])
		if uint64(got&0xffff)%0xffff != one || uint64(got>>16)%0xffff != two {
			t.Fatalf("%d bytes: %#x, want %#x and %#x", n, got, two, one)
		}
	}
}

// TestSparseArrays reads datasets that can grow, with few of their chunks written.
func TestSparseArrays(t *testing.T) {
	b, err := os.ReadFile("../../fixtures/hdf5/sparse.h5")
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "sparse.h5")
	if err != nil || r.Len() != 2 {
		t.Fatal(err)
	}
	want := make([]byte, 5000)
	for _, at := range []int{0, 5, 40, 700, 3000, 4999} {
		want[at] = byte(at%251 + 1)
	}
	for i := range r.Len() {
		p := r.Part(i)
		got, err := p.Load()
		if err != nil || !bytes.Equal(got.Data, want) {
			t.Errorf("%s has other elements: %v", p.Name, err)
		}
	}
}

// TestSumsOfManyWords compares the checksum of more than one piece with sums that cannot overflow.
func TestSumsOfManyWords(t *testing.T) {
	for i := range 200 {
		n := []int{0, 1, 2, 719, 720, 721, 722, 5000, 5001}[i%9]
		b := make([]byte, n)
		for j := range b {
			b[j] = byte(j*i ^ 0xff)
		}
		var one, two uint64
		for i := 0; i < n; i += 2 {
			one += uint64(b[i]) << 8
			if i+1 < n {
				one += uint64(b[i+1])
			}
			two += one
		}
		got := fletcher32(b)
		if uint64(got&0xffff)%0xffff != one%0xffff || uint64(got>>16)%0xffff != two%0xffff {
			t.Errorf("%d bytes: %#08x, the sums are %d and %d", n, got, one, two)
		}
	}
	// The sum of sums is 0x10000 after its first fold.
	if got := fletcher32([]byte("\x01\x00\xfe\xff\xff")); got != 0x0001ff00 {
		t.Errorf("the sum of 5 bytes is %#08x", got)
	}
	if b, err := checkFletcher(make([]byte, checksumSize)); err != nil || len(b) != 0 {
		t.Errorf("no byte and its checksum: %q, %v", b, err)
	}
	if _, err := checkFletcher(make([]byte, checksumSize-1)); err == nil {
		t.Error("a part of a checksum is one")
	}
}

// TestCopiesWithoutADistance ends where a copy says how far back it is.
func TestCopiesWithoutADistance(t *testing.T) {
	for about, b := range map[string]string{"a short one": "\x00a\x20", "a long one": "\x00a\xe0\x00", "one without its length": "\x00a\xe0"} {
		if out, err := unLZF([]byte(b), 100); err == nil {
			t.Errorf("%s: %q", about, out)
		}
	}
	if out, err := unLZF([]byte("\x00a\xe0\x01\x00"), 100); err != nil || string(out) != "aaaaaaaaaaa" {
		t.Errorf("a copy of 10: %q, %v", out, err)
	}
}
