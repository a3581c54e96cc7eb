package torch_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	tfpb "github.com/trainerd/trainerd/proto"
)

// legacyOf is a file of the old kind with these five pickles, and what follows them.
func legacyOf(version, machine, saved, keys, storages string) []byte {
	return []byte("\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02" + version + ".\x80\x02" + machine + ".\x80\x02" + saved + ".\x80\x02" + keys + "." + storages)
}

func TestLegacyFiles(t *testing.T) {
	const v = "M\xe9\x03"
	const storage = "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x3f"
	keys := list(text("0"))
	doubled := "K\x01" + strings.Repeat("q\x01h\x01\x86", 60) // 2^60 numbers
	deep := strings.Repeat("](", 102) + strings.Repeat("e", 102)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"as torch writes it":    {legacyOf(v, dict(), scalar, keys, storage), ""},
		"nothing of a machine":  {legacyOf(v, "N", scalar, keys, storage), ""},
		"long pickles":          {legacyOf(v, text(strings.Repeat("x", 2<<20)), scalar, keys, storage), ""},
		"no storages":           {legacyOf(v, dict(), dict(text("a")+"K\x01"), "]", ""), ""},
		"another version":       {legacyOf("M\xea\x03", dict(), scalar, keys, storage), "offset 0: storages: its version is 1002, want 1001"},
		"no list of storages":   {legacyOf(v, dict(), scalar, "N", storage), "storages: there is no list of storages"},
		"a number for a key":    {legacyOf(v, dict(), scalar, list("K\x00"), storage), "the key of a storage is not text"},
		"tuples for a key":      {legacyOf(v, dict(), scalar, list(doubled), storage), "the key of a storage is not text"},
		"tuples for a version":  {legacyOf(doubled, dict(), scalar, keys, storage), "its version is 0, want 1001"},
		"a key twice":           {legacyOf(v, dict(), scalar, list(text("0"), text("0")), storage+storage), `storage "0" occurs twice`},
		"a key of no tensor":    {legacyOf(v, dict(), scalar, list(text("1")), storage), `storage "1" has no type`},
		"no key":                {legacyOf(v, dict(), scalar, "]", ""), "there is none"},
		"no length":             {legacyOf(v, dict(), scalar, keys, ""), `the file ends before storage "0": it was cut off`},
		"a part of the length":  {legacyOf(v, dict(), scalar, keys, storage[:7]), `the file ends before storage "0": it was cut off`},
		"a length alone":        {legacyOf(v, dict(), scalar, keys, storage[:8]), `storage "0" has 1 elements, 0 bytes are left`},
		"a part of the element": {legacyOf(v, dict(), scalar, keys, storage[:11]), `storage "0" has 1 elements, 3 bytes are left`},
		"other elements":        {legacyOf(v, dict(), scalar, keys, "\x02"+storage[1:]+"1234"), "it has 8 bytes, tensor \"tensor\" needs 4"},
		"too deep":              {legacyOf(v, dict(), deep, "]", ""), "too deep or too large"},
		"a pickle cut off":      {legacyOf(v, dict(), scalar, keys, storage)[:60], "offset 29: pickle: it ends within an opcode"},
		"a command":             {legacyOf(v, dict(), call("os.system", text("true")), keys, storage), `global "os.system"`},
	} {
		r, err := open(c.file)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if err != nil && !errors.As(err, new(*ckptfmt.CorruptError)) && !errors.As(err, new(*torch.RefusedError)) {
			t.Errorf("%s: an error of type %T", name, err)
		}
		if err == nil && r.Len() > 0 {
			if got, err := r.Parts()[0].Load(); err != nil || string(got.Data) != storage[8:] {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}
}

// TestIsCut has files of the old kind whose end is missing, and others that tell nothing about it.
func TestIsCut(t *testing.T) {
	const v = "M\xe9\x03"
	const storage = "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x3f"
	whole := legacyOf(v, dict(), scalar, list(text("0")), storage)
	long := legacyOf(v, text(strings.Repeat("x", 16<<20)), scalar, list(text("0")), storage)
	for name, c := range map[string]struct {
		file []byte
		want bool
	}{
		"whole":              {whole, false},
		"without an element": {whole[:len(whole)-4], true},
		"without a length":   {whole[:len(whole)-12], true},
		"in a pickle":        {whole[:60], true},
		"another version":    {legacyOf("M\xea\x03", dict(), scalar, list(text("0")), ""), false},
		"a command":          {legacyOf(v, dict(), call("os.system"), list(text("0")), ""), false},
		"too long":           {long[:len(long)-4], false},
		"just not too long":  {long[:16<<20], true},
		"a byte too long":    {long[:16<<20+1], false},
	} {
		if got, err := torch.IsCut(bytes.NewReader(c.file), int64(len(c.file))); got != c.want || err != nil {
			t.Errorf("%s: %t, %v; want %t", name, got, err, c.want)
		}
	}
	if _, err := torch.IsCut(&failing{bytes.NewReader(whole), 1}, int64(len(whole))); !errors.Is(err, errDisk) {
		t.Errorf("on a disk that fails: %v", err)
	}
	at := int64(len(whole) - 12)
	if _, err := torch.IsCut(&failing{bytes.NewReader(whole), at}, int64(len(whole))); !errors.Is(err, errDisk) {
		t.Errorf("on a disk that fails at the storages: %v", err)
	}
}

// failing is a file whose disk fails when bytes from an offset on are read.
type failing struct {
	io.ReaderAt
	at int64
}

var errDisk = errors.New("the disk fails")

func (f *failing) ReadAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) > f.at {
		return 0, errDisk
	}
	return f.ReaderAt.ReadAt(b, at)
}

// TestDiskFails while a file is opened: that is said, wherever it is.
func TestDiskFails(t *testing.T) {
	whole := archive(t, zip.Store, one("\x01", "\x00", "K\x01\x85", "K\x01\x85"))
	old := legacyOf("M\xe9\x03", dict(), scalar, list(text("0")), "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x3f")
	for _, b := range [][]byte{whole, old} {
		for at := range len(b) {
			r, err := torch.NewReader(&failing{bytes.NewReader(b), int64(at)}, int64(len(b)), "f.pt")
			if err == nil {
				_, err = r.Parts()[0].Load()
			}
			if err == nil || &b[0] == &old[0] && !errors.Is(err, errDisk) {
				t.Errorf("at %d of %d: %v", at, len(b), err)
			}
		}
	}
}

// TestPickleNames are data.pkl in a folder, or in none.
func TestPickleNames(t *testing.T) {
	pickle, storage := one("\x01", "\x00", "K\x01\x85", "K\x01\x85"), "\x00\x00\x80\x3f"
	for prefix, ok := range map[string]bool{"": true, "x/": true, "x/y/": true, "x": false} {
		b := archiveOf(t, []member{{prefix + "data.pkl", pickle, zip.Store}, {prefix + "data/0", storage, zip.Store}})
		if _, err := open(b); (err == nil) != ok {
			t.Errorf("%sdata.pkl: %v", prefix, err)
		}
	}
	for _, name := range []string{"x/constants.pkl", "x/archive_format"} {
		b := archiveOf(t, []member{{"x/data.pkl", pickle, zip.Store}, {name, "", zip.Store}, {"x/data/0", storage, zip.Store}})
		if _, err := open(b); !errors.As(err, new(*torch.RefusedError)) || !strings.Contains(err.Error(), "it is a program of torch") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// bytePart is a tensor of bytes.
func bytePart(name string, shape []int64, data string) ckptfmt.Part {
	return ckptfmt.WholePart(name, tfpb.DataType_DT_UINT8, shape, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(data)), nil })
}

func TestBadParts(t *testing.T) {
	errSource := errors.New("the source is damaged")
	damaged, unreadable, failed := bytePart("a", []int64{1}, "x"), bytePart("a", []int64{1}, "x"), bytePart("a", []int64{1}, "x")
	damaged.Err = errSource
	unreadable.Open = func() (io.ReadCloser, error) { return nil, errSource }
	failed.Open = func() (io.ReadCloser, error) {
		return io.NopCloser(&io.LimitedReader{R: failingReader{errSource}, N: 1}), nil
	}
	texts := ckptfmt.WholePart("a", tfpb.DataType_DT_STRING, nil, nil)
	slice := bytePart("a", []int64{1}, "x")
	slice.Full, slice.Slice = []int64{2}, ckptfmt.TensorSlice{Start: []int64{0}, Length: []int64{1}}
	for name, c := range map[string]struct {
		parts []ckptfmt.Part
		want  string
	}{
		"damaged":       {[]ckptfmt.Part{damaged}, errSource.Error()},
		"not there":     {[]ckptfmt.Part{unreadable}, errSource.Error()},
		"fails":         {[]ckptfmt.Part{failed}, `tensor "a": ` + errSource.Error()},
		"too short":     {[]ckptfmt.Part{bytePart("a", []int64{2}, "x")}, `tensor "a": 1 bytes, its shape needs 2`},
		"too long":      {[]ckptfmt.Part{bytePart("a", []int64{2}, "xyz")}, `tensor "a": 3 bytes, its shape needs 2`},
		"twice":         {[]ckptfmt.Part{bytePart("a", []int64{1}, "x"), bytePart("a", []int64{1}, "x")}, ckptfmt.ErrExists.Error()},
		"no name":       {[]ckptfmt.Part{bytePart("", []int64{1}, "x")}, "rename it"},
		"no UTF-8":      {[]ckptfmt.Part{bytePart("\xff", []int64{1}, "x")}, "rename it"},
		"texts":         {[]ckptfmt.Part{texts}, `a state dict cannot hold "a" of string`},
		"a slice":       {[]ckptfmt.Part{slice}, `"a" is a slice`},
		"a giant shape": {[]ckptfmt.Part{bytePart("a", []int64{math.MaxInt64, 2}, "x")}, "int64"},
	} {
		if err := torch.Write(t.Context(), io.Discard, c.parts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if torch.Check(damaged) != errSource {
		t.Errorf("got %v", torch.Check(damaged))
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// limited is a disk that is full after so many bytes.
type limited struct{ left int }

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return 0, errDisk
	}
	l.left -= len(b)
	return len(b), nil
}

func TestDiskFull(t *testing.T) {
	parts := []ckptfmt.Part{bytePart("a", []int64{2}, "xy"), bytePart("b", []int64{1}, "z")}
	var whole bytes.Buffer
	if err := torch.Write(t.Context(), &whole, parts); err != nil {
		t.Fatal(err)
	}
	for n := range whole.Len() {
		if err := torch.Write(t.Context(), &limited{n}, parts); !errors.Is(err, errDisk) {
			t.Errorf("full after %d of %d bytes: %v", n, whole.Len(), err)
		}
	}
}

// TestWrittenPickle has the words that all tensors have once, items in batches, and numbers
// as Python reads them.
func TestWrittenPickle(t *testing.T) {
	const n = 3000
	parts := make([]ckptfmt.Part, n)
	for i := range parts {
		parts[i] = bytePart("layer."+strings.Repeat("a", i%7)+string(rune('A'+i%26))+strings.Repeat("b", i/182), []int64{2, 0, 3}, "")
	}
	var b bytes.Buffer
	if err := torch.Write(t.Context(), &b, parts); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	begin := strings.Index(text, "\x80\x02c")
	text = text[begin : begin+strings.Index(text[begin:], "PK\x07\x08")]
	for word, want := range map[string]int{
		"ccollections\nOrderedDict\nq": 1, "ctorch._utils\n_rebuild_tensor_v2\nq": 1, "ctorch\nByteStorage\nq": 1, "u(": 2,
		"X\x07\x00\x00\x00storageq": 1, "X\x03\x00\x00\x00cpuq": 1, "\x89h\x00)RtR": n,
		"(J\x02\x00\x00\x00J\x00\x00\x00\x00J\x03\x00\x00\x00t(J\x03\x00\x00\x00J\x03\x00\x00\x00J\x01\x00\x00\x00t": n,
	} {
		if got := strings.Count(text, word); got != want {
			t.Errorf("%q occurs %d times, want %d", word, got, want)
		}
	}
	r, err := open(b.Bytes())
	if err != nil || r.Len() != n || r.Name(1999) != parts[1999].Name {
		t.Errorf("%v", err)
	}
}

// TestWrittenNumbers are those of Python's pickles: of 32 bits up to 2^31-1, else longer.
func TestWrittenNumbers(t *testing.T) {
	for _, dim := range []int64{1<<31 - 1, 1 << 31, 1<<31 + 1, 1 << 40} {
		p := bytePart("a", []int64{0, dim}, "")
		var b bytes.Buffer
		if err := torch.Write(t.Context(), &b, []ckptfmt.Part{p}); err != nil {
			t.Fatal(err)
		}
		r, err := open(b.Bytes())
		if err != nil {
			t.Fatalf("%d: %v", dim, err)
		}
		if got := r.Parts()[0].Shape; len(got) != 2 || got[1] != dim {
			t.Errorf("got %v, want %d", got, dim)
		}
		if isShort := bytes.Contains(b.Bytes(), []byte("\x8a\x08")); isShort == (dim < 1<<31) {
			t.Errorf("%d: written in 64 bits: %t", dim, isShort)
		}
	}
}
