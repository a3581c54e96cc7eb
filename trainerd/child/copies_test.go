//go:build unix

package child

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

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
				writeFile(t, filepath.Join(dir, name), text)
			}
		}
		r := &run{Supervisor: &Supervisor{}, log: discard, counts: &counts{}}
		for life := 1; life <= 3; life++ {
			r.store = openShelf(t, dir, pattern)
			if bad := r.store.readRecords(); bad != nil {
				t.Fatal(bad)
			}
			r.store.refresh(true)
			if err := r.store.sweep(); err != nil {
				t.Fatal(err)
			}
			r.quarantineDamaged(t.Context())
			c, ok := r.store.newest(noCeiling)
			if ok != (life > 1) {
				t.Fatalf("life %d begins with %v, %v", life, c, ok)
			}
			for _, name := range files {
				if got, err := os.ReadFile(filepath.Join(dir, name)); life > 1 && (err != nil || string(got) != tensorsOf(10*life-10)) {
					t.Errorf("life %d: %s is not that of the save before: %v", life, name, err)
				}
			}
			for save := 1; save <= 2; save++ { // the second replaces the copy of the first
				write(tensorsOf(10*life - 10*(2-save)))
				if added, bad := r.store.refresh(true); len(added) != 1 || bad != nil {
					t.Fatalf("life %d: added %v, bad %v", life, added, bad)
				}
			}
			if copies, err := os.ReadDir(filepath.Join(dir, copiesDir)); err != nil || len(copies) != 1 {
				t.Errorf("life %d: copies %v, %v", life, copies, err)
			}
			write(tensorsOf(99)[:100])
		}
	}
}

// TestNoCopyWithSteps has a program whose checkpoints have steps: none is copied.
func TestNoCopyWithSteps(t *testing.T) {
	dir := logdirOf(t, "last.pt", "ckpt-1.pt")
	s := openShelf(t, dir, "*.pt")
	if added, _ := s.refresh(true); len(added) != 2 {
		t.Fatal(added)
	}
	if records, _ := manifest.Records(dir); len(records) != 2 || records[0].Copy != "" || records[1].Copy != "" {
		t.Errorf("records %+v", records)
	}
}

// TestCopyOfOneThatIsGone has a program that removes its only checkpoint before it
// renames the next, and is killed in between. One that has ended well may have done
// without it.
func TestCopyOfOneThatIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		end  string
		dies bool // this process, too
		want bool
	}{
		"killed":             {"kill 9", false, true},
		"ended, begun again": {"exit 0", false, false},
		"all were killed":    {"exit 0", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			sv, out := supervise(t, "")
			sv.Checkpoints = "last*"
			script := "write last;steps 1 3;await " + manifest.RecordName("last", NoStep) + ";remove last;" + tc.end
			sv.Env = []string{"CHILD_SCRIPT=" + script + "|list last*"}
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if tc.dies {
				writeFile(t, filepath.Join(sv.Logdir, logdir.LockFile), `{"host":"a","pid":1}`)
			}
			if !tc.want || tc.dies {
				sv.Env = []string{"CHILD_SCRIPT=list last*"}
				if _, err := sv.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Contains(out.String(), "found last"); got != tc.want {
				t.Errorf("the next start has it: %v, want %v\n%s", got, tc.want, out)
			}
		})
	}
}

// TestCopyOfOneThatChanges has a program that overwrites its checkpoint while that is
// being verified: what is known of it names the copy that there is.
func TestCopyOfOneThatChanges(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "last.safetensors")
	s := openShelf(t, dir, "last*")
	for save := range 3 {
		writeFile(t, name, tensorsOf(10+save))
		verdicts := s.verify(t.Context(), s.candidates(true))
		if save == 1 {
			writeFile(t, name, tensorsOf(99)[:100+save])
		}
		s.accept(verdicts)
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

// TestCopySurvivesItsReturn lets each operation fail, or be the last before a kill, of
// giving a program its checkpoint back: the copy is the only one that is intact, and the
// next start has it.
func TestCopySurvivesItsReturn(t *testing.T) {
	synctest.Test(t, copySurvivesItsReturn) // a disk that does not take it is asked again
}

func copySurvivesItsReturn(t *testing.T) {
	const pattern = "out/last.{json,safetensors}"
	files := []string{"out/last.json", "out/last.safetensors"}
	for _, kill := range []bool{false, true} {
		for n := 1; ; n++ {
			dir := t.TempDir()
			r := &run{Supervisor: &Supervisor{}, log: discard, counts: &counts{}}
			look := func() {
				r.store = openShelf(t, dir, pattern)
				r.store.disk = atomicfile.NoSync(r.store.disk)
				if bad := r.store.readRecords(); bad != nil {
					t.Fatal(bad)
				}
				r.store.refresh(true)
			}
			look()
			for i, text := range []string{`{"step":1}`, tensorsOf(10)} {
				writeFile(t, filepath.Join(dir, files[i]), text)
				if err := os.Chtimes(filepath.Join(dir, files[i]), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
			if added, bad := r.store.refresh(true); len(added) != 1 || bad != nil {
				t.Fatalf("added %v, bad %v", added, bad)
			}
			writeFile(t, filepath.Join(dir, files[1]), tensorsOf(99)[:100])

			look()
			fsys := faultfs.NewFault(faultfs.Fault{At: n, Kill: kill})
			r.store.disk = fsys
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			r.quarantineDamaged(ctx)
			cancel()
			failed := fsys.Failed()

			look()
			r.bringBackGone(t.Context())
			if err := r.store.sweep(); err != nil {
				t.Error(err)
			}
			r.quarantineDamaged(t.Context())
			got, err := os.ReadFile(filepath.Join(dir, files[1]))
			if c, ok := r.store.newest(noCeiling); !ok || len(c.files) != 2 || err != nil || string(got) != tensorsOf(10) {
				t.Errorf("kill %v, %s: the next start has %v; %d bytes, %v", kill, failed, c, len(got), err)
			}
			if failed == "" {
				if n < 8 {
					t.Errorf("only %d operations", n)
				}
				break
			}
		}
	}
}

// TestCopyOnBadDisk lets each operation fail of making a copy, and of bringing it back: each
// is an error, no half of a copy is left, and the copy that there is stays needed.
func TestCopyOnBadDisk(t *testing.T) {
	for n := 1; ; n++ {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "last.bin"), "weights")
		s := openShelf(t, dir, "last.bin")
		whole := s.disk
		s.refresh(true)
		r := s.records[keyOf("last.bin")]
		if restored, needed, err := s.restore(t.Context(), nil); restored || needed || err != nil {
			t.Errorf("without a record: %v, %v, %v", restored, needed, err)
		}

		making := faultfs.NewFault(faultfs.Fault{At: n})
		s.disk = making
		_, err := s.copyAside(t.Context(), s.known[0], r)
		if copies, _ := os.ReadDir(filepath.Join(dir, copiesDir)); err == nil != (making.Failed() == "") || err != nil && len(copies) != 1 {
			t.Errorf("making it, %s: %v, copies %v", making.Failed(), err, copies)
		}

		must(t, os.Remove(filepath.Join(dir, "last.bin")))
		bringing := faultfs.NewFault(faultfs.Fault{At: n})
		s.disk = bringing
		restored, needed, err := s.restore(t.Context(), r)
		failed := bringing.Failed() != "" && !strings.HasPrefix(bringing.Failed(), "link ") // else it is copied
		if restored == failed || needed != failed || (err != nil) != failed {
			t.Errorf("bringing it back, %s: %v, %v, %v", bringing.Failed(), restored, needed, err)
		}
		s.disk = whole
		must(t, s.forget(s.known[0]))
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
		writeFile(t, filepath.Join(dir, "last.bin"), "weights")
		s := openShelf(t, dir, "last.bin")
		s.refresh(true)
		writeFile(t, filepath.Join(dir, "last.bin"), "newer weights")
		disk := faultfs.NewFault(faultfs.Fault{At: n})
		s.disk = disk
		s.refresh(true)
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
	writeFile(t, filepath.Join(dir, "last.bin"), "weights")
	s := openShelf(t, dir, "last.bin")
	s.disk = lyingDisk{s.disk}
	if added, bad := s.refresh(true); len(added) != 1 || bad != nil || len(s.unrecorded) != 1 || copied(added[0].record) != "" {
		t.Errorf("added %v, bad %v, unrecorded %v", added, bad, s.unrecorded)
	}
	if copies, err := os.ReadDir(filepath.Join(dir, copiesDir)); err != nil || len(copies) != 0 {
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
