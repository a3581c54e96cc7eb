// Package membound lets tests detect a parser that allocates more than its input warrants, because
// it trusts a length before it has seen as many bytes.
package membound

import (
	"runtime/metrics"
	"testing"
)

// slack is what any call may allocate, for its buffers and for what runs next to
// it.
const slack = 16 << 20

// Check begins to count what is allocated. The function that it returns fails
// the test if that came to more than so many times the size of the input,
// beyond what any call may allocate. Under the race detector it never does.
//
//	defer membound.Check(t, len(input), 64)()
func Check(t testing.TB, size, times int) func() {
	before := allocated()
	return func() {
		t.Helper()
		if got := allocated() - before; counts && got > slack+uint64(size)*uint64(times) {
			t.Errorf("%d bytes of input made it allocate %d", size, got)
		}
	}
}

// Exact skips a test that wants no allocation at all where some are made at random.
func Exact(t testing.TB) {
	t.Helper()
	if !counts {
		t.Skip("under the race detector, pools keep nothing for certain")
	}
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
