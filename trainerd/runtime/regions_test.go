package runtime_test

import (
	"bytes"
	"errors"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime"
)

// beside trains for some steps with so many processors. During each step, a snapshot
// holds the variables and an observer, which changes them, trains too. It returns the
// losses of the steps, of the observer between them, and what the snapshots held.
func beside(t *testing.T, steps, processors int) (values [][]byte) {
	t.Helper()
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(processors))
	sess, feeds := network(t, "wide_deep", nil)
	run := func(s *runtime.Session) []byte {
		out, err := s.Run(t.Context(), feeds, []string{"loss:0"}, []string{"train"})
		if err != nil {
			t.Error(err)
			return nil
		}
		return out[0].Data
	}
	if _, err := sess.Run(t.Context(), nil, nil, []string{"init"}); err != nil {
		t.Fatal(err)
	}
	var names []string
	all, err := sess.Variables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		names = append(names, v.Name)
	}
	o := sess.Observer()
	defer o.Close()
	for range steps {
		values = append(values, run(o))
		snap, err := sess.Freeze(t.Context(), names)
		if err != nil {
			t.Fatal(err)
		}
		var observer sync.WaitGroup
		observer.Go(func() { run(o) })
		values = append(values, run(sess))
		for i := range names {
			held, err := snap.Tensor(i)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, bytes.Clone(held.Data))
		}
		snap.Close()
		observer.Wait()
	}
	return values
}

// TestRegionsBeside has steps that run at the same time change variables that a snapshot
// holds, beside an observer.
func TestRegionsBeside(t *testing.T) {
	const steps = 6 // from the fifth on at the same time
	want := beside(t, steps, 1)
	for _, processors := range []int{2, 4} {
		if got := beside(t, steps, processors); !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%d processors: a loss or a snapshot has other bits than with one", processors)
		}
	}
}

// TestRegionsKeepToMemory trains with the least memory that some steps one after the
// other need, and asks for more steps: those run at the same time only if there is room.
func TestRegionsKeepToMemory(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
	train := func(limit int64, steps int) error {
		sess, feeds := network(t, "wide_deep", &runtime.Options{MaxMemory: limit})
		defer sess.Close()
		if _, err := sess.Run(t.Context(), nil, nil, []string{"init"}); err != nil {
			return err
		}
		for range steps {
			if _, err := sess.Run(t.Context(), feeds, nil, []string{"train"}); err != nil {
				return err
			}
		}
		return nil
	}
	low, high := int64(1<<20), int64(64<<20)
	for high-low > 128<<10 {
		if middle := (low + high) / 2; train(middle, 3) == nil {
			high = middle
		} else {
			low = middle
		}
	}
	if err := train(low, 3); !errors.Is(err, exhausted) {
		t.Fatalf("%d bytes: %v", low, err)
	}
	if err := train(high, 12); err != nil {
		t.Errorf("%d bytes are enough for 3 steps: %v", high, err)
	}
}
