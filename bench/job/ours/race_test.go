//go:build unix

package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestMain lets the test be our own training.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "train" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A run of 4 steps: killed in step 3, it begins again after the checkpoint of step 1.
const killedRun = `start 10 100
step 1 103 104
step 2 104.5 105.5
save 0.5 105
start 11 107
step 2 110 112
step 3 112.5 113.5
step 4 114 115
end abc
`

func readText(t *testing.T, text string) *journal {
	t.Helper()
	name := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	j, err := readJournal(name)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestAccount(t *testing.T) {
	j := readText(t, killedRun)
	got := j.account(time.Unix(99, 0))
	if want := (account{reached: 4, wall: 16, progress: 4, inSteps: 5, lost: 1}); got != want {
		t.Errorf("account %+v, want %+v", got, want)
	}
	if got := j.startSeconds(); got != 3 {
		t.Errorf("start takes %g s, want 3", got)
	}
	if got := j.stepSeconds(); got != 1 {
		t.Errorf("step takes %g s, want 1", got)
	}
	if len(j.saves) != 1 || j.saves[0] != (save{0.5, 105}) {
		t.Errorf("saves %v, want one of 0.5 s until 105", j.saves)
	}
	r := judge(&calibration{Digest: "abc"}, j, time.Unix(99, 0))
	for name, want := range map[string]float64{"ettr": 4. / 16, "in_steps": 5. / 16, "lost_seconds": 12, "lost_steps": 1, "same_bits": 1, "starts": 2} {
		if r.Metrics[name] != want {
			t.Errorf("%s = %g, want %g", name, r.Metrics[name], want)
		}
	}
	if r := judge(&calibration{Digest: "abd"}, j, time.Unix(99, 0)); r.Metrics["same_bits"] != 0 {
		t.Error("another digest counts as the same bits")
	}
}

// A kill after which no process starts counts for nothing.
func TestRestartSeconds(t *testing.T) {
	j := readText(t, "start 1 10\nstep 1 11 12\nstart 2 15.5\nstep 2 16 17\nstart 3 21\n")
	if got := j.restartSeconds([]time.Time{time.Unix(15, 0), time.Unix(18, 0), time.Unix(30, 0)}); got != 1.75 {
		t.Errorf("a restart takes %g s, want the mean of 0.5 and 3", got)
	}
	if got := j.restartSeconds(nil); got != 0 {
		t.Errorf("without kills a restart takes %g s", got)
	}
}

func TestSaveSeconds(t *testing.T) {
	j := readText(t, "start 1 0\nstep 1 1 2\nstep 2 2.25 3\nstep 3 5 6\nstep 4 6 7\nstep 5 9 10\n")
	if got := j.saveSeconds(2, 0.75); got != 2.5 {
		t.Errorf("a save takes %g s, want 2.5", got)
	}
	// Next to steps 4 and 5 something is saved, and they take longer for it.
	j = readText(t, "start 1 0\nstep 1 1 2\nstep 2 2 3\nstep 3 3 4\nstep 4 4 7\nstep 5 7 9\nstep 6 9 10\nsave 2.5 8\n")
	if step, save := j.stepSeconds(), j.saveSeconds(3, 1); step != 1 || save != 3 {
		t.Errorf("a step takes %g s, and a save %g; want 1 and 3", step, save)
	}
}

func TestDamagedJournal(t *testing.T) {
	for _, line := range []string{"start x", "step 1 2", "stop"} {
		if err := new(journal).add(line); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
	if j, err := readJournal(filepath.Join(t.TempDir(), "none")); err != nil || len(j.starts) != 0 {
		t.Errorf("no journal: %v, %v", j, err)
	}
}

// One kill costs a start and the steps since the checkpoint; kills that come faster
// than a start takes only cost time.
func TestIdeal(t *testing.T) {
	c := calibration{Steps: 10, Every: 4, Step: 1, Save: .5, Start: 2}
	never := newKills(1, 1e6)
	if got, want := c.ideal(never), (account{reached: 10, wall: 2 + 10 + 2*.5, progress: 10}); got != want {
		t.Errorf("without kills %+v, want %+v", got, want)
	}
	for seed := range uint64(20) {
		first := newKills(seed, 5).next().Seconds()
		got := c.ideal(newKills(seed, 5))
		if got.wall < 13 || first < 13 && got.wall == 13 {
			t.Errorf("seed %d: a first kill after %g s, and a wall of %g", seed, first, got.wall)
		}
	}
}

// Daly's expectation is near Young's first order where failures are rare.
func TestDaly(t *testing.T) {
	c := calibration{Steps: 100_000, Step: .1, Save: 1, Start: 10, Mean: 100_000}
	young := 1 - math.Sqrt(2*c.Save/c.Mean) - c.Start/c.Mean
	if got := c.daly(); math.Abs(got-young) > 1e-3 {
		t.Errorf("share %g, want %g", got, young)
	}
}

// Our own training, killed, ends with the bits of the undisturbed run: the driver's
// whole way, with seconds for minutes.
func TestOwnRace(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tk := func(dir string) task {
		return task{logdir: dir, journal: filepath.Join(dir, "journal"), steps: 800, every: 50, width: 64}
	}
	run := func(tk task, next func() time.Duration) *journal {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, out, err := runKilled(ctx, []string{"bash", "-c", `until "$@"; do :; done`, "bash", self, "train"}, tk, next)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		j, err := readJournal(tk.journal)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	never := func() time.Duration { return time.Hour }
	kills := 0
	sometimes := func() time.Duration { // so few that a slow machine comes to the end as well
		if kills++; kills > 3 {
			return time.Hour
		}
		return time.Duration(kills) * 300 * time.Millisecond
	}
	undisturbed, killed := run(tk(t.TempDir()), never), run(tk(t.TempDir()), sometimes)
	if killed.digest == "" || killed.digest != undisturbed.digest {
		t.Errorf("digests %q and %q", undisturbed.digest, killed.digest)
	}
	if len(undisturbed.starts) != 1 {
		t.Errorf("%d starts without a kill", len(undisturbed.starts))
	}
}
