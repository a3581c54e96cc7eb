package main

import (
	"os"
	"testing"
)

// TestJobName names jobs by the script or the module that they run.
func TestJobName(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"train.py", "ds.yaml", "run"} {
		if err := os.WriteFile(name, nil, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for want, words := range map[string][]string{
		"train":         {"torchrun", "--nproc-per-node=2", "train.py", "--config", "ds.yaml"},
		"pkg-train":     {"python3", "-m", "pkg.train", "--out", "x"},
		"ours-main":     {"python3", "-m", "torch.distributed.run", "-m", "ours.main"},
		"run":           {"./run"},
		"my-experiment": {"/usr/bin/my-experiment", "ds.yaml"},
	} {
		if got := jobName(words); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
	if got := jobName([]string{"python3", "-m", "torch.distributed.run", "train.py"}); got != "train" {
		t.Errorf("a script under a launcher: %q", got)
	}
}
