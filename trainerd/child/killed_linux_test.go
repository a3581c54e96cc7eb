package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/logdir"
)

// TestKilledTrainerd kills a trainerd whose program ignores SIGTERM, and has a
// worker in a session of its own that does so, too. The worker is known by its
// environment, as torchrun's are, or by the lock that it has inherited, as one that
// writes its name over its environment. The next start ends it before it begins.
func TestKilledTrainerd(t *testing.T) {
	for name, worker := range map[string]string{
		"environment": `setsid sh -c 'trap "" TERM; echo $$ >w; mv w worker; while :; do sleep 0.1; done' 3>&- &`,
		"lock":        `env -i PATH="$PATH" setsid sh -c 'trap "" TERM; echo $$ >w; mv w worker; while :; do sleep 0.1; done' &`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sv, out := supervise(t, "steps 1 2")
			sv.Grace = 50 * time.Millisecond
			first := startTrainerd(t, sv.Logdir, `trap "" TERM; cd "$TRAINERD_LOGDIR"; `+worker+` while :; do sleep 0.1; done`)
			var pid int
			await(t, "the worker begins", func() bool {
				text, _ := os.ReadFile(filepath.Join(sv.Logdir, "worker"))
				_, err := fmt.Sscan(string(text), &pid)
				return err == nil
			})
			t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
			first.Process.Kill()
			first.Wait()
			if err := syscall.Kill(pid, 0); err != nil {
				t.Fatalf("the worker has ended by itself: %v", err)
			}
			if name == "lock" {
				if _, err := logdir.HoldGroup(sv.Logdir); !errors.As(err, new(*logdir.GroupError)) {
					t.Errorf("with a worker alive the lock of the group gives %v", err)
				}
			}
			sv.Command = []string{"/bin/sh", "-c", fmt.Sprintf("if kill -0 %d 2>/dev/null && ! grep -q ') Z ' /proc/%d/stat; then echo two writers; fi; echo step=1", pid, pid)}
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatalf("Run: %v; output %q", err, out)
			}
			if strings.Contains(out.String(), "two writers") {
				t.Error("the worker wrote on during the next start")
			}
		})
	}
}
