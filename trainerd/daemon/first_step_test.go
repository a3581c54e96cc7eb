package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// firstRun notes the names of the first run of a session that has a target. Threads that fill queues run it, too.
type firstRun struct {
	*runtime.Session
	target string
	noted  *sync.Once
	names  *string
}

func namesOfRun(feeds, fetches, targets []string) string {
	return fmt.Sprint(slices.Sorted(slices.Values(feeds)), fetches, targets)
}

func (s firstRun) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if slices.Contains(targets, s.target) {
		s.noted.Do(func() { *s.names = namesOfRun(slices.Collect(maps.Keys(feeds)), fetches, targets) })
	}
	return s.Session.Run(ctx, feeds, fetches, targets)
}

// TestFirstStepIsPrepared compares the step that is compiled while a model is
// initialised or restored with the one that the run then begins with.
func TestFirstStepIsPrepared(t *testing.T) {
	bundle := graphConfig(t, filepath.Join(graphsDir, "softmax_ref", "graph.meta"))
	bundle.Graph.Bundle = filepath.Join(graphsDir, "softmax_ref", "feeds", "feeds")
	queue := graphConfig(t, filepath.Join(graphsDir, "queue_pipeline", "graph.meta"))
	queue.Graph.Dir = graphsDir
	resumed := clustersConfig(t, "train.steps=10")
	runJob(t, t.Context(), resumed)
	resumed.Train.Steps = 20
	for name, c := range map[string]*config.Config{"family": clustersConfig(t), "bundle": bundle, "queue": queue, "resumed": resumed} {
		t.Run(name, func(t *testing.T) {
			j, err := newJob(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer j.close()
			if done := j.completed(t.Context()); done != nil {
				t.Fatal("the job is complete")
			}
			want := namesOfRun((&training{job: j, step: j.saved, summaryStep: j.saved}).firstStep())
			var got string
			wrap := func(s session.Session) session.Session {
				return firstRun{s.(*runtime.Session), j.program.Train[0], new(sync.Once), &got}
			}
			if err := Run(t.Context(), c, RunOptions{Stdout: io.Discard, Stderr: io.Discard, Log: slog.New(slog.DiscardHandler), Wrap: wrap}); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("the first step is %s, compiled was %s", got, want)
			}
		})
	}
}
