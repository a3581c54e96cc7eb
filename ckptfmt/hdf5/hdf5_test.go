package hdf5_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/npz"
)

const fixtures = "../../fixtures/hdf5"

func open(b []byte) (*hdf5.Reader, error) {
	return hdf5.NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixtures, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// load returns all tensors that can be read, by name.
func load(t testing.TB, parts []ckptfmt.Part) map[string]*ckptfmt.Tensor {
	t.Helper()
	out := make(map[string]*ckptfmt.Tensor)
	for _, p := range parts {
		if p.Err != nil {
			continue
		}
		tensor, err := p.Load()
		if err != nil {
			t.Fatal(err)
		}
		out[p.Name] = tensor
	}
	return out
}

func TestReaderGivesWhatH5pyHas(t *testing.T) {
	var want []ckptfmt.Part
	for _, name := range []string{"want.npz", "version2.npz"} {
		arrays, err := npz.Open(filepath.Join(fixtures, name))
		if err != nil {
			t.Fatal(err)
		}
		defer arrays.Close()
		want = append(want, arrays.Parts()...)
	}
	got := make(map[string]*ckptfmt.Tensor)
	for _, name := range []string{"old.h5", "latest.h5", "version2.h5"} {
		r, err := hdf5.Open(filepath.Join(fixtures, name))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for key, tensor := range load(t, r.Parts()) {
			got[name+":"+key] = tensor
		}
	}
	for name, tensor := range load(t, want) {
		have := got[name]
		if have == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		if have.DType != tensor.DType || !slices.Equal(have.Shape, tensor.Shape) || !bytes.Equal(have.Data, tensor.Data) {
			t.Errorf("%s is %v %v, want %v %v, or has other elements", name, have.DType, have.Shape, tensor.DType, tensor.Shape)
		}
	}
	for name, want := range map[string]string{"text": "héllo", "texts": "ab cde", "words": "x  yy"} {
		have := got["old.h5:"+name]
		if have == nil || string(bytes.Join(have.Strings, []byte(" "))) != want {
			t.Errorf("%s is %v, want %q", name, have, want)
		}
	}
}

func TestWhatIsNotSupportedIsNamedAndHindersNothing(t *testing.T) {
	for file, want := range map[string]map[string]string{
		"old.h5":    {"reference": "references", "elsewhere": "another file"},
		"latest.h5": {"scaled": "scale-offset"},
		"opaque.h5": {"half": `2 opaque bytes, "NUMPY:<f2"`, "short": `"NUMPY:<i2"`, "swapped": `"NUMPY:>u2"`},
	} {
		r, err := open(fixture(t, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Parts() {
			switch words := want[p.Name]; {
			case (words == "") != (p.Err == nil):
				t.Errorf("%s: %s: %v", file, p.Name, p.Err)
			case p.Err != nil && (!errors.Is(p.Err, ckptfmt.ErrType) || !strings.Contains(p.Err.Error(), words)):
				t.Errorf("%s: %s: %v, want %q", file, p.Name, p.Err, words)
			}
		}
	}
}

func TestAttributesAreRead(t *testing.T) {
	old, err := open(fixture(t, "old.h5"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{"list": {"x", "yy"}, "text": {"of any length"}} {
		if got, err := old.Attr("", name); err != nil || !slices.Equal(got, want) {
			t.Errorf("attribute %s is %q, %v, want %q", name, got, err, want)
		}
	}
	latest, err := open(fixture(t, "latest.h5"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := latest.Attr("", "a17"); err != nil || !slices.Equal(got, []string{"17"}) {
		t.Errorf("attribute a17 is %q, %v", got, err)
	}
	if _, err := latest.Attr("", "none"); !errors.Is(err, ckptfmt.ErrNotFound) {
		t.Errorf("the error is %v", err)
	}
}

func TestVerifyFindsFlippedBitsWhereThereIsAChecksum(t *testing.T) {
	b := fixture(t, "latest.h5")
	for _, flip := range []int{9, bytes.Index(b, []byte("OHDR")) + 8, bytes.Index(b, []byte("BTLF")) + 9, bytes.Index(b, []byte("FRHP")) + 9} {
		damaged := slices.Clone(b)
		damaged[flip] ^= 1
		var corrupt *ckptfmt.CorruptError
		if _, err := open(damaged); !errors.As(err, &corrupt) {
			t.Errorf("byte %d: the error is %v", flip, err)
		}
	}
}

func TestVerifyFindsFlippedElementsUnderFletcher32(t *testing.T) {
	b := fixture(t, "old.h5")
	found := 0
	for at := 0; at < len(b); at += 211 {
		damaged := slices.Clone(b)
		damaged[at] ^= 0x10
		r, err := open(damaged)
		if err != nil {
			continue
		}
		for name, err := range r.Verify(context.Background()) {
			if name == "zipped" && errors.Is(err, ckptfmt.ErrChecksum) {
				found++
			}
		}
	}
	if found < 20 {
		t.Errorf("%d flipped bytes of a dataset with checksums were found", found)
	}
}

func TestCutFilesAreDamage(t *testing.T) {
	for _, name := range []string{"old.h5", "latest.h5"} {
		b := fixture(t, name)
		for n := 0; n < len(b); n += 1 + n/7 {
			var corrupt *ckptfmt.CorruptError
			if _, err := open(b[:n]); !errors.As(err, &corrupt) {
				t.Errorf("%s cut at %d: the error is %v", name, n, err)
			}
		}
	}
}

// TestCirclesAreDamage makes each address in the file's groups that of the root.
func TestCirclesAreDamage(t *testing.T) {
	b := fixture(t, "../keras/model.weights.h5")
	root := binary.LittleEndian.Uint64(b[0x40:])
	node := bytes.Index(b, []byte("SNOD"))
	damaged := slices.Clone(b)
	n := int(binary.LittleEndian.Uint16(b[node+6:]))
	for i := range n {
		binary.LittleEndian.PutUint64(damaged[node+8+40*i+8:], root)
	}
	var corrupt *ckptfmt.CorruptError
	if _, err := open(damaged); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "within itself") {
		t.Errorf("the error is %v", err)
	}
	tree := bytes.Index(b, []byte("TREE"))
	damaged = slices.Clone(b)
	damaged[tree+5] = 1 // a node that is its own child
	binary.LittleEndian.PutUint64(damaged[tree+32:], uint64(tree))
	if _, err := open(damaged); !errors.As(err, &corrupt) {
		t.Errorf("the error is %v", err)
	}
}

func TestGiantClaimsAreDamage(t *testing.T) {
	b := fixture(t, "old.h5")
	shape := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 60), 100)
	for at := bytes.Index(b, shape); at >= 0; {
		damaged := slices.Clone(b)
		binary.LittleEndian.PutUint64(damaged[at:], 1<<50)
		if r, err := open(damaged); err == nil {
			for _, p := range r.Parts() {
				if size, err := p.Size(); err == nil && size > 1<<30 {
					t.Errorf("%s has %d bytes", p.Name, size)
				}
			}
		}
		next := bytes.Index(b[at+1:], shape)
		if next < 0 {
			break
		}
		at += 1 + next
	}
}

func FuzzHDF5(f *testing.F) {
	for _, name := range []string{"old.h5", "latest.h5", "../keras/model.h5", "../keras/model.weights.h5"} {
		f.Add(fixture(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := open(b)
		if err != nil {
			return
		}
		for path := range r.Paths() {
			_, _ = r.Attr(path, "name")
		}
		for _, p := range r.Parts() {
			if size, err := p.Size(); err == nil && size < 1<<24 {
				if got, err := p.Load(); err == nil && p.Open != nil && int64(len(got.Data)) != size {
					t.Fatalf("%s has %d bytes, want %d", p.Name, len(got.Data), size)
				}
			}
		}
	})
}

// TestLengthsOf4Bytes reads a file whose lengths have fewer bytes than its addresses.
func TestLengthsOf4Bytes(t *testing.T) {
	r, err := open(fixture(t, "sizes.h5"))
	if err != nil {
		t.Fatal(err)
	}
	got := load(t, r.Parts())
	for name, want := range map[string]string{"group/values": "\x00\x00\x01\x00\x02\x00", "growing": "\x00\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00"} {
		if have := got[name]; have == nil || string(have.Data) != want {
			t.Errorf("%s is %v, want %q", name, have, want)
		}
	}
	if have := got["words"]; have == nil || string(bytes.Join(have.Strings, []byte("|"))) != "a|bcd|" {
		t.Errorf("words are %v", have)
	}
	if got, err := r.Attr("", "name"); err != nil || !slices.Equal(got, []string{"text"}) {
		t.Errorf("the attribute is %q, %v", got, err)
	}
}
