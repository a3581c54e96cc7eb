//go:build unix

package child

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestLastIsMended has a program's newest state under a name of its own, next to
// checkpoints with a step. Where it was cut short and the program would load it, it is a copy
// of the newest verified one then.
func TestLastIsMended(t *testing.T) {
	cut := childtest.TensorsOf(30)[:200]
	for _, tc := range []struct {
		name, pattern, newest, last, text string
		mended                            bool
	}{
		{"Lightning, the pattern does not mean it", "a/step=*.safetensors", "a/step=20.safetensors", "a/last.safetensors", cut, true},
		{"Lightning, the pattern means it", "a/*.safetensors", "a/step=20.safetensors", "a/last.safetensors", cut, true},
		{"Lightning, another version", "*.safetensors", "step=20.safetensors", "last-v1.safetensors", cut, true},
		{"fairseq", "checkpoint_*.safetensors", "checkpoint_1_20.safetensors", "checkpoint_last.safetensors", cut, true},
		{"empty", "s-*.safetensors", "s-20.safetensors", "latest.safetensors", "", true},
		{"intact", "s-*.safetensors", "s-20.safetensors", "last.safetensors", childtest.TensorsOf(30), false},
		{"intact, the pattern means it", "*.safetensors", "s-20.safetensors", "last.safetensors", childtest.TensorsOf(30), false},
		{"of another kind", "s-*.safetensors", "s-20.safetensors", "last.json", `{"a`, false},
		{"in another folder", "a/s-*.safetensors", "a/s-20.safetensors", "last.safetensors", cut, false},
		{"next to a folder", "s-*", "s-20/a.safetensors", "last.safetensors", cut, false},
		{"of another name", "s-*.safetensors", "s-20.safetensors", "s_best.safetensors", cut, false},
		{"of a word that ends so", "s-*.safetensors", "s-20.safetensors", "blast.safetensors", cut, false},
		{"nothing to copy", "s-*.safetensors", "", "last.safetensors", cut, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, log := t.TempDir(), newScreen()
			if tc.newest != "" {
				childtest.Write(t, filepath.Join(dir, strings.Replace(tc.newest, "20", "10", 1)), childtest.TensorsOf(10))
				childtest.Write(t, filepath.Join(dir, tc.newest), childtest.TensorsOf(20))
			}
			last := filepath.Join(dir, tc.last)
			childtest.Write(t, last, tc.text)
			s := openStore(t, dir, tc.pattern)
			s.Refresh(true)
			r := &run{Supervisor: &Supervisor{}, log: logTo(log), store: s, counts: &counts{}}
			r.repairLatest(t.Context())
			r.quarantineDamaged(t.Context())
			want := tc.text
			if tc.mended {
				want = childtest.TensorsOf(20)
			}
			if got := childtest.Read(t, last); got != want {
				t.Errorf("it has %d bytes, want %d", len(got), len(want))
			}
			aside, err := filepath.Glob(filepath.Join(dir, "damaged", "*", filepath.Base(tc.last)))
			if err != nil || (len(aside) == 1) != tc.mended || tc.mended && childtest.Read(t, aside[0]) != tc.text {
				t.Errorf("aside are %v, %v\n%s", aside, err, log)
			}
			if temps, _ := filepath.Glob(filepath.Join(filepath.Dir(last), ".trainerd-*")); temps != nil {
				t.Errorf("left %v", temps)
			}
			if tc.mended && tc.newest != "" && os.SameFile(childtest.Stat(t, last), childtest.Stat(t, filepath.Join(dir, tc.newest))) {
				t.Error("it is a link, which the program may write into")
			}
		})
	}
}

// TestLastOfDamagedNewest has both cut short, the newest checkpoint and the program's
// newest state: that is a copy of the one before.
func TestLastOfDamagedNewest(t *testing.T) {
	dir := t.TempDir()
	childtest.Write(t, filepath.Join(dir, "s-10.safetensors"), childtest.TensorsOf(10))
	childtest.Write(t, filepath.Join(dir, "s-20.safetensors"), childtest.TensorsOf(20)[:100])
	childtest.Write(t, filepath.Join(dir, "last.safetensors"), childtest.TensorsOf(20)[:100])
	s := openStore(t, dir, "s-*.safetensors")
	s.Refresh(true)
	r := &run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}
	r.repairLatest(t.Context())
	r.quarantineDamaged(t.Context())
	if got := childtest.Read(t, filepath.Join(dir, "last.safetensors")); got != childtest.TensorsOf(10) {
		t.Errorf("it has %d bytes", len(got))
	}
}

// TestLastOnFullDisk has a disk that takes nothing new for an hour: the program is not
// started before its newest state is mended.
func TestLastOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, seen := time.Now(), ""
		var last string
		sv, log := simulate(t, func(*simProgram) int {
			seen = childtest.Read(t, last)
			return 0
		})
		sv.Checkpoints = "s-*.safetensors"
		last = filepath.Join(sv.Logdir, "last.safetensors")
		childtest.Write(t, filepath.Join(sv.Logdir, "s-10.safetensors"), childtest.TensorsOf(10))
		childtest.Write(t, last, childtest.TensorsOf(20)[:100])
		picky(sv, func(op, below string) bool {
			return strings.HasPrefix(below, ".trainerd-") && time.Since(full) < time.Hour
		})
		if _, err := sv.Run(t.Context()); err != nil || seen != childtest.TensorsOf(10) || time.Since(full) < time.Hour {
			t.Errorf("Run = %v after %v; the program saw %d bytes\n%s", err, time.Since(full), len(seen), log)
		}
	})
}

// TestLastAfterKill has a program that is killed while it writes its newest state.
func TestLastAfterKill(t *testing.T) {
	const name = "ckpt-3.safetensors"
	sv, out := supervise(t, "steps 1 3;intact "+name+";await "+manifest.RecordName(name, 3)+";tear last.safetensors;kill 9|resume 5")
	sv.Checkpoints = "ckpt-*.safetensors"
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := childtest.Read(t, filepath.Join(sv.Logdir, "last.safetensors")); got != childtest.TensorsOf(1) {
		t.Errorf("it has %q\n%s", got, out)
	}
}

// TestRewindTakesLast has a loss that is NaN after the program has saved its newest state:
// that goes back with the checkpoints.
func TestRewindTakesLast(t *testing.T) {
	for _, pattern := range []string{"s-*.safetensors", "*.safetensors"} {
		dir := t.TempDir()
		for i, name := range []string{"s-10.safetensors", "s-20.safetensors", "last.safetensors"} {
			childtest.Write(t, filepath.Join(dir, name), childtest.TensorsOf(10*(i+1)))
			at := time.Unix(int64(1_000_000+i), 0)
			childtest.Must(t, os.Chtimes(filepath.Join(dir, name), at, at))
		}
		s := openStore(t, dir, pattern)
		s.Refresh(true)
		r := &run{Supervisor: &Supervisor{MaxRewinds: 1}, log: discard, store: s, counts: &counts{}}
		r.rewinds.good, r.rewinds.goodAt, r.attempt.nan = 15, time.Unix(1_000_000, 0), &trainerd.NaNError{Step: 21}
		if err := r.rewind(); err != nil {
			t.Fatal(err)
		}
		if got := childtest.Read(t, filepath.Join(dir, "last.safetensors")); got != childtest.TensorsOf(10) {
			t.Errorf("%s: it has another state", pattern)
		}
		if names := childtest.Below(t, dir); slices.Contains(names, "s-20.safetensors") {
			t.Errorf("%s: left %v", pattern, names)
		}
	}
}

// TestLastThatMayBeCut has a program that fails with its newest state, in a form that does not show whether it is
// whole: it begins with a copy of the checkpoint before, unless it fails with that, too, or has continued from it.
func TestLastThatMayBeCut(t *testing.T) {
	const torn = "weig"
	for name, tc := range map[string]struct {
		fails func(attempt int, last string) bool
		left  string
	}{
		"it was":                    {func(_ int, last string) bool { return last == torn }, "weights"},
		"the program fails without": {func(attempt int, _ string) bool { return attempt < 4 }, torn},
		"it had continued":          {func(attempt int, _ string) bool { return attempt == 2 || attempt == 3 }, torn},
	} {
		synctest.Test(t, func(t *testing.T) {
			attempt := 0
			sv, log := simulate(t, func(p *simProgram) int {
				attempt++
				if tc.fails(attempt, childtest.Read(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "last.bin"))) {
					return 1
				}
				fmt.Fprintln(p.out, `{"step": 15}`)
				if attempt == 1 {
					return 1
				}
				return 0
			})
			for file, text := range map[string]string{"ckpt-10.bin": "weights", "last.bin": torn} {
				childtest.Write(t, filepath.Join(sv.Logdir, file), text)
				at := time.Now().Add(time.Duration(-len(text)) * time.Minute)
				childtest.Must(t, os.Chtimes(filepath.Join(sv.Logdir, file), at, at))
			}
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(name, err)
			}
			if got := childtest.Read(t, filepath.Join(sv.Logdir, "last.bin")); got != tc.left {
				t.Errorf("%s: it is %q in the end, want %q\n%s", name, got, tc.left, log)
			}
		})
	}
}

// TestOnlyLastIsSetAside has a program that fails with its newest state, and has two checkpoints with a step: it is
// still given the newest of these, and that counts as one rewind.
func TestOnlyLastIsSetAside(t *testing.T) {
	const torn = "weig"
	synctest.Test(t, func(t *testing.T) {
		var given []string
		sv, log := simulate(t, func(p *simProgram) int {
			given = append(given, p.variable("TRAINERD_STEP"))
			if childtest.Read(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "last.bin")) == torn {
				return 1
			}
			return 0
		})
		for i, file := range []string{"ckpt-5.bin", "ckpt-10.bin", "last.bin"} {
			text := "weights"
			if file == "last.bin" {
				text = torn
			}
			childtest.Write(t, filepath.Join(sv.Logdir, file), text)
			at := time.Now().Add(time.Duration(i-5) * time.Minute)
			childtest.Must(t, os.Chtimes(filepath.Join(sv.Logdir, file), at, at))
		}
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := readReport(t, sv.Logdir).Restarts.Rewinds; n != 1 || !slices.Equal(given, []string{"10", "10", "10"}) {
			t.Errorf("%d rewinds; given %q\n%s", n, given, log)
		}
	})
}
