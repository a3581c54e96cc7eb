//go:build unix

package found

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestNoCopyWithSteps has a program whose checkpoints have steps: none is copied.
func TestNoCopyWithSteps(t *testing.T) {
	dir := childtest.Logdir(t, "last.pt", "ckpt-1.pt")
	s := openStore(t, dir, "*.pt")
	if added, _ := s.Refresh(true); len(added) != 2 {
		t.Fatal(added)
	}
	if records, _ := manifest.Records(dir); len(records) != 2 || records[0].Copy != "" || records[1].Copy != "" {
		t.Errorf("records %+v", records)
	}
}

// TestCopyOfOneThatChanges has a program that overwrites its checkpoint while that is
// being verified: what is known of it names the copy that there is.
func TestCopyOfOneThatChanges(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "last.safetensors")
	s := openStore(t, dir, "last*")
	for save := range 3 {
		childtest.Write(t, name, childtest.TensorsOf(10+save))
		verdicts := s.Verify(t.Context(), s.Candidates(true))
		if save == 1 {
			childtest.Write(t, name, childtest.TensorsOf(99)[:100+save])
		}
		s.Accept(verdicts)
		for _, err := range s.unrecorded {
			t.Errorf("save %d: %v", save, err)
		}
	}
	for k, r := range s.records {
		if _, err := os.Stat(filepath.Join(dir, r.Copy)); err != nil {
			t.Errorf("the record of %v names a copy that is not there: %v", k, err)
		}
	}
}

// TestCopyOnBadDisk lets each operation fail of making a copy, and of bringing it back: each
// is an error, no half of a copy is left, and the copy that there is stays needed.
func TestCopyOnBadDisk(t *testing.T) {
	for n := 1; ; n++ {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, "last.bin"), "weights")
		s := openStore(t, dir, "last.bin")
		whole := s.disk
		s.Refresh(true)
		r := s.records[keyOf("last.bin", false)]

		making := faultfs.NewFault(faultfs.Fault{At: n})
		s.disk = making
		_, err := s.copyAside(t.Context(), s.known[0], r)
		if copies, _ := os.ReadDir(filepath.Join(dir, CopiesDir)); err == nil != (making.Failed() == "") || err != nil && len(copies) != 1 {
			t.Errorf("making it, %s: %v, copies %v", making.Failed(), err, copies)
		}

		childtest.Must(t, os.Remove(filepath.Join(dir, "last.bin")))
		bringing := faultfs.NewFault(faultfs.Fault{At: n})
		s.disk = bringing
		restored, needed, err := s.restore(t.Context(), r)
		failed := bringing.Failed() != "" && !strings.HasPrefix(bringing.Failed(), "link ") // else it is copied
		if restored == failed || needed != failed || (err != nil) != failed {
			t.Errorf("bringing it back, %s: %v, %v, %v", bringing.Failed(), restored, needed, err)
		}
		s.disk = whole
		childtest.Must(t, s.forget(s.known[0]))
		records, bad := manifest.Records(dir)
		if _, err := os.Stat(s.abs(r.Copy)); err == nil || len(records) > 0 || bad != nil {
			t.Errorf("once it is forgotten: records %v, %v, and a copy", records, bad)
		}
		if making.Failed() == "" && bringing.Failed() == "" {
			if n < 6 {
				t.Errorf("only %d operations", n)
			}
			break
		}
	}
}

// TestCopyStaysOnBadDisk lets each operation fail of recording a checkpoint that was written
// over another: whatever fails, a verified copy of one of the two is recorded.
func TestCopyStaysOnBadDisk(t *testing.T) {
	for n := 1; ; n++ {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, "last.bin"), "weights")
		s := openStore(t, dir, "last.bin")
		s.Refresh(true)
		childtest.Write(t, filepath.Join(dir, "last.bin"), "newer weights")
		disk := faultfs.NewFault(faultfs.Fault{At: n})
		s.disk = disk
		s.Refresh(true)
		records, bad := manifest.Records(dir)
		if len(records) != 1 || bad != nil {
			t.Fatalf("%s: records %v, %v", disk.Failed(), records, bad)
		}
		for _, r := range records {
			if r.Copy == "" {
				t.Errorf("%s: no copy is recorded", disk.Failed())
			} else if err := r.VerifyCopy(t.Context(), s.root); err != nil {
				t.Errorf("%s: %v", disk.Failed(), err)
			}
		}
		if disk.Failed() == "" {
			if n < 8 {
				t.Errorf("only %d operations", n)
			}
			break
		}
	}
}

// TestCopyIsVerified has a disk that takes other bytes for a copy than those that it was
// given: the checkpoint has no copy then.
func TestCopyIsVerified(t *testing.T) {
	dir := t.TempDir()
	childtest.Write(t, filepath.Join(dir, "last.bin"), "weights")
	s := openStore(t, dir, "last.bin")
	s.disk = lyingDisk{s.disk}
	if added, bad := s.Refresh(true); len(added) != 1 || bad != nil || len(s.unrecorded) != 1 || copied(added[0].record) != "" {
		t.Errorf("added %v, bad %v, unrecorded %v", added, bad, s.unrecorded)
	}
	if copies, err := os.ReadDir(filepath.Join(dir, CopiesDir)); err != nil || len(copies) != 0 {
		t.Errorf("copies %v, %v", copies, err)
	}
}

// lyingDisk keeps "WEIGHTS" for "weights".
type lyingDisk struct{ atomicfile.FS }

func (d lyingDisk) Create(name string) (atomicfile.File, error) {
	f, err := d.FS.Create(name)
	return lyingFile{f}, err
}

type lyingFile struct{ atomicfile.File }

func (f lyingFile) Write(b []byte) (int, error) {
	return f.File.Write(bytes.ReplaceAll(b, []byte("weights"), []byte("WEIGHTS")))
}

// TestCopyOfOverwritten has programs that save to one name again and again, and are
// killed in a save: they continue from the save before.
func TestCopyOfOverwritten(t *testing.T) {
	for _, files := range [][]string{{"last.safetensors"}, {"out/last/model.safetensors", "out/last/optim/a.safetensors"}} {
		dir := t.TempDir()
		pattern := "last*"
		if len(files) > 1 {
			pattern = "out/last"
		}
		write := func(text string) {
			for _, name := range files {
				childtest.Write(t, filepath.Join(dir, name), text)
			}
		}
		for life := 1; life <= 3; life++ {
			s := openStore(t, dir, pattern)
			if bad := s.ReadRecords(); bad != nil {
				t.Fatal(bad)
			}
			s.Refresh(true)
			if err := s.Sweep(); err != nil {
				t.Fatal(err)
			}
			clearDamaged(t.Context(), s)
			c, ok := s.Newest()
			if ok != (life > 1) {
				t.Fatalf("life %d begins with %v, %v", life, c, ok)
			}
			for _, name := range files {
				if got, err := os.ReadFile(filepath.Join(dir, name)); life > 1 && (err != nil || string(got) != childtest.TensorsOf(10*life-10)) {
					t.Errorf("life %d: %s is not that of the save before: %v", life, name, err)
				}
			}
			for save := 1; save <= 2; save++ { // the second replaces the copy of the first
				write(childtest.TensorsOf(10*life - 10*(2-save)))
				if added, bad := s.Refresh(true); len(added) != 1 || bad != nil {
					t.Fatalf("life %d: added %v, bad %v", life, added, bad)
				}
			}
			if copies, err := os.ReadDir(filepath.Join(dir, CopiesDir)); err != nil || len(copies) != 1 {
				t.Errorf("life %d: copies %v, %v", life, copies, err)
			}
			write(childtest.TensorsOf(99)[:100])
		}
	}
}

// TestGoneOfSeveral has programs whose only checkpoint is in a folder of its own for each start,
// or that overwrite several: the newest is gone, as after a kill between its removal and the
// next save, while older ones are there. An older one that is gone was not about to be replaced.
func TestGoneOfSeveral(t *testing.T) {
	for name, tc := range map[string]struct {
		pattern, first, second, gone string
		want                         bool
	}{
		"a folder for each start":            {"*/last.safetensors", "run_1/last.safetensors", "run_2/last.safetensors", "run_2/last.safetensors", true},
		"a folder for each start, the older": {"*/last.safetensors", "run_1/last.safetensors", "run_2/last.safetensors", "run_1/last.safetensors", false},
		"two in turn":                        {"*.safetensors", "a.safetensors", "b.safetensors", "b.safetensors", true},
		"two in turn, the older":             {"*.safetensors", "a.safetensors", "b.safetensors", "a.safetensors", false},
	} {
		dir := t.TempDir()
		s := openStore(t, dir, tc.pattern)
		for i, file := range []string{tc.first, tc.second} {
			childtest.Write(t, filepath.Join(dir, file), childtest.TensorsOf(10+i))
			at := time.Unix(1_700_000_000+int64(i), 0)
			childtest.Must(t, os.Chtimes(filepath.Join(dir, file), at, at))
			s.Refresh(true)
		}
		childtest.Must(t, os.Remove(filepath.Join(dir, tc.gone)))
		s = openStore(t, dir, tc.pattern)
		s.ReadRecords()
		s.Refresh(true)
		for _, c := range s.Gone() {
			if restored, _, err := s.BringBack(t.Context(), c); err != nil || !restored {
				t.Errorf("%s: brought back is %v, %v", name, restored, err)
			}
		}
		s.Refresh(true)
		if _, err := os.Stat(filepath.Join(dir, tc.gone)); err == nil != tc.want {
			t.Errorf("%s: it is back: %v, want %v", name, err == nil, tc.want)
		}
		if c, ok := s.Newest(); !ok || c.Path != filepath.Join(dir, tc.second) {
			t.Errorf("%s: the newest is %v, want %s", name, c.Path, tc.second)
		}
	}
}

// TestVerifyNewCopy has copies that are not what the record says, or that are that and damaged: the program has
// overwritten the checkpoint while it was read.
func TestVerifyNewCopy(t *testing.T) {
	whole := childtest.Tensors()
	for what, tc := range map[string]struct {
		recorded, copied string // "" for no file
		intact           bool
	}{
		"the same":                    {whole, whole, true},
		"other bytes":                 {whole, strings.Replace(whole, "12345678", "12345679", 1), false},
		"none":                        {whole, "", false},
		"half a save, and its record": {whole[:20], whole[:20], false},
	} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, "last.safetensors"), tc.recorded)
		childtest.Write(t, filepath.Join(dir, "x", "other.safetensors"), whole)
		if tc.copied != "" {
			childtest.Write(t, filepath.Join(dir, "x", "last.safetensors"), tc.copied)
		}
		s := openStore(t, dir, "last*")
		files, err := manifest.Describe(t.Context(), s.root, []string{"last.safetensors"})
		childtest.Must(t, err)
		if err := s.verifyNewCopy(t.Context(), "x", []string{"x"}, &manifest.Record{Files: files}); (err == nil) != tc.intact {
			t.Errorf("%s: %v", what, err)
		}
	}
	dir := childtest.Logdir(t, "last.bin", "x/other.bin")
	childtest.Must(t, os.Symlink("../last.bin", filepath.Join(dir, "x", "last.bin")))
	s := openStore(t, dir, "last*")
	files, err := manifest.Describe(t.Context(), s.root, []string{"last.bin"})
	childtest.Must(t, err)
	if err := s.verifyNewCopy(t.Context(), "x", []string{"x"}, &manifest.Record{Files: files}); err == nil {
		t.Error("a link to the checkpoint is a copy")
	}
}
