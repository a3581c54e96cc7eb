package prove

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFoundOther has a program that reports every 20 steps and writes a curve of its own from
// the first on. The names of its checkpoints count them.
func TestFoundOther(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ckpt-18.npz", "ckpt-19.npz"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p := &proof{Options: Options{Pattern: "ckpt-*.npz"}, reference: &outcome{logdir: dir, first: 1, last: 400, restarts: []restart{{0, 20}}}}
	for first, want := range map[int64]int64{20: -1, 40: 40} {
		r := &Report{Runs: []*Result{{restarts: []restart{{0, first}, {10, 240}}}}}
		if got := r.foundOther(p); got != want {
			t.Errorf("a run that begins at step %d has found another's step %d, want %d", first, got, want)
		}
	}
}
