//go:build unix

package child

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestDamagedWithoutStep has damaged checkpoints without a step, of which one is newer than
// the verified one: that alone is moved aside.
func TestDamagedWithoutStep(t *testing.T) {
	for _, verified := range []string{"last.bin", "ckpt-10.bin"} {
		dir := childtest.Logdir(t, "old.safetensors", verified, "new.safetensors")
		s := openShelf(t, dir, "*.*")
		s.Refresh(true)
		(&run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}).quarantineDamaged(t.Context())
		got := childtest.Below(t, dir)
		if !slices.Contains(got, "old.safetensors") || !slices.Contains(got, verified) || slices.Contains(got, "new.safetensors") {
			t.Errorf("left %v", got)
		}
	}
}

// TestOneOfTwoIsBroughtBack has two checkpoints that a program overwrites, one of which is
// damaged.
func TestOneOfTwoIsBroughtBack(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.safetensors", "b.safetensors"} {
		childtest.Write(t, filepath.Join(dir, name), childtest.Tensors())
	}
	s := openShelf(t, dir, "*.safetensors")
	s.Refresh(true)
	childtest.Write(t, filepath.Join(dir, "b.safetensors"), "x")
	s.Refresh(true)
	(&run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}).quarantineDamaged(t.Context())
	if got := childtest.Read(t, filepath.Join(dir, "b.safetensors")); got != childtest.Tensors() {
		t.Errorf("it has %q", got)
	}
}

// TestDeletedStaysDeleted has a checkpoint that the user has deleted, to begin again.
func TestDeletedStaysDeleted(t *testing.T) {
	dir := t.TempDir()
	childtest.Write(t, filepath.Join(dir, "last.safetensors"), childtest.Tensors())
	s := openShelf(t, dir, "last*")
	s.Refresh(true)
	childtest.Must(t, os.Remove(filepath.Join(dir, "last.safetensors")))
	s.Refresh(true)
	(&run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}).quarantineDamaged(t.Context())
	if _, err := os.Stat(filepath.Join(dir, "last.safetensors")); err == nil {
		t.Error("it is there again")
	}
}

// TestNothingIsBroughtBack has records of checkpoints that are gone, of which none is the one
// that the program was about to replace: another is there, it is none of the pattern, or it
// has no copy.
func TestNothingIsBroughtBack(t *testing.T) {
	for name, tc := range map[string]struct{ gone, there, pattern string }{
		"another is there":    {"last.safetensors", "last-b.safetensors", "last*"},
		"none of the pattern": {"last.safetensors", "", "ckpt*"},
		"without a copy":      {"ckpt-1.safetensors", "", "ckpt*"},
	} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, tc.gone), childtest.Tensors())
		openShelf(t, dir, tc.gone).Refresh(true)
		childtest.Must(t, os.Remove(filepath.Join(dir, tc.gone)))
		if tc.there != "" {
			childtest.Write(t, filepath.Join(dir, tc.there), childtest.Tensors())
		}
		log := newScreen()
		r := &run{Supervisor: &Supervisor{}, log: logTo(log), store: openShelf(t, dir, tc.pattern), counts: &counts{}}
		r.store.ReadRecords()
		r.store.Refresh(true)
		r.bringBackGone(t.Context())
		if _, err := os.Stat(filepath.Join(dir, tc.gone)); err == nil || log.String() != "" {
			t.Errorf("%s: it is there again, or that is said: %v\n%s", name, err, log)
		}
	}
}

// TestCopyIsBroughtBack has a damaged checkpoint that the program overwrites, whose copy is
// intact, or damaged too: then neither is given to the program, and no record is left.
func TestCopyIsBroughtBack(t *testing.T) {
	const name, done, failed = "last.safetensors", "brought back the last verified copy", "cannot bring back the copy"
	for _, intact := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			given := ""
			sv, log := simulate(t, func(p *simProgram) int {
				given = p.variable("TRAINERD_CHECKPOINT")
				return 0
			})
			sv.Checkpoints = "last*"
			file := filepath.Join(sv.Logdir, name)
			childtest.Write(t, file, childtest.Tensors())
			openShelf(t, sv.Logdir, "last*").Refresh(true)
			copies, err := filepath.Glob(filepath.Join(sv.Logdir, found.CopiesDir, "*", name))
			if err != nil || len(copies) != 1 {
				t.Fatal(copies, err)
			}
			want := file
			if childtest.Write(t, file, "x"); !intact {
				childtest.Write(t, copies[0], "x")
				want = ""
			}
			if _, err := sv.Run(t.Context()); err != nil || given != want {
				t.Errorf("Run = %v; the program was given %q, want %q", err, given, want)
			}
			if strings.Contains(log.String(), done) != intact || strings.Contains(log.String(), failed) == intact {
				t.Errorf("intact: %v; log:\n%s", intact, log)
			}
			if records, bad := manifest.Records(sv.Logdir); (len(records) == 1) != intact || bad != nil {
				t.Errorf("intact: %v; records %v, %v", intact, records, bad)
			}
		})
	}
}

// TestDiskTakesCopyLater has a disk that refuses to sync the logdir for an hour, just after the
// program has overwritten its only checkpoint, and a program that fails then: it is not started
// from the beginning, but from the copy, once the disk takes that.
func TestDiskTakesCopyLater(t *testing.T) {
	const name = "last.safetensors"
	synctest.Test(t, func(t *testing.T) {
		var sv *Supervisor
		full, given := time.Time{}, ""
		save := func(text string) {
			file := filepath.Join(sv.Logdir, name)
			childtest.Write(t, file, text)
			childtest.Must(t, os.Chtimes(file, time.Now(), time.Now()))
		}
		sv, log := simulate(t, func(p *simProgram) int {
			if given = p.variable("TRAINERD_CHECKPOINT"); given != "" {
				return 0
			}
			p.say("step=1")
			save(childtest.Tensors())
			p.sleep(10 * time.Minute)
			full = time.Now()
			p.say("step=2")
			save(childtest.Flip(childtest.Tensors(), len(childtest.Tensors())-1))
			p.sleep(10 * time.Minute)
			return 1
		})
		sv.Checkpoints = name
		picky(sv, func(op, below string) bool {
			return op == "sync" && below == "." && !full.IsZero() && time.Since(full) < time.Hour
		})
		if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2 || time.Since(full) < time.Hour || given == "" {
			t.Errorf("Run = %+v, %v; it was given %q\n%s", exit, err, given, log)
		}
	})
}

// TestLinkToNoSuchFile has a link to a file of a damaged folder that the one before does
// not have: it goes. A hard link that cannot be made leaves the old one.
func TestLinkToNoSuchFile(t *testing.T) {
	dir, st := t.TempDir(), childtest.Tensors()
	for name, text := range map[string]string{"epoch_1/a.safetensors": st, "epoch_2/a.safetensors": st[:20], "epoch_2/b.json": "{}"} {
		childtest.Write(t, filepath.Join(dir, name), text)
	}
	childtest.Must(t, os.Symlink("epoch_2/b.json", filepath.Join(dir, "b")))
	childtest.Must(t, os.Link(filepath.Join(dir, "epoch_2/a.safetensors"), filepath.Join(dir, "hard")))
	s := shelfOn(t, childtest.PickyDisk{FS: atomicfile.OrOS(nil), Logdir: dir, Fails: func(op, name string) bool {
		return op == "create" && strings.HasPrefix(name, ".trainerd-") // where links are not known
	}}, dir, "epoch_*")
	s.Refresh(true)
	log := newScreen()
	(&run{Supervisor: &Supervisor{}, log: logTo(log), store: s, counts: &counts{}}).quarantineDamaged(t.Context())
	if _, err := os.Lstat(filepath.Join(dir, "b")); !os.IsNotExist(err) {
		t.Errorf("the link is still there: %v", err)
	}
	if got := childtest.Read(t, filepath.Join(dir, "hard")); got != st[:20] || !strings.Contains(log.String(), "cannot correct what names the damaged checkpoint") {
		t.Errorf("the hard link has %q; log:\n%s", got, log)
	}
}

// TestWrittenAgainAfterQuarantine has a damaged checkpoint that was moved aside, and an
// intact one of the same name, size and time, as a copy that is brought back may be.
func TestWrittenAgainAfterQuarantine(t *testing.T) {
	dir, text := t.TempDir(), childtest.Tensors()
	name, at := filepath.Join(dir, "ckpt-1.safetensors"), time.Unix(1_700_000_000, 0)
	s := openShelf(t, dir, "ckpt-*")
	for _, text := range []string{strings.Replace(text, "{", "x", 1), text} {
		childtest.Write(t, name, text)
		childtest.Must(t, os.Chtimes(name, at, at))
		s.Refresh(true)
		(&run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}).quarantineDamaged(t.Context())
	}
	if c, ok := s.Newest(noCeiling); !ok || c.Step != 1 {
		t.Errorf("the newest is %v", c)
	}
}
