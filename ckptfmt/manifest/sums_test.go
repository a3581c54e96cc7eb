package manifest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
)

// folder writes files, and returns the folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSumsAreFoundNextToAFile(t *testing.T) {
	const text = "elements"
	sum := sha256Of([]byte(text))
	for name, files := range map[string]map[string]string{
		"SHA256SUMS":   {"SHA256SUMS": "# a list\n" + sum + "  m.safetensors\n"},
		"binary mode":  {"SHA256SUMS": sum + " *m.safetensors\r\n"},
		"with ./":      {"sha256sums.txt": sum + "  ./m.safetensors\n"},
		"BSD":          {"checksums.txt": "SHA256 (m.safetensors) = " + sum + "\n"},
		"of one file":  {"m.safetensors.sha256": sum + "  m.safetensors\n"},
		"the sum only": {"m.safetensors.sha256": sum + "\n"},
		"hub":          {".cache/huggingface/download/m.safetensors.metadata": "0123\n" + sum + "\n1700000000.5\n"},
	} {
		files["m.safetensors"] = text
		file := filepath.Join(folder(t, files), "m.safetensors")
		sums, bad := new(SumFinder).Find([]string{file})
		if len(sums) != 1 || len(bad) > 0 {
			t.Errorf("%s: sums are %v, %v", name, sums, bad)
			continue
		}
		if err := sums[0].Verify(context.Background()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.WriteFile(file, []byte("elementz"), 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *ckptfmt.CorruptError
		if err := sums[0].Verify(context.Background()); !errors.As(err, &corrupt) || !errors.Is(err, ckptfmt.ErrChecksum) {
			t.Errorf("%s: the error of a changed file is %v", name, err)
		}
	}
}

func TestOtherSumsAreNone(t *testing.T) {
	dir := folder(t, map[string]string{
		"m.npz": "x", "SHA256SUMS": "d41d8cd98f00b204e9800998ecf8427e  m.npz\n" + sha256Of(nil) + "  other\n",
		".cache/huggingface/download/m.npz.metadata": "0123\ne69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n1.5\n",
	})
	if sums, bad := new(SumFinder).Find([]string{filepath.Join(dir, "m.npz")}); len(sums)+len(bad) > 0 {
		t.Errorf("sums are %v, %v", sums, bad)
	}
}

func TestLinkIntoTheHubsCache(t *testing.T) {
	const text = "elements"
	dir := folder(t, map[string]string{"blobs/" + sha256Of([]byte(text)): text, "snapshots/1/x": ""})
	link := filepath.Join(dir, "snapshots", "1", "m.safetensors")
	if err := os.Symlink(filepath.Join("..", "..", "blobs", sha256Of([]byte(text))), link); err != nil {
		t.Skip(err)
	}
	sums, bad := new(SumFinder).Find([]string{link})
	if len(sums) != 1 || len(bad) > 0 {
		t.Fatalf("sums are %v, %v", sums, bad)
	}
	if err := sums[0].Verify(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestRecordsInAFolderAboveAreSums(t *testing.T) {
	dir := folder(t, map[string]string{"run/ck-5/m.safetensors": "elements", "run/copies/5/ck-5/m.safetensors": "elements"})
	file := filepath.Join(dir, "run", "ck-5", "m.safetensors")
	root, err := os.OpenRoot(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	files, err := Describe(context.Background(), root, []string{"ck-5/m.safetensors"})
	if err != nil {
		t.Fatal(err)
	}
	r := &Record{Name: "ck-5", Step: 5, Parts: []string{"ck-5"}, Files: files, Copy: "copies/5"}
	if err := r.Write(nil, filepath.Join(dir, "run")); err != nil {
		t.Fatal(err)
	}
	aside := filepath.Join(dir, "run", "copies", "5", "ck-5", "m.safetensors")
	sums, bad := new(SumFinder).Find([]string{file, aside})
	if len(sums) != 2 || len(bad) > 0 {
		t.Fatalf("sums are %v, %v", sums, bad)
	}
	for i, name := range []string{file, aside} {
		if err := sums[i].Verify(context.Background()); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(name, []byte("elementz"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	later := files[0].Modified.Add(time.Minute)
	if err := os.Chtimes(file, later, later); err != nil {
		t.Fatal(err)
	}
	if err := sums[0].Verify(context.Background()); !errors.Is(err, ErrOutdated) {
		t.Errorf("the error of a file that was written again is %v", err)
	}
	if err := os.Chtimes(file, files[0].Modified, files[0].Modified); err != nil {
		t.Fatal(err)
	}
	for i := range sums {
		var corrupt *ckptfmt.CorruptError
		if err := sums[i].Verify(context.Background()); !errors.As(err, &corrupt) {
			t.Errorf("the error of a damaged %s is %v", sums[i].File, err)
		}
	}
}
