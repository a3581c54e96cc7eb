package systemd

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the reading of the clock that systemd compares with.
func monotonic() (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
