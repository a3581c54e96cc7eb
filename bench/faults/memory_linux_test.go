package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

const (
	eatEnv      = "TRAINERD_FAULTS_EAT"   // the file by which the program knows that it did
	scoreEnv    = "TRAINERD_FAULTS_SCORE" // by how much the kernel rather ends it than others
	eatAt       = 20                      // the step at which it takes all memory
	memoryLimit = 256 << 20
)

// eat takes memory until the kernel ends a process for it, once.
func eat(marker string) {
	if _, err := os.Stat(marker); err == nil {
		return
	}
	if err := os.WriteFile(marker, nil, 0o666); err != nil {
		panic(err)
	}
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(os.Getenv(scoreEnv)), 0o600); err != nil {
		panic(err)
	}
	for {
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = byte(i)
		}
		eaten = append(eaten, block)
	}
}

// eaten is the memory that eat has taken.
var eaten [][]byte

// memoryGroup is a control group, of either version, with little memory.
func memoryGroup(t *testing.T) (dir string) {
	t.Helper()
	for _, v := range []struct{ root, limit, swap string }{
		{"/sys/fs/cgroup", "memory.max", "memory.swap.max"},
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.swappiness"},
	} {
		dir, err := os.MkdirTemp(v.root, "trainerd-memory-")
		if err != nil {
			continue
		}
		if limit(filepath.Join(dir, v.limit), memoryLimit) != nil {
			os.Remove(dir)
			continue
		}
		limit(filepath.Join(dir, v.swap), 0) // where there is swap
		t.Cleanup(func() { os.Remove(dir) })
		return dir
	}
	t.Skip("cannot make a control group that limits memory: it needs root")
	return ""
}

// limit writes a limit into a file that a control group has.
func limit(name string, value int) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(strconv.Itoa(value))
	return err
}

// keeper returns a trainerd with its program, both in a control group.
func keeper(group, dir, score string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-c", `echo $$ >"$0"/cgroup.procs && exec "$@"`, group, os.Args[0], "-test.run", "^TestKeeper$")
	cmd.Env = append(os.Environ(), writerEnv+"="+dir, eatEnv+"="+filepath.Join(filepath.Dir(dir), "eaten"), scoreEnv+"="+score)
	return cmd
}

// await waits until a process has promised a step or a later one.
func (v *victim) await(t *testing.T, step int64) (promised int64) {
	t.Helper()
	for promised = range v.lines {
		if promised >= step {
			return promised
		}
	}
	v.cmd.Wait() // until all that it says is here
	t.Fatalf("it has ended before step %d was saved: %v: %s", step, v.cmd.ProcessState, &v.err)
	return promised
}

// ended waits for the end of a process, and returns the last step that it
// promised.
func (v *victim) ended() (promised int64) {
	for step := range v.lines {
		promised = max(promised, step)
	}
	v.cmd.Wait() // how it ended is in its state
	return promised
}

// When memory runs out the kernel ends the program, or trainerd, or one after the
// other. The run continues, and no checkpoint that was announced is lost. Which it is
// does not depend on how large they are, or how busy the machine is: one has the highest
// score that there is.
func TestOutOfMemory(t *testing.T) {
	const usual, highest = "0", "1000"
	for name, score := range map[string]string{"program": highest, "trainerd": usual} {
		t.Run(name, func(t *testing.T) {
			group, dir := memoryGroup(t), filepath.Join(t.TempDir(), "logdir")
			must(t, os.Mkdir(dir, 0o777))
			v := startVictim(t, keeper(group, dir, score))
			promised := v.await(t, 1)
			if score == usual {
				must(t, os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", v.cmd.Process.Pid), []byte(highest), 0o600))
				promised = max(promised, v.ended())
				if v.cmd.ProcessState.ExitCode() != -1 {
					t.Fatalf("trainerd was not killed: %v", v.cmd.ProcessState)
				}
				must(t, judgeProgram(dir, promised))
				v = startVictim(t, keeper(group, dir, score))
			}
			promised = max(promised, v.await(t, 3*eatAt))
			if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "eaten")); err != nil {
				t.Error(err)
			}
			promised = v.kill(promised)
			must(t, judgeProgram(dir, promised))
		})
	}
}
