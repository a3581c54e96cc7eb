//go:build unix

package child

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestCommand has names of programs: those with a slash are relative to the folder in which
// the program runs.
func TestCommand(t *testing.T) {
	here, err := os.Getwd()
	childtest.Must(t, err)
	for _, tc := range []struct{ dir, name, want string }{
		{"/srv", "./train", "/srv/train"},
		{"/srv", "bin/train", "/srv/bin/train"},
		{"/srv", "/bin/train", "/bin/train"},
		{"", "./train", filepath.Join(here, "train")},
		{"sub", "../train", filepath.Join(here, "train")},
		{"/srv", "no-such-program", "no-such-program"}, // which is looked for in PATH
	} {
		r := &run{Supervisor: &Supervisor{Dir: tc.dir, Command: []string{tc.name, "-x"}}}
		cmd := r.command("s")
		if cmd.Path != tc.want || cmd.Dir != tc.dir || !slices.Equal(cmd.Args, []string{tc.want, "-x"}) {
			t.Errorf("%+v: %s %q in %q", tc, cmd.Path, cmd.Args, cmd.Dir)
		}
	}
}

// TestWhatProgramsAreTold has what depends on the kind of the job, and on the checkpoint.
func TestWhatProgramsAreTold(t *testing.T) {
	of := func(r *run) string {
		var told []string
		for _, v := range r.environment("s") {
			for _, key := range []string{"NODES", "NODE", "CHIEF", "STEPS", "STEP", "CHECKPOINT"} {
				if strings.HasPrefix(v, "TRAINERD_"+key+"=") {
					told = append(told, strings.TrimPrefix(v, "TRAINERD_"))
				}
			}
		}
		return strings.Join(append(told, r.resumeArgs()...), " ")
	}
	sv := func(steps int64) *Supervisor { return &Supervisor{Steps: steps, ResumeArgs: []string{"from={step}"}} }
	for _, tc := range []struct {
		r    *run
		want string
	}{
		{&run{Supervisor: sv(0)}, ""},
		{&run{Supervisor: sv(1)}, "STEPS=1"},
		{&run{Supervisor: sv(0), nodes: &nodes{count: 3, own: 2}, job: jobState{Host: "h"}}, "NODES=3 NODE=2 CHIEF=h"},
		{&run{Supervisor: sv(0), attempt: attempt{given: &Checkpoint{Path: "c", Step: 7}}}, "CHECKPOINT=c STEP=7 from=7"},
		{&run{Supervisor: sv(0), attempt: attempt{given: &Checkpoint{Path: "c", Step: 0}}}, "CHECKPOINT=c STEP=0 from=0"},
		{&run{Supervisor: sv(0), attempt: attempt{given: &Checkpoint{Path: "c", Step: found.NoStep}}}, "CHECKPOINT=c from=0"},
	} {
		if got := of(tc.r); got != tc.want {
			t.Errorf("told %q, want %q", got, tc.want)
		}
	}
}
