package trainerd

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails the package when a test leaves a goroutine behind.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leftGoroutines(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines left behind by tests:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leftGoroutines returns the stacks of goroutines of this module that do not
// end by themselves within a minute.
func leftGoroutines() string {
	var left []string
	for range 6000 {
		left = nil
		for _, s := range goroutineStacks() {
			if strings.Contains(s, "trainerd/trainerd") && !strings.Contains(s, "TestMain") {
				left = append(left, s)
			}
		}
		if len(left) == 0 {
			return ""
		}
		runtime.Gosched()
		time.Sleep(10 * time.Millisecond)
	}
	return strings.Join(left, "\n\n")
}
