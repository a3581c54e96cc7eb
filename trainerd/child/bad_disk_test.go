//go:build unix

package child

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestBadDisk has a disk that fails at one thing that a run does with checkpoints: the log
// says so, the run continues, and the newest intact checkpoint is given to the program, on one
// node and on the first of several.
func TestBadDisk(t *testing.T) {
	const base, intact, damaged = "ckpt-10", "ckpt-5.safetensors", "ckpt-20.safetensors"
	for nodes := 1; nodes <= 2; nodes++ {
		for name, tc := range map[string]struct {
			files map[string]string
			fails func(op, name string) bool
			code  int    // of the program
			log   string // has this
			given string // to the starts
			left  string // is in the logdir
		}{
			"setting aside": {map[string]string{base: "weights"},
				func(op, name string) bool { return op == "mkdir" && name == "damaged" }, 1, "cannot move damaged checkpoint aside", "ckpt-10 ckpt-10 ckpt-10 ckpt-10", base},
			"setting aside what a file names": {map[string]string{base: "weights", "latest": base},
				func(op, name string) bool { return op == "remove" && name == "latest" }, 1, "cannot correct what names the damaged checkpoint", "ckpt-10 ckpt-10 none ckpt-10", "latest"},
			"moving back": {map[string]string{base: "weights"},
				func(op, name string) bool { return op == "rename" && name == base }, 1, "cannot move the checkpoint back", "ckpt-10 ckpt-10 none none", "damaged/" + base},
			"moving back at first": {map[string]string{base: "weights"}, onceFails("rename", base),
				1, "cannot move the checkpoint", "ckpt-10 ckpt-10 none none", base},
			"moving back what a file names": {map[string]string{base: "weights", "latest": base},
				func(op, name string) bool {
					return op == "create" && strings.HasSuffix(name, ".tmp") && !strings.Contains(name, "/")
				}, 1,
				"cannot move the checkpoint back", "ckpt-10 ckpt-10 none ckpt-10", base},
			"moving aside": {map[string]string{intact: childtest.Tensors(), damaged: "x"},
				func(op, name string) bool { return op == "mkdir" && name == "damaged" }, 0, "cannot move damaged checkpoint aside", intact, damaged},
			"moving aside what a file names": {map[string]string{intact: childtest.Tensors(), damaged: "x", "latest": damaged},
				func(op, name string) bool {
					return op == "create" && name != "" && strings.HasSuffix(name, ".tmp") && !strings.Contains(name, "/")
				}, 0,
				"cannot correct what names the damaged checkpoint", intact, "damaged/" + damaged},
			"deleting": {map[string]string{intact: childtest.Tensors(), "ckpt-7.safetensors": childtest.Tensors()},
				func(op, name string) bool { return op == "rename" && !strings.Contains(name, "/") }, 0, "cannot delete checkpoint", "ckpt-7.safetensors", intact},
			"recording": {map[string]string{intact: childtest.Tensors()},
				func(op, name string) bool { return strings.HasPrefix(name, "trainerd.manifests") }, 0, "checkpoint has no manifest, or no copy", intact, intact},
		} {
			t.Run(fmt.Sprintf("%s, %d nodes", name, nodes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var given []string
					sv, log := simulate(t, func(p *simProgram) int {
						given = append(given, filepath.Base(cmp.Or(p.variable("TRAINERD_CHECKPOINT"), "none")))
						return tc.code
					})
					for file, text := range tc.files {
						childtest.Write(t, filepath.Join(sv.Logdir, file), text)
					}
					picky(sv, tc.fails)
					sv.Nodes, sv.Retention, sv.Restarts.Max = nodes, []retention.Policy{retention.Last(1)}, 3
					if _, err := sv.Run(t.Context()); (err == nil) != (tc.code == 0) {
						t.Errorf("Run = %v", err)
					}
					if !strings.Contains(log.String(), tc.log) || strings.Contains(tc.log, "back") && strings.Contains(log.String(), "moved it back") {
						t.Errorf("the log lacks %q, or says that it is back:\n%s", tc.log, log)
					}
					if got := strings.Join(given, " "); got != tc.given {
						t.Errorf("the starts were given %q, want %q", got, tc.given)
					}
					if !slices.ContainsFunc(childtest.Below(t, sv.Logdir), func(name string) bool { return name == tc.left || withoutTime(name) == tc.left }) {
						t.Errorf("%s is not in %v", tc.left, childtest.Below(t, sv.Logdir))
					}
				})
			})
		}
	}
}

// onceFails returns a function that reports whether an operation is the first of its kind.
func onceFails(op, name string) func(op, name string) bool {
	failed := false
	return func(gotOp, gotName string) bool {
		fails := !failed && gotOp == op && gotName == name
		failed = failed || fails
		return fails
	}
}

// withoutTime returns the name of a file in damaged/ without the folder that has a time.
func withoutTime(name string) string {
	parts := strings.Split(name, "/")
	return parts[0] + "/" + parts[len(parts)-1]
}

// TestAsideComesBack has a checkpoint of two files of one name, in two folders, which
// another file names, and a folder that nothing shows to be finished: all is as it was
// once the program has failed without it, too, and stays so.
func TestAsideComesBack(t *testing.T) {
	for pattern, files := range map[string]map[string]string{
		"{a,b}/w_*": {"a/w_10": "one", "b/w_10": "two", "a/latest": "w_10"},
		"w_*":       {"w_10/model.safetensors": childtest.Tensors()},
	} {
		for nodes := 1; nodes <= 2; nodes++ {
			synctest.Test(t, func(t *testing.T) {
				var given []string
				sv, log := simulate(t, func(p *simProgram) int {
					given = append(given, p.variable("TRAINERD_STEP"))
					return 1
				})
				sv.Nodes, sv.Checkpoints, sv.Restarts.Max = nodes, pattern, 6
				for file, text := range files {
					childtest.Write(t, filepath.Join(sv.Logdir, file), text)
				}
				if _, err := sv.Run(t.Context()); !is[*ExitError](err) {
					t.Errorf("Run = %v", err)
				}
				if want := []string{"10", "10", "", "10", "10", "10", "10"}; !slices.Equal(given, want) { // it was not to blame
					t.Errorf("%s: the starts were given %q, want %q", pattern, given, want)
				}
				if left, err := os.ReadDir(filepath.Join(sv.Logdir, "damaged")); err != nil || len(left) != 0 {
					t.Errorf("left in damaged: %v, %v", left, err)
				}
				if strings.Contains(log.String(), "cannot move the checkpoint back") {
					t.Errorf("it is moved back twice:\n%s", log)
				}
				for file, want := range files {
					if got := childtest.Read(t, filepath.Join(sv.Logdir, file)); got != want {
						t.Errorf("%s has %q, want %q", file, got, want)
					}
				}
			})
		}
	}
}

// TestAsideNext has a checkpoint that is set aside, with an older one: the log says which
// one is next, and the run counts that it went back.
func TestAsideNext(t *testing.T) {
	for _, older := range []string{"", "ckpt-5.safetensors"} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(p *simProgram) int {
				if p.variable("TRAINERD_STEP") == "10" {
					return 1
				}
				return 0
			})
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-10"), "weights")
			next := `next="the beginning"`
			if sv.Checkpoints = "ckpt-*"; older != "" {
				childtest.Write(t, filepath.Join(sv.Logdir, older), childtest.Tensors())
				next = "next=" + filepath.Join(sv.Logdir, older)
			}
			if _, err := sv.Run(t.Context()); err != nil || !strings.Contains(log.String(), next) {
				t.Errorf("Run = %v; want %s in the log:\n%s", err, next, log)
			}
			if got := sv.Stats().Rewinds; got != 1 {
				t.Errorf("counted %d rewinds", got)
			}
		})
	}
}

// TestRecordsCannotBeKept has a file in the place of the folder of manifests: checkpoints
// count all the same.
func TestRecordsCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			for step := 3; step < 5; step++ {
				childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), fmt.Sprint("ckpt-", step)), "weights")
				p.say("step=%d loss=1", step)
				p.sleep(time.Minute)
			}
			return 0
		})
		childtest.Write(t, filepath.Join(sv.Logdir, "trainerd.manifests"), "x")
		if _, err := sv.Run(t.Context()); err != nil {
			t.Error(err)
		}
		for _, want := range []string{"skipping manifest", "cannot remove what a killed run has left", "checkpoint has no manifest, or no copy", "msg=saved step=3"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, log)
			}
		}
		if got := strings.Count(log.String(), "checkpoint has no manifest"); got != 2 {
			t.Errorf("that two checkpoints have no manifest is logged %d times:\n%s", got, log)
		}
	})
}

// TestDroppedEventsAreCounted has a disk that takes no events: those of checkpoints do not
// wait for it.
func TestDroppedEventsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			for step := 3; step < 6; step++ {
				childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), fmt.Sprint("ckpt-", step)), "weights")
				p.sleep(time.Minute)
			}
			return 0
		})
		picky(sv, func(op, below string) bool { return op == "create" && strings.HasPrefix(below, "events.out") })
		if _, err := sv.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if got := sv.Stats().EventsDropped; got < 2 {
			t.Errorf("%d events were dropped", got)
		}
	})
}

// TestMetricsCannotBeKept has metrics that are reported after a checkpoint was recorded, on a
// disk that does not take them.
func TestMetricsCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		saved := false
		sv, log := simulate(t, func(p *simProgram) int {
			childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-3"), "weights")
			p.sleep(time.Minute)
			p.say("step=3 loss=1")
			return 0
		})
		sv.Observer = whenSaved{nobody{}, func() { saved = true }}
		picky(sv, func(op, name string) bool {
			return op == "create" && saved && strings.HasPrefix(name, "trainerd.manifests")
		})
		if _, err := sv.Run(t.Context()); err != nil || !strings.Contains(log.String(), "cannot record the metrics of a checkpoint") {
			t.Errorf("Run = %v; log:\n%s", err, log)
		}
	})
}

// TestNotMovedIsNotSaid has a program that fails twice with a checkpoint, which the disk does not
// take among the damaged ones: nobody is told that it was moved, and nothing was rewound.
func TestNotMovedIsNotSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		sv, log := simulate(t, func(*simProgram) int {
			if starts++; starts < 4 {
				return 1
			}
			return 0
		})
		childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-10"), "weights")
		picky(sv, func(op, name string) bool { return op == "mkdir" && name == "damaged" })
		if _, err := sv.Run(t.Context()); err != nil || starts != 4 || sv.Stats().Rewinds != 0 {
			t.Errorf("Run: %v after %d starts and %d rewinds", err, starts, sv.Stats().Rewinds)
		}
		if text := log.String(); !strings.Contains(text, "cannot move damaged checkpoint aside") || strings.Contains(text, "moved it aside") || strings.Contains(text, "back") {
			t.Errorf("the log:\n%s", text)
		}
	})
}

// TestDamagedIsMovedLater has a disk that does not take a damaged checkpoint for a moment: it is
// asked again before the program is started, which picks its newest by itself.
func TestDamagedIsMovedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, left := time.Now(), []string{}
		var logdir string
		sv, log := simulate(t, func(*simProgram) int {
			left, _ = filepath.Glob(filepath.Join(logdir, "ckpt-*"))
			return 0
		})
		logdir = sv.Logdir
		childtest.Write(t, filepath.Join(logdir, "ckpt-10.safetensors"), childtest.Tensors())
		childtest.Write(t, filepath.Join(logdir, "ckpt-20.safetensors"), "x")
		picky(sv, func(op, name string) bool {
			return op == "mkdir" && name == "damaged" && time.Since(begun) < firstBringBack/2
		})
		if _, err := sv.Run(t.Context()); err != nil || len(left) != 1 {
			t.Errorf("Run: %v; the program has found %v\n%s", err, left, log)
		}
	})
}

// TestCannotBringBack has a disk that does not take the copy of a checkpoint: the log says so, and
// no more once it has.
func TestCannotBringBack(t *testing.T) {
	dir, log := t.TempDir(), newScreen()
	name := filepath.Join(dir, "last.safetensors")
	childtest.Write(t, name, childtest.Tensors())
	disk := &childtest.Swappable{FS: atomicfile.OrOS(nil)}
	r := &run{Supervisor: &Supervisor{}, log: logTo(log), counts: &counts{}, store: storeOn(t, disk, dir, "last*")}
	r.store.Refresh(true)
	c, _ := r.store.Newest()
	childtest.Must(t, os.Remove(name))
	disk.FS = childtest.PickyDisk{FS: disk.FS, Logdir: dir, Fails: func(op, _ string) bool { return op == "create" }}
	if r.tryBringBack(t.Context(), c) || strings.Count(log.String(), "cannot bring back") != 1 {
		t.Errorf("the log:\n%s", log)
	}
	disk.FS = atomicfile.OrOS(nil)
	if !r.tryBringBack(t.Context(), c) || strings.Count(log.String(), "cannot bring back") != 1 || !strings.Contains(log.String(), "brought back") {
		t.Errorf("the log:\n%s", log)
	}
}

// TestDamagedIsNotGone has a program whose only checkpoint is damaged: it has the copy again, and
// nobody says that the program was killed between two checkpoints.
func TestDamagedIsNotGone(t *testing.T) {
	dir, log := t.TempDir(), newScreen()
	name := filepath.Join(dir, "last.safetensors")
	childtest.Write(t, name, childtest.Tensors())
	r := &run{Supervisor: &Supervisor{}, log: logTo(log), counts: &counts{}, store: openStore(t, dir, "last*")}
	r.store.Refresh(true)
	childtest.Write(t, name, "x")
	r.store.Refresh(true)
	r.quarantineDamaged(t.Context())
	if got := childtest.Read(t, name); got != childtest.Tensors() {
		t.Errorf("it has %q", got)
	}
	if text := log.String(); strings.Count(text, "brought back") != 1 || strings.Contains(text, "is gone") {
		t.Errorf("the log:\n%s", text)
	}
}
