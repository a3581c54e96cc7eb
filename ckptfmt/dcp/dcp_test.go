package dcp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dcp"
	"github.com/trainerd/trainerd/ckptfmt/npz"
	"github.com/trainerd/trainerd/ckptfmt/torch"
)

const fixture = "../../fixtures/dcp/"

// copied returns a folder of its own with the files of the fixture.
func copied(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(fixture+"folder")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPiecesMakeUpTheTensors(t *testing.T) {
	r, err := dcp.Open(fixture + "folder")
	if err != nil {
		t.Fatal(err)
	}
	tensors, err := ckptfmt.NewPartsReader(r.Parts(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := npz.Open(fixture + "want.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if len(want.Parts()) != len(r.Parts()) {
		t.Errorf("there are %d tensors, want %d", len(r.Parts()), len(want.Parts()))
	}
	for _, p := range want.Parts() {
		tensor, err := p.Load()
		if err != nil {
			t.Fatal(err)
		}
		got, err := tensors.Lookup(p.Name)
		if err != nil || !bytes.Equal(got.Data, tensor.Data) {
			t.Errorf("%s: %v, or other elements", p.Name, err)
		}
	}
	for key, want := range map[string]string{"step": "7", "note": "é", "list.1": "0.5"} {
		if got := r.Metadata()[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// What is in a folder next to tensors that cannot be read is read all the same, and nothing is
// called damage that is none.
func TestTypesThatTensorFlowDoesNotHave(t *testing.T) {
	r, err := dcp.Open(fixture + "odd")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"scale": "float8_e8m0fnu", "quantised": "qint8", "conjugated": "complex64", "plain": "float32"}
	for _, p := range r.Parts() {
		if p.TypeName() != want[p.Name] || (p.Err != nil) != (p.Name == "quantised") {
			t.Errorf("%s is %s, %v; want %s", p.Name, p.TypeName(), p.Err, want[p.Name])
		}
		delete(want, p.Name)
		if p.Name != "scale" {
			continue
		}
		from, err := p.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(from)
		if size, _ := p.Size(); err != nil || !bytes.Equal(b, []byte{0, 1, 2, 3, 4, 5}) || size != 6 {
			t.Errorf("scale is % x, %v, of %d bytes", b, err, size)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(want) > 0 {
		t.Errorf("these are not listed: %v", want)
	}
	for name, err := range r.Verify(t.Context()) {
		isOdd := name == "quantised" || name == "conjugated"
		if isOdd != errors.Is(err, ckptfmt.ErrType) || !isOdd && err != nil {
			t.Errorf("verify: %s: %v", name, err)
		}
	}
}

// A type of a later version of torch is listed, too.
func TestTypesOfLaterVersions(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(fixture+"odd")); err != nil {
		t.Fatal(err)
	}
	if err := replace(filepath.Join(dir, dcp.MetadataName), "float8_e8m0fnu", "float8_e9m9fnu"); err != nil {
		t.Fatal(err)
	}
	r, err := dcp.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Parts() {
		if p.Name == "scale" && (!errors.Is(p.Err, ckptfmt.ErrType) || p.TypeName() != "float8_e9m9fnu" || !strings.Contains(p.Err.Error(), `tensor "scale"`)) {
			t.Errorf("scale is %s, %v", p.TypeName(), p.Err)
		}
	}
}

func TestVerifyFindsFlippedBytes(t *testing.T) {
	if checks, err := dcp.Verify(context.Background(), fixture+"folder"); err != nil || !strings.Contains(checks, "CRC-32") {
		t.Fatalf("%q, %v", checks, err)
	}
	dir := copied(t)
	name := filepath.Join(dir, "__1_0.distcp")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte{5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0})
	if at < 0 {
		t.Fatal("the fixture does not have the elements that it should")
	}
	b[at] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var corrupt *ckptfmt.CorruptError
	if _, err := dcp.Verify(context.Background(), dir); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "model.columns") {
		t.Errorf("the error is %v", err)
	}
}

func TestDamagedFoldersAreErrors(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"no file":   func(dir string) error { return os.Remove(filepath.Join(dir, "__0_0.distcp")) },
		"cut file":  func(dir string) error { return os.Truncate(filepath.Join(dir, "__1_0.distcp"), 100) },
		"cut":       func(dir string) error { return os.Truncate(filepath.Join(dir, dcp.MetadataName), 1000) },
		"no pickle": func(dir string) error { return os.WriteFile(filepath.Join(dir, dcp.MetadataName), []byte("}"), 0o600) },
		"a dict": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, dcp.MetadataName), []byte("\x80\x02}."), 0o600)
		},
		"a command": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, dcp.MetadataName), []byte("\x80\x02cos\nsystem\n(X\x04\x00\x00\x00truetR."), 0o600)
		},
		"elsewhere": func(dir string) error {
			return replace(filepath.Join(dir, dcp.MetadataName), "__1_0.distcp", "../../../../")
		},
	} {
		dir := copied(t)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		_, err := dcp.Verify(context.Background(), dir) // what is in other files of the folder is listed
		var corrupt *ckptfmt.CorruptError
		var refused *torch.RefusedError
		if !errors.As(err, &corrupt) && !errors.As(err, &refused) && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func replace(name, old, with string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, bytes.ReplaceAll(b, []byte(old), []byte(with)), 0o600)
}

func FuzzDCP(f *testing.F) {
	b, err := os.ReadFile(fixture + "folder/" + dcp.MetadataName)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	dir := copied(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, dcp.MetadataName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := dcp.Open(dir)
		if err != nil {
			return
		}
		for _, p := range r.Parts() {
			if size, err := p.Size(); err != nil || size > 1<<20 {
				t.Fatalf("%s has %d bytes in files of a few KiB: %v", p.Name, size, err)
			}
			if got, err := p.Load(); err == nil && !slices.Equal(got.Shape, p.Shape) {
				t.Fatalf("%s has shape %v, want %v", p.Name, got.Shape, p.Shape)
			}
		}
	})
}
