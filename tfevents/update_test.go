package tfevents

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

// TestIndexUpdate lets the files of a run grow by any number of bytes, damage
// included: an index that is updated holds what a new one does.
func TestIndexUpdate(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		fsys, run := fstest.MapFS{}, Run{}
		o := &RunOptions{Purge: []Purge{PurgeExact, KeepAll, PurgeDataServer}[random.IntN(3)]}
		x := ReadRun(fsys, run, o)
		for i := range 1 + random.IntN(3) {
			name := fmt.Sprintf("%d.tfevents", i)
			run.Files = append(run.Files, name)
			whole := randomSession(random)
			if random.IntN(3) == 0 && o.Purge != PurgeDataServer {
				whole[random.IntN(len(whole))] ^= 0x40
			}
			for have := 0; have < len(whole); {
				have = min(len(whole), have+1+random.IntN(200))
				fsys[name] = &fstest.MapFile{Data: whole[:have]}
				if changed, ok := x.Update(run.Files); !changed || !ok {
					t.Fatalf("seed %d: Update = %v, %v after %s has grown to %d bytes", seed, changed, ok, name, have)
				}
				checkIndexed(t, x, readInMemory(fsys, run, o))
			}
		}
		if changed, ok := x.Update(run.Files); changed || !ok {
			t.Fatalf("seed %d: Update = %v, %v without a change", seed, changed, ok)
		}
	}
}

// TestIndexUpdateZeros fills the place of zeros, as a network file system does.
func TestIndexUpdateZeros(t *testing.T) {
	whole := eventsFile(t, losses(1, 1, 50)...).Data
	torn := slices.Clone(whole)
	clear(torn[len(whole)/2:])
	fsys := fstest.MapFS{"a.tfevents": {Data: torn}}
	run := Run{Files: []string{"a.tfevents"}}
	x := ReadRun(fsys, run, nil)
	if len(x.Damage) == 0 {
		t.Error("zeros are no damage")
	}
	fsys["a.tfevents"] = &fstest.MapFile{Data: whole, ModTime: fsys["a.tfevents"].ModTime.Add(1)}
	if changed, ok := x.Update(run.Files); !changed || !ok {
		t.Fatalf("Update = %v, %v", changed, ok)
	}
	checkIndexed(t, x, readInMemory(fsys, run, nil))
	if x.Lookup("loss").Len() != 50 {
		t.Errorf("%d points, want 50", x.Lookup("loss").Len())
	}
}

// TestIndexUpdateFilledHole fills zeros, or repairs a byte, that intact records follow.
func TestIndexUpdateFilledHole(t *testing.T) {
	whole := eventsFile(t, losses(1, 1, 50)...).Data
	for _, damage := range []func(b []byte){func(b []byte) { clear(b[len(b)/3 : len(b)/2]) }, func(b []byte) { b[len(b)/2] ^= 1 }} {
		torn := slices.Clone(whole)
		damage(torn)
		fsys := fstest.MapFS{"a.tfevents": {Data: torn}}
		run := Run{Files: []string{"a.tfevents"}}
		x := ReadRun(fsys, run, nil)
		fsys["a.tfevents"] = &fstest.MapFile{Data: whole, ModTime: fsys["a.tfevents"].ModTime.Add(1)}
		if changed, ok := x.Update(run.Files); ok {
			t.Errorf("%d damaged: Update = %v, %v", len(x.Damage), changed, ok)
		}
	}
}

// TestIndexUpdateRefuses: what an index has read may be gone.
func TestIndexUpdateRefuses(t *testing.T) {
	content := map[string][]byte{"a.tfevents": eventsFile(t, losses(1, 1, 5)...).Data, "b.tfevents": eventsFile(t, losses(2, 6, 9)...).Data}
	more := append(slices.Clone(content["a.tfevents"]), content["b.tfevents"]...)
	grown := append(slices.Clone(content["b.tfevents"]), scalarAt(10)...)
	rewritten := append(eventsFile(t, append(losses(3, 6, 6), losses(2, 7, 9)...)...).Data, scalarAt(10)...)
	replace := func(dir string, b []byte) error {
		if err := os.WriteFile(filepath.Join(dir, "new"), b, 0o600); err != nil {
			return err
		}
		return os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "b.tfevents"))
	}
	for what, change := range map[string]func(dir string) error{
		"the first file has grown": func(dir string) error { return os.WriteFile(filepath.Join(dir, "a.tfevents"), more, 0o600) },
		"the last file is shorter": func(dir string) error { return os.Truncate(filepath.Join(dir, "b.tfevents"), 30) },
		"a file is gone":           func(dir string) error { return os.Remove(filepath.Join(dir, "a.tfevents")) },
		"a longer one was copied over the last file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "b.tfevents"), more, 0o600)
		},
		"a file comes before":                     func(dir string) error { return os.WriteFile(filepath.Join(dir, "0.tfevents"), more, 0o600) },
		"a file was replaced":                     func(dir string) error { return replace(dir, more) },
		"a file was replaced by one that ends so": func(dir string) error { return replace(dir, rewritten) },
		"fine: touched, as one that has grown": func(dir string) error {
			return os.Chtimes(filepath.Join(dir, "b.tfevents"), time.Time{}, time.Unix(1, 0))
		},
		"fine: nothing": func(dir string) error { return nil },
		"fine: the last file has grown": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "b.tfevents"), grown, 0o600)
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			for name, b := range content {
				if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			find := func() []string {
				runs, err := FindRuns(os.DirFS(dir), ".")
				if err != nil || len(runs) != 1 {
					t.Fatal(runs, err)
				}
				return runs[0].Files
			}
			x := ReadRun(os.DirFS(dir), Run{Files: find()}, nil)
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			if changed, ok := x.Update(find()); ok != strings.HasPrefix(what, "fine: ") || ok && changed != strings.HasSuffix(what, "has grown") {
				t.Errorf("Update = %v, %v", changed, ok)
			}
		})
	}
}

// TestIndexUpdateAfterDamage: where a loader has stopped in a file, it reads no more of it.
func TestIndexUpdateAfterDamage(t *testing.T) {
	whole := eventsFile(t, losses(1, 1, 5)...).Data
	damaged := slices.Clone(whole)
	damaged[len(damaged)-1] ^= 1
	fsys, run := fstest.MapFS{"a.tfevents": {Data: damaged}}, Run{Files: []string{"a.tfevents"}}
	x := ReadRun(fsys, run, &RunOptions{Purge: PurgePython})
	fsys["a.tfevents"] = &fstest.MapFile{Data: append(whole, scalarAt(6)...)} // repaired, and longer
	if _, ok := x.Update(run.Files); !ok || x.Lookup("loss").Len() != 4 || len(x.Damage) != 1 {
		t.Errorf("Update = %v: %d points, damage %v", ok, x.Lookup("loss").Len(), x.Damage)
	}
	fsys["a.tfevents"] = &fstest.MapFile{Data: whole[:len(whole)-1]}
	x = ReadRun(fsys, run, nil)
	if changed, ok := x.Update(run.Files); changed || !ok {
		t.Errorf("a torn record that stays torn: Update = %v, %v", changed, ok)
	}
}

// failingFS has files that cannot be opened, or whose reading fails after so many bytes.
type failingFS struct {
	fstest.MapFS
	name  string
	after int64 // negative: opening fails
}

func (f failingFS) Open(name string) (fs.File, error) {
	file, err := f.MapFS.Open(name)
	if err != nil || name != f.name {
		return file, err
	}
	if f.after < 0 {
		file.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	return &failingFile{file, f.after}, nil
}

type failingFile struct {
	fs.File
	left int64
}

func (f *failingFile) Seek(offset int64, whence int) (int64, error) {
	f.left -= offset
	return f.File.(io.Seeker).Seek(offset, whence)
}

func (f *failingFile) Read(b []byte) (int, error) {
	if f.left <= 0 {
		return 0, &fs.PathError{Op: "read", Path: "x", Err: syscall.EIO}
	}
	n, err := f.File.Read(b[:min(len(b), int(f.left))])
	f.left -= int64(n)
	return n, err
}

// TestIndexUpdateAfterFailures: too many open files, or a disk of another machine that
// does not answer, are not a property of a file: what was not read is read later, although
// the file has not changed.
func TestIndexUpdateAfterFailures(t *testing.T) {
	files := fstest.MapFS{"1.tfevents": eventsFile(t, losses(1, 1, 30)...), "2.tfevents": eventsFile(t, losses(2, 31, 60)...)}
	run := Run{Files: []string{"1.tfevents", "2.tfevents"}}
	want := readInMemory(files, run, nil)
	size := int64(len(files["2.tfevents"].Data))
	for _, name := range run.Files {
		for _, after := range []int64{-1, 0, 5, size / 2, size - 1} {
			fsys := &failingFS{files, name, after}
			x := ReadRun(fsys, run, nil)
			if len(x.Damage) != 1 || x.Lookup("loss").Len() >= 60 {
				t.Fatalf("%s fails after %d: %d points, %v", name, after, x.Lookup("loss").Len(), x.Damage)
			}
			if changed, ok := x.Update(run.Files); !ok || changed && name == run.Files[0] {
				t.Errorf("%s still fails: Update = %v, %v", name, changed, ok)
			}
			fsys.name = ""
			changed, ok := x.Update(run.Files)
			if name == run.Files[0] {
				if ok {
					t.Errorf("%s can be read again: Update = %v, %v, want the run indexed again", name, changed, ok)
				}
				continue
			}
			if !changed || !ok {
				t.Errorf("%s can be read again: Update = %v, %v", name, changed, ok)
			}
			checkIndexed(t, x, want)
		}
	}
}
