//go:build unix

package found

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/machine"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestRecordFindsDamage changes a byte of a checkpoint whose format has no
// checksums, as a disk may do it: without a new time.
func TestRecordFindsDamage(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1.bin", "ckpt-2.bin")
	s := openStore(t, dir, "ckpt-*")
	if added, bad := s.Refresh(true); len(added) != 2 || bad != nil {
		t.Fatal(added, bad)
	}
	name := filepath.Join(dir, "ckpt-2.bin")
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	change := func(at time.Time) {
		t.Helper()
		childtest.Write(t, name, "CKPT-2.bin")
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	change(info.ModTime())
	s = openStore(t, dir, "ckpt-*")
	s.ReadRecords()
	added, bad := s.Refresh(true)
	if !slices.Equal(steps(added), []int64{1}) || len(bad) != 1 || !bad[0].Damaged() {
		t.Errorf("a changed byte: added %v, bad %v", added, bad)
	}
	change(info.ModTime().Add(time.Second))
	s = openStore(t, dir, "ckpt-*")
	s.ReadRecords()
	if added, bad := s.Refresh(true); !slices.Equal(steps(added), []int64{1, 2}) || bad != nil {
		t.Errorf("written again: added %v, bad %v", added, bad)
	}
}

// TestRecordIsReadBeforeUse has a damaged older checkpoint, which is not read while
// there is a newer one, but before a program gets it.
func TestRecordIsReadBeforeUse(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1.bin", "ckpt-2.bin", "ckpt-3.bin")
	openStore(t, dir, "ckpt-*").Refresh(true)
	info, err := os.Stat(filepath.Join(dir, "ckpt-2.bin"))
	if err != nil {
		t.Fatal(err)
	}
	childtest.Write(t, filepath.Join(dir, "ckpt-2.bin"), "CKPT-2.bin")
	if err := os.Chtimes(filepath.Join(dir, "ckpt-2.bin"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, dir, "ckpt-*")
	s.ReadRecords()
	if added, bad := s.Refresh(true); len(added) != 3 || bad != nil {
		t.Fatalf("at the start: %v, %v", added, bad)
	}
	if c, ok, bad := s.BeforeRead(t.Context(), nil); !ok || c.Step != 3 || bad != nil {
		t.Errorf("the newest: %v, %v", c, bad)
	}
	if c, ok, bad := s.BeforeRead(t.Context(), &Checkpoint{Step: 3}); !ok || c.Step != 1 || len(bad) != 1 {
		t.Errorf("before step 3: %v, %v", c, bad)
	}
}

// TestChangedBeforeUse has an older checkpoint that is written again before a program gets
// it: what is there then is not known, and the one before is taken.
func TestChangedBeforeUse(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1.bin", "ckpt-2.bin", "ckpt-3.bin")
	openStore(t, dir, "ckpt-*").Refresh(true)
	s := openStore(t, dir, "ckpt-*")
	s.ReadRecords()
	s.Refresh(true)
	childtest.Write(t, filepath.Join(dir, "ckpt-2.bin"), "about to be written")
	if c, ok, bad := s.BeforeRead(t.Context(), &Checkpoint{Step: 3}); !ok || c.Step != 1 || bad != nil {
		t.Errorf("got %v, %v", c, bad)
	}
}

// TestReadWholeAfterDamage has a damaged newest checkpoint: the one before is the newest
// intact one, and is read whole.
func TestReadWholeAfterDamage(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1.bin", "ckpt-2.bin")
	openStore(t, dir, "ckpt-*").Refresh(true)
	childtest.Write(t, filepath.Join(dir, "ckpt-3.safetensors"), "x")
	s := openStore(t, dir, "ckpt-*")
	s.ReadRecords()
	if s.Refresh(true); len(s.known) != 2 || s.known[1].unread || !s.known[0].unread {
		t.Errorf("known %+v", s.known)
	}
}

// TestMetricsOfCopiedLogdir has a checkpoint whose files got a new time, and about
// which the program reports more by now: both count.
func TestMetricsOfCopiedLogdir(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1.bin")
	for i, name := range []string{"loss", "acc"} {
		at := time.Unix(1_000_000+int64(i), 0)
		childtest.Must(t, os.Chtimes(filepath.Join(dir, "ckpt-1.bin"), at, at))
		s := openStore(t, dir, "ckpt-*")
		s.ReadRecords()
		s.opts.Metrics = func(*Checkpoint) checkpoint.Measurements {
			return checkpoint.Measurements{}.With(name, checkpoint.Measurement{Value: 0.5, Step: 1})
		}
		s.Refresh(true)
		if got := s.known[0].stored().Metrics; len(got) != i+1 {
			t.Errorf("look %d: policies see %v", i, got)
		}
	}
}

// TestRecordWithoutParts has a record that says of no file: it is passed over.
func TestRecordWithoutParts(t *testing.T) {
	s := openStore(t, childtest.Logdir(t, "ckpt-1.bin"), "ckpt-*")
	childtest.Must(t, (&manifest.Record{Name: "ckpt-7.bin", Step: 7}).Write(s.disk, s.root.Name()))
	if s.ReadRecords(); len(s.records) > 0 {
		t.Errorf("records %v", s.records)
	}
}

// TestCountsWithoutCopy has a disk that does not take the copy of a checkpoint that the
// program overwrites: it counts, and the log will say so.
func TestCountsWithoutCopy(t *testing.T) {
	dir := childtest.Logdir(t, "last.bin")
	s := openStore(t, dir, "last*")
	s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, name string) bool { return op == "mkdir" && name == CopiesDir }}
	if added, bad := s.Refresh(true); len(added) != 1 || bad != nil || len(s.unrecorded) != 1 {
		t.Errorf("added %v, bad %v, unrecorded %v", added, bad, s.unrecorded)
	}
}

// TestMeasuredLater has metrics that are reported once the checkpoint of their step is
// recorded, one after the other, and again by a run that continues.
func TestMeasuredLater(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1.bin", "ckpt-2.bin")
	for _, names := range [][]string{{"loss", "acc"}, {"auc"}} {
		s := openStore(t, dir, "ckpt-*")
		s.ReadRecords()
		s.Refresh(true)
		for _, name := range names {
			childtest.Must(t, s.Measure(2, checkpoint.Measurements{}.With(name, checkpoint.Measurement{Value: 0.5, Step: 7, Source: "eval"})))
		}
		if got := s.known[1].stored().Metrics; len(got) < len(names) || got[names[0]] != 0.5 {
			t.Errorf("policies see %v", got)
		}
		if s.records[key{step: 2}] != s.known[1].record {
			t.Error("the record that is known is another")
		}
	}
	records, bad := manifest.Records(dir)
	if len(records) != 2 || bad != nil || len(records[0].Metrics) > 0 {
		t.Fatalf("records %+v, %v", records, bad)
	}
	want := map[string]manifest.Measurement{"loss": {Step: 2, Source: "eval"}, "acc": {Step: 2, Source: "eval"}, "auc": {Step: 2, Source: "eval"}}
	if got := records[1]; !maps.Equal(got.Measured, want) || len(got.Metrics) != len(want) {
		t.Errorf("recorded are %v of %v, want %v", got.Metrics, got.Measured, want)
	}
}

// TestFolderThatWasCutBetweenFiles has folders whose files are all intact, and one of
// which lacks what the one before it has.
func TestFolderThatWasCutBetweenFiles(t *testing.T) {
	dir, st := t.TempDir(), childtest.Tensors()
	write := func(step int, names ...string) {
		t.Helper()
		for _, name := range names {
			childtest.Write(t, filepath.Join(dir, fmt.Sprintf("checkpoint-%d", step), name), st)
		}
	}
	write(10, "model.safetensors", "optimizer.safetensors")
	openStore(t, dir, "checkpoint-*").Refresh(true)
	write(20, "model.safetensors")
	s := openStore(t, dir, "checkpoint-*", retention.Last(1)) // of the next run
	s.ReadRecords()
	if added, bad := s.Refresh(true); !slices.Equal(steps(added), []int64{10}) || len(bad) != 1 {
		t.Fatalf("added %v, bad %v", added, bad)
	}
	if deleted, err := s.Rotate(); deleted != nil || err != nil {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	write(30, "model.safetensors") // this is what its checkpoints are like now
	s.Refresh(true)
	if c, ok := s.Newest(); !ok || c.Step != 30 {
		t.Errorf("once two have no optimizer: the newest is %v", c)
	}
}

// TestUntouchedIsNotReadAgain has a newest checkpoint that was verified by a run before, a moment ago or
// long ago: only the latter is read before the program gets it.
func TestUntouchedIsNotReadAgain(t *testing.T) {
	if machine.BootID() == "" {
		t.Skip("this system does not say when files were changed")
	}
	dir := childtest.Logdir(t, "ckpt-1.bin")
	isDated := func() bool {
		openStore(t, dir, "ckpt-*").Refresh(true)
		records, _ := manifest.Records(dir)
		return len(records) == 1 && !records[0].Files[0].Changed.IsZero()
	}
	for !isDated() { // it might change once more without another time
		time.Sleep(10 * time.Millisecond)
	}
	for age, reads := range map[time.Duration]bool{time.Minute: false, 24 * time.Hour: true} {
		records, _ := manifest.Records(dir)
		r := records[0]
		r.Verified = time.Now().Add(-age)
		r.Files[0].SHA256 = strings.Repeat("0", 64) // which a look at the bytes would find
		childtest.Must(t, r.Write(nil, dir))
		s := openStore(t, dir, "ckpt-*")
		s.ReadRecords()
		s.Refresh(true)
		if _, ok, bad := s.BeforeRead(t.Context(), nil); ok == reads || (len(s.NewestDamaged()) > 0) != reads {
			t.Errorf("verified %v ago: it is there: %v, bad %v", age, ok, bad)
		}
	}
}
