//go:build unix

package child

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowEndIsSaid has a stop that takes long: that is said every 15 seconds, and once what the program has left, if that
// has not ended after a second.
func TestSlowEndIsSaid(t *testing.T) {
	const names, waits = "waiting for processes that it has left", "\"still waiting\" for=\"the program to end\" since="
	for _, tc := range []struct {
		program, left time.Duration // until they end, after the stop
		want          []string
	}{
		{0, 900 * time.Millisecond, nil},
		{0, 1500 * time.Millisecond, []string{names}},
		{0, 5 * time.Second, []string{names}},
		{30*time.Second + 500*time.Millisecond, 0, []string{waits + "15s", waits + "30s"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, nil)
			left := &leftover{simulated: sv.System.(*simulated)}
			left.program = func(p *simProgram) int {
				<-p.told
				left.alive.Store(tc.left > 0)
				time.AfterFunc(tc.left, func() { left.alive.Store(false) })
				time.Sleep(tc.program)
				return 0
			}
			sv.System, sv.Grace = left, time.Hour
			stop, end := begin(t, sv)
			pass(10 * time.Second)
			stop()
			end()
			var got []string
			for _, line := range linesOf(log) {
				if strings.Contains(line, names) {
					got = append(got, names)
				}
				if _, since, ok := strings.Cut(line, waits); ok {
					got = append(got, waits+since)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%+v: said is %q\n%s", tc, got, log)
			}
		})
	}
}
