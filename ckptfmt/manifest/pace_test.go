package manifest

import (
	"runtime"
	"testing"
	"time"
)

// Checksums take at most a hundredth of the time of all processors.
func TestNextSums(t *testing.T) {
	began := time.Unix(1000, 0)
	wait := 300 * time.Second / time.Duration(runtime.GOMAXPROCS(0))
	if got := NextSums(began, 3*time.Second); !got.Equal(began.Add(wait)) {
		t.Errorf("after sums of 3 s the next come at %v, want %v later", got.Sub(began), wait)
	}
	if got := NextSumsUnmeasured(began, 1_500_000_000); !got.Equal(began.Add(wait)) {
		t.Errorf("after sums of 1.5 GB the next come at %v, want %v later", got.Sub(began), wait)
	}
}
