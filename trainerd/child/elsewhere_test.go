//go:build unix

package child

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestOtherNamesThanBefore has a config whose pattern does not mean what an earlier run has saved:
// that is said, and nothing of it is deleted.
func TestOtherNamesThanBefore(t *testing.T) {
	sv, _ := supervise(t, "steps 1 20;write ckpt-20|")
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := newScreen()
	sv.Log, sv.Checkpoints = logTo(log), "model-*"
	sv.Env = []string{"CHILD_SCRIPT=steps 1 10;write model-10"}
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "has a name that child.checkpoints does not mean"); got != 1 {
		t.Errorf("it is said %d times, want once:\n%s", got, log)
	}
	childtest.Stat(t, filepath.Join(sv.Logdir, "ckpt-20"))
}

// TestCheckpointsBehindLink has a program whose checkpoints are on another disk, to which a link
// leads: that is said once, before a start begins from the beginning.
func TestCheckpointsBehindLink(t *testing.T) {
	sv, _ := supervise(t, "steps 1 20;exit 1|steps 1 20")
	big, log := t.TempDir(), newScreen()
	childtest.Write(t, filepath.Join(big, "ckpt-20"), "weights")
	childtest.Must(t, os.MkdirAll(sv.Logdir, 0o777))
	childtest.Must(t, os.Symlink(big, filepath.Join(sv.Logdir, "ck")))
	sv.Log, sv.Checkpoints = logTo(log), "ck/ckpt-*"
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "leads out of the logdir"); got != 1 {
		t.Errorf("it is said %d times, want once:\n%s", got, log)
	}
	if before, _, _ := strings.Cut(log.String(), "msg=started"); !strings.Contains(before, "leads out of the logdir") {
		t.Errorf("it is said after the start:\n%s", log)
	}
}

// TestWrittenOutOfOrder has checkpoints that are there before the first run: where the one with the highest number is
// not the newest, that is said, unless their times differ by less than a copy of the folder takes.
func TestWrittenOutOfOrder(t *testing.T) {
	for _, tc := range []struct {
		ages map[string]time.Duration
		want int
	}{
		{map[string]time.Duration{"ckpt-10": 0, "ckpt-20": time.Hour}, 1},
		{map[string]time.Duration{"ckpt-10": time.Hour, "ckpt-20": 0}, 0},
		{map[string]time.Duration{"ckpt-10": 0, "ckpt-20": time.Minute}, 1},
		{map[string]time.Duration{"ckpt-10": 0, "ckpt-20": 50 * time.Second}, 0},
		{map[string]time.Duration{"ckpt-20": 0}, 0},
	} {
		sv, _ := supervise(t, "resume 30")
		log := newScreen()
		sv.Log = logTo(log)
		now := time.Now()
		for name, age := range tc.ages {
			file, at := filepath.Join(sv.Logdir, name), now.Add(-age)
			childtest.Write(t, file, "weights")
			childtest.Must(t, os.Chtimes(file, at, at))
		}
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), "written after the one with the highest number"); got != tc.want {
			t.Errorf("%v: it is said %d times:\n%s", tc.ages, got, log)
		}
	}
}

// TestHalfOfKerasBackup has a config of an earlier init, which names only the weights of what
// Keras' BackupAndRestore saves: that is said at the start, with the pattern that means both.
func TestHalfOfKerasBackup(t *testing.T) {
	for pattern, want := range map[string]string{
		"backup/latest.weights.h5":                             "backup/{latest.weights.h5,training_metadata.json}",
		"latest.weights.h5":                                    "{latest.weights.h5,training_metadata.json}",
		"backup/{latest.weights.h5,training_metadata.json}":    "",
		"backup/latest.*":                                      "",
		"backup/{*.json,latest.weights.h5}":                    "",
		"{backup/latest.weights.h5,other/training_metadata.*}": "backup/{latest.weights.h5,training_metadata.json}",
	} {
		sv, _ := supervise(t, "steps 1 2")
		log := newScreen()
		sv.Log, sv.Checkpoints = logTo(log), pattern
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, said, _ := strings.Cut(log.String(), "only a part of what")
		if (said != "") != (want != "") || want != "" && !strings.Contains(said, "instead="+want) {
			t.Errorf("%s: want %q in the log:\n%s", pattern, want, log)
		}
	}
}
