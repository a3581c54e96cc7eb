package prove

import (
	"os"
	"path/filepath"
	"strings"
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

// TestCauseOfFailure has programs that fail after a restart.
func TestCauseOfFailure(t *testing.T) {
	for output, want := range map[string]string{
		"    raise EOFError\nEOFError": "a file that is cut short",
		"RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory": "a file that is cut short",
		"KeyError: 'optimizer'":                                "the program does not get through a restart",
		"RuntimeError: the epoch of the checkpoint is missing": "the program does not get through a restart",
	} {
		failure := &FailedError{Run: "kill-1", Code: 1, Output: output}
		r := &Report{Runs: []*Result{{Disturbance: &Disturbance{Kind: Kill, Step: 7, Resumed: 5}, Failure: failure.Error()}}}
		r.judge(&proof{reference: &outcome{logdir: t.TempDir(), first: 1, last: 20}, report: r})
		if r.Verdict != Fails || len(r.Causes) != 1 || r.Causes[0].Name != want {
			t.Errorf("%s: %s, %+v; want %s", output, r.Verdict, r.Causes, want)
		}
	}
	if text := (&FailedError{Run: "undisturbed", Code: 1, Output: "no", LeftOut: []string{"out/ckpt-1.pt"}}).Error(); !strings.HasSuffix(text, "an earlier training: out/ckpt-1.pt") {
		t.Error(text)
	}
}
