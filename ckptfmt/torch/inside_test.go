package torch

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/zipdir"
	tfpb "github.com/trainerd/trainerd/proto"
)

// TestKeyNumbers are the numbers that Python writes, below those that there is room for.
func TestKeyNumbers(t *testing.T) {
	m := members{numbered: make([]numbered, 0, 1000)}
	for key, want := range map[string]int{
		"0": 0, "7": 7, "10": 10, "99": 99, "999": 999,
		"": -1, "00": -1, "07": -1, "1000": -1, "99999999999999999999": -1, "1e": -1, "-1": -1, "/1": -1, "1:": -1, "a": -1,
	} {
		if got := m.keyNumber(key); got != want {
			t.Errorf("%q is %d, want %d", key, got, want)
		}
		if got := m.number(storageFolder + key); got != want {
			t.Errorf("the member %q is %d, want %d", key, got, want)
		}
	}
	if got := m.number("0"); got != -1 {
		t.Errorf("a member of no folder is %d", got)
	}
}

// TestNumbered has storages in the list of those with numbers, and all else in the map.
func TestNumbered(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range []struct {
		name, text string
		method     uint16
	}{{"data.pkl", "N.", zip.Store}, {"data/0", "a", zip.Store}, {"data/2", "abc", zip.Store}, {"data/00", "x", zip.Store}, {"data/1", "aaaa", zip.Deflate}} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: "x/" + m.name, Method: m.method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	archive, err := zipdir.Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	m, err := readMembers(archive, "x/")
	if err != nil {
		t.Fatal(err)
	}
	var there []bool
	for _, n := range m.numbered {
		there = append(there, n.isThere)
	}
	if fmt.Sprint(there) != "[true false true]" || len(m.byName) != 3 || m.byName["data/1"] == nil || m.byName["data/00"] == nil || m.byName["data.pkl"] == nil {
		t.Errorf("numbered are %v, others %v", there, m.byName)
	}
	for key, want := range map[string]int64{"0": 1, "1": -1, "2": 3, "3": -1, "00": -1, "": -1, "-1": -1} {
		if got := m.bytes(key); got != want {
			t.Errorf("%q has %d bytes, want %d", key, got, want)
		}
	}
	if s := m.storage("2"); s == nil || s.Name != "x/data/2" || s.Size != 3 || s.Method != zipdir.Stored || m.storage("3") != nil || m.find("data/3") != nil {
		t.Errorf("the storage is %+v", s)
	}
}

// TestFormsAreShared by tensors that have all in common.
func TestFormsAreShared(t *testing.T) {
	m := new(maker)
	float := dtypes["torch.float32"]
	in := content{float, 100}
	first := m.form(in, float, 3, []int64{2, 3}, []int64{3, 1})
	second := m.form(in, float, 3, []int64{4, 3}, []int64{3, 1}) // which has another place
	if again := m.form(in, float, 3, []int64{2, 3}, []int64{3, 1}); again != first {
		t.Error("an equal form is another one")
	}
	if again := m.form(in, float, 3, []int64{4, 3}, []int64{3, 1}); again != second {
		t.Error("the second form is not kept")
	}
	for name, other := range map[string]*form{
		"storage": m.form(content{float, 101}, float, 3, []int64{2, 3}, []int64{3, 1}),
		"type":    m.form(in, dtypes["torch.int32"], 3, []int64{2, 3}, []int64{3, 1}),
		"offset":  m.form(in, float, 4, []int64{2, 3}, []int64{3, 1}),
		"shape":   m.form(in, float, 3, []int64{2, 2}, []int64{3, 1}),
		"strides": m.form(in, float, 3, []int64{2, 3}, []int64{1, 2}),
	} {
		if other == first {
			t.Errorf("a form of another %s is the same", name)
		}
	}
	// Forms of one place in the table differ all the same.
	for n := range int64(200) {
		f := m.form(content{float, n}, float, 0, nil, nil)
		g := m.form(content{float, 1000}, float, 0, nil, nil)
		if f.storage.numel != n || g.storage.numel != 1000 {
			t.Fatalf("got %+v and %+v", f.storage, g.storage)
		}
	}
}

// TestContiguous has tensors that can be read as they are.
func TestContiguous(t *testing.T) {
	for _, c := range []struct {
		shape, stride []int64
		want          bool
	}{
		{nil, nil, true},
		{[]int64{5}, []int64{1}, true},
		{[]int64{5}, []int64{2}, false},
		{[]int64{1}, []int64{7}, true},
		{[]int64{2, 3}, []int64{3, 1}, true},
		{[]int64{2, 3}, []int64{1, 2}, false},
		{[]int64{2, 1, 3}, []int64{3, 9, 1}, true},
		{[]int64{2, 0, 3}, []int64{3, 3, 1}, true},
		{[]int64{4, 2, 3}, []int64{3, 3, 1}, false},
	} {
		x := &tensor{form: &form{shape: c.shape, stride: c.stride}}
		if got := x.contiguous(); got != c.want {
			t.Errorf("%v %v: %t", c.shape, c.stride, got)
		}
	}
}

// TestSizesOfTypes are those of torch.
func TestSizesOfTypes(t *testing.T) {
	for name, want := range map[string]int64{
		"complex32": 4, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1, "bits8": 1, "bits16": 2, "bits1x8": 1, "bits2x4": 1, "bits4x2": 1,
		"float32": 4, "complex128": 16, "bool": 1, "float9": 0,
	} {
		if _, _, size := DType("torch." + name); size != want {
			t.Errorf("%s has %d bytes, want %d", name, size, want)
		}
	}
	if _, foreign, _ := DType("torch.float9_x"); foreign != "float9_x" {
		t.Errorf("a type of a later version is %q", foreign)
	}
	if d, foreign, size := DType("torch.Size"); d != tfpb.DataType_DT_INVALID || foreign != "" || size != 0 {
		t.Errorf("what is no type is %v %q", d, foreign)
	}
}

// written is a state dict with a storage of so many bytes.
func written(t *testing.T, size int64) []byte {
	t.Helper()
	p := ckptfmt.WholePart("layer.weight", tfpb.DataType_DT_UINT8, []int64{size}, func() (io.ReadCloser, error) {
		return io.NopCloser(io.LimitReader(strings.NewReader(strings.Repeat("w", int(size))), size)), nil
	})
	var b bytes.Buffer
	if err := Write(t.Context(), &b, []ckptfmt.Part{p}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestNothingOfTheMapping is kept: a large file is in memory only while it is opened.
func TestNothingOfTheMapping(t *testing.T) {
	const pickle = "\x80\x02}(X\x05\x00\x00\x00epochK\x07X\x04\x00\x00\x00noteX\x05\x00\x00\x00aword" +
		"X\x04\x00\x00\x00listcnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(X\x02\x00\x00\x00i1tR(K\x03X\x01\x00\x00\x00<tbC\x01vtRu."
	var b bytes.Buffer
	a := &archive{Writer: zip.NewWriter(&b), to: &counter{w: io.Discard}}
	for _, m := range [][2]string{{"data.pkl", pickle}, {"filler", strings.Repeat("w", 1<<20)}} {
		if err := a.add(m[0], int64(len(m[1])), strings.NewReader(m[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "large.pt")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Parts()[0].Load()
	if err != nil || string(got.Data) != "v" || r.Name(0) != "list" || r.Metadata()["note"] != "aword" || r.Metadata()["epoch"] != "7" {
		t.Errorf("got %v, %v, %q, %q", got, err, r.Name(0), r.Metadata())
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed again: %v", err)
	}
	if _, err := r.from.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read after it was closed: %v", err)
	}
}

// TestCloseOfOthers does nothing: the file was opened by someone else.
func TestCloseOfOthers(t *testing.T) {
	b := written(t, 1)
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.pt")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestFlips flips each byte of the pickle: the sum finds it, whatever the pickle says then.
func TestFlips(t *testing.T) {
	b := written(t, 100_000)
	begin := bytes.Index(b, []byte("\x80\x02c"))
	end := bytes.Index(b[begin:], []byte("u.")) + begin + 2
	for at := begin; at < end; at++ {
		b[at] ^= 0x10
		_, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.pt")
		if damage := new(ckptfmt.CorruptError); !errors.Is(err, ckptfmt.ErrChecksum) || !errors.As(err, &damage) || damage.Offset != int64(begin) {
			t.Fatalf("byte %d: %v", at-begin, err)
		}
		b[at] ^= 0x10
	}
	large := strings.Repeat("x", 64<<10) + "y"
	if sumOf(large) == sumOf(large[:64<<10]) || sumOf("") != 0 || sumOf("a") != 0xe8b7be43 {
		t.Error("a part of a text has the sum of all")
	}
}

// TestBools that are none are damage, also the first.
func TestBools(t *testing.T) {
	for text, isDamage := range map[string]bool{"\x00\x01": false, "\x02\x00": true, "\x00\xff": true} {
		b := &bools{strings.NewReader(text), "w", &Reader{name: "f.pt"}}
		_, err := io.ReadAll(b)
		if damage := new(ckptfmt.CorruptError); errors.As(err, &damage) != isDamage || err != nil && damage.Part != `tensor "w"` {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBeginsAsLegacy(t *testing.T) {
	for head, want := range map[string]bool{
		"\x80\x02" + legacyMagic: true, "\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00" + legacyMagic: true,
		"": false, "\x80": false, "\x80\x02": false, "\x80\x02N.": false, "PK" + legacyMagic: false, legacyMagic: false,
		"\x80\x02" + strings.Repeat(" ", 17) + legacyMagic: true, "\x80\x02" + strings.Repeat(" ", 18) + legacyMagic: false,
	} {
		if got := IsLegacy([]byte(head)); got != want {
			t.Errorf("%q: %t", head, got)
		}
	}
}

// TestLongLegacyPickles have more bytes than are read: that is said, and nothing is known of the end.
func TestLongLegacyPickles(t *testing.T) {
	f, err := os.Open("../../fixtures/torch/legacy.pt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := &Reader{name: "f.pt", from: f, size: 1 << 20}
	_, err = r.findLegacy(40)
	if !errors.As(err, new(*RefusedError)) || !strings.Contains(err.Error(), "pickle: it has more than 40 bytes") {
		t.Errorf("got %v", err)
	}
}
