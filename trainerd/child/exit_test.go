package child

import (
	"syscall"
	"testing"
)

// TestExitText says how a start has ended, and whether memory ran out, as where the kernel has ended only a
// loader of data.
func TestExitText(t *testing.T) {
	for want, e := range map[string]Exit{
		"could not be started":           {Code: notStartedCode},
		"ended with exit code 3":         {Code: 3},
		"was ended by signal 9 (killed)": {Code: -1, Signal: syscall.SIGKILL},
		"was ended by signal 9 (killed), and the kernel has ended a process because memory ran out": {Code: -1, Signal: syscall.SIGKILL, OutOfMemory: true},
		"ended with exit code 1, and the kernel has ended a process because memory ran out":         {Code: 1, OutOfMemory: true},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
