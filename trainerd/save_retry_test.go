package trainerd

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// TestFullDiskWithQuickSaves has saves by steps, which come far quicker than somebody makes room
// on a full disk. They are tried again with growing pauses, as those by the clock are, so that
// the training outlasts half an hour, though not two.
func TestFullDiskWithQuickSaves(t *testing.T) {
	for name, tt := range map[string]struct {
		every time.Duration
		full  int // steps of a second
		ends  bool
	}{
		"by steps":               {-1, 1800, false},
		"by steps and the clock": {10 * time.Minute, 1800, false},
		"for too long":           {-1, 7200, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := sessiontest.Counter()
				sv := newSupervisor(m, sessiontest.MemoryDir(t), 2)
				sv.SaveModelEvery = tt.every
				var newest int64
				sv.OnSave = func(s SavedCheckpoint) { newest = s.Step }
				err := sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
					setFailure(m, syscall.ENOSPC)
					defer setFailure(m, nil)
					for step := range tt.full + int(maxSaveRetry/time.Second) + 10 {
						if step == tt.full {
							setFailure(m, nil)
						}
						time.Sleep(time.Second)
						if err := sv.StepDone(ctx, m.Step()); err != nil || ctx.Err() != nil {
							return err
						}
					}
					if newest <= int64(tt.full) {
						t.Errorf("the newest save is of step %d; there is room since step %d", newest, tt.full)
					}
					return nil
				})
				if failed := new(SaveFailedError); errors.As(err, &failed) != tt.ends || err != nil && !tt.ends {
					t.Errorf("Run = %v", err)
				}
			})
		})
	}
}
