//go:build unix

package child

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

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
	sv.ScanEvery = time.Hour // at the end alone: a program's lines may come after its files
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
	sv.ScanEvery = time.Hour
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatalf("%v; output %q", err, out)
	}
	before, _ := manifest.Records(sv.Logdir)
	for _, name := range []string{"ckpt-2", "ckpt-3", "ckpt-4"} {
		if err := os.Chtimes(filepath.Join(sv.Logdir, name), time.Now(), time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-3"), "other weights")
	sv.Env = []string{"CHILD_SCRIPT=resume 5;say step=5 loss=0.7;write ckpt-5;say step=6 loss=0.8;write ckpt-6"}
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatalf("%v; output %q", err, out)
	}
	if left := childtest.Below(t, sv.Logdir); !slices.Contains(left, "ckpt-2") || slices.Contains(left, "ckpt-3") {
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
	left := childtest.Below(t, sv.Logdir)
	if !slices.Contains(left, "ckpt-20") || slices.Contains(left, "ckpt-10") {
		t.Errorf("left %v", left)
	}
}

// TestNewerRecord has a record of a later version, and one that is damaged: a run does not
// begin over the first, which has more than it could keep, and it leaves the copies that
// the second may name.
func TestNewerRecord(t *testing.T) {
	for text, code := range map[string]bool{`{"version": 2, "name": "last"}`: false, `{"version": `: true} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(*simProgram) int { return 0 })
			record := filepath.Join(sv.Logdir, manifest.RecordName("last", found.NoStep))
			copied := filepath.Join(sv.Logdir, found.CopiesDir, "x", "last")
			childtest.Write(t, record, text)
			childtest.Write(t, copied, "weights")
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
