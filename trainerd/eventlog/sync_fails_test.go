package eventlog

import (
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// TestSyncFailsWithinASecond has a disk that fails to sync, and does so once more: what is then written again,
// by this session or by the next, is shown once, although all of it is of the second in which the new file is begun.
func TestSyncFailsWithinASecond(t *testing.T) {
	const steps = 8
	for _, form := range []tfevents.Form{tfevents.TF1, tfevents.TF2} {
		for _, sessions := range []int{1, 2} {
			synctest.Test(t, func(t *testing.T) {
				dir, fsys := t.TempDir(), faultfs.New(0)
				log, _ := sessiontest.NewLog()
				begin := func() *Log {
					w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{FS: fsys, Form: form, Host: "h", FlushEvery: -1})
					sessiontest.MustNoErr(t, err)
					return New(w, log)
				}
				l := begin()
				sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "rate", 1, 0)) // which is in the file's name
				time.Sleep(3 * time.Second)
				for step := range int64(steps) {
					time.Sleep(100 * time.Millisecond)
					sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "loss", 1, step))
					if step != 4 {
						continue
					}
					fsys.Break(2, faultfs.Fault{Err: syscall.ENOSPC}) // after the write
					sessiontest.MustNoErr(t, l.Sync(t.Context()))
					if fsys.FailedKind() != "sync" {
						t.Fatalf("%q failed", fsys.Failed())
					}
					if sessions == 2 {
						fsys.Break(1, faultfs.Fault{Err: syscall.ENOSPC, Lasting: true})
						sessiontest.MustNoErr(t, l.Close())
						fsys.Heal()
						before := l
						l = begin()
						l.Continue(before, step+1)
					}
				}
				sessiontest.MustNoErr(t, l.Close())
				if got := curve(t, dir, tfevents.PurgeExact); !slices.Equal(got, []int64{0, 1, 2, 3, 4, 5, 6, 7}) || l.Dropped() != 0 {
					t.Errorf("form %v, %d sessions: steps %v, %d dropped", form, sessions, got, l.Dropped())
				}
			})
		}
	}
}
