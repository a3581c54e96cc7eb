package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// clockProgram makes 300 steps, saves after each tenth, and continues from its newest
// checkpoint.
const clockProgram = `step=${TRAINERD_STEP:-0}
save() { echo "$step" >"$TRAINERD_LOGDIR/tmp" && mv "$TRAINERD_LOGDIR/tmp" "$TRAINERD_LOGDIR/ckpt-$step"; }
trap 'save; exit 0' TERM
while [ "$step" -lt 300 ]; do
  step=$((step + 1))
  echo "step=$step loss=$step"
  if [ $((step % 10)) = 0 ]; then save; fi
  sleep 0.02
done
`

// clockKept is how far apart the checkpoints are that stay forever.
const clockKept = time.Second

// superviseProgram keeps the program alive until it is complete, or until trainerd is
// killed, which is after so many saves. It returns the log.
func superviseProgram(t *testing.T, command, logdir string, killAfter int) string {
	t.Helper()
	cmd := exec.Command(command, "run", "--logdir", logdir, "--set", "child.checkpoints=ckpt-*", "--set", "supervisor.max_to_keep=2",
		"--set", fmt.Sprintf("supervisor.keep_checkpoint_every_n_hours=%v", clockKept.Hours()), "--set", "child.hang_secs=60", "--", "/bin/sh", "-c", clockProgram)
	cmd.Env = append(os.Environ(), clockEnv+"="+strconv.FormatInt(clockPeriod.Milliseconds(), 10))
	_, log := untilKilled(t, cmd, killAfter)
	return log
}

// clockOfProgram sets the clock of a trainerd that keeps a program, and is killed twice.
// The program is not taken for one that hangs, its curve has each step once, and no more
// checkpoints stay than the time explains. What is in the pipe at a kill is lost: points
// between the last announced checkpoint and a later one, at which the program continues.
func clockOfProgram(t *testing.T, command string) {
	logdir, began, lives := filepath.Join(t.TempDir(), "program"), time.Now(), 0
	announced, lost := 0, map[int64]bool{}
	for _, killAfter := range []int{8, 8, 0} {
		log := superviseProgram(t, command, logdir, killAfter)
		if lives++; strings.Contains(log, "has reported no step for too long") || strings.Contains(log, "level=ERROR") {
			t.Errorf("life %d: %s", lives, log)
		}
		for step := announced + 1; step <= lastStep(log, `msg="restored; training continues" step=`); step++ {
			lost[int64(step)] = true
		}
		announced = lastStep(log, "msg=saved step=")
	}
	var points []int64
	files, _ := filepath.Glob(filepath.Join(logdir, "events.out.tfevents.*"))
	for _, name := range slices.Sorted(slices.Values(files)) {
		points = append(points, lossesOf(t, name, &points)...)
	}
	for step := range int64(300) {
		if step++; !slices.Contains(points, step) && !lost[step] || !slices.IsSorted(points) {
			t.Fatalf("points at the steps %v; of %v some may be lost", points, lost)
		}
	}
	kept, _ := filepath.Glob(filepath.Join(logdir, "ckpt-*"))
	if most := 2 + int(time.Since(began)/clockKept) + lives; len(slices.Compact(points)) != len(points) || len(kept) < 2 || len(kept) > most {
		t.Errorf("%d points; %d checkpoints stay, at most %d should: %q", len(points), len(kept), most, kept)
	}
	if _, err := os.Stat(filepath.Join(logdir, "ckpt-300")); err != nil {
		t.Error(err)
	}
}

// lastStep returns the step in the last line of a log that has the words before it, or 0.
func lastStep(log, words string) (step int) {
	if at := strings.LastIndex(log, words); at >= 0 {
		fmt.Sscan(log[at+len(words):], &step)
	}
	return step
}
