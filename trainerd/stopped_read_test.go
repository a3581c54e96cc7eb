package trainerd_test

import (
	"context"
	"testing"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/session"
)

// What a training reads of the step that it has made is given to it also when a stop came
// meanwhile: else the step would be saved and its summaries lost.
func TestReadsOfStepMadeBeforeStop(t *testing.T) {
	for _, tt := range []struct{ before, during int64 }{{1, 0}, {0, 1}, {2, 0}, {2, 1}} { // who counts the steps is known after the first
		for _, every := range []int64{0, 1} {
			sv := hooked(t, &fakeHook{})
			sv.SaveModelSteps = every
			run(t, sv, func(ctx context.Context, sess session.Session) error {
				err := times(int(tt.before))(ctx, sess)
				sv.RequestStop(nil)
				<-ctx.Done()
				if err == nil {
					err = times(int(tt.during))(ctx, sess)
				}
				for range 2 {
					step, readErr := trainerd.FetchScalar[int64](ctx, sess, "global_step/Read/ReadVariableOp:0")
					if want := tt.before + tt.during; err != nil || readErr != nil || step != want {
						t.Errorf("%d steps before a stop and %d during it, a save every %d: read %d, %v, %v; want %d",
							tt.before, tt.during, every, step, err, readErr, want)
					}
				}
				return nil
			})
		}
	}
}
