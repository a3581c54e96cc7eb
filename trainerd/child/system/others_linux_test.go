package system

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// TestSecondTerm has a program that has got SIGTERM, and is saving, and another process of its
// group, which a process has started that it has started: a signal to the group is for these alone.
func TestSecondTerm(t *testing.T) {
	const (
		script = `trap 'echo leader; n=${n}x; [ $n = xx ] && exit 9' TERM
sh -c 'trap : TERM; sh -c "$OTHER"; exit 0' &
wait; wait; wait; echo end`
		other = `trap "echo other; exit" TERM; echo ready; while :; do sleep 0.01; done`
	)
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(), "OTHER="+other)
	p, err := OS{}.Start(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := p.Outputs()
	defer stdout.Close()
	defer stderr.Close()
	defer p.SignalGroup(SigKill)
	lines := bufio.NewScanner(stdout)
	next := func() string {
		lines.Scan()
		return lines.Text()
	}
	got := []string{next()}
	p.Signal(SigTerm)
	got = append(got, next())
	if err := signalOthers(p.PID(), syscall.Signal(999)); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("no signal: %v", err)
	}
	if err := p.SignalGroup(SigTerm); err != nil {
		t.Error(err)
	}
	got = append(got, next(), next())
	if want := []string{"ready", "leader", "other", "end"}; !slices.Equal(got, want) {
		t.Errorf("the program says %v, want %v", got, want)
	}
	if code, sig := p.Wait(); code != 0 || sig != 0 {
		t.Errorf("it ended with exit code %d, signal %v", code, sig)
	}
	if err := p.SignalGroup(SigTerm); err != nil {
		t.Errorf("once all have ended: %v", err)
	}
}
