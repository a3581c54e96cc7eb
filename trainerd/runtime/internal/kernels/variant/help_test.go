package variant

import (
	"sync/atomic"
	"testing"
	"time"
)

// nestedJob is work that takes another job for each piece, as a function of a pipeline
// would that has a pipeline in it.
type nestedJob struct {
	p     *IteratorContext
	depth int
	next  *atomic.Int64
	done  *atomic.Int64
}

func (j nestedJob) Part(int, int) {
	for j.next.Add(1) <= 4 {
		if j.done.Add(1); j.depth > 0 {
			j.p.Run(2, nestedJob{j.p, j.depth - 1, new(atomic.Int64), j.done})
		}
	}
}

// TestJobWithinJob has a job of a call ahead that runs others, with and without a run that
// helps: all are done, and once.
func TestJobWithinJob(t *testing.T) {
	for _, helped := range []bool{false, true} {
		h, end := NewHelp(), make(chan struct{})
		if helped {
			go func() {
				for {
					select {
					case f := <-h.Jobs():
						f()
					case <-end:
						return
					}
				}
			}()
		}
		p := &IteratorContext{Help: h}
		ended := make(chan int64)
		go func() {
			var done atomic.Int64
			for range 100 {
				p.Run(2, nestedJob{p, 2, new(atomic.Int64), &done})
			}
			ended <- done.Load()
		}()
		select {
		case n := <-ended:
			if want := int64(100 * (4 + 16 + 64)); n != want {
				t.Errorf("helped %v: %d pieces are done, want %d", helped, n, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("helped %v: a job within a job waits for itself", helped)
		}
		close(end)
	}
}

// bailingJob bails out, as for lack of memory.
type bailingJob struct{}

func (bailingJob) Part(int, int) { panic("no memory") }

// TestJobBailsOut checks that nothing is left of a job that bails out: the next one is done.
func TestJobBailsOut(t *testing.T) {
	h := NewHelp()
	func() {
		defer func() { recover() }()
		h.run(2, bailingJob{})
	}()
	if len(h.jobs) > 0 {
		t.Fatal("it waits for help")
	}
	var done atomic.Int64
	h.run(2, nestedJob{nil, 0, new(atomic.Int64), &done})
	if done.Load() != 4 {
		t.Errorf("%d pieces are done", done.Load())
	}
}
