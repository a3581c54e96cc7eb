package integrity_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
)

// tensors is a .safetensors file of one tensor.
const tensors = "\x36\x00\x00\x00\x00\x00\x00\x00" + `{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}` + "12345678"

func rootOf(t *testing.T, files map[string]string) *os.Root {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// TestCheckCuts cuts a folder's file at each byte: no part of it is intact.
func TestCheckCuts(t *testing.T) {
	for n := range len(tensors) {
		root := rootOf(t, map[string]string{"c-1/model.safetensors": tensors[:n], "c-1/config.json": "{}"})
		if err := integrity.Check(t.Context(), root, []string{"c-1"}, nil); err == nil {
			t.Errorf("%d of %d bytes are intact", n, len(tensors))
		}
	}
	root := rootOf(t, map[string]string{"c-1/model.safetensors": tensors, "c-1/config.json": "{}"})
	if err := integrity.Check(t.Context(), root, []string{"c-1"}, nil); err != nil {
		t.Errorf("all bytes: %v", err)
	}
}

// TestMarkers holds checkpoints against an intact one of the same program.
func TestMarkers(t *testing.T) {
	root := rootOf(t, map[string]string{
		"c-1/model.safetensors": tensors, "c-1/done": "", "c-1/rank_0.json": "{}", "c-1/x.log": "x",
		"c-2/model.safetensors": tensors, "c-2/done": "", "c-2/rank_1.json": "{}", "c-3/model.safetensors": tensors, "best-3/model.safetensors": tensors,
		"a-1.safetensors": tensors, "a-1.json": "{}", "a-2.safetensors": tensors, "b-2.safetensors": tensors,
	})
	folder, files := integrity.Markers(root, []string{"c-1"}), integrity.Markers(root, []string{"a-1.json", "a-1.safetensors"})
	if want := []string{"c-#", "c-#/done", "c-#/model.safetensors"}; !slices.Equal(folder, want) {
		t.Errorf("markers %v, want %v", folder, want)
	}
	for _, tc := range []struct {
		name    string
		markers []string
		whole   bool
	}{
		{"c-2", folder, true}, {"c-3", folder, false}, {"best-3", folder, true}, {"a-2.safetensors", files, false}, {"b-2.safetensors", files, true}, {"c-3", nil, true},
	} {
		err := integrity.Check(t.Context(), root, []string{tc.name}, tc.markers)
		if errors.Is(err, integrity.ErrUnmarked) == tc.whole || (err == nil) != tc.whole {
			t.Errorf("%s by %v: %v", tc.name, tc.markers, err)
		}
	}
}

// TestDistributed reads a folder that torch.distributed.checkpoint wrote, as it is,
// and with a file that is cut or has a changed byte.
func TestDistributed(t *testing.T) {
	const from = "../../fixtures/dcp/folder"
	for _, tc := range []struct {
		name   string
		harm   func(b []byte) []byte
		intact bool
	}{
		{"as it is", func(b []byte) []byte { return b }, true},
		{"cut", func(b []byte) []byte { return b[:len(b)/2] }, false},
		{"changed", func(b []byte) []byte {
			before, _, _ := bytes.Cut(b, []byte("/data/0")) // in the header of a tensor's entry
			at := bytes.LastIndex(before, []byte("PK\x03\x04"))
			length := func(i int) int { return int(binary.LittleEndian.Uint16(b[at+i:])) }
			b[at+30+length(26)+length(28)] ^= 1
			return b
		}, false},
	} {
		files := map[string]string{}
		for _, name := range []string{".metadata", "__0_0.distcp", "__1_0.distcp"} {
			b, err := os.ReadFile(filepath.Join(from, name))
			if err != nil {
				t.Fatal(err)
			}
			if name == "__1_0.distcp" {
				b = tc.harm(b)
			}
			files["step_5/"+name] = string(b)
		}
		if err := integrity.Check(t.Context(), rootOf(t, files), []string{"step_5"}, nil); (err == nil) != tc.intact {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestDistributedWithOthers has a folder in which some tensors are of types that this reader does not know: a
// changed byte of another is found all the same.
func TestDistributedWithOthers(t *testing.T) {
	const from = "../../fixtures/dcp/odd"
	files := map[string]string{}
	for _, name := range []string{".metadata", "__0_0.distcp"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		files["step_5/"+name] = string(b)
	}
	if err := integrity.Check(t.Context(), rootOf(t, files), []string{"step_5"}, nil); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := integrity.Check(stopped, rootOf(t, files), []string{"step_5"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a look that was stopped has found out %v", err)
	}
	shard := files["step_5/__0_0.distcp"]
	at := strings.Index(shard, "\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40") // of the tensor "plain", the last
	if at < 0 {
		t.Fatal("the fixture does not have the elements that it should")
	}
	files["step_5/__0_0.distcp"] = shard[:at+2] + "\xff" + shard[at+3:]
	if err := integrity.Check(t.Context(), rootOf(t, files), []string{"step_5"}, nil); err == nil {
		t.Error("a changed byte is not found")
	}
}

func ExampleFormat() {
	for _, files := range [][]string{{"ckpt-5.pt"}, {"c-5/model.safetensors", "c-5/trainer_state.json"}, {"c-5/.metadata", "c-5/__0_0.distcp"}, {"m.ckpt-5.index"}, {"5.weights"}} {
		fmt.Println(integrity.Format(files))
	}
	// Output:
	// torch
	// transformers
	// dcp
	// bundle
	// other
}

// A sum of entries says what an archive has, unless it does not say that itself, or is not all of the file.
func TestSumOfArchive(t *testing.T) {
	archive := func(method uint16, texts ...string) string {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for i, text := range texts {
			extra := []byte("FB\x03\x00ZZZ") // as torch.save pads entries
			e, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(i), Method: method, Extra: extra})
			if err == nil {
				_, err = e.Write([]byte(text))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	sum := func(name, text string) string {
		s, ok := integrity.OwnSums(rootOf(t, map[string]string{name: text}), []string{name}, 0)[name]
		if ok != (s != "") {
			t.Errorf("%q, %v", s, ok)
		}
		return s
	}
	stored := archive(zip.Store, "a", "")
	one := sum("c.pt", stored)
	if one == "" || one != sum("c.pt", archive(zip.Deflate, "a", "")) || one == sum("c.pt", archive(zip.Store, "b", "")) || one == sum("c.pt", archive(zip.Store, "a")) {
		t.Errorf("the sum of an archive is %q", one)
	}
	lengths := strings.Repeat("\x00", 26) + "\x26\x00\x00\x00"                     // of a name, in a header that ends with the first of the archive
	unsummed := strings.ReplaceAll(stored, "\x43\xbe\xb7\xe8", "\x00\x00\x00\x00") // the sum of "a"
	for _, tt := range []struct{ name, text string }{
		{"c.pt", ""}, {"c.pt", "text"}, {"c.pt", archive(zip.Store)}, {"c.pt", stored[:50]}, {"c.pt", unsummed},
		{"c.pt", "what the program has to say of it" + stored}, {"c.pt", lengths + stored}, {"c.pt", archive(zip.Store, "another") + stored},
		{"__0_0.distcp", stored}, {"__0_0.DISTCP", stored},
	} {
		if got := sum(tt.name, tt.text); got != "" {
			t.Errorf("%s with %q has the sum %s", tt.name, tt.text, got)
		}
	}
}

// What is read of files passes through what the caller gives, also of the smallest.
func TestCheckThrough(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, text := range []string{"", "a", strings.Repeat("more", 100_000)} {
		e, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(len(text)), Method: zip.Store})
		if err == nil {
			_, err = e.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"c/a.pt": b.String(), "c/b.txt": ""}
	through := map[string]int{}
	err := integrity.CheckThrough(t.Context(), rootOf(t, files), []string{"c"}, nil, func(name string, f *os.File) io.ReaderAt {
		return readerFunc(func(p []byte, at int64) (int, error) {
			n, err := f.ReadAt(p, at)
			through[name] += n
			return n, err
		})
	})
	if len(through) != 1 || through["c/a.pt"] < b.Len() || err != nil {
		t.Errorf("%v of %d bytes, %v", through, b.Len(), err)
	}
	broken := errors.New("the disk is broken")
	err = integrity.CheckThrough(t.Context(), rootOf(t, files), []string{"c"}, nil, func(string, *os.File) io.ReaderAt {
		return readerFunc(func([]byte, int64) (int, error) { return 0, broken })
	})
	if !errors.Is(err, broken) {
		t.Errorf("of a broken disk: %v", err)
	}
}

type readerFunc func(p []byte, at int64) (int, error)

func (f readerFunc) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

// An entry may claim a size that no integer holds, with and without checksums.
func TestSizesOfEntries(t *testing.T) {
	for _, size := range []uint64{1 << 32, 1 << 63, math.MaxUint64} {
		for _, sum := range []uint32{0, 1} {
			var b bytes.Buffer
			w := zip.NewWriter(&b)
			f, err := w.CreateRaw(&zip.FileHeader{Name: "archive/data/0", CRC32: sum, CompressedSize64: size, UncompressedSize64: size})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write([]byte("text")); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			check(t, map[string]string{"a.pt": b.String()}, []string{"a.pt"}, "archive/data/0: ")
		}
	}
}
