package trainerd

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A training goes back three times, and saves at other steps each time. It never goes back to
// what it has saved before an earlier rewind, at a later step; and one that falls out of the
// rotation, and cannot be deleted yet, serves as long as it is there.
func TestRewindAmongOtherSteps(t *testing.T) {
	for name, tt := range map[string]struct {
		keep  int
		stuck bool // the first cannot be deleted until the end
		gone  bool // the one at step 6 is deleted by hand
		want  []int64
	}{
		"all are kept":        {keep: -1, want: []int64{4, 6, 4}},
		"one is deleted":      {keep: -1, gone: true, want: []int64{4, 4, 4}},
		"two are kept":        {keep: 2, want: []int64{4, 6, 6}},
		"two, and one is due": {keep: 2, stuck: true, want: []int64{4, 6, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			m, dir := sessiontest.Counter(), t.TempDir()
			disk := &undeletable{FS: atomicfile.OrOS(nil)}
			sv := newSupervisor(m, dir, 1000)
			sv.MaxRewinds = 3
			sv.Saver = &checkpoint.Saver{MaxToKeep: tt.keep, FS: disk}
			loss, told := 1.0, []int64(nil)
			sv.Hooks = []Hook{&NaNGuard{Loss: func() float64 { return loss }}}
			sv.OnRewind = func(_ context.Context, _ session.Session, r Rewind) error {
				told = append(told, r.Step)
				return nil
			}
			saves := [][]int64{{4, 8}, {6}, nil, {10}} // after so many rewinds
			fails := []int64{8, 9, 9}
			sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
				for {
					n := m.Step()
					if slices.Contains(saves[len(told)], n) {
						if _, err := sv.Save(ctx); err != nil {
							return err
						}
					}
					if loss = 1; len(told) < len(fails) && n == fails[len(told)] {
						loss = math.NaN()
					}
					if tt.gone && n == 9 && len(told) == 1 {
						for _, name := range sessiontest.Files(t, dir, "model.ckpt-6.*") {
							sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, name)))
						}
					}
					disk.stuck.Store(tt.stuck && n > 4 && n < 10)
					if err := sv.StepDone(ctx, n); err != nil || n == 12 {
						return err
					}
				}
			}))
			if !slices.Equal(told, tt.want) {
				t.Errorf("went back to %v, want %v", told, tt.want)
			}
			if w := m.Get("w"); !slices.Equal(w.Data, sessiontest.Vector[float32](6).Data) {
				t.Errorf("w = %v after 12 steps; want 6", w)
			}
			if prefix, err := ckptdir.LatestCheckpoint(dir, nil); err != nil || filepath.Base(prefix) != "model.ckpt-12" {
				t.Errorf("current is %s, %v", prefix, err)
			}
			if left := sessiontest.Files(t, dir, "*.index"); tt.keep == 2 && len(left) != 2 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// undeletable is a disk on which the checkpoint of step 4 cannot be deleted while stuck is set.
type undeletable struct {
	ckptfmt.FS
	stuck atomic.Bool
}

func (d *undeletable) Remove(name string) error {
	if d.stuck.Load() && strings.Contains(filepath.Base(name), ".ckpt-4.") {
		return syscall.EIO
	}
	return d.FS.Remove(name)
}
