package child

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestBudget(t *testing.T) {
	type end struct {
		after      time.Duration
		exit       Exit
		progressed bool
	}
	ends := func(causes ...Cause) (all []end) {
		for _, c := range causes {
			all = append(all, end{exit: Exit{Cause: c}})
		}
		return all
	}
	failed, progressed := end{exit: Exit{Cause: Failed}}, end{exit: Exit{Cause: Failed}, progressed: true}
	killed := end{exit: Exit{Cause: Failed, Signal: syscall.SIGKILL}}
	killedInShell, killedHung := end{exit: Exit{Cause: Failed, Code: 137}}, end{exit: Exit{Cause: Hung, Signal: syscall.SIGKILL}}
	took := func(e end, d time.Duration) end {
		e.exit.Took = d
		return e
	}
	for _, tc := range []struct {
		name   string
		ends   []end
		pauses []time.Duration // -1 for the end
	}{
		{"doubles", ends(Failed, Failed, Failed, Failed), []time.Duration{1, 2, 4, -1}},
		{"no pause after progress", []end{failed, progressed, failed, failed}, []time.Duration{1, 0, 1, -1}},
		{"old failures are forgotten", []end{failed, failed, failed, {time.Hour, failed.exit, false}, {time.Hour, failed.exit, true}}, []time.Duration{1, 2, 4, 5, 0}},
		{"preemptions do not count", ends(slices.Repeat([]Cause{Preempted}, 6)...), []time.Duration{1, 2, 4, 5, 5, 5}},
		{"full disks do not count", slices.Repeat([]end{{exit: Exit{Cause: Failed, DiskFull: true}}}, 6), slices.Repeat([]time.Duration{fullDiskPause}, 6)},
		{"preempted after progress", []end{{0, Exit{Cause: Preempted}, true}, {0, Exit{Cause: Preempted}, false}}, []time.Duration{0, 1}},
		{"final", []end{{0, Exit{Cause: Final}, true}}, []time.Duration{-1}},
		{"hung", slices.Repeat([]end{{0, Exit{Cause: Hung}, true}}, 4), []time.Duration{0, 0, 0, -1}},
		{"kills from elsewhere double nothing", []end{killed, killedInShell, killed}, []time.Duration{1, 1, 1}},
		{"failures between kills do", []end{failed, killed, failed}, []time.Duration{1, 1, 2}},
		{"killed since it hung", []end{killedHung, killedHung, killedHung}, []time.Duration{1, 2, 4}},
		{"the time of the start counts", []end{took(failed, 1), took(failed, 1), took(failed, 3)}, []time.Duration{0, 1, 1}},
		{"a long start", []end{took(killed, 100), took(failed, 100), took(failed, 100)}, []time.Duration{0, 0, 0}},
	} {
		b := budget{Restarts: Restarts{Max: 3, Window: time.Hour, Backoff: 1, MaxBackoff: 5}.withDefaults()}
		now := time.Unix(1_000_000, 0)
		for i, e := range tc.ends {
			now = now.Add(e.after)
			pause, again := b.next(now, &e.exit, e.progressed)
			if again != (tc.pauses[i] >= 0) || again && pause != tc.pauses[i] {
				t.Errorf("%s, end %d: pause %d, again %v; want %d", tc.name, i+1, pause, again, tc.pauses[i])
			}
		}
	}
}

func TestRestartsDefaults(t *testing.T) {
	want := Restarts{DefaultMaxRestarts, DefaultRestartWindow, DefaultBackoff, DefaultMaxBackoff}
	if got := (Restarts{}).withDefaults(); got != want {
		t.Errorf("defaults %+v, want %+v", got, want)
	}
	if got := (Restarts{Max: -1}).withDefaults(); got.Max != 0 {
		t.Errorf("Max -1 becomes %d, want 0", got.Max)
	}
	if got := (Restarts{Backoff: time.Hour}).withDefaults(); got.MaxBackoff != time.Hour {
		t.Errorf("MaxBackoff %v below Backoff", got.MaxBackoff)
	}
}
