package garbage

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// percent is the present percentage. It is not set to learn it: that could undo a change.
func percent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// waitFor collects until the percentage is as wanted.
func waitFor(t *testing.T, what string, wanted func(percent int) bool) {
	t.Helper()
	for range 1000 {
		if wanted(percent()) {
			return
		}
		runtime.GC()
		time.Sleep(time.Millisecond) // until the cleanup has run
	}
	t.Fatalf("%s: %d percent", what, percent())
}

// alone runs a test in a process of its own, and reports whether this is that: what is put
// off stays so until a process ends.
func alone(t *testing.T) bool {
	t.Helper()
	const mark = "GARBAGE_TEST_ALONE"
	if os.Getenv(mark) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), mark+"=1", "GOGC=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	return false
}

func TestCollectLate(t *testing.T) {
	if !alone(t) {
		return
	}
	CollectLate()
	if p := percent(); p != 1600 {
		t.Errorf("%d percent before the first collection", p)
	}
	waitFor(t, "after it", func(p int) bool { return p == 100 })
}

// The percentage stays: until a cleanup would take a higher one back, much may pass by.
func TestCollectSeldom(t *testing.T) {
	if !alone(t) {
		return
	}
	before := percent()
	CollectSeldom()
	if p := percent(); p != before {
		t.Errorf("%d percent, before %d", p, before)
	}
	if goal := goalAfter(t); goal < 60 || goal > 100 {
		t.Errorf("with little in use the heap may grow to %d MiB", goal)
	}
	held := make([]byte, 200<<20)
	if goal := goalAfter(t); goal < 400 || goal > 500 {
		t.Errorf("with 200 MiB in use the heap may grow to %d MiB", goal)
	}
	runtime.KeepAlive(held)
}

// goalAfter collects, and returns the heap at which that happens next, in MiB.
func goalAfter(t *testing.T) uint64 {
	t.Helper()
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() >> 20
}
