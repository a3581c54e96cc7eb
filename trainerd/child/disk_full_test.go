//go:build unix

package child

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// smallDisk has only so many bytes left.
type smallDisk struct {
	atomicfile.FS
	free func() int64
}

// FreeSpace returns them.
func (d smallDisk) FreeSpace(string) (int64, error) { return d.free(), nil }

// TestFullDiskIsWaitedFor has a program that fails in each save while the disk is full, for
// hours: it trains on once there is room. One that fails for another reason does not, as one
// that fails before its first step with room for a checkpoint.
func TestFullDiskIsWaitedFor(t *testing.T) {
	const full = 6 * time.Hour
	size := int64(len(childtest.TensorsOf(20)))
	for _, left := range []int64{10, size + 1, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			begun, last := time.Now(), ""
			sv, log := simulate(t, func(p *simProgram) int {
				if last = p.variable("TRAINERD_CHECKPOINT"); time.Since(begun) < full {
					return 1
				}
				return 0
			})
			sv.Checkpoints = "ckpt-*.safetensors"
			for _, step := range []int{10, 20} {
				childtest.Write(t, filepath.Join(sv.Logdir, fmt.Sprintf("ckpt-%d.safetensors", step)), childtest.TensorsOf(step))
			}
			sv.FS = smallDisk{atomicfile.OrOS(nil), func() int64 { return left }}
			exit, err := sv.Run(t.Context())
			if waits := left < size; (err == nil) != waits || waits != (time.Since(begun) >= full) || waits && !strings.HasSuffix(last, "ckpt-20.safetensors") {
				t.Errorf("with %d bytes left: Run = %+v, %v after %v\n%s", left, exit, err, time.Since(begun), log)
			}
		})
	}
}

// exhausted is a disk with free bytes, which takes no files meanwhile.
type exhausted struct {
	atomicfile.FS
	err func() error
}

func (d exhausted) Create(name string) (atomicfile.File, error) {
	if err := d.err(); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return d.FS.Create(name)
}

// TestUsedUpIsWaitedFor has a program that fails in each save, for hours, as the disk has as many
// files as it can or a quota is used up, before its first checkpoint too.
func TestUsedUpIsWaitedFor(t *testing.T) {
	const full = 6 * time.Hour
	for err, waits := range map[error]bool{syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EACCES: false} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			isFull := func() bool { return time.Since(begun) > 0 && time.Since(begun) < full }
			sv, log := simulate(t, func(p *simProgram) int {
				p.sleep(time.Second)
				if isFull() {
					return 1
				}
				return 0
			})
			sv.FS = exhausted{atomicfile.OrOS(nil), func() error {
				if isFull() {
					return err
				}
				return nil
			}}
			exit, got := sv.Run(t.Context())
			if (got == nil) != waits || waits != (time.Since(begun) >= full) {
				t.Errorf("%v: Run = %+v, %v after %v\n%s", err, exit, got, time.Since(begun), log)
			}
			left, e := filepath.Glob(filepath.Join(sv.Logdir, ".trainerd-*"))
			if e != nil || len(left) > 0 {
				t.Errorf("%v: left %v, %v", err, left, e)
			}
		})
	}
}

// TestFullDiskAndStop has a run whose program fails on a full disk stopped, while the program
// runs and between two starts: it ends at once, as one that is resumed.
func TestFullDiskAndStop(t *testing.T) {
	for _, runs := range []time.Duration{0, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(p *simProgram) int {
				p.sleep(runs)
				return 1
			})
			sv.Checkpoints = "ckpt-*.safetensors"
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-10.safetensors"), childtest.TensorsOf(10))
			sv.FS = smallDisk{atomicfile.OrOS(nil), func() int64 { return 10 }}
			stop, end := begin(t, sv)
			pass(time.Hour)
			stop()
			asked := time.Now()
			if exit, err := end(); err != nil || exit.Cause != Stopped || exit.Attempt < 9 || time.Since(asked) > time.Second {
				t.Errorf("Run = %+v, %v after %v\n%s", exit, err, time.Since(asked), log)
			}
		})
	}
}

// TestFullDiskOnNodes has a program that fails on a full disk for hours, on the chief's node or
// another one, after another chief was killed in that: no failure counts on the new one.
func TestFullDiskOnNodes(t *testing.T) {
	const full = 2 * time.Hour
	for _, failing := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			n := &nodes{own: 1}
			sv, log := simulate(t, func(p *simProgram) int {
				switch isFull := time.Since(begun) < full; {
				case isFull && failing == 0:
					return 1
				case isFull:
					tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeEnded, Cause: Failed, Code: 1, Exit: "exit code 1"})
					p.sleep(time.Hour)
					return -1
				}
				tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeEnded})
				return 0
			})
			n.dir = filepath.Join(sv.Logdir, nodesDir)
			sv.Nodes, sv.Checkpoints = 2, "ckpt-*.safetensors"
			before := start{"elsewhere/7/1", 3}
			tellState(t, n, 1, nodeState{start: before, Phase: nodeEnded, Cause: Failed, Code: 1})
			childtest.Must(t, writeJSON(nil, n.jobFile(), jobState{start: before, Phase: nodeRunning}))
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-10.safetensors"), childtest.TensorsOf(10))
			sv.FS = smallDisk{atomicfile.OrOS(nil), func() int64 { return 10 }}
			if exit, err := sv.Run(t.Context()); err != nil || time.Since(begun) < full {
				t.Errorf("on node %d: Run = %+v, %v after %v\n%s", failing, exit, err, time.Since(begun), log)
			}
		})
	}
}

// TestFullDiskOutlivesTheChief has a chief that is lost between two starts, while a full disk is
// waited for, and perhaps while the job is paused: the worker in its place waits as it did. No
// failure counts, no start comes before another by less than the pause, nor before the job is
// resumed, and the program trains on once there is room.
func TestFullDiskOutlivesTheChief(t *testing.T) {
	const full = 20 * time.Minute
	for _, paused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			begun, starts := time.Now(), []time.Duration{}
			sv, _ := simulate(t, func(p *simProgram) int {
				starts = append(starts, time.Since(begun))
				if time.Since(begun) < full {
					return 1
				}
				return 0
			})
			sv.Log = nil // which would be long
			sv.Nodes, sv.Node, sv.Checkpoints = 2, 1, "ckpt-*.safetensors"
			sv.Restarts = Restarts{Max: -1, Backoff: time.Millisecond, MaxBackoff: time.Millisecond}
			sv.FS = smallDisk{atomicfile.OrOS(nil), func() int64 { return 10 }}
			release := lead(t, sv.Logdir)
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-10.safetensors"), childtest.TensorsOf(10))
			tellJob(t, sv.Logdir, func(j *jobState) { j.Phase, j.Paused = nodeEnded, paused })
			_, end := begin(t, sv)
			pass(30 * time.Second)
			release()
			resumed := time.Duration(0)
			if paused {
				pass(10 * time.Minute)
				resumed = time.Since(begun)
				childtest.Must(t, sv.Resume(t.Context()))
			}
			if exit, err := end(); err != nil || exit.Cause != Completed || len(starts) < 9 || starts[0] < resumed || starts[len(starts)-1] < full {
				t.Errorf("paused %v: Run = %+v, %v; starts at %v", paused, exit, err, starts)
			}
			for i := 1; i < len(starts); i++ {
				if starts[i]-starts[i-1] < fullDiskPause {
					t.Errorf("paused %v: the starts came at %v", paused, starts)
					break
				}
			}
		})
	}
}

// TestRoomOfACheckpoint has a disk with just so much room: what a program needs before its first
// step is one checkpoint, and after one it is two.
func TestRoomOfACheckpoint(t *testing.T) {
	dir, size, free := t.TempDir(), int64(len(childtest.TensorsOf(10))), int64(0)
	childtest.Write(t, filepath.Join(dir, "ckpt-10.safetensors"), childtest.TensorsOf(10))
	disk := smallDisk{atomicfile.OrOS(nil), func() int64 { return free }}
	r := &run{Supervisor: &Supervisor{}, log: discard, observer: nobody{}, store: storeOn(t, disk, dir, "ckpt-*")}
	if r.isDiskFull(&Exit{Step: -1}) {
		t.Error("it is full, though nobody knows how much a checkpoint takes")
	}
	r.store.Refresh(true)
	for _, tc := range []struct {
		step, free int64
		want       bool
	}{{-1, size - 1, true}, {-1, size, false}, {0, size, true}, {0, 2*size - 1, true}, {0, 2 * size, false}, {7, 2*size - 1, true}, {7, 2 * size, false}} {
		free = tc.free
		if got := r.isDiskFull(&Exit{Step: tc.step}); got != tc.want {
			t.Errorf("after step %d, with %d bytes of %d: %v", tc.step, free, size, got)
		}
	}
}

// TestNoStartOnFullDisk has a machine that cannot start the program, for hours, while its disk takes
// no file: that does not count as failures of the program.
func TestNoStartOnFullDisk(t *testing.T) {
	for _, isFull := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			begun, wait := time.Now(), 6*time.Hour
			sv, log := simulate(t, func(*simProgram) int { return 0 })
			on := sv.System.(*simulated)
			on.fails = syscall.EAGAIN
			sv.Observer = &seesEndsThen{func() {
				if time.Since(begun) > wait {
					on.fails = nil
				}
			}}
			sv.FS = exhausted{atomicfile.OrOS(nil), func() error {
				if passed := time.Since(begun); isFull && passed > 0 && passed < wait {
					return syscall.ENOSPC
				}
				return nil
			}}
			exit, err := sv.Run(t.Context())
			if (err == nil) != isFull || isFull != (time.Since(begun) >= wait) {
				t.Errorf("full %v: Run = %+v, %v after %v\n%s", isFull, exit, err, time.Since(begun), log)
			}
		})
	}
}

// TestNoRoomByARewind has a run that is about to go back: what it may still need makes no room. What does is said.
func TestNoRoomByARewind(t *testing.T) {
	for want, change := range map[int]func(r *run){
		1: func(*run) {},
		2: func(r *run) { r.attempt.nan = &trainerd.NaNError{} },
	} {
		dir, log := t.TempDir(), newScreen()
		for step := range 2 {
			name := filepath.Join(dir, fmt.Sprintf("ckpt-%d.safetensors", step))
			childtest.Write(t, name, childtest.TensorsOf(step))
		}
		r := &run{Supervisor: &Supervisor{}, log: logAllTo(log), observer: nobody{}, store: storeOn(t, nil, dir, "ckpt-*", retention.Last(2))}
		r.store.Refresh(true)
		change(r)
		for range 2 { // there is nothing to delete the second time
			r.makeRoom()
			if got := len(r.store.Known()); got != want {
				t.Errorf("%d checkpoints are left, want %d", got, want)
			}
			for _, said := range []string{"deleted old checkpoints for the next one", "deleted checkpoint"} {
				if got := strings.Count(log.String(), said); got != 2-want {
					t.Errorf("%q is said %d times, want %d:\n%s", said, got, 2-want, log)
				}
			}
		}
	}
}
