package manifest

import (
	"runtime"
	"time"
)

const (
	// QuickSums is the size from which a checkpoint counts before its files are read for
	// their checksums. Reading smaller ones takes no longer than writing the manifest twice.
	QuickSums = 8 << 20
	// sumsShare bounds the time that the checksums of larger ones take of all processors:
	// where saves come in quick succession, only some of them get checksums.
	sumsShare = 0.01
	// sumsRate is how many bytes a second are taken to be read for the checksums, before a
	// process has measured it.
	sumsRate = 500e6
)

// NextSums returns when there is time for the next checksums of a large checkpoint, after
// some that were begun at that time and took that long.
func NextSums(began time.Time, took time.Duration) time.Time {
	return began.Add(time.Duration(float64(took) / sumsShare / float64(runtime.GOMAXPROCS(0))))
}

// NextSumsUnmeasured is NextSums for checksums of the given number of bytes whose duration is not
// known, for example because an earlier process computed them.
func NextSumsUnmeasured(now time.Time, bytes int64) time.Time {
	return NextSums(now, time.Duration(float64(bytes)/sumsRate*float64(time.Second)))
}
