package npz

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

func bytesPart(name string, d tfpb.DataType, shape []int64, r io.Reader) ckptfmt.Part {
	return ckptfmt.WholePart(name, d, shape, func() (io.ReadCloser, error) { return io.NopCloser(r), nil })
}

// members writes parts, and returns the members of the archive by their names.
func members(t *testing.T, parts ...ckptfmt.Part) map[string]*zip.File {
	t.Helper()
	var b bytes.Buffer
	if err := Write(t.Context(), &b, parts); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]*zip.File)
	for _, f := range r.File {
		found[f.Name] = f
	}
	return found
}

// Comments are for what NumPy's header cannot say, so that files of other programs are as ours.
func TestCommentsOnlyWhereNumPyHasNoName(t *testing.T) {
	want := map[string]string{"float8_e4m3fn": "dtype=float8_e4m3fn", "int4": "dtype=int4", "qint8": "dtype=qint8"}
	var parts []ckptfmt.Part
	for d, name := range map[tfpb.DataType]string{
		tfpb.DataType_DT_FLOAT: "float32", tfpb.DataType_DT_DOUBLE: "float64", tfpb.DataType_DT_HALF: "float16",
		tfpb.DataType_DT_BFLOAT16: "bfloat16", tfpb.DataType_DT_COMPLEX64: "complex64", tfpb.DataType_DT_COMPLEX128: "complex128",
		tfpb.DataType_DT_BOOL: "bool", tfpb.DataType_DT_INT8: "int8", tfpb.DataType_DT_INT16: "int16",
		tfpb.DataType_DT_INT32: "int32", tfpb.DataType_DT_INT64: "int64", tfpb.DataType_DT_UINT8: "uint8",
		tfpb.DataType_DT_UINT16: "uint16", tfpb.DataType_DT_UINT32: "uint32", tfpb.DataType_DT_UINT64: "uint64",
		tfpb.DataType_DT_FLOAT8_E4M3FN: "float8_e4m3fn", tfpb.DataType_DT_INT4: "int4", tfpb.DataType_DT_QINT8: "qint8",
	} {
		parts = append(parts, bytesPart(name, d, []int64{0}, strings.NewReader("")))
	}
	files := members(t, parts...)
	for _, p := range parts {
		if f := files[p.Name+".npy"]; f == nil || f.Comment != want[p.Name] {
			t.Errorf("%s: %+v, want the comment %q", p.Name, f, want[p.Name])
		}
	}
	for comment, list := range map[string][]string{
		"":                    {"a", "bc", ""},
		"dtype=string":        {"a\x00", "bc", "de"},
		"dtype=string,length": {"a\x00", "b"},
	} {
		if f := members(t, stringsPart(list...)); len(f) != 1 {
			t.Errorf("%q: %d members", list, len(f))
		} else {
			for _, f := range f {
				if f.Comment != comment {
					t.Errorf("%q: the comment is %q, want %q", list, f.Comment, comment)
				}
			}
		}
	}
}

// The same tensors are the same bytes at any time: the members have the oldest date there is.
func TestMembersHaveTheOldestDate(t *testing.T) {
	for name, f := range members(t, bytesPart("a", tfpb.DataType_DT_INT8, nil, strings.NewReader("x"))) {
		if want := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC); !f.Modified.Equal(want) {
			t.Errorf("%s: %v, want %v", name, f.Modified, want)
		}
	}
}

func TestLongestName(t *testing.T) {
	longest := strings.Repeat("n", 0xffff-len(suffix))
	members(t, bytesPart(longest, tfpb.DataType_DT_INT8, nil, strings.NewReader("x")))
	more := bytesPart(longest+"n", tfpb.DataType_DT_INT8, nil, strings.NewReader("x"))
	if err := Write(t.Context(), io.Discard, []ckptfmt.Part{more}); err == nil || !strings.Contains(err.Error(), "rename it") {
		t.Errorf("one byte more: %v", err)
	}
}

// A source or a disk that fails is an error, and so is a source with other bytes than its shape says.
func TestWriteFails(t *testing.T) {
	failure := errors.New("the disk fails")
	read := func(r io.Reader) error {
		return Write(t.Context(), io.Discard, []ckptfmt.Part{bytesPart("a", tfpb.DataType_DT_INT8, []int64{4}, r)})
	}
	if err := read(iotest.ErrReader(failure)); !errors.Is(err, failure) {
		t.Errorf("reading: %v", err)
	}
	for _, data := range []string{"123", "12345"} {
		if err := read(strings.NewReader(data)); err == nil || !strings.Contains(err.Error(), "needs 4") {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
	texts := stringsPart("a")
	texts.Strings = func() ([][]byte, error) { return nil, failure }
	if err := Write(t.Context(), io.Discard, []ckptfmt.Part{texts}); !errors.Is(err, failure) {
		t.Errorf("reading strings: %v", err)
	}
	part := bytesPart("a", tfpb.DataType_DT_INT8, []int64{1}, strings.NewReader("x"))
	if err := Write(t.Context(), failing{failure}, []ckptfmt.Part{part}); !errors.Is(err, failure) {
		t.Errorf("writing: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Damage in a stored array is located in the file, as a hex editor finds it.
func TestDamageIsLocated(t *testing.T) {
	good := array("<i2", "(2,)", "\x01\x00\x02\x00")
	b := archive(t, zip.Store, "good.npy", "", good, "bad.npy", "", "\x93NUMPX"+good[6:])
	_, err := NewReader(bytes.NewReader(b), int64(len(b)), "x.npz")
	var damage *ckptfmt.CorruptError
	if !errors.As(err, &damage) {
		t.Fatal(err)
	}
	if want := int64(bytes.Index(b, []byte("\x93NUMPX"))); damage.Offset != want || damage.Part != `member "bad.npy"` {
		t.Errorf("got %s at %d, want %d", damage.Part, damage.Offset, want)
	}
	if strings.Count(err.Error(), "offset") != 1 {
		t.Errorf("%v says twice where", err)
	}
}

// In a compressed array an offset counts from its own beginning.
func TestDamagedBoolsAreLocated(t *testing.T) {
	bools := array("|b1", "(3,)", "\x01\x00\x07")
	for method, base := range map[uint16]func([]byte) int{
		zip.Store:   func(b []byte) int { return bytes.Index(b, []byte("\x93NUMPY")) },
		zip.Deflate: func([]byte) int { return 0 },
	} {
		b := archive(t, method, "a.npy", "", bools)
		_, err := open(t, b).Parts()[0].Load()
		var damage *ckptfmt.CorruptError
		if !errors.As(err, &damage) {
			t.Fatal(err)
		}
		if want := int64(base(b) + len(bools) - 1); damage.Offset != want {
			t.Errorf("method %d: got %d, want %d", method, damage.Offset, want)
		}
	}
}

func TestEqualHeadersOfOtherSizes(t *testing.T) {
	two := array("<i2", "(2,)", "\x01\x00\x02\x00")
	b := archive(t, zip.Store, "a.npy", "", two, "b.npy", "", two+"\x03")
	_, err := NewReader(bytes.NewReader(b), int64(len(b)), "x.npz")
	var damage *ckptfmt.CorruptError
	if !errors.As(err, &damage) || damage.Part != `member "b.npy"` {
		t.Errorf("a byte too many: %v", err)
	}
}

// An empty string takes only its length.
func TestRawEmptyString(t *testing.T) {
	b := archive(t, zip.Store, "s.npy", "dtype=string,length", array("|V8", "(1,)", "\x00\x00\x00\x00\x00\x00\x00\x00"))
	list, err := open(t, b).Parts()[0].Strings()
	if err != nil || len(list) != 1 || len(list[0]) != 0 {
		t.Errorf("got %q, %v", list, err)
	}
}

// NumPy has a name for float32: a comment does not make numbers of raw bytes.
func TestCommentOnRawBytes(t *testing.T) {
	b := archive(t, zip.Store, "a.npy", "dtype=float32", array("|V4", "(1,)", "abcd"))
	parts := open(t, b).Parts()
	if len(parts) != 1 || !errors.Is(parts[0].Err, ckptfmt.ErrType) {
		t.Errorf("got %+v", parts)
	}
}

func TestClosedFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.npz")
	if err := os.WriteFile(name, archive(t, zip.Store, "a.npy", "", array("<i2", "(1,)", "\x01\x00")), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	part := r.Parts()[0]
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := part.Load(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read when closed: %v", err)
	}
	if err := open(t, archive(t, zip.Store)).Close(); err != nil {
		t.Errorf("closing what is in memory: %v", err)
	}
}

// The header of one array is not taken for that of another one.
func TestHeadersOfTheirOwn(t *testing.T) {
	second := strings.Replace(array("<i2", "(2,)", "\x01\x00\x02\x00"), "NUMPY\x01", "NUMPY\x02", 1)
	second = second[:10] + "\x00\x00" + second[10:] // version 2 has four bytes of length
	b := archive(t, zip.Store,
		"a.npy", "", array("<i2", "(2,)", "\x01\x00\x02\x00"),
		"b.npy", "", second,
		"c.npy", "", array("<i4", "(1,)", "\x01\x00\x02\x00"),
		"d.npy", "", array("<i2", "(2,)", "\x01\x00\x02\x00"))
	for i, want := range []tfpb.DataType{tfpb.DataType_DT_INT16, tfpb.DataType_DT_INT16, tfpb.DataType_DT_INT32, tfpb.DataType_DT_INT16} {
		p := open(t, b).Parts()[i]
		got, err := p.Load()
		if err != nil || got.DType != want || string(got.Data) != "\x01\x00\x02\x00" {
			t.Errorf("%s: %v, %v", p.Name, got, err)
		}
	}
}

func TestSizesWithoutReading(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		r := open(t, archive(t, method, "a.npy", "", array("<i4", "(1, 3)", "aaaabbbbcccc"), "s.npy", "", array("<i8", "()", "12345678")))
		for i, want := range []int64{12, 8} {
			if info, err := r.Info(i); err != nil || info.Bytes != want {
				t.Errorf("method %d: %+v, %v, want %d bytes", method, info, err, want)
			}
		}
	}
}
