//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/bench/measure"
)

// patterns are the names of the programs' checkpoints, for trainerd.
var patterns = map[string]string{"torch": "ckpt-*.pt", "tf1": "model.ckpt-*"}

// torchrun returns a command under PyTorch's own supervisor.
func (o *options) torchrun(command []string) []string {
	return append([]string{o.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1", "--max-restarts=1000000"}, command[1:]...)
}

// supervised returns the program's command under the supervisor.
func (o *options) supervised(t task) ([]string, error) {
	command, err := o.command()
	if err != nil {
		return nil, err
	}
	switch o.supervisor {
	case "bash":
		return append([]string{"bash", "-c", `until "$@"; do :; done`, "bash"}, command...), nil
	case "torchrun":
		return o.torchrun(command), nil
	case "trainerd":
		return append([]string{filepath.Join(o.data, "trainerd"), "run", "--logdir", t.logdir, "--set", "child.checkpoints=" + patterns[o.program],
			"--set", "supervisor.max_to_keep=2", "--set", "child.max_restarts=1000000", "--"}, command...), nil
	}
	return nil, fmt.Errorf("no supervisor %q", o.supervisor)
}

// patience is how many times longer than undisturbed a run may take before it is
// ended: a supervisor may start again forever.
const patience = 5

// under runs a program under a supervisor and kills it again and again.
func under(ctx context.Context, o *options) (*measure.Result, error) {
	if err := o.installed(ctx); err != nil {
		return nil, err
	}
	c, err := readCalibration(o.data)
	if err != nil {
		return nil, err
	}
	t := task{logdir: filepath.Join(o.tmp, "logdir"), journal: filepath.Join(o.tmp, "journal"), steps: c.Steps, every: c.Every, width: c.Width}
	if err := os.Mkdir(t.logdir, 0o777); err != nil {
		return nil, err
	}
	command, err := o.supervised(t)
	if err != nil {
		return nil, err
	}
	limit := time.Duration(patience * (float64(c.Steps)*c.Step + c.Start) * float64(time.Second))
	ctx, cancel := context.WithTimeout(ctx, limit+2*time.Minute)
	defer cancel()
	begun := time.Now()
	kills, output, err := runKilled(ctx, command, t, newKills(o.seed, c.Mean).next)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, tail(output))
	}
	j, err := readJournal(t.journal)
	if err != nil {
		return nil, err
	}
	r := judge(c, j, begun)
	r.Metrics["kills"] = float64(len(kills))
	r.Metrics["restart_seconds"] = j.restartSeconds(kills)
	// What would have been left at the speed that the machine had for this run.
	step := j.stepSeconds()
	now := calibration{Steps: c.Steps, Every: c.Every, Mean: c.Mean, Step: step, Save: j.saveSeconds(c.Every, step), Start: j.startSeconds()}
	r.Metrics["below_bound"] = now.ideal(newKills(o.seed, c.Mean)).share() - r.Metrics["ettr"]
	return r, nil
}

func judge(c *calibration, j *journal, begun time.Time) *measure.Result {
	a := j.account(begun)
	same := 0.
	if j.digest == c.Digest {
		same = 1
	}
	return &measure.Result{Work: fmt.Sprintf("%d steps", a.reached), Seconds: a.wall, Metrics: map[string]float64{
		"ettr": a.share(), "in_steps": a.inSteps / a.wall, "lost_seconds": a.wall - a.progress, "lost_steps": float64(a.lost), "same_bits": same, "starts": float64(len(j.starts)),
	}}
}

// runKilled runs the command and kills what trains at the given times. It ends all
// that is left of the command's group. hits are the times at which a process was killed.
func runKilled(ctx context.Context, command []string, t task, next func() time.Duration) (hits []time.Time, output []byte, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = t.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		kill := time.NewTimer(time.Until(begun.Add(next())))
		select {
		case err := <-ended:
			kill.Stop()
			return hits, out.Bytes(), err
		case <-ctx.Done():
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-ended
			return hits, out.Bytes(), fmt.Errorf("it did not end: %w", ctx.Err())
		case <-kill.C:
		}
		hit, err := killTrainer(t.journal)
		if err != nil {
			return hits, nil, err
		}
		if hit {
			hits = append(hits, time.Now())
		}
	}
}

// killTrainer kills the process that trains, if one does.
func killTrainer(name string) (hit bool, err error) {
	j, err := readJournal(name)
	if err != nil || len(j.starts) == 0 {
		return false, err
	}
	// A process that has ended is a zombie at most: its parent has yet to wait for it.
	return syscall.Kill(j.starts[len(j.starts)-1].pid, syscall.SIGKILL) == nil, nil
}
