package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

var clock = flag.Bool("clock", false, "set the clock forth and back under a training (builds all packages again)")

const (
	clockEnv    = "CLOCK_PERIOD_MS"
	clockPeriod = 700 * time.Millisecond
	clockSteps  = 20000
	clockSaves  = 300 * time.Millisecond // of save_model_secs
)

// setClock is added to package time: the clock of a process is a day ahead in
// every second period, or a day behind, and no other process notices.
const setClock = `package time

import "syscall"

// clockSet returns by how many seconds the clock is wrong: in each of four periods by
// nothing, a day ahead, nothing, a day behind.
func clockSet(mono int64) int64 {
	if clockPeriod == 0 {
		s, _ := syscall.Getenv("CLOCK_PERIOD_MS")
		for _, c := range []byte(s) {
			clockPeriod = clockPeriod*10 + int64(c-'0')
		}
		if clockPeriod == 0 {
			clockPeriod = -1
		}
	}
	if clockPeriod < 0 || mono == 0 {
		return 0
	}
	return [...]int64{0, 86400, 0, -86400}[mono/(clockPeriod*1e6)%4]
}

var clockPeriod int64
`

// buildWithClock builds trainerd with a clock that can be set.
func buildWithClock(t *testing.T) (command string) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	lib, dir := filepath.Join(strings.TrimSpace(string(root)), "src", "time"), t.TempDir()
	source, err := os.ReadFile(filepath.Join(lib, "time.go"))
	must(t, err)
	const read = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	if strings.Count(string(source), read) != 1 {
		t.Skip("this version of Go reads the clock in another way")
	}
	source = bytes.Replace(source, []byte(read), []byte(strings.Replace(read, "\n", "\n\tsec += clockSet(mono)\n", 1)), 1)
	files := map[string]string{}
	for name, content := range map[string][]byte{"time.go": source, "clock_set.go": []byte(setClock)} {
		files[filepath.Join(lib, name)] = filepath.Join(dir, name)
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o666))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": files})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o666))
	command = filepath.Join(dir, "trainerd")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", command, "github.com/trainerd/trainerd/cmd/trainerd")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return command
}

// train runs the digits until they are trained, or until it is killed, which is
// after so many saves. It returns how many saves it announced.
func train(t *testing.T, command, logdir string, period time.Duration, killAfter int) (saves int) {
	t.Helper()
	set := []string{fmt.Sprintf("train.steps=%d", clockSteps), fmt.Sprintf("supervisor.save_model_secs=%v", clockSaves.Seconds()),
		"supervisor.save_model_steps=0", "supervisor.max_to_keep=2", "supervisor.keep_checkpoint_every_n_hours=0.0003", "supervisor.save_summaries_steps=100"}
	args := []string{"run", "../../examples/digits/digits.toml", "--logdir", logdir}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	cmd := exec.Command(command, args...)
	cmd.Env = append(os.Environ(), clockEnv+"="+strconv.FormatInt(period.Milliseconds(), 10))
	saves, _ = untilKilled(t, cmd, killAfter)
	return saves
}

// untilKilled runs a command until it ends, or until it is killed, which is after so
// many saves. It returns how many it announced, and its log.
func untilKilled(t *testing.T, cmd *exec.Cmd, killAfter int) (saves int, text string) {
	t.Helper()
	log, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	var all bytes.Buffer
	for lines := bufio.NewScanner(log); lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if strings.Contains(lines.Text(), "msg=saved ") {
			if saves++; saves == killAfter {
				must(t, cmd.Process.Signal(syscall.SIGKILL))
			}
		}
	}
	if err := cmd.Wait(); err != nil && killAfter == 0 {
		t.Fatalf("%v: %s", err, &all)
	}
	return saves, all.String()
}

// trained returns the bits of the newest checkpoint, and the points of the loss.
func trained(t *testing.T, logdir string) (tensors map[string]string, points []int64) {
	t.Helper()
	prefix, err := ckptdir.LatestCheckpoint(logdir, nil)
	must(t, err)
	r, err := ckptfmt.Open(prefix, nil)
	must(t, err)
	defer r.Close()
	tensors = map[string]string{}
	for info := range r.Tensors() {
		v, err := r.Lookup(info.Name)
		must(t, err)
		tensors[info.Name] = fmt.Sprintf("%v %q", v.Data, v.Strings)
	}
	files, _ := filepath.Glob(filepath.Join(logdir, "events.out.tfevents.*"))
	for _, name := range slices.Sorted(slices.Values(files)) {
		more := lossesOf(t, name, &points)
		points = append(points, more...)
	}
	return tensors, points
}

// lossesOf returns the steps of the losses in an events file. A start drops what
// points has from its step on, as in TensorBoard.
func lossesOf(t *testing.T, name string, points *[]int64) (steps []int64) {
	t.Helper()
	f, err := os.Open(name)
	must(t, err)
	defer f.Close()
	for e := range tfevents.NewReader(f).Events() {
		if e.GetSessionLog().GetStatus() == tfpb.SessionLog_START {
			*points = slices.DeleteFunc(*points, func(step int64) bool { return step >= e.GetStep() })
		}
		for _, v := range e.GetSummary().GetValue() {
			if v.GetTag() == "loss" {
				steps = append(steps, e.GetStep())
			}
		}
	}
	return steps
}

// TestClockIsSet sets the clock forth and back by a day all the time, of a training
// that is killed and started again. It ends with the bits and the curve of one whose
// clock is right, and saves as often: by the timer, not by the clock.
func TestClockIsSet(t *testing.T) {
	if !*clock {
		t.Skip("only with -clock")
	}
	command, dir := buildWithClock(t), t.TempDir()
	right, wrong := filepath.Join(dir, "right"), filepath.Join(dir, "wrong")
	train(t, command, right, 0, 0)
	began, saves, lives := time.Now(), 0, 0
	for _, killAfter := range []int{3, 4, 5, 0} {
		saves += train(t, command, wrong, clockPeriod, killAfter)
		lives++
	}
	// A life may save at its beginning and at its end, whatever the timer says.
	if most := int(time.Since(began)/clockSaves) + 2*lives; saves > most {
		t.Errorf("%d saves in %v", saves, time.Since(began))
	}
	tensors, points := trained(t, wrong)
	wantTensors, wantPoints := trained(t, right)
	if !maps.Equal(tensors, wantTensors) {
		t.Error("the model is another one")
	}
	if len(wantPoints) < clockSteps/100 || !slices.Equal(points, wantPoints) {
		t.Errorf("points at the steps %v, want %v", points, wantPoints)
	}
	t.Run("program", func(t *testing.T) { clockOfProgram(t, command) })
}
