package found

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

func steps(all []Checkpoint) (steps []int64) {
	for _, c := range all {
		steps = append(steps, c.Step)
	}
	return steps
}

// storeOn is openStore with a disk.
func storeOn(t *testing.T, disk atomicfile.FS, dir, pattern string, policy ...retention.Policy) *Store {
	t.Helper()
	s := openStore(t, dir, pattern, policy...)
	s.disk = disk
	return s
}

// clearDamaged does what a run does with damaged checkpoints before a start, and returns
// what does not go well.
func clearDamaged(ctx context.Context, s *Store) error {
	var errs []error
	for _, c := range s.NewestDamaged() {
		m, err := s.Quarantine(ctx, c, time.Now())
		errs = append(errs, m.Misnamed, err)
		if err == nil {
			_, _, err = s.BringBack(ctx, c)
			errs = append(errs, err)
			s.Refresh(true)
		}
	}
	return errors.Join(append(errs, s.Correct())...)
}
