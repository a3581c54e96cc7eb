//go:build unix

package child

import (
	"errors"
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

// jobDisk tells when the chief tells the other nodes something.
type jobDisk struct {
	atomicfile.FS
	told func()
}

func (d jobDisk) Rename(from, to string) error {
	if filepath.Base(to) == "job.json" {
		d.told()
	}
	return d.FS.Rename(from, to)
}

// TestNodesLastIsMendedFirst has a program on two nodes that loads its newest state: a cut one
// is mended before the other node learns of the start.
func TestNodesLastIsMendedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		sv, log := simulate(t, func(p *simProgram) int {
			dir := p.variable("TRAINERD_LOGDIR")
			if starts++; starts > 1 {
				return 0
			}
			p.say("step=20 loss=1")
			childtest.Write(t, filepath.Join(dir, "ckpt-20.safetensors"), childtest.TensorsOf(20))
			p.sleep(10 * time.Second)
			childtest.Write(t, filepath.Join(dir, "last.safetensors"), childtest.TensorsOf(21)[:100])
			return 1
		})
		sv.Nodes, sv.Checkpoints = 2, "ckpt-*.safetensors"
		var told []string
		sv.FS = jobDisk{atomicfile.OrOS(nil), func() {
			text, err := os.ReadFile(filepath.Join(sv.Logdir, "last.safetensors"))
			if job := (&nodes{dir: filepath.Join(sv.Logdir, nodesDir)}).job(); err == nil && job.Phase == nodeEnded && starts == 1 {
				told = append(told, string(text))
			}
		}}
		if _, err := sv.Run(t.Context()); err != nil || len(told) == 0 || told[len(told)-1] != childtest.TensorsOf(20) {
			t.Errorf("Run = %v; before the second start it had %d states:\n%s", err, len(told), log)
		}
	})
}

// TestLastOfTheBest has a pattern that means the newest state, too: what replaces it is neither
// the best nor the newest, which stay.
func TestLastOfTheBest(t *testing.T) {
	for _, pattern := range []string{"ckpt-*.safetensors", "*.safetensors"} {
		synctest.Test(t, func(t *testing.T) {
			starts := 0
			sv, log := simulate(t, func(p *simProgram) int {
				dir := p.variable("TRAINERD_LOGDIR")
				if starts++; starts > 1 {
					p.say("step=40 loss=0.7")
					childtest.Write(t, filepath.Join(dir, "ckpt-40.safetensors"), childtest.TensorsOf(40))
					return 0
				}
				for i, loss := range []string{"0.1", "0.9", "0.5"} {
					step := 10 * (i + 1)
					p.say("step=%d loss=%s", step, loss)
					childtest.Write(t, filepath.Join(dir, "ckpt-"+[]string{"10", "20", "30"}[i]+".safetensors"), childtest.TensorsOf(step))
					p.sleep(10 * time.Second)
				}
				childtest.Write(t, filepath.Join(dir, "last.safetensors"), childtest.TensorsOf(30)[:100])
				return 1
			})
			sv.Checkpoints, sv.Retention = pattern, []retention.Policy{retention.Last(1), retention.Best{Metric: "loss", N: 1}}
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := []string{"ckpt-10.safetensors", "ckpt-40.safetensors", "last.safetensors"}
			got, _ := filepath.Glob(filepath.Join(sv.Logdir, "*.safetensors"))
			for i, name := range got {
				got[i] = filepath.Base(name)
			}
			if !slices.Equal(got, want) || childtest.Read(t, filepath.Join(sv.Logdir, "last.safetensors")) != childtest.TensorsOf(30) {
				t.Errorf("%s: left are %v, want %v\n%s", pattern, got, want, log)
			}
		})
	}
}

// TestLastWhilePaused has a pause that begins while a full disk does not take a copy of the
// newest checkpoint, and outlasts that: no start comes before it is over, and the next has it.
func TestLastWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, seen, started := time.Now(), "", time.Time{}
		var last string
		sv, log := simulate(t, func(*simProgram) int {
			seen, started = childtest.Read(t, last), time.Now()
			return 0
		})
		sv.Checkpoints = "ckpt-*.safetensors"
		last = filepath.Join(sv.Logdir, "last.safetensors")
		childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-10.safetensors"), childtest.TensorsOf(10))
		childtest.Write(t, last, childtest.TensorsOf(20)[:100])
		picky(sv, func(op, below string) bool {
			return strings.HasPrefix(below, ".trainerd-") && time.Since(full) < time.Hour
		})
		_, end := begin(t, sv)
		pass(time.Minute)
		childtest.Must(t, sv.Pause(t.Context()))
		pass(2 * time.Hour)
		childtest.Must(t, sv.Resume(t.Context()))
		if _, err := end(); err != nil || seen != childtest.TensorsOf(10) || started.Sub(full) < 2*time.Hour {
			t.Errorf("Run = %v; started after %v, with %d bytes\n%s", err, started.Sub(full), len(seen), log)
		}
	})
}

// TestRewindPastLast has a loss that is NaN, on two nodes, after the program has saved its
// newest state and named it: both go back before the other node learns of the next start.
func TestRewindPastLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		var seen, names []string
		sv, log := simulate(t, func(p *simProgram) int {
			dir := p.variable("TRAINERD_LOGDIR")
			if starts++; starts > 1 {
				return 0
			}
			for _, step := range []string{"10", "20"} {
				childtest.Write(t, filepath.Join(dir, "ckpt-"+step+".safetensors"), childtest.TensorsOf(len(step)))
				childtest.Write(t, filepath.Join(dir, "last.safetensors"), childtest.TensorsOf(len(step)+1))
				childtest.Write(t, filepath.Join(dir, "latest"), "ckpt-"+step+".safetensors\n")
				if step == "10" {
					p.say("step=10 loss=1")
				}
				p.sleep(10 * time.Second)
			}
			p.say("step=20 loss=NaN")
			p.sleep(time.Hour)
			return 0
		})
		sv.Nodes, sv.MaxRewinds, sv.Checkpoints = 2, 1, "ckpt-*.safetensors"
		sv.FS = jobDisk{atomicfile.OrOS(nil), func() {
			last, err := os.ReadFile(filepath.Join(sv.Logdir, "last.safetensors"))
			name, failed := os.ReadFile(filepath.Join(sv.Logdir, "latest"))
			if errors.Join(err, failed) == nil {
				seen, names = append(seen, string(last)), append(names, string(name))
			}
		}}
		if _, err := sv.Run(t.Context()); err != nil || starts != 2 {
			t.Fatalf("Run = %v after %d starts\n%s", err, starts, log)
		}
		// The last two are told the end of the second start, and of the job; before that its begin.
		if n := len(seen); n < 3 || seen[n-3] != childtest.TensorsOf(2) || names[n-3] != "ckpt-10.safetensors\n" {
			t.Errorf("the nodes were told %d times; latest has %q\n%s", n, names, log)
		}
	})
}
