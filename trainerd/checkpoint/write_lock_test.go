package checkpoint

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// hangingDisk takes a minute for each file that is made.
type hangingDisk struct{ ckptfmt.FS }

func (d hangingDisk) Create(name string) (ckptfmt.File, error) {
	time.Sleep(time.Minute)
	return d.FS.Create(name)
}

// TestWaitForSave has a save on a disk that hangs: others wait for it only as long as they are to.
func TestWaitForSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := &Saver{FS: hangingDisk{atomicfile.OrOS(nil)}}
		saved := make(chan error)
		go func() {
			_, err := s.Save(t.Context(), r.sess, filepath.Join(r.dir, "m"), 1)
			saved <- err
		}()
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Save(ctx, r.sess, filepath.Join(r.dir, "m"), 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Save = %v", err)
		}
		s.AddSums(ctx, filepath.Join(r.dir, "m-1"))
		if took := time.Since(began); took != time.Second {
			t.Errorf("it has waited for %v", took)
		}
		sessiontest.MustNoErr(t, <-saved)
		if got := r.onDisk(); !slices.Equal(got, []int64{1}) {
			t.Errorf("checkpoints of the steps %v, want 1", got)
		}
	})
}
