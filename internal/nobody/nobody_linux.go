// Package nobody lets a test run with the rights of the user nobody.
package nobody

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// Become takes root's right to read every file from the goroutine of the test, which keeps its
// thread. Another user has no such right.
func Become(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Setfsuid(0) })
}
