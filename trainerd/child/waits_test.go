//go:build unix

package child

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// hearsWaits is an observer that keeps what is waited for.
type hearsWaits struct {
	nobody
	mu   sync.Mutex
	said []string
}

func (w *hearsWaits) Waits(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, what)
}

// last returns what was said last.
func (w *hearsWaits) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.said) == 0 {
		return ""
	}
	return w.said[len(w.said)-1]
}

// TestSaysWhatItWaitsFor has a wait within another: the observer, and those whose requests are not heard, know of
// the inner one, then of the outer one, then of none.
func TestSaysWhatItWaitsFor(t *testing.T) {
	hears := &hearsWaits{}
	r := &run{log: discard, observer: hears}
	busyWith := func(what string) {
		t.Helper()
		if got := r.inbox.busy().Error(); !strings.Contains(got, "waits for "+what+",") {
			t.Errorf("those who ask hear that %s", got)
		}
	}
	busyWith("the disk of the logdir")
	r.await("the nodes", func() {
		busyWith("the nodes")
		r.await("a look", func() { busyWith("a look") })
		busyWith("the nodes")
	})
	busyWith("the disk of the logdir")
	if want := []string{"the nodes", "a look", "the nodes", ""}; !slices.Equal(hears.said, want) {
		t.Errorf("the observer has heard %q, want %q", hears.said, want)
	}
}

// TestObserverHearsOfNodes has a chief that waits for another node to end the program, and a worker for which the
// chief starts nothing: their observers know that.
func TestObserverHearsOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int { return 0 })
		hears := &hearsWaits{}
		sv.Nodes, sv.Node, sv.Observer = 2, 1, hears
		n, before := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), own: 0}, start{"elsewhere/7/1", 3}
		tellState(t, n, 0, nodeState{start: before, Phase: nodeRunning})
		childtest.Must(t, writeJSON(nil, n.jobFile(), jobState{start: before, Phase: nodeRunning}))
		_, end := begin(t, sv)
		if pass(5 * time.Second); hears.last() != othersEnd {
			t.Errorf("the chief's observer has heard that it waits for %q", hears.last())
		}
		tellState(t, n, 0, nodeState{start: before, Phase: nodeEnded})
		end()
		if hears.last() != "" {
			t.Errorf("after its end the chief waits for %q", hears.last())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulateFollower(t, func(p *simProgram) int { p.sleep(time.Hour); return 0 })
		hears := &hearsWaits{}
		sv.Observer = hears
		tellJob(t, sv.Logdir, func(j *jobState) { j.Phase = nodeEnded })
		stop, end := begin(t, sv)
		if pass(5 * time.Second); hears.last() != "the chief to start the program" {
			t.Errorf("the worker's observer has heard that it waits for %q", hears.last())
		}
		stop()
		end()
	})
}

// TestBeginsAgainUnasked has a program that begins again while nobody waits for a save: it is asked for none.
func TestBeginsAgainUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []syscall.Signal
		sv, log := simulate(t, func(p *simProgram) int {
			for _, line := range slices.Concat(through("loss", 1, 10, "1"), []string{"save ckpt-10"}, through("loss", 11, 20, "1"), through("loss", 11, 24, "2")) {
				p.sleep(time.Second)
				sayOrSave(t, p, line)
			}
			got = p.signals()
			return 0
		})
		sv.SaveSignal = syscall.SIGUSR1
		if _, err := sv.Run(t.Context()); err != nil || len(got) > 0 || !strings.Contains(log.String(), saidAgain) {
			t.Errorf("%v; it has got %v; log:\n%s", err, got, log)
		}
	})
}

// saveArchive has a program write a checkpoint that is large, and has checksums of its own.
func saveArchive(t *testing.T, p *simProgram, base string) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	e, err := w.CreateHeader(&zip.FileHeader{Name: "data/0", Method: zip.Store})
	childtest.Must(t, err)
	_, err = e.Write(make([]byte, manifest.QuickSums))
	childtest.Must(t, err)
	childtest.Must(t, w.Close())
	name := filepath.Join(p.variable("TRAINERD_LOGDIR"), base)
	childtest.Write(t, name, b.String())
	childtest.Must(t, os.Chtimes(name, time.Now(), time.Now()))
}

// TestSumsOfTheLast has a program whose first checkpoint of this run is its last: it gets no SHA-256 when it is
// found, for earlier runs may have been killed as early, but at the end of the job.
func TestSumsOfTheLast(t *testing.T) {
	for name, tc := range map[string]struct {
		code int
		bad  bool // the disk takes no record at the end
		sums bool
	}{"complete": {0, false, true}, "failed": {1, false, false}, "complete, on a bad disk": {0, true, false}} {
		synctest.Test(t, func(t *testing.T) {
			var ends atomic.Bool
			sv, log := simulate(t, func(p *simProgram) int {
				if p.variable("TRAINERD_STEP") == "" {
					saveNow(t, p, "ckpt-1")
					return 0
				}
				saveArchive(t, p, "ckpt-2.pt")
				p.sleep(time.Minute)
				ends.Store(true)
				return tc.code
			})
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			picky(sv, func(op, name string) bool {
				return tc.bad && ends.Load() && op == "create" && strings.HasPrefix(name, manifest.RecordsDir)
			})
			sv.Restarts.Max = -1
			if exit, err := sv.Run(t.Context()); exit.Code != tc.code || err != nil && tc.code == 0 {
				t.Errorf("%s: Run = %+v, %v", name, exit, err)
			}
			all, bad := manifest.Records(sv.Logdir)
			if len(all) != 2 || bad != nil {
				t.Fatalf("%s: records %v, %v; log:\n%s", name, all, bad, log)
			}
			if last := all[1]; last.HasSums() != tc.sums {
				t.Errorf("%s: the record of the last is %+v", name, last)
			}
			if said := strings.Contains(log.String(), "no SHA-256"); said != tc.bad {
				t.Errorf("%s: the log has:\n%s", name, log)
			}
		})
	}
}
