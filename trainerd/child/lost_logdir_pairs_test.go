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

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// seesSaves is an observer that notes the steps of checkpoints.
type seesSaves struct {
	nobody
	steps []int64
}

func (s *seesSaves) Saved(c Checkpoint) { s.steps = append(s.steps, c.Step) }

// TestLogdirDeletedBetweenFiles has a logdir that is deleted, or emptied, while the program is
// between two files of a checkpoint: of that one only the rest is there then, and it is not
// announced. The next one is.
func TestLogdirDeletedBetweenFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		pattern string
		files   []string // of a checkpoint
		remove  func(t *testing.T, dir string)
	}{
		"a folder":                   {"step-*", []string{"step-%d/model.bin", "step-%d/optim.bin"}, removeAll},
		"a folder in its own":        {"mine/ck/step-*", []string{"mine/ck/step-%d/model.bin", "mine/ck/step-%d/optim.bin"}, removeAll},
		"a folder in an emptied one": {"mine/step-*", []string{"mine/step-%d/model.bin", "mine/step-%d/optim.bin"}, removeContents},
		"two files":                  {"{model,optim}-*.bin", []string{"model-%d.bin", "optim-%d.bin"}, removeAll},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				saves := &seesSaves{}
				sv, log := simulate(t, func(p *simProgram) int {
					dir := p.variable("TRAINERD_LOGDIR")
					write := func(step int, files ...string) {
						for _, f := range files {
							childtest.Write(t, filepath.Join(dir, fmt.Sprintf(f, step)), f)
						}
					}
					for step := 1; step <= 5; step++ {
						p.say("step=%d", step)
						if step == 3 {
							write(step, tc.files[0])
							tc.remove(t, dir)
							p.sleep(10 * time.Second)
							write(step, tc.files[1:]...)
						} else {
							write(step, tc.files...)
						}
						p.sleep(10 * time.Second)
					}
					return 0
				})
				sv.Checkpoints, sv.Observer = tc.pattern, saves
				if _, err := sv.Run(t.Context()); err != nil || !slices.Equal(saves.steps, []int64{1, 2, 4, 5}) {
					t.Errorf("Run = %v; saved %v, want all steps but 3; log:\n%s", err, saves.steps, log)
				}
			})
		})
	}
}

// TestLogdirDeletedInLastSave has a logdir that is deleted while the program saves at a stop: a
// rest of that save is not a success, and one that came whole, in the logdir that was made again, is.
func TestLogdirDeletedInLastSave(t *testing.T) {
	for name, lost := range map[string]bool{"a rest": true, "all": false} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(p *simProgram) int {
				ck := func(step int, file string) {
					childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), fmt.Sprintf("step-%d", step), file), "weights")
				}
				p.say("step=1")
				ck(1, "model.bin")
				ck(1, "optim.bin")
				p.sleep(10 * time.Second)
				p.say("step=2")
				p.sleep(time.Hour)
				ck(2, "model.bin")
				deleteLogdir(p.variable("TRAINERD_LOGDIR"))
				if p.sleepDeaf(5 * time.Second); !lost {
					ck(2, "model.bin")
				}
				ck(2, "optim.bin")
				return 0
			})
			sv.Checkpoints = "step-*"
			stop, end := begin(t, sv)
			pass(20 * time.Second)
			stop()
			if exit, err := end(); exit.Cause != Stopped || is[*SaveLostError](err) != lost || (err != nil) != lost {
				t.Errorf("%s: Run = %+v, %v; log:\n%s", name, exit, err, log)
			}
		})
	}
}

// TestLostToAnotherChief has a chief that has lost the logdir to another host: it does not wait for
// nodes that are the other's by now.
func TestLostToAnotherChief(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nodes{}
		sv, _ := simulate(t, func(p *simProgram) int {
			tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeRunning})
			p.sleep(time.Hour)
			return 0
		})
		sv.Nodes, n.dir = 2, filepath.Join(sv.Logdir, nodesDir)
		_, end := begin(t, sv)
		pass(10 * time.Second)
		childtest.Write(t, filepath.Join(sv.Logdir, logdir.LockFile), `{"host":"elsewhere","pid":1,"start":"2026-01-02T03:04:05Z"}`)
		begun := time.Now()
		if _, err := end(); !is[*logdir.LostError](err) || time.Since(begun) > 5*time.Second {
			t.Errorf("Run = %v after %v", err, time.Since(begun))
		}
	})
}

// TestLostWhileNodesEnd has a chief that loses the logdir to another host while it waits for the
// program of an earlier chief to end on a node: what that passes on is left to the other.
func TestLostWhileNodesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(*simProgram) int { t.Error("the program was started"); return 0 })
		sv.Nodes = 2
		n, before := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), own: 1}, start{"elsewhere/7/1", 3}
		tellState(t, n, 1, nodeState{start: before, Phase: nodeRunning})
		childtest.Must(t, writeJSON(nil, n.jobFile(), jobState{start: before, Phase: nodeRunning}))
		w := forwarder{}
		w.add(&Report{Step: 9, Values: []Value{{"loss", 1}}})
		childtest.Must(t, w.send(n, before))
		_, end := begin(t, sv)
		pass(3 * time.Second)
		childtest.Write(t, filepath.Join(sv.Logdir, logdir.LockFile), `{"host":"elsewhere","pid":1,"start":"2026-01-02T03:04:05Z"}`)
		begun := time.Now()
		if _, err := end(); !is[*logdir.LostError](err) || time.Since(begun) > 5*time.Second {
			t.Errorf("Run = %v after %v", err, time.Since(begun))
		}
		if left, err := filepath.Glob(filepath.Join(n.dir, "*.reports*")); err != nil || len(left) != 1 {
			t.Errorf("passed on are %q, %v", left, err)
		}
		if got := curve(t, sv.Logdir, "loss"); len(got) > 0 {
			t.Errorf("the curve has the steps %v", got)
		}
	})
}

// TestLogdirDeletedWithLink has a program whose checkpoints are on another disk, to which it makes
// a link, also in the logdir that was deleted: what is there stays as the program has written it.
func TestLogdirDeletedWithLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big, saves := t.TempDir(), &seesSaves{}
		sv, log := simulate(t, func(p *simProgram) int {
			dir := p.variable("TRAINERD_LOGDIR")
			childtest.Must(t, os.Symlink(big, filepath.Join(dir, "ck")))
			childtest.Write(t, filepath.Join(dir, "ck", "ckpt-1"), "weights")
			p.sleep(10 * time.Second)
			deleteLogdir(dir)
			p.sleep(10 * time.Second)
			childtest.Must(t, os.Symlink(big, filepath.Join(dir, "ck")))
			childtest.Write(t, filepath.Join(dir, "ck", "ckpt-2"), "weights")
			p.sleep(10 * time.Second)
			return 0
		})
		sv.Checkpoints, sv.Observer = "ck/ckpt-*", saves
		if _, err := sv.Run(t.Context()); err != nil || len(saves.steps) > 0 {
			t.Errorf("Run = %v; saved %v", err, saves.steps)
		}
		if got := childtest.Below(t, big); !slices.Equal(got, []string{"ckpt-1", "ckpt-2"}) {
			t.Errorf("on the other disk are %q", got)
		}
		if got := strings.Count(log.String(), "a link leads out of the logdir"); got != 1 {
			t.Errorf("the link is logged %d times:\n%s", got, log)
		}
	})
}

// TestProgramMakesLogdirAgain has a program that makes its deleted logdir again before that is
// seen. An empty one is taken back. One with a file may be another's: the program is killed, the
// folder left as it is, and the next run, which the user is told to start, continues with it.
func TestProgramMakesLogdirAgain(t *testing.T) {
	for _, empty := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var given []string
			sv, log := simulate(t, func(p *simProgram) int {
				dir := p.variable("TRAINERD_LOGDIR")
				if given = append(given, p.variable("TRAINERD_STEP")); len(given) > 1 {
					return 0
				}
				childtest.Write(t, filepath.Join(dir, "ckpt-1"), "weights")
				p.sleep(10500 * time.Millisecond) // not when it is looked at
				deleteLogdir(dir)
				if childtest.Must(t, os.Mkdir(dir, 0o777)); !empty {
					childtest.Write(t, filepath.Join(dir, "ckpt-2"), "weights")
				}
				for p.sleepDeaf(10 * time.Second) {
				}
				return 0
			})
			sv.ScanEvery = time.Second
			stop, end := begin(t, sv)
			pass(30 * time.Second)
			stop()
			_, err := end()
			if empty {
				if is[*logdir.LostError](err) || !strings.Contains(log.String(), "it is made again") {
					t.Errorf("Run = %v; log:\n%s", err, log)
				}
				return
			}
			if !is[*logdir.LostError](err) || !strings.Contains(err.Error(), "start it again") {
				t.Errorf("Run = %v", err)
			}
			if got := childtest.Below(t, sv.Logdir); !slices.Equal(got, []string{"ckpt-2"}) {
				t.Errorf("the folder has %q", got)
			}
			if _, err := sv.Run(t.Context()); err != nil || !slices.Equal(given, []string{"", "2"}) {
				t.Errorf("Run = %v; the starts were given steps %q", err, given)
			}
		})
	}
}

func removeAll(_ *testing.T, dir string) { deleteLogdir(dir) }

// removeContents empties a folder.
func removeContents(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err) // and no more: this is the program, which has to end
	}
	for _, e := range entries {
		deleteLogdir(filepath.Join(dir, e.Name()))
	}
}

// TestDeletedWithWhatIsNotDurable has somebody delete the logdir as a program has just failed that had saved a moment
// before: the next start is not given what is gone.
func TestDeletedWithWhatIsNotDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sv *Supervisor
		given := ""
		sv, log := simulate(t, func(p *simProgram) int {
			if given = p.variable("TRAINERD_CHECKPOINT"); p.variable("TRAINERD_ATTEMPT") == "2" {
				return 0
			}
			p.say("step=1 loss=1")
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-1.safetensors"), childtest.TensorsOf(1))
			return 1
		})
		ends := 0
		sv.Observer = &seesEndsThen{func() {
			if ends++; ends == 1 {
				childtest.Must(t, os.RemoveAll(sv.Logdir))
			}
		}}
		if _, err := sv.Run(t.Context()); err != nil || given != "" || ends != 2 {
			t.Errorf("Run = %v, given %q\n%s", err, given, log)
		}
	})
}
