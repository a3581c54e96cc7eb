package manifest

import (
	"io/fs"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// changedInfo is of a file that was changed at a time.
type changedInfo struct {
	fs.FileInfo
	at time.Time
}

func (i changedInfo) Sys() any { return &syscall.Stat_t{Ctim: syscall.NsecToTimespec(i.at.UnixNano())} }

// TestStampOf has files that were changed a moment ago: where the next change may have the same time, which is
// for longer on a file system that knows seconds alone, that time shows nothing. Nor does one on a file system that
// dates no changes.
func TestStampOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Millisecond) // the clock of a bubble begins with a second
		fine := time.Now().Add(-tick)
		coarse := fine.Truncate(time.Second)
		for _, tc := range []struct {
			at    time.Time
			known bool
		}{
			{fine, true}, {fine.Add(1), false}, {fine.Add(-time.Hour), true}, {time.Now(), false}, {time.Now().Add(time.Hour), false},
			{coarse, false}, {coarse.Add(-time.Second), false}, {coarse.Add(-2 * time.Second), true},
			{time.Unix(0, 0), false}, {time.Unix(1, 0), true},
		} {
			want := time.Time{}
			if tc.known {
				want = tc.at
			}
			if got := stampOf(changedInfo{at: tc.at}); !got.Equal(want) {
				t.Errorf("%v before now: %v, want %v", time.Since(tc.at), got, want)
			}
		}
	})
}
