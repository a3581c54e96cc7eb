package daemon

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestNewerManifest has a logdir in which a newer trainerd has trained: this one neither continues
// there nor removes anything.
func TestNewerManifest(t *testing.T) {
	c := clustersConfig(t, "train.steps=20", "supervisor.save_model_steps=10", "supervisor.max_to_keep=1")
	if err := Run(t.Context(), c, RunOptions{Stdout: io.Discard, Stderr: io.Discard}); err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(c.Logdir, "model.ckpt-*.manifest.json"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if err := os.WriteFile(all[0], []byte(`{"version": 2, "step": 20}`), 0o666); err != nil {
		t.Fatal(err)
	}
	c.Train.Steps = 40
	if err := Run(t.Context(), c, RunOptions{Stdout: io.Discard, Stderr: io.Discard}); ExitCode(err) != ExitConfig {
		t.Errorf("the run ends with %v", err)
	}
	if left, err := filepath.Glob(all[0]); err != nil || len(left) != 1 {
		t.Errorf("left is %v, %v", left, err)
	}
}
