//go:build unix

package child

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestStopOfAllOneByOne has all nodes stopped, the chief last: before it has begun the next start,
// which would have made the steps again that the program had not saved. That is not a success, unless
// it has saved them.
func TestStopOfAllOneByOne(t *testing.T) {
	for _, tc := range []struct {
		name         string
		saves, other bool // it saves at SIGTERM; the node has failed, and was not stopped
		waits        bool // the chief is stopped while it waits for the disk, and not for the node
		lost         bool
	}{
		{name: "before the end of the node", lost: true},
		{name: "before the next start", waits: true, lost: true},
		{name: "saved", saves: true},
		{name: "saved, before the next start", saves: true, waits: true},
		{name: "the node has failed", other: true, waits: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &nodes{own: 1}
				tell := func(s nodeState) {
					s.start = n.job().start
					tellState(t, n, 1, s)
				}
				sv, log := simulate(t, func(p *simProgram) int {
					for step := range 17 {
						p.say("step=%d loss=1", step+1)
					}
					childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-9.safetensors"), childtest.TensorsOf(9))
					tell(nodeState{Phase: nodeRunning})
					p.sleep(10 * time.Second)
					ends := nodeState{Phase: nodeEnding}
					if tc.other {
						ends = nodeState{Phase: nodeEnded, Cause: Failed, Code: 1}
					}
					tell(ends)
					p.sleep(time.Hour)
					if tc.saves {
						childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-17.safetensors"), childtest.TensorsOf(17))
					}
					if tc.waits {
						tell(nodeState{Phase: nodeEnded, Cause: Stopped, Code: 143})
						childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "last.safetensors"), childtest.TensorsOf(9)[:100])
					}
					return 143
				})
				n.dir = filepath.Join(sv.Logdir, nodesDir)
				sv.Nodes, sv.Checkpoints = 2, "ckpt-*.safetensors"
				picky(sv, func(op, below string) bool { return tc.waits && strings.HasPrefix(below, ".trainerd-") })
				stop, end := begin(t, sv)
				pass(30 * time.Second)
				stop()
				if exit, err := end(); exit.Cause != Stopped || is[*SaveLostError](err) != tc.lost || (err != nil) != tc.lost {
					t.Errorf("Run = %+v, %v; want that steps are lost: %v\n%s", exit, err, tc.lost, log)
				}
			})
		})
	}
}

// A worker was to begin a start, which the disk did not take that it would, and which is over
// once it does: the chief does not wait for the end of what never began.
func TestFollowerWithoutItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulateFollower(t, func(*simProgram) int { t.Error("the program was started"); return 0 })
		var full atomic.Bool
		picky(sv, func(op, below string) bool {
			return full.Load() && op == "create" && strings.HasPrefix(below, nodesDir)
		})
		full.Store(true)
		stop, end := begin(t, sv)
		time.Sleep(10 * time.Second)
		tellJob(t, sv.Logdir, func(j *jobState) { j.Phase = nodeEnded })
		time.Sleep(10 * time.Second)
		full.Store(false)
		time.Sleep(10 * time.Second)
		chief := nodes{dir: filepath.Join(sv.Logdir, nodesDir), count: 2}
		if s := chief.others()[1]; s.Phase == nodeRunning {
			t.Errorf("the chief waits for %+v", s)
		}
		stop()
		if exit, err := end(); err != nil || exit.Cause != Stopped {
			t.Errorf("Run = %+v, %v", exit, err)
		}
	})
}

// A worker's disk does not take for long that a start is to begin there, and has, once it does, an
// old state of the chief: what begins is the chief's present start.
func TestFollowerWithOldNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun []string
		sv, _ := simulateFollower(t, func(p *simProgram) int {
			begun = append(begun, p.variable("TRAINERD_ATTEMPT"))
			p.sleep(time.Hour)
			return 0
		})
		var full atomic.Bool
		picky(sv, func(op, below string) bool {
			return full.Load() && op == "create" && strings.HasPrefix(below, nodesDir)
		})
		full.Store(true)
		stop, end := begin(t, sv)
		time.Sleep(time.Hour)
		full.Store(false)
		time.Sleep(sv.scanEvery()) // at which the chief publishes again
		tellJob(t, sv.Logdir, func(j *jobState) { j.Attempt += 3 })
		time.Sleep(10 * time.Second)
		stop()
		if _, err := end(); err != nil || !slices.Equal(begun, []string{"4"}) {
			t.Errorf("Run = %v; it has begun starts %q, want the present one, 4", err, begun)
		}
	})
}

// A worker that comes again says nothing else of a start that had ended before: a failure stays
// one. Without such a start it says nothing.
func TestFollowerComesAgain(t *testing.T) {
	for _, was := range []nodeState{{}, {start: start{"h/1/1", 1}, Phase: nodeEnded, Host: "h", Cause: Failed, Code: 3, Exit: "has failed"}} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulateFollower(t, func(*simProgram) int { t.Error("the program was started"); return 0 })
			tellJob(t, sv.Logdir, func(j *jobState) { j.Phase = nodeEnded })
			chief := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), count: 2}
			if was.Phase != "" {
				tellState(t, chief, 1, was)
			}
			stop, end := begin(t, sv)
			time.Sleep(10 * time.Second)
			if s := chief.others()[1]; s != was {
				t.Errorf("the node says %+v, want %+v", s, was)
			}
			stop()
			if exit, err := end(); err != nil || exit.Cause != Stopped {
				t.Errorf("Run = %+v, %v", exit, err)
			}
		})
	}
}

// A worker that ends says so once the disk takes it, but not that a start is to begin which it
// has not begun.
func TestFollowerLastState(t *testing.T) {
	for name, tc := range map[string]struct {
		begins bool
		want   phase
	}{
		"the program has run":  {true, nodeEnded},
		"no program was begun": {false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refused atomic.Int64 // of its next states
				sv, _ := simulateFollower(t, func(p *simProgram) int {
					p.sleep(time.Hour)
					refused.Store(5)
					return 0
				})
				picky(sv, func(op, below string) bool {
					return op == "create" && strings.HasPrefix(below, nodesDir) && refused.Add(-1) >= 0
				})
				if !tc.begins {
					refused.Store(1 << 30)
				}
				stop, end := begin(t, sv)
				time.Sleep(10*time.Second + time.Millisecond) // between two scans
				refused.Store(0)
				stopped := time.Now()
				stop()
				if exit, err := end(); err != nil || exit.Cause != Stopped {
					t.Errorf("Run = %+v, %v", exit, err)
				}
				if took := time.Since(stopped); !tc.begins && took > time.Second {
					t.Errorf("without anything to tell, the end took %v", took)
				}
				chief := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), count: 2}
				if s := chief.others()[1]; s.Phase != tc.want || refused.Load() > 0 {
					t.Errorf("the node says %+v, want %q; %d states would be refused still", s, tc.want, refused.Load())
				}
			})
		})
	}
}

// A worker for which the chief starts nothing says so every 15 s, from when it had nothing to do
// on; not while its program runs, nor while the chief has paused the job.
func TestFollowerIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulateFollower(t, func(p *simProgram) int { p.sleep(time.Hour); return 0 })
		said := func() (all []string) {
			for _, m := range regexp.MustCompile(`for="the chief to start the program" since=(\S+)`).FindAllStringSubmatch(log.String(), -1) {
				all = append(all, m[1])
			}
			return all
		}
		tellJob(t, sv.Logdir, func(j *jobState) { j.Phase = nodeEnded })
		stop, end := begin(t, sv)
		idle := func(want ...string) {
			t.Helper()
			before := len(said())
			pass(50 * time.Second)
			if got := said()[before:]; !slices.Equal(got, want) {
				t.Errorf("in 50 s it has said that it waits since %q, want %q", got, want)
			}
		}
		idle("15s", "30s", "45s")
		tellJob(t, sv.Logdir, func(j *jobState) { j.Phase, j.Attempt = nodeRunning, 2 })
		idle()
		tellJob(t, sv.Logdir, func(j *jobState) { j.Phase = nodeEnded })
		idle("15s", "30s", "45s")
		tellJob(t, sv.Logdir, func(j *jobState) { j.Paused = true })
		idle()
		tellJob(t, sv.Logdir, func(j *jobState) { j.Chief = "an earlier one" }) // this one has a full disk
		idle("15s", "30s", "45s")
		stop()
		end()
	})
}

// syncedFiles is a disk that notes which files of others it was to make durable.
type syncedFiles struct {
	atomicfile.FS

	mu    sync.Mutex
	names []string
}

func (d *syncedFiles) SyncFile(name string) error {
	d.mu.Lock()
	d.names = append(d.names, filepath.Base(name))
	d.mu.Unlock()
	return atomicfile.SyncFile(d.FS, name)
}

// take returns the names since the last call.
func (d *syncedFiles) take() (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	names, d.names = d.names, nil
	return names
}

// What another node has passed on is durable before a checkpoint is announced, as the points of
// events are: while it is not known yet whether the program reports there alone, and once it is.
func TestForwardedReportsAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chief, log := simulate(t, func(p *simProgram) int {
			for _, name := range []string{"ckpt-4.npz", "ckpt-24.npz"} {
				p.sleep(5 * time.Second)
				childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), name), childtest.Zip(t))
				p.sleep(15 * time.Second)
			}
			p.sleep(time.Hour)
			return 0
		})
		worker, _ := simulate(t, func(p *simProgram) int {
			for step := 1; p.sleep(time.Second); step++ {
				p.say("step=%d loss=1", step)
			}
			return 0
		})
		disk := &syncedFiles{FS: atomicfile.OrOS(nil)}
		chief.FS = disk
		chief.Nodes, worker.Nodes, worker.Node, worker.Logdir = 2, 2, 1, chief.Logdir
		stop, end := begin(t, chief)
		time.Sleep(500 * time.Millisecond)
		_, endWorker := begin(t, worker)
		time.Sleep(9 * time.Second)
		if !strings.Contains(log.String(), "msg=saved") || strings.Contains(log.String(), "reports on another node") {
			t.Errorf("it is too early or too late for this test; log:\n%s", log)
		}
		wantDurable := func() {
			t.Helper()
			if names := disk.take(); !slices.ContainsFunc(names, func(name string) bool {
				return strings.HasPrefix(name, "node1-") && strings.HasSuffix(name, ".reports0")
			}) {
				t.Errorf("durable are %q", names)
			}
		}
		wantDurable()
		if strings.Contains(log.String(), "cannot make the reports") {
			t.Errorf("the log has:\n%s", log)
		}
		time.Sleep(20 * time.Second)
		if strings.Count(log.String(), "msg=saved") != 2 || !strings.Contains(log.String(), "reports on another node") {
			t.Errorf("it is too early for the second checkpoint; log:\n%s", log)
		}
		wantDurable()
		stop()
		end()
		endWorker()
	})
}
