//go:build unix

package child

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestSpared has the checkpoints that a rewind may need: the newest that is good, and the
// one before as long as nothing has shown that; and where they were all saved after the last finite loss, though
// of earlier steps, the newest from before it.
func TestSpared(t *testing.T) {
	dir := childtest.Logdir(t, "0", "1", "2", "3", "4", "5")
	r := &run{store: openStore(t, dir, "?")}
	r.store.Refresh(true)
	r.store.Known()[3].OnTrial = true
	saved := func(step int) time.Time { return r.store.Known()[step].Saved }
	for _, tc := range []struct {
		rewinds
		want string
	}{
		{rewinds{good: 4}, "4 2"}, {rewinds{good: 4, proven: true}, "4"}, {rewinds{good: 9}, "5 4"}, {rewinds{good: 0}, "0"}, {rewinds{good: -1}, ""},
		{rewinds{good: 9, goodAt: saved(2), proven: true}, "5 2"}, {rewinds{good: 9, goodAt: saved(2)}, "5 4 2"}, {rewinds{good: 9, goodAt: saved(4), proven: true}, "5 4"},
		{rewinds{good: 9, goodAt: saved(5), proven: true}, "5"}, {rewinds{good: 5, goodAt: saved(2), proven: true}, "5"},
		{rewinds{given: filepath.Join(dir, "5"), good: 9, goodAt: saved(2), proven: true}, "5"},
	} {
		r.rewinds = tc.rewinds
		if got := strings.ReplaceAll(strings.Join(r.spared(), " "), dir+"/", ""); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.rewinds, got, tc.want)
		}
	}
}

// TestRetentionAtTheStart has more checkpoints than are to stay, as after a change of the config,
// and a program that has yet to save: they go at the start, unless a rewind may need them. The
// report names those for which there is a reason.
func TestRetentionAtTheStart(t *testing.T) {
	for rewinds, want := range []string{"ckpt-3", "ckpt-1 ckpt-2 ckpt-3"} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(p *simProgram) int { p.sleep(time.Hour); return 0 })
			sv.MaxRewinds, sv.Retention = rewinds, []retention.Policy{retention.Last(1)}
			for _, name := range []string{"ckpt-1", "ckpt-2", "ckpt-3"} {
				childtest.Write(t, filepath.Join(sv.Logdir, name), "weights")
			}
			stop, end := begin(t, sv)
			pass(time.Minute)
			stop()
			end()
			if got := strings.Join(checkpointsIn(t, sv.Logdir), " "); got != want {
				t.Errorf("with %d rewinds: left are %q, want %q", rewinds, got, want)
			}
			if got := readReport(t, sv.Logdir).Checkpoints; len(got) != 1+rewinds || got[0].Step != int64(3-rewinds) {
				t.Errorf("with %d rewinds: the report says that these stay: %+v", rewinds, got)
			}
		})
	}
}

// TestRetentionAtTheEnd has a job that is complete when it is started, with more checkpoints than
// are to stay: no save comes that would have them deleted.
func TestRetentionAtTheEnd(t *testing.T) {
	for code, want := range []string{"ckpt-3", "ckpt-1 ckpt-2 ckpt-3"} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(*simProgram) int { return code })
			sv.Nodes, sv.Retention, sv.Restarts = 2, []retention.Policy{retention.Last(1)}, Restarts{Max: -1}
			for _, name := range []string{"ckpt-1", "ckpt-2", "ckpt-3"} {
				childtest.Write(t, filepath.Join(sv.Logdir, name), "weights")
			}
			if _, err := sv.Run(t.Context()); (err != nil) != (code != 0) {
				t.Fatal(err)
			}
			if got := strings.Join(checkpointsIn(t, sv.Logdir), " "); got != want {
				t.Errorf("exit code %d: left are %q, want %q", code, got, want)
			}
		})
	}
}

// TestRewindsBegin has a start without a checkpoint: nothing is good yet, nor shown to be.
func TestRewindsBegin(t *testing.T) {
	b := &rewinds{good: 7, proven: true}
	if b.begin(nil); b.proven || b.trusts(&Checkpoint{Step: 0}) {
		t.Errorf("it begins with %+v", b)
	}
}

// TestGotPastTheFault has finite losses after rewinds in a row: the count begins again once
// the program has got past the step of the fault.
func TestGotPastTheFault(t *testing.T) {
	r := &run{Supervisor: &Supervisor{MaxRewinds: 3}, rewinds: rewinds{count: 2, further: 2, failed: 10}}
	for _, tc := range []struct {
		step int64
		want int
	}{{9, 2}, {10, 2}, {11, 0}} {
		r.watchLoss(&Report{Step: tc.step, Values: []Value{{"loss", 1}}}, time.Now())
		if b := r.rewinds; b.count != tc.want || b.further != tc.want || b.good != tc.step || !b.proven {
			t.Errorf("step %d: %+v", tc.step, b)
		}
	}
}

// TestTimeOfAGoodLoss has the time of a finite loss, before which what was saved is good: that of
// the program where it is earlier, for a report comes late, and not where its clock is ahead.
func TestTimeOfAGoodLoss(t *testing.T) {
	now := time.Now()
	for said, want := range map[time.Time]time.Time{{}: now, now.Add(-time.Minute): now.Add(-time.Minute), now.Add(time.Minute): now} {
		r := &run{Supervisor: &Supervisor{MaxRewinds: 1}}
		r.watchLoss(&Report{Step: 1, Time: said, Values: []Value{{"loss", 1}}}, now)
		if got := r.rewinds.goodAt; got != want {
			t.Errorf("said at %v and heard at %v: %v, want %v", said, now, got, want)
		}
	}
}

// TestRewindOfPointers has a file that names a checkpoint from after the fault, and a disk
// that does not let it be changed: the program would continue from there.
func TestRewindOfPointers(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1", "ckpt-2")
	childtest.Write(t, filepath.Join(dir, "latest"), "ckpt-2")
	s := storeOn(t, childtest.PickyDisk{FS: atomicfile.OrOS(nil), Logdir: dir, Fails: func(op, name string) bool {
		return op == "create" && name != "." && filepath.Dir(name) == "." && strings.HasSuffix(name, ".tmp") // not the manifests
	}}, dir, "ckpt-*")
	s.Refresh(true)
	if err := (&run{log: discard, store: s}).moveAside(s.Known()[1]); err == nil {
		t.Error("no error")
	}
}

// TestChooseForRewind has the checkpoint to go back to: with each rewind in a row an
// earlier one, and not the one that the program was given and that gave no finite loss.
func TestChooseForRewind(t *testing.T) {
	at := func(step int64) *Checkpoint {
		return &Checkpoint{Step: step}
	}
	all := []Checkpoint{*at(1), *at(2), *at(3)}
	for _, tc := range []struct {
		rewinds
		intact []Checkpoint
		given  *Checkpoint
		want   int64
	}{
		{rewinds{}, all, nil, 3}, {rewinds{further: 1}, all, nil, 2}, {rewinds{further: 9}, all, nil, 1},
		{rewinds{}, all, at(3), 2}, {rewinds{proven: true}, all, at(3), 3}, {rewinds{}, all, at(2), 3},
		{rewinds{further: 1}, all, at(2), 1}, {rewinds{further: 2}, all, at(1), 1}, {rewinds{}, all[:1], at(1), 1},
	} {
		if got := tc.rewinds.choose(tc.intact, tc.given); got.Step != tc.want {
			t.Errorf("%+v of %d, given %v: step %d, want %d", tc.rewinds, len(tc.intact), tc.given, got.Step, tc.want)
		}
	}
}
