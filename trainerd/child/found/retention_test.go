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

// TestRetained has what the store says of its checkpoints, and what it deletes where a program's next save needs room.
func TestRetained(t *testing.T) {
	never := retention.Each(func(retention.Checkpoint) string { return "" })
	for what, tc := range map[string]struct {
		names  string
		reused bool
		policy retention.Policy
		why    []string
		tight  []string // left for the next save
	}{
		"none":                  {"", false, retention.Last(2), nil, nil},
		"the last two":          {"w-1 w-2 w-3", false, retention.Last(2), []string{"", "among the last 2", "among the last 2"}, []string{"w-3"}},
		"the last one":          {"w-1 w-2", false, retention.Last(1), []string{"", "newest"}, []string{"w-2"}},
		"a step":                {"w-1 w-2 w-3", false, retention.Steps{2, 4}, []string{"", "step asked for", "newest"}, []string{"w-2", "w-3"}},
		"all":                   {"w-1 w-2", false, nil, []string{"all are kept", "all are kept"}, []string{"w-1", "w-2"}},
		"no policy keeps any":   {"w-1 w-2", false, never, []string{"", "newest"}, []string{"w-2"}},
		"without a step":        {"w-last", false, retention.Last(1), []string{"its name has no step"}, []string{"w-last"}},
		"names in turn":         {"w-1 w-2", true, retention.Last(1), []string{"its name is used in turn", "its name is used in turn"}, []string{"w-1", "w-2"}},
		"steps that come again": {"w-e1-s1 w-e2-s1", true, retention.Last(1), []string{"", "newest"}, []string{"w-e2-s1"}},
	} {
		dir := t.TempDir()
		for i, name := range strings.Fields(tc.names) {
			writeAt(t, dir, name, "weights", 60-i)
		}
		var policies []retention.Policy
		if tc.policy != nil {
			policies = append(policies, tc.policy)
		}
		s := openStore(t, dir, "w-*", policies...)
		s.reused = tc.reused
		s.Refresh(true)
		var why []string
		for _, k := range s.Retained() {
			why = append(why, strings.ReplaceAll(strings.Join(k.Why, ", "), "among the last 1", "newest"))
		}
		if !slices.Equal(why, tc.why) {
			t.Errorf("%s: retained, and why: %q, want %q", what, why, tc.why)
		}
		_, err := s.MakeRoom()
		left := slices.DeleteFunc(childtest.Below(t, dir), func(name string) bool { return strings.HasPrefix(name, CopiesDir) })
		if err != nil || !slices.Equal(left, tc.tight) {
			t.Errorf("%s: left for the next save are %v, %v, want %v", what, left, err, tc.tight)
		}
	}
}

// TestRoomAtEachSave has a program whose save did not fit on the disk: from then on it has room for each.
func TestRoomAtEachSave(t *testing.T) {
	dir := childtest.Logdir(t, "w-1", "w-2")
	s := openStore(t, dir, "w-*", retention.Last(2))
	s.Refresh(true)
	if _, err := s.MakeRoom(); err != nil {
		t.Fatal(err)
	}
	childtest.Write(t, filepath.Join(dir, "w-3"), "weights")
	s.Refresh(true)
	if deleted, err := s.Rotate(); err != nil || !slices.Equal(steps(deleted), []int64{2}) {
		t.Errorf("after the next save, %v are deleted, %v", steps(deleted), err)
	}
}
