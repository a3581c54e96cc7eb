//go:build unix

package child

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
