package torch_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/npz"
	"github.com/trainerd/trainerd/ckptfmt/torch"
)

const fixture = "../../fixtures/torch/state"

func TestReaderGivesTheTensorsThatNumPyHas(t *testing.T) {
	r := opened(t, fixture)
	for key, want := range map[string]string{"epoch": "7", "lr": "0.5", "big": "1099511627776", "note": "é"} {
		if r.Metadata()[key] != want {
			t.Errorf("metadata %s is %q, want %q", key, r.Metadata()[key], want)
		}
	}
}

// TestWholeModel has a model as torch saves it whole, and objects of the classes of a program, whose
// code is not there.
func TestWholeModel(t *testing.T) {
	r := opened(t, "../../fixtures/torch/model")
	for key, want := range map[string]string{"best.0": "7", "config.width": "3", "config.act": "relu", "weights.decay": "0.5"} {
		if r.Metadata()[key] != want {
			t.Errorf("metadata %s is %q, want %q", key, r.Metadata()[key], want)
		}
	}
}

// opened returns a reader of a file that has what the .npz file next to it has.
func opened(t *testing.T, name string) *torch.Reader {
	t.Helper()
	r, err := torch.Open(name + ".pt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	got, err := ckptfmt.NewPartsReader(r.Parts(), nil)
	if err != nil {
		t.Fatal(err)
	}
	arrays, err := npz.Open(name + ".npz")
	if err != nil {
		t.Fatal(err)
	}
	defer arrays.Close()
	if n := len(r.Parts()); n != len(arrays.Parts()) {
		t.Errorf("there are %d tensors, want %d", n, len(arrays.Parts()))
	}
	for _, p := range arrays.Parts() {
		want, err := p.Load()
		if err != nil {
			t.Fatal(err)
		}
		have, err := got.Lookup(p.Name)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		if have.DType != want.DType || !bytes.Equal(have.Data, want.Data) {
			t.Errorf("%s: %v %x, want %v %x", p.Name, have.DType, have.Data, want.DType, want.Data)
		}
	}
	return r
}

// archive returns a file with that pickle and a storage of 4 bytes.
func archive(t testing.TB, method uint16, pickle string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{"x/data.pkl": pickle, "x/data/0": "\x00\x00\x80\x3f"} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(b []byte) (*torch.Reader, error) {
	return torch.NewReader(bytes.NewReader(b), int64(len(b)), "f.pt")
}

// one is a float tensor of a given size, shape and strides.
func one(numel, offset, shape, stride string) string {
	return "\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK" +
		numel + "tQK" + offset + shape + stride + "\x89ccollections\nOrderedDict\n)RtR."
}

func TestTensorAloneIsNamed(t *testing.T) {
	r, err := open(archive(t, zip.Store, one("\x01", "\x00", "K\x01\x85", "K\x01\x85")))
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Parts(); len(p) != 1 || p[0].Name != "tensor" {
		t.Fatalf("parts are %v", p)
	}
}

func TestHostilePicklesAreErrors(t *testing.T) {
	deep := "\x80\x02" + strings.Repeat("](", 200) + strings.Repeat("e", 200) + "."
	for name, pickle := range map[string]string{
		"os.system":         "\x80\x02cos\nsystem\n(X\x04\x00\x00\x00truetR.",
		"eval, protocol 4":  "\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.",
		"inst":              "\x80\x02(ios\nsystem\n.",
		"newobj":            "\x80\x02ctorch\nTensor\n)\x81.",
		"deep":              deep,
		"doubling":          "\x80\x02]q\x00" + strings.Repeat("](h\x00h\x00eq\x00", 60) + ".",
		"empty":             "",
		"no stop":           "\x80\x02N",
		"stack underflow":   "\x80\x02R.",
		"mark alone":        "\x80\x02(.",
		"giant text":        "\x80\x02X\xff\xff\xff\xffa.",
		"unhashable key":    "\x80\x02}]Ns.",
		"storage too small": one("\x09", "\x00", "K\x09\x85", "K\x01\x85"),
		"beyond storage":    one("\x01", "\x00", "K\x02\x85", "K\x01\x85"),
		"offset":            one("\x01", "\x01", "K\x01\x85", "K\x01\x85"),
		"negative stride":   one("\x01", "\x00", "K\x01\x85", "J\xff\xff\xff\xff\x85"),
		"giant expansion":   one("\x01", "\x00", "J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86", "K\x00K\x00\x86"),
	} {
		r, err := open(archive(t, zip.Store, pickle))
		if err == nil {
			t.Errorf("%s: no error, %d tensors", name, len(r.Parts()))
			continue
		}
		var refused *torch.RefusedError
		var corrupt *ckptfmt.CorruptError
		if !errors.As(err, &refused) && !errors.As(err, &corrupt) {
			t.Errorf("%s: %v is not located", name, err)
		}
	}
}

func TestCompressedMembersAreRefused(t *testing.T) {
	_, err := open(archive(t, zip.Deflate, one("\x01", "\x00", "K\x01\x85", "K\x01\x85")))
	if err == nil || !strings.Contains(err.Error(), "data.pkl\": it is compressed") {
		t.Errorf("a compressed pickle: %v", err)
	}
}

func TestFlippedElementIsDamage(t *testing.T) {
	b := archive(t, zip.Store, one("\x01", "\x00", "K\x01\x85", "K\x01\x85"))
	b[bytes.Index(b, []byte("\x00\x00\x80\x3f"))] ^= 1
	r, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	p := r.Parts()[0]
	var corrupt *ckptfmt.CorruptError
	if _, err := p.Load(); !errors.As(err, &corrupt) {
		t.Errorf("the error is %v", err)
	}
}

func FuzzUnpickle(f *testing.F) {
	for _, name := range []string{fixture + ".pt", "../../fixtures/torch/model.pt"} {
		z, err := zip.OpenReader(name)
		if err != nil {
			f.Fatal(err)
		}
		defer z.Close()
		for _, m := range z.File {
			if !strings.HasSuffix(m.Name, "/data.pkl") {
				continue
			}
			r, err := m.Open()
			if err != nil {
				f.Fatal(err)
			}
			pickle, err := io.ReadAll(r)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(pickle)
		}
	}
	f.Add([]byte(one("\x01", "\x00", "K\x01\x85", "K\x01\x85")))
	f.Add([]byte("\x80\x03" + module("net.Net", text("w")+scalar, text("b")+scalar, text("b"), text("m")+object("net.Config", dict(text("w")+scalar), "K\x01")) + "."))
	f.Fuzz(func(t *testing.T, pickle []byte) {
		r, err := open(archive(t, zip.Store, string(pickle)))
		if err != nil {
			return
		}
		for _, p := range r.Parts() {
			if p.Err != nil { // a tensor that is not an array
				continue
			}
			if size, err := p.Size(); err != nil || size > 16<<20 {
				t.Fatalf("%s has %d bytes of a storage of 4: %v", p.Name, size, err)
			}
			if _, err := p.Load(); err != nil && !errors.Is(err, ckptfmt.ErrChecksum) {
				var corrupt *ckptfmt.CorruptError
				if !errors.As(err, &corrupt) {
					t.Fatal(err)
				}
			}
		}
	})
}

func TestWrittenStateDictHoldsTheSame(t *testing.T) {
	r, err := torch.Open(fixture + ".pt")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	if err := torch.Write(context.Background(), &out, r.Parts()); err != nil {
		t.Fatal(err)
	}
	again, err := open(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got, err := ckptfmt.NewPartsReader(again.Parts(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Parts() {
		want, err := p.Load()
		if err != nil {
			t.Fatal(err)
		}
		have, err := got.Lookup(p.Name)
		if err != nil || have.DType != want.DType || !slices.Equal(have.Shape, want.Shape) || !bytes.Equal(have.Data, want.Data) {
			t.Errorf("%s: %v, or another tensor", p.Name, err)
		}
	}
	z, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		if at, err := f.DataOffset(); err != nil || at%64 != 0 {
			t.Errorf("%s begins at %d: %v", f.Name, at, err)
		}
	}
}

// TestForeignTypes are read as bytes, and written again; a type that is not known
// hinders no other tensor.
func TestForeignTypes(t *testing.T) {
	call := func(of string) string {
		return "ctorch._utils\n_rebuild_tensor_v3\n((X\x07\x00\x00\x00storagectorch.storage\nUntypedStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ" +
			"K\x00K\x02\x85K\x01\x85\x89ccollections\nOrderedDict\n)Rctorch\n" + of + "\ntR"
	}
	text := "\x80\x02}(X\x01\x00\x00\x00a" + call("float8_e8m0fnu") + "X\x01\x00\x00\x00b" + call("bits16") + "X\x01\x00\x00\x00c" + call("float6_e9m9") + "u."
	r, err := open(archive(t, zip.Store, text))
	if err != nil {
		t.Fatal(err)
	}
	parts := r.Parts()
	if len(parts) != 3 || parts[0].TypeName() != "float8_e8m0fnu" || parts[1].TypeName() != "bits16" || !errors.Is(parts[2].Err, ckptfmt.ErrType) {
		t.Fatalf("parts are %+v", parts)
	}
	var out bytes.Buffer
	if err := torch.Write(t.Context(), &out, parts[:2]); err != nil {
		t.Fatal(err)
	}
	again, err := open(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"\x00\x00", "\x00\x00\x80\x3f"} {
		p := again.Parts()[i]
		got, err := p.Load()
		if err != nil || string(got.Data) != want || p.TypeName() != parts[i].TypeName() {
			t.Errorf("%s is %v of %s, %v", p.Name, got, p.TypeName(), err)
		}
	}
	if _, err := open(archive(t, zip.Store, "\x80\x02}(X\x01\x00\x00\x00a"+call("load")+"u.")); err == nil {
		t.Error("a global that is no type is accepted")
	}
}
