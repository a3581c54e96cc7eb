package npz

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/membound"
	tfpb "github.com/trainerd/trainerd/proto"
)

func open(t *testing.T, b []byte) *Reader {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "x.npz")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkpoint returns the tensors of a checkpoint that TensorFlow wrote.
func checkpoint(t testing.TB, name string) []ckptfmt.Part {
	t.Helper()
	r, err := ckptfmt.Open(filepath.Join("../../fixtures/ckpt_v2", name, "model.ckpt"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	parts, err := ckptfmt.Parts(r)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func TestRoundTrip(t *testing.T) {
	for _, name := range []string{"dtypes", "scalars_empty", "strings", "one"} {
		var want []ckptfmt.Part
		for _, p := range checkpoint(t, name) {
			if p.DType != tfpb.DataType_DT_VARIANT {
				want = append(want, p)
			}
		}
		var b bytes.Buffer
		if err := Write(t.Context(), &b, want); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := open(t, b.Bytes()).Parts()
		if len(got) != len(want) {
			t.Fatalf("%s: %d tensors, want %d", name, len(got), len(want))
		}
		for i := range want {
			a, err := want[i].Load()
			if err != nil {
				t.Fatal(err)
			}
			b, err := got[i].Load()
			if err != nil {
				t.Fatal(err)
			}
			if got[i].Name != want[i].Name || b.DType != a.DType || len(a.Shape)+len(b.Shape) > 0 && !cmp.Equal(a.Shape, b.Shape) ||
				!bytes.Equal(a.Data, b.Data) || !bytes.Equal(bytes.Join(a.Strings, []byte{0}), bytes.Join(b.Strings, []byte{0})) {
				t.Errorf("%s: %q: got %v %v, want %v %v", name, want[i].Name, b.DType, b.Shape, a.DType, a.Shape)
			}
		}
	}
}

func stringsPart(list ...string) ckptfmt.Part {
	p := ckptfmt.WholePart("s", tfpb.DataType_DT_STRING, []int64{int64(len(list))}, nil)
	p.Strings = func() ([][]byte, error) {
		var out [][]byte
		for _, s := range list {
			out = append(out, []byte(s))
		}
		return out, nil
	}
	return p
}

// Strings that end in zero bytes come back, whatever their lengths.
// TestEveryType writes and reads an array of each type whose elements have a size.
func TestEveryType(t *testing.T) {
	var want []ckptfmt.Part
	for i := range tfpb.DataType_name {
		d := tfpb.DataType(i)
		size := dtype.Size(d)
		if size == 0 {
			continue
		}
		data := bytes.Repeat([]byte{1}, int(3*size)) // also true
		want = append(want, ckptfmt.WholePart(dtype.Name(d), d, []int64{3}, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }))
	}
	var b bytes.Buffer
	if err := Write(t.Context(), &b, want); err != nil {
		t.Fatal(err)
	}
	for i, p := range open(t, b.Bytes()).Parts() {
		got, err := p.Load()
		if err != nil || got.DType != want[i].DType || len(got.Data) != 3*int(dtype.Size(got.DType)) {
			t.Errorf("%s is %v, %v", want[i].Name, got, err)
		}
	}
}

func TestStringsThatEndInZeros(t *testing.T) {
	for name, want := range map[string][]string{
		"one":        {"graph\x00"},
		"one byte":   {"\x00"},
		"two bytes":  {"a\x00", "\x00\x00"}, // V2, which is bfloat16 otherwise
		"one length": {"ab\x00", "abc", "\x00\x00\x00"},
		"ragged":     {"a\x00", "", "\x00", "abcdef\x00\x00", "x"},
		"long":       {strings.Repeat("\x00", 300), "a"},
	} {
		var b bytes.Buffer
		if err := Write(t.Context(), &b, []ckptfmt.Part{stringsPart(want...)}); err != nil {
			t.Fatal(err)
		}
		parts := open(t, b.Bytes()).Parts()
		if len(parts) != 1 || parts[0].DType != tfpb.DataType_DT_STRING || !slices.Equal(parts[0].Shape, []int64{int64(len(want))}) {
			t.Fatalf("%s: %+v", name, parts)
		}
		list, err := parts[0].Strings()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range list {
			got = append(got, string(s))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestRawStringsWithBadLengths(t *testing.T) {
	for name, data := range map[string]string{
		"too long":  "ab\x03\x00\x00\x00\x00\x00\x00\x00",
		"negative":  "ab\xff\xff\xff\xff\xff\xff\xff\xff",
		"no length": "abc",
	} {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		f, err := w.CreateHeader(&zip.FileHeader{Name: "s.npy", Comment: "dtype=string,length"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(array(fmt.Sprintf("|V%d", len(data)), "(1,)", data))); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var corrupt *ckptfmt.CorruptError
		if _, err := open(t, b.Bytes()).Parts()[0].Strings(); !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusedToWrite(t *testing.T) {
	one := checkpoint(t, "one")
	bad := one[0]
	bad.Name = "\xff"
	for name, c := range map[string]struct {
		parts []ckptfmt.Part
		want  string
	}{
		"variant": {checkpoint(t, "variant"), "cannot hold"},
		"twice":   {append(one, one...), "already"},
		"name":    {[]ckptfmt.Part{bad}, "rename it"},
		"slice":   {checkpoint(t, "partitioned"), "is a slice"},
	} {
		if err := Write(t.Context(), &bytes.Buffer{}, c.parts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Write(ctx, &bytes.Buffer{}, one); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// archive makes a file of members with their comments.
func archive(t testing.TB, method uint16, members ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 3 {
		f, err := w.CreateHeader(&zip.FileHeader{Name: members[i], Comment: members[i+1], Method: method})
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte(members[i+2]))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func array(descr, shape, data string) string {
	text := "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n"
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(text)), 0}) + text + data
}

func TestDamaged(t *testing.T) {
	two := array("<i2", "(2,)", "\x01\x00\x02\x00")
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":           {nil, "zip archive"},
		"twice":             {archive(t, zip.Store, "a.npy", "", two, "a.npy", "", two), "two of that name"},
		"no header":         {archive(t, zip.Store, "a.npy", "", "x"), "not a NumPy file"},
		"too short":         {archive(t, zip.Store, "a.npy", "", two[:len(two)-1]), "takes 4 bytes, but 3 follow"},
		"comment lies":      {archive(t, zip.Store, "a.npy", "dtype=float64", two), `int16 "float64"`},
		"comment says what": {archive(t, zip.Store, "a.npy", "dtype=what", two), `"what"`},
		"huge shape":        {archive(t, zip.Deflate, "a.npy", "", array("<f8", "(1000000000000,)", "x")), "but 1 follow"},
	} {
		_, err := NewReader(bytes.NewReader(c.file), int64(len(c.file)), "x.npz")
		var damage *ckptfmt.CorruptError
		if !errors.As(err, &damage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// The archive's checksum is looked at, and so is the value of a bool.
func TestDamagedElements(t *testing.T) {
	b := archive(t, zip.Store, "a.npy", "", array("<i2", "(2,)", "\x01\x00\x02\x00"))
	b[bytes.Index(b, []byte("\x01\x00\x02\x00"))]++
	for name, file := range map[string][]byte{
		"flipped": b,
		"no bool": archive(t, zip.Deflate, "a.npy", "", array("|b1", "(2,)", "\x01\x02")),
	} {
		_, err := open(t, file).Parts()[0].Load()
		var damage *ckptfmt.CorruptError
		if !errors.As(err, &damage) || damage.Part != `member "a.npy"` {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestOpenFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.npz")
	if _, err := Open(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(name, archive(t, zip.Deflate, "a.npy", "", array("<U1", "(2,)", "a\x00\x00\x00\xe9\x00\x00\x00")), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Parts()[0].Load()
	if err != nil || string(got.Strings[0]) != "a" || string(got.Strings[1]) != "é" {
		t.Errorf("got %v, %v", got, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestUnsupported has members that are not tensors, next to one that is.
func TestUnsupported(t *testing.T) {
	one := array("<i2", "(1,)", "\x01\x00")
	for name, c := range map[string]struct{ member, text, kind, want string }{
		"a.txt":   {"a.txt", "x", "invalid", "does not end in .npy"},
		"raw":     {"a.npy", array("|V7", "(1,)", "1234567"), "V7", "unspecified type"},
		"objects": {"a.npy", array("|O", "(1,)", "x"), "object", "pickled"},
		"records": {"a.npy", strings.Replace(array("|O", "(1,)", "x"), "'|O'", "[ ]", 1), "record", "records"},
		"dates":   {"a.npy", array("<M8[D]", "(1,)", "12345678"), "datetime64[D]", "dates"},
		"spans":   {"a.npy", array("<m8", "(1,)", "12345678"), "timedelta64", "time spans"},
		"double":  {"a.npy", array("<f16", "(1,)", "1234567812345678"), "float128", "not known"},
	} {
		b := archive(t, zip.Store, c.member, "", c.text, "b.npy", "", one)
		r, err := NewReader(bytes.NewReader(b), int64(len(b)), "x.npz")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		bad, good := r.Parts()[0], r.Parts()[1]
		if !errors.Is(bad.Err, ckptfmt.ErrType) || !strings.Contains(bad.Err.Error(), c.want) || bad.TypeName() != c.kind {
			t.Errorf("%s: got %s, %v, want %s, %q", name, bad.TypeName(), bad.Err, c.kind, c.want)
		}
		if x, err := good.Load(); err != nil || string(x.Data) != "\x01\x00" {
			t.Errorf("%s: the other one is %v, %v", name, x, err)
		}
	}
}

// TestCompressedArraysInFortransOrder needs as much memory as an array has, however few
// bytes of the file that is.
func TestCompressedArraysInFortransOrder(t *testing.T) {
	const n = 1 << 16
	head := strings.Replace(array("|i1", fmt.Sprintf("(%d, %d)", n, n), ""), "'fortran_order': False", "'fortran_order': True ", 1)
	var packed, b bytes.Buffer
	f, err := flate.NewWriter(&packed, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, head); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(&b)
	raw, err := w.CreateRaw(&zip.FileHeader{
		Name: "a.npy", Method: zip.Deflate, CompressedSize64: uint64(packed.Len()), UncompressedSize64: uint64(len(head)) + n*n,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Write(packed.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()), "x.npz")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Parts()[0].Err; !errors.Is(err, ckptfmt.ErrType) || !strings.Contains(err.Error(), "Fortran") {
		t.Errorf("got %v", err)
	}
}

func FuzzReader(f *testing.F) {
	var b bytes.Buffer
	if err := Write(f.Context(), &b, append(checkpoint(f, "dtypes")[:6], stringsPart("a", "bc"))); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(archive(f, zip.Deflate, "a.npy", "dtype=int4", array("|i1", "(2,)", "\x01\x02")))
	f.Add(archive(f, zip.Store, "a.npy", "", array("<U1", "(1,)", "a\x00\x00\x00")))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer membound.Check(t, len(b), 2000)()
		r, err := NewReader(bytes.NewReader(b), int64(len(b)), "x.npz")
		var damage *ckptfmt.CorruptError
		if err != nil {
			if !errors.As(err, &damage) {
				t.Fatalf("an error of type %T: %v", err, err)
			}
			return
		}
		for _, p := range r.Parts() {
			x, err := p.Load()
			if err != nil {
				if !errors.As(err, &damage) && !errors.Is(err, ckptfmt.ErrType) {
					t.Fatalf("an error of type %T: %v", err, err)
				}
				continue
			}
			if err := x.Validate(); err != nil {
				t.Errorf("%q: %v", p.Name, err)
			}
		}
	})
}
