package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// TestProgramOf has commands that name where they save, and inputs: a run of a proof saves in
// its own folder, and reads what the job reads.
func TestProgramOf(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, run := filepath.Join(base, "work"), filepath.Join(base, "scratch", "kill-1")
	in, out := filepath.Join(base, "data.csv"), filepath.Join(base, "runs")
	for _, tc := range []struct {
		name, dir, logdir string // of the job, where it is set
		runLogdir         string
		words, want       []string
	}{
		{"inside", run, "", run, []string{work + "/train.py", "--out", work + "/a", "--data=" + in}, []string{run + "/train.py", "--out", run + "/a", "--data=" + in}},
		{"relative", run, "", run, []string{"train.py", "out", "--data", "../data.csv", "--x=../x"}, []string{"train.py", "out", "--data", in, "--x=" + base + "/x"}},
		{"named", "", out + "/a", run, []string{"--out", out + "/a", "log=" + out + "/a/log.txt", in}, []string{"--out", run, "log=" + run + "/log.txt", in}},
		{"parent", "", out + "/a", run + "/a", []string{"--out=../runs", "--init", out + "/b.pt"}, []string{"--out=" + run, "--init", out + "/b.pt"}},
		{"root", "", out, run, []string{"--root", "/", "--sum", "1/2", "--out", out}, []string{"--root", "/", "--sum", "1/2", "--out", run}},
		{"no logdir", "", "", run, []string{"--out", out}, []string{"--out", out}},
	} {
		overrides := []config.Override{config.ProgramOverride(append([]string{"python3"}, tc.words...))}
		if tc.logdir != "" {
			overrides = append(overrides, config.Override{Flag: "--logdir", Assignment: "logdir=" + tc.logdir, Literal: true})
		}
		job, err := config.Load("", overrides)
		if err != nil && tc.logdir != "" {
			t.Fatal(err)
		}
		job.Child.Dir = work
		want := append([]string{"python3"}, tc.want...)
		if got := programOf(job, tc.dir, tc.runLogdir); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", tc.name, got, want)
		}
	}
}
