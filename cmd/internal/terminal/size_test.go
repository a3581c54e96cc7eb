package terminal

import (
	"math"
	"testing"
)

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 42_500: "41.5 KiB", 1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB",
		1<<20 - 60: "1023.9 KiB", 3 << 30: "3.0 GiB", math.MaxInt64: "8.0 EiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %q, want %q", n, got, want)
		}
	}
}
