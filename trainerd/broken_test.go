package trainerd

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// broken makes mistakes that a writer of checkpoints could make. The searches
// for faults and crash states must find every one of them, or their silence
// about the real thing would mean nothing.
func broken(mistake faultfs.Mistake) wrap {
	return func(f *faultfs.FS) ckptfmt.FS { return mistake.Over(f) }
}

// The search of crash states finds each mistake, and that errors are ignored
// in lives in which there are some.
func TestCrashStatesFindMistakes(t *testing.T) {
	if testing.Short() {
		t.Skip("tests a test")
	}
	for _, mistake := range faultfs.Mistakes {
		t.Run(string(mistake), func(t *testing.T) {
			t.Parallel()
			for _, c := range crashScenarios[:4] {
				s := newCrashSearch(t, c, 1)
				for at := 0; at < 100 && s.bad == 0; at += 7 {
					if s.plan.fault = diskFull(at); at == 0 || mistake == faultfs.IgnoreErrors {
						s.search(t, broken(mistake), 1)
					}
				}
				t.Logf("%s: %d of %d states are bad, the first: %v", c.name, s.bad, s.states, s.worst)
				if s.bad > 0 {
					return
				}
			}
			t.Error("not found")
		})
	}
}

// The sweep of faults finds each mistake: a sync that never fails is missing
// among the operations, the others harm what is there.
func TestFaultsFindMistakes(t *testing.T) {
	if testing.Short() {
		t.Skip("tests a test")
	}
	template := faultTemplate(t)
	for _, mistake := range faultfs.Mistakes {
		t.Run(string(mistake), func(t *testing.T) {
			fault, kinds := faults["ENOSPC"], make(map[string]bool)
			var bad error
			for n, done := 1, false; !done && bad == nil; n++ {
				fault.At = n
				synctest.Test(t, func(t *testing.T) {
					r := newFaultRun(t, template)
					disk := faultfs.NewFault(fault)
					err := r.run(t, newSupervisor(nil, r.dir, 2), broken(mistake)(disk), faultLast)
					kinds[disk.FailedKind()] = true
					if done = disk.Failed() == ""; err == nil {
						bad = r.judge(t)
					}
				})
			}
			missing := missingKinds(kinds)
			unsynced := mistake == faultfs.NoSync || mistake == faultfs.NoDirSync
			t.Logf("harm: %v; never failed: %v", bad, missing)
			if unsynced && !slices.Contains(missing, "sync directory") || !unsynced && bad == nil {
				t.Error("not found")
			}
		})
	}
}
