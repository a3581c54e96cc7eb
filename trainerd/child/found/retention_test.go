//go:build unix

package found

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestRotateOnBadDisk has each operation of the removal of a checkpoint fail: that is an
// error, and it is removed with the next try.
func TestRotateOnBadDisk(t *testing.T) {
	for what, fails := range map[string]func(op, name string) bool{
		"a new name":            func(op, name string) bool { return op == "rename" && name != "." },
		"the new name, durably": func(op, name string) bool { return op == "sync" && name == "." },
		"the file":              func(op, name string) bool { return op == "remove" && !strings.Contains(name, "/") },
		"the record":            func(op, name string) bool { return op == "remove" && strings.Contains(name, "/") },
		"the record, durably":   func(op, name string) bool { return op == "sync" && name == manifest.RecordsDir },
	} {
		dir := childtest.Logdir(t, "ckpt-1", "ckpt-2", "ckpt-3")
		s := openStore(t, dir, "ckpt-*", retention.Last(1))
		s.Refresh(true)
		whole, failed := s.disk, 0
		s.disk = childtest.PickyDisk{FS: whole, Logdir: dir, Fails: func(op, name string) bool {
			if !fails(op, name) || failed > 0 {
				return false
			}
			failed++
			return true
		}}
		if deleted, err := s.Rotate(); err == nil || failed != 1 || !slices.Equal(steps(deleted), []int64{2}) {
			t.Errorf("%s: deleted %v, %v", what, deleted, err)
		}
		if s.Refresh(true); what == "the record" { // nobody knows it any more, but the next start
			s = openStore(t, dir, "ckpt-*", retention.Last(1))
			s.ReadRecords()
			s.Refresh(true)
		}
		if _, err := s.Rotate(); err != nil {
			t.Errorf("%s: again: %v", what, err)
		}
		childtest.Must(t, s.Sweep())
		if got := childtest.Below(t, dir); !slices.Equal(got, []string{"ckpt-3"}) || len(s.records) != 1 {
			t.Errorf("%s: left %v, and records %v", what, got, s.records)
		}
		if left, bad := manifest.Records(dir); len(left) != 1 || bad != nil {
			t.Errorf("%s: left are records %v, %v", what, left, bad)
		}
	}
}

// TestSweep has what a killed run may have left: it goes, and what is named stays.
func TestSweep(t *testing.T) {
	dir := childtest.Logdir(t, "last.bin", "c/other.bin")
	s := openStore(t, dir, "{last.bin,c/other.bin}")
	s.Refresh(true)
	want := append(childtest.Below(t, dir), "note")
	for _, name := range []string{"note", CopiesDir + "/left/last.bin", rel(t, dir, atomicfile.TempName(filepath.Join(dir, "x"))), rel(t, dir, atomicfile.TempName(filepath.Join(dir, "c/x")))} {
		childtest.Write(t, filepath.Join(dir, name), "left")
	}
	whole := s.disk
	s.disk = childtest.PickyDisk{FS: whole, Logdir: dir, Fails: func(op, name string) bool { return op == "remove" && strings.Contains(name, "left") }}
	if err := s.Sweep(); err == nil {
		t.Error("a copy that cannot be removed is no error")
	}
	s.disk = whole
	childtest.Must(t, s.Sweep())
	if got := childtest.Below(t, dir); !slices.Equal(sorted(got), sorted(want)) {
		t.Errorf("left %v, want %v", got, want)
	}
	if err := s.removeAll(s.abs("none")); !isGoneFile(err) {
		t.Errorf("what is not there is removed: %v", err)
	}
}

// TestSparedStays has a checkpoint that a rewind may need, and that no policy keeps.
func TestSparedStays(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1", "ckpt-2", "ckpt-3")
	s := openStore(t, dir, "ckpt-*", retention.Last(1))
	s.Refresh(true)
	s.opts.Spared = func() []string { return []string{s.abs("ckpt-1")} }
	if deleted, err := s.Rotate(); err != nil || !slices.Equal(steps(deleted), []int64{2}) {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	if why := s.Retained()[0].Why; !slices.Equal(why, []string{"the loss was finite after it"}) {
		t.Errorf("it is kept because %q", why)
	}
}

// TestUnpinnedGoes: a checkpoint that is unpinned goes with the next rotation.
func TestUnpinnedGoes(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1", "ckpt-2")
	s := openStore(t, dir, "ckpt-*", retention.Last(1))
	s.Refresh(true)
	childtest.Must(t, s.Pin(s.known[0]))
	if deleted, err := s.Rotate(); err != nil || len(deleted) > 0 || !slices.Equal(s.Retained()[0].Why, []string{"pinned"}) {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	childtest.Must(t, os.Remove(filepath.Join(dir, "ckpt-1.pin")))
	if deleted, err := s.Rotate(); err != nil || !slices.Equal(steps(deleted), []int64{1}) {
		t.Errorf("deleted %v, %v", deleted, err)
	}
}

// TestPinOnBadDisk: a pin that cannot be made is an error.
func TestPinOnBadDisk(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1")
	s := openStore(t, dir, "ckpt-*")
	s.Refresh(true)
	childtest.Must(t, s.Pin(s.known[0]))
	if _, err := os.Stat(filepath.Join(dir, "ckpt-1.pin")); err != nil {
		t.Error(err)
	}
	s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(string, string) bool { return true }}
	if s.Pin(s.known[0]) == nil {
		t.Error("no error")
	}
}

// TestKeepsTheProgramsBest has checkpoints of transformers. The newest one names the
// one that is loaded at the end.
func TestKeepsTheProgramsBest(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "checkpoint-*", retention.Last(1))
	for _, step := range []string{"1", "2", "3"} {
		folder := filepath.Join(dir, "checkpoint-"+step)
		childtest.Write(t, filepath.Join(folder, "model.safetensors"), childtest.Tensors())
		childtest.Write(t, filepath.Join(folder, "trainer_state.json"), `{"best_model_checkpoint": "`+filepath.Join(dir, "checkpoint-1")+`", "log_history": []}`)
		if added, bad := s.Refresh(true); len(added) != 1 || bad != nil {
			t.Fatalf("added %v, bad %v", added, bad)
		}
		if _, err := s.Rotate(); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	for _, c := range s.known {
		left = append(left, filepath.Base(c.Path))
	}
	if !slices.Equal(left, []string{"checkpoint-1", "checkpoint-3"}) {
		t.Errorf("left are %v", left)
	}
}

func rel(t *testing.T, dir, name string) string {
	t.Helper()
	below, err := filepath.Rel(dir, name)
	childtest.Must(t, err)
	return below
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// TestSavedIsRecorded has a checkpoint whose files got a new time since it was recorded:
// policies see that of the record.
func TestSavedIsRecorded(t *testing.T) {
	old := time.Unix(1_000_000, 0)
	c := Checkpoint{Saved: time.Now(), record: &manifest.Record{WallTime: old}}
	if got := c.stored().Saved; !got.Equal(old) {
		t.Errorf("it was saved at %v", got)
	}
}
