package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// harmless makes a mount namespace where all file systems are read-only but the
// folder that is the first argument. It lives until its standard input ends.
const harmless = `mount --bind "$1" "$1" || exit 1
for at in $(awk '{print $5}' /proc/self/mountinfo); do
  case $at in /proc*|/dev*|/sys*|"$1") ;; *) mount -o remount,bind,ro "$at" 2>/dev/null || true;; esac
done
echo ready
exec cat >/dev/null
`

// confine runs a command in the folder that is the first argument, with an empty
// /dev/shm for temporary files, whose names are short enough for sockets and hide
// nothing. Its memory is limited, for a mutant may be a loop without an end that
// allocates.
const confine = `mount -t tmpfs -o size=512m,mode=1777 tmpfs /dev/shm && cd "$1" || exit 125
shift
ulimit -v 4000000
"$@"
`

// unconfined is the exit code of confine when it could not be done.
const unconfined = 125

// enterNamespace makes the namespace in which the commands of b can harm nothing,
// where this is permitted. The function that it returns ends it.
func (b *binary) enterNamespace(ctx context.Context) (leave func()) {
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "sh", "-c", harmless, "sh", b.runs)
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	leave = func() {}
	if errors.Join(inErr, outErr, cmd.Start()) == nil {
		leave = func() {
			in.Close()
			cmd.Wait()
		}
		if line, _ := bufio.NewReader(out).ReadString('\n'); line == "ready\n" {
			b.namespace = fmt.Sprintf("/proc/%d/ns/mnt", cmd.Process.Pid)
		}
	}
	if _, err := b.start(ctx, time.Minute, 0, "true"); b.namespace == "" || err != nil {
		b.namespace = ""
		fmt.Fprintln(os.Stderr, "mutate: namespaces are not permitted here, so the mutants see this machine's files and processes")
	}
	return leave
}

// outcome is what a run of tests has shown.
type outcome struct {
	output  string
	reached string // the mutants that were reached, a line each; only without one
}

// start runs a command for at most this long, alone with its children, with
// one mutant. An error is that of the command.
func (b *binary) start(ctx context.Context, limit time.Duration, mutant int, args ...string) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, err := os.MkdirTemp(b.runs, "run-")
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(dir)
	reached := filepath.Join(dir, "reached")
	cmd := b.command(ctx, args)
	cmd.Env = append(os.Environ(), environment(dir, reached, mutant, b.namespace != "" && !b.onDisk)...)
	out, err := cmd.CombinedOutput()
	o := outcome{output: string(out)}
	if mutant == 0 {
		text, readErr := os.ReadFile(reached)
		if readErr != nil && !errors.Is(readErr, os.ErrNotExist) {
			return o, readErr
		}
		o.reached = string(text)
	}
	return o, err
}

func (b *binary) command(ctx context.Context, args []string) *exec.Cmd {
	if b.namespace != "" {
		args = append([]string{"nsenter", "--mount=" + b.namespace, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
			"sh", "-c", confine, "sh", b.dir}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = b.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}
