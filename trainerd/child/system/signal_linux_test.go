package system

import (
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestBlockedForAMoment has processes that block signals: who blocks all of them begins another
// program, which may take long, and gets no signal of which the new program would die.
func TestBlockedForAMoment(t *testing.T) {
	const none, usr1, all, usual = "0000000000000000", "0000000000000200", "fffffffe7ffbfeff", "000000007ffbfeff"
	status := func(blocked, caught string) string {
		return fmt.Sprintf("Name:\tsh\nState:\tS (sleeping)\nSigBlk:\t%s\nSigIgn:\t%s\nSigCgt:\t%s\n", blocked, none, caught)
	}
	for name, tt := range map[string]struct {
		first, then string
		at          time.Duration // of then
		want        disposition
		took        time.Duration // at most
	}{
		"neither":                        {status(none, none), "", 0, unhandled, 0},
		"a handler":                      {status(none, usr1), "", 0, handled, 0},
		"it waits for the signal":        {status(usr1, none), "", 0, handled, beginning},
		"it waits for any signal":        {status(all, none), "", 0, handled, longBeginning},
		"a program begins":               {status(all, none), status(none, none), 10 * time.Millisecond, unhandled, beginning},
		"a program begins, slowly":       {status(all, none), status(none, none), 500 * time.Millisecond, unhandled, longBeginning},
		"of the usual ones":              {status(usual, none), status(none, none), 500 * time.Millisecond, unhandled, longBeginning},
		"one with a handler begins":      {status(all, none), status(none, usr1), 500 * time.Millisecond, handled, longBeginning},
		"all but one of the usual ones":  {status("000000003ffbfeff", none), "", 0, handled, beginning},
		"it ends before":                 {status(all, none), "State:\tZ (zombie)\n", 500 * time.Millisecond, ended, longBeginning},
		"the system does not say":        {"State:\tS (sleeping)\n", "", 0, unknown, 0},
		"a handler of one that blocks":   {status(all, usr1), "", 0, handled, 0},
		"it waits for another, and this": {status("0000000000000a00", none), "", 0, handled, beginning},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			got := settled(func() disposition {
				if tt.then != "" && time.Since(began) >= tt.at {
					return dispositionIn([]byte(tt.then), syscall.SIGUSR1)
				}
				return dispositionIn([]byte(tt.first), syscall.SIGUSR1)
			})
			if took := time.Since(began); got != tt.want || took > tt.took {
				t.Errorf("%s: %d after %v, want %d", name, got, took, tt.want)
			}
		})
	}
}
