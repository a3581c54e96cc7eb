//go:build unix

package child

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// TestRecordFindsDamage changes a byte of a checkpoint whose format has no
// checksums, as a disk may do it: without a new time.
func TestRecordFindsDamage(t *testing.T) {
	dir := logdirOf(t, "ckpt-1.bin", "ckpt-2.bin")
	s := openShelf(t, dir, "ckpt-*")
	if added, bad := s.refresh(true); len(added) != 2 || bad != nil {
		t.Fatal(added, bad)
	}
	name := filepath.Join(dir, "ckpt-2.bin")
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	change := func(at time.Time) {
		t.Helper()
		writeFile(t, name, "CKPT-2.bin")
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	change(info.ModTime())
	s = openShelf(t, dir, "ckpt-*")
	s.readRecords()
	added, bad := s.refresh(true)
	if !slices.Equal(steps(added), []int64{1}) || len(bad) != 1 || !bad[0].damaged() {
		t.Errorf("a changed byte: added %v, bad %v", added, bad)
	}
	change(info.ModTime().Add(time.Second))
	s = openShelf(t, dir, "ckpt-*")
	s.readRecords()
	if added, bad := s.refresh(true); !slices.Equal(steps(added), []int64{1, 2}) || bad != nil {
		t.Errorf("written again: added %v, bad %v", added, bad)
	}
}

// TestRecordIsReadBeforeUse has a damaged older checkpoint, which is not read while
// there is a newer one, but before a program gets it.
func TestRecordIsReadBeforeUse(t *testing.T) {
	dir := logdirOf(t, "ckpt-1.bin", "ckpt-2.bin", "ckpt-3.bin")
	openShelf(t, dir, "ckpt-*").refresh(true)
	info, err := os.Stat(filepath.Join(dir, "ckpt-2.bin"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "ckpt-2.bin"), "CKPT-2.bin")
	if err := os.Chtimes(filepath.Join(dir, "ckpt-2.bin"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	s := openShelf(t, dir, "ckpt-*")
	s.readRecords()
	if added, bad := s.refresh(true); len(added) != 3 || bad != nil {
		t.Fatalf("at the start: %v, %v", added, bad)
	}
	if c, ok, bad := s.newestRead(t.Context(), noCeiling); !ok || c.Step != 3 || bad != nil {
		t.Errorf("the newest: %v, %v", c, bad)
	}
	if c, ok, bad := s.newestRead(t.Context(), 3); !ok || c.Step != 1 || len(bad) != 1 {
		t.Errorf("before step 3: %v, %v", c, bad)
	}
}

// TestChangedBeforeUse has an older checkpoint that is written again before a program gets
// it: what is there then is not known, and the one before is taken.
func TestChangedBeforeUse(t *testing.T) {
	dir := logdirOf(t, "ckpt-1.bin", "ckpt-2.bin", "ckpt-3.bin")
	openShelf(t, dir, "ckpt-*").refresh(true)
	s := openShelf(t, dir, "ckpt-*")
	s.readRecords()
	s.refresh(true)
	writeFile(t, filepath.Join(dir, "ckpt-2.bin"), "about to be written")
	if c, ok, bad := s.newestRead(t.Context(), 3); !ok || c.Step != 1 || bad != nil {
		t.Errorf("got %v, %v", c, bad)
	}
}

// TestReadWholeAfterDamage has a damaged newest checkpoint: the one before is the newest
// intact one, and is read whole.
func TestReadWholeAfterDamage(t *testing.T) {
	dir := logdirOf(t, "ckpt-1.bin", "ckpt-2.bin")
	openShelf(t, dir, "ckpt-*").refresh(true)
	writeFile(t, filepath.Join(dir, "ckpt-3.safetensors"), "x")
	s := openShelf(t, dir, "ckpt-*")
	s.readRecords()
	if s.refresh(true); len(s.known) != 2 || s.known[1].unread || !s.known[0].unread {
		t.Errorf("known %+v", s.known)
	}
}

// TestMetricsOfCopiedLogdir has a checkpoint whose files got a new time, and about
// which the program reports more by now: both count.
func TestMetricsOfCopiedLogdir(t *testing.T) {
	dir := logdirOf(t, "ckpt-1.bin")
	for i, name := range []string{"loss", "acc"} {
		at := time.Unix(1_000_000+int64(i), 0)
		must(t, os.Chtimes(filepath.Join(dir, "ckpt-1.bin"), at, at))
		s := openShelf(t, dir, "ckpt-*")
		s.readRecords()
		s.metrics = func(*Checkpoint) checkpoint.Measurements {
			return checkpoint.Measurements{}.With(name, checkpoint.Measurement{Value: 0.5, Step: 1})
		}
		s.refresh(true)
		if got := s.known[0].stored().Metrics; len(got) != i+1 {
			t.Errorf("look %d: policies see %v", i, got)
		}
	}
}

// TestRecordWithoutParts has a record that says of no file: it is passed over.
func TestRecordWithoutParts(t *testing.T) {
	s := openShelf(t, logdirOf(t, "ckpt-1.bin"), "ckpt-*")
	must(t, (&manifest.Record{Name: "ckpt-7.bin", Step: 7}).Write(s.disk, s.root.Name()))
	if s.readRecords(); len(s.records) > 0 {
		t.Errorf("records %v", s.records)
	}
}

// TestCountsWithoutCopy has a disk that does not take the copy of a checkpoint that the
// program overwrites: it counts, and the log will say so.
func TestCountsWithoutCopy(t *testing.T) {
	dir := logdirOf(t, "last.bin")
	s := openShelf(t, dir, "last*")
	s.disk = pickyDisk{s.disk, dir, func(op, name string) bool { return op == "mkdir" && name == copiesDir }}
	if added, bad := s.refresh(true); len(added) != 1 || bad != nil || len(s.unrecorded) != 1 {
		t.Errorf("added %v, bad %v, unrecorded %v", added, bad, s.unrecorded)
	}
}

// TestMeasuredLater has metrics that are reported once the checkpoint of their step is
// recorded, one after the other, and again by a run that continues.
func TestMeasuredLater(t *testing.T) {
	dir := logdirOf(t, "ckpt-1.bin", "ckpt-2.bin")
	for _, names := range [][]string{{"loss", "acc"}, {"auc"}} {
		s := openShelf(t, dir, "ckpt-*")
		s.readRecords()
		s.refresh(true)
		for _, name := range names {
			must(t, s.measure(2, checkpoint.Measurements{}.With(name, checkpoint.Measurement{Value: 0.5, Step: 7, Source: "eval"})))
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

// TestBestStays keeps the newest checkpoint and the one with the lowest loss, also
// after a restart, and in a copy of the logdir whose files have the time of the copy.
func TestBestStays(t *testing.T) {
	script := ""
	for step, loss := range []float64{1: 0.9, 0.2, 0.5, 0.4, 0.6} {
		if step > 0 {
			script += fmt.Sprintf("say step=%d val/loss=%v;write ckpt-%d;", step, loss, step)
		}
	}
	sv, out := supervise(t, script+"|resume 6;write ckpt-6")
	sv.Retention = []retention.Policy{retention.Last(1), retention.Best{Metric: "val/loss"}}
	sv.LookEvery = time.Hour // at the end alone: a program's lines may come after its files
	for _, want := range [][]string{{"ckpt-2", "ckpt-5"}, {"ckpt-2", "ckpt-6"}} {
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatalf("%v; output %q", err, out)
		}
		left, err := filepath.Glob(filepath.Join(sv.Logdir, "ckpt-*"))
		for i := range left {
			left[i] = filepath.Base(left[i])
		}
		if err != nil || !slices.Equal(left, want) {
			t.Errorf("left %v, want %v", left, want)
		}
		sv.Env = []string{"CHILD_SCRIPT=resume 6;write ckpt-6"}
		for _, name := range left {
			if err := os.Chtimes(filepath.Join(sv.Logdir, name), time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	records, bad := manifest.Records(sv.Logdir)
	if len(records) != 2 || bad != nil {
		t.Fatalf("%d manifests, %v", len(records), bad)
	}
	if v, _, ok := records[0].Manifest().Value("val/loss"); records[0].Step != 2 || !ok || v != 0.2 {
		t.Errorf("manifest of step %d has val/loss %v", records[0].Step, v)
	}
}

// TestBestStaysInCopiedLogdir has a logdir whose files got new times, as those of
// git, of an archive or of an object store do: the best checkpoint stays, with its
// time. One that was written again is another model.
func TestBestStaysInCopiedLogdir(t *testing.T) {
	sv, out := supervise(t, "say step=1 loss=0.9;write ckpt-1;say step=2 loss=0.2;write ckpt-2;say step=3 loss=0.5;write ckpt-3;say step=4 loss=0.6;write ckpt-4")
	sv.Retention = []retention.Policy{retention.Last(2), retention.Best{Metric: "loss"}}
	sv.LookEvery = time.Hour
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatalf("%v; output %q", err, out)
	}
	before, _ := manifest.Records(sv.Logdir)
	for _, name := range []string{"ckpt-2", "ckpt-3", "ckpt-4"} {
		if err := os.Chtimes(filepath.Join(sv.Logdir, name), time.Now(), time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(sv.Logdir, "ckpt-3"), "other weights")
	sv.Env = []string{"CHILD_SCRIPT=resume 5;say step=5 loss=0.7;write ckpt-5;say step=6 loss=0.8;write ckpt-6"}
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatalf("%v; output %q", err, out)
	}
	if left := below(t, sv.Logdir); !slices.Contains(left, "ckpt-2") || slices.Contains(left, "ckpt-3") {
		t.Errorf("left %v", left)
	}
	after, bad := manifest.Records(sv.Logdir)
	if len(after) != 3 || bad != nil || !after[0].WallTime.Equal(before[0].WallTime) {
		t.Errorf("%d manifests, %v; the first of %v", len(after), bad, after[0].WallTime)
	}
}

// TestDamagedNewestKeepOneKilled has a program that is killed in each of its saves,
// and a retention of one: the last good one stays until there is another.
func TestDamagedNewestKeepOneKilled(t *testing.T) {
	sv, out := supervise(t, "write ckpt-10;steps 1 10;tear ckpt-20.safetensors;kill 9|env STEP;list ckpt-*;steps 11 20;tear ckpt-20.safetensors;kill 9|env STEP;list ckpt-*;steps 11 20;write ckpt-20")
	sv.Retention = []retention.Policy{retention.Last(1)}
	if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 3 {
		t.Fatalf("Run = %+v, %v; output %q", exit, err, out)
	}
	if want := "STEP is \"10\"\nfound ckpt-10\nSTEP is \"10\"\nfound ckpt-10\n"; out.String() != want {
		t.Errorf("output %q, want %q", out, want)
	}
	left := below(t, sv.Logdir)
	if !slices.Contains(left, "ckpt-20") || slices.Contains(left, "ckpt-10") {
		t.Errorf("left %v", left)
	}
}

// TestFolderThatWasCutBetweenFiles has folders whose files are all intact, and one of
// which lacks what the one before it has.
func TestFolderThatWasCutBetweenFiles(t *testing.T) {
	dir, st := t.TempDir(), tensorsFile()
	write := func(step int, names ...string) {
		t.Helper()
		for _, name := range names {
			writeFile(t, filepath.Join(dir, fmt.Sprintf("checkpoint-%d", step), name), st)
		}
	}
	write(10, "model.safetensors", "optimizer.safetensors")
	openShelf(t, dir, "checkpoint-*").refresh(true)
	write(20, "model.safetensors")
	s := openShelf(t, dir, "checkpoint-*", retention.Last(1)) // of the next run
	s.readRecords()
	if added, bad := s.refresh(true); !slices.Equal(steps(added), []int64{10}) || len(bad) != 1 {
		t.Fatalf("added %v, bad %v", added, bad)
	}
	if deleted, err := s.rotate(); deleted != nil || err != nil {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	write(30, "model.safetensors") // this is what its checkpoints are like now
	s.refresh(true)
	if c, ok := s.newest(noCeiling); !ok || c.Step != 30 {
		t.Errorf("once two have no optimizer: the newest is %v", c)
	}
}

// TestNewerRecord has a record of a later version, and one that is damaged: a run does not
// begin over the first, which has more than it could keep, and it leaves the copies that
// the second may name.
func TestNewerRecord(t *testing.T) {
	for text, code := range map[string]bool{`{"version": 2, "name": "last"}`: false, `{"version": `: true} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(*simProgram) int { return 0 })
			record := filepath.Join(sv.Logdir, manifest.RecordName("last", NoStep))
			copied := filepath.Join(sv.Logdir, copiesDir, "x", "last")
			writeFile(t, record, text)
			writeFile(t, copied, "weights")
			_, err := sv.Run(t.Context())
			if ok := err == nil; ok != code || !ok && !strings.Contains(err.Error(), "it has version 2, this reads 1; a newer trainerd has trained here") {
				t.Errorf("record %s: Run = %v; log:\n%s", text, err, log)
			}
			for _, name := range []string{record, copied} {
				if _, err := os.Stat(name); err != nil {
					t.Errorf("record %s: %v", text, err)
				}
			}
		})
	}
}
