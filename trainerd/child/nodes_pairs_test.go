//go:build unix

package child

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/retention"
)

// What the chief does with checkpoints holds on all nodes: both continue from the one
// that it has chosen, and see the same files.
func TestNodesCheckpoints(t *testing.T) {
	const (
		begin = "env STEP;list ckpt-*;"
		chief = "|" + begin + "await part1" // its part ends when the other has done its own
		other = "write there1;sleep|" + begin + "write part1"
	)
	for _, tc := range []struct {
		name, first string // what the chief's program does first
		set         func(*Supervisor)
		step        string   // from which both nodes continue
		left, aside []string // checkpoints
	}{
		{"rewind", "steps 1 10;write ckpt-10;steps 11 20;write ckpt-21;say step=21 loss=nan;sleep",
			func(sv *Supervisor) { sv.MaxRewinds = 1 }, "10", []string{"ckpt-10"}, []string{"ckpt-21"}},
		{"the best stays", "say step=5 loss=0.1;write ckpt-5;say step=10 loss=0.9;write ckpt-10;say step=15 loss=0.5;write ckpt-15;exit 1",
			func(sv *Supervisor) {
				sv.Retention = []retention.Policy{retention.Last(1), retention.Best{Metric: "loss", N: 1}}
			}, "15", []string{"ckpt-15", "ckpt-5"}, nil},
		{"damaged newest", "write ckpt-5;steps 1 5;tear ckpt-9.safetensors;exit 1", func(*Supervisor) {}, "5", []string{"ckpt-5"}, []string{"ckpt-9.safetensors"}},
		{"damaged newest of all", "steps 1 9;tear ckpt-9.safetensors;exit 1", func(*Supervisor) {}, "", nil, []string{"ckpt-9.safetensors"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			logdir := filepath.Join(t.TempDir(), "log")
			first := join(t, logdir, 0, begin+"await there1;"+tc.first+chief, tc.set)
			first.await(t, `STEP is ""`)
			worker := join(t, logdir, 1, other, tc.set)
			for _, n := range []*node{first, worker} {
				if exit, err := n.end(t); err != nil || exit.Cause != Completed || exit.Attempt != 2 {
					t.Errorf("node %d: %+v, %v", n.Node, exit, err)
				}
				want := "STEP is \"" + tc.step + "\"\nfound " + strings.Join(tc.left, " ")
				if !strings.HasSuffix(strings.TrimSpace(n.String()), strings.TrimSpace(want)) {
					t.Errorf("node %d: want %q at the end of:\n%s", n.Node, want, n)
				}
			}
			if got := checkpointsIn(t, logdir); !slices.Equal(got, tc.left) {
				t.Errorf("checkpoints %v, want %v", got, tc.left)
			}
			if got := checkpointsIn(t, filepath.Join(logdir, "damaged", "*")); !slices.Equal(got, tc.aside) {
				t.Errorf("moved aside are %v, want %v", got, tc.aside)
			}
		})
	}
}

// checkpointsIn returns the names of checkpoints in folders, sorted.
func checkpointsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "ckpt-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		names = append(names, filepath.Base(name))
	}
	slices.Sort(names)
	return names
}
