package main

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// settable is a job that notes what is set.
type settable struct {
	control.Job
	set []string
}

func (j *settable) Set(_ context.Context, key, value string) (string, error) {
	j.set = append(j.set, key+"="+value)
	return "", nil
}

// TestReload changes the config of a job: what may change during its run does, and nothing else.
// Jobs with a program of their own have other keys.
func TestReload(t *testing.T) {
	load := func(overrides ...string) *config.Config {
		all := []config.Override{{Flag: "--logdir", Assignment: "logdir=logs", Literal: true}}
		for _, assignment := range overrides {
			all = append(all, config.Override{Flag: "--set " + assignment, Assignment: assignment})
		}
		c, err := config.Load("", append(all, config.ProgramOverride([]string{"train"})))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	training := config.Default()
	changed := config.Default()
	changed.Eval.Steps, changed.Train.Steps = 7, 9
	for _, c := range []struct {
		name          string
		before, after *config.Config
		want          []string
	}{
		{"a training", training, changed, []string{"eval.steps=7"}},
		{"a program", load(), load("child.hang_secs=90", "child.max_restarts=3"), []string{"child.hang_secs=90"}},
		{"nothing", load("child.hang_secs=90"), load("child.hang_secs=90"), nil},
	} {
		job := new(settable)
		s := &service{config: c.before, monitor: control.NewMonitor("job", t.TempDir(), 1), reread: func() (*config.Config, error) { return c.after, nil }}
		s.monitor.Begin(job, 0, 0, "")
		after := s.reload(t.Context(), slog.New(slog.DiscardHandler), c.before.Settings())
		if !slices.Equal(job.set, c.want) || !slices.Equal(after, c.after.Settings()) {
			t.Errorf("%s: set %q, want %q", c.name, job.set, c.want)
		}
	}
}
