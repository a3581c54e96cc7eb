package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// confine runs a command where it can harm nothing: it sees no other processes,
// and all file systems are read-only but its own folder, the first argument,
// and an empty /dev/shm for temporary files, whose names are short enough for
// sockets and hide nothing. Its memory is limited, for a mutant may be a loop without
// an end that allocates.
const confine = `mount --bind "$1" "$1" || exit 125
for at in $(awk '{print $5}' /proc/self/mountinfo); do
  case $at in /proc*|/dev*|/sys*|"$1") ;; *) mount -o remount,bind,ro "$at" 2>/dev/null || true;; esac
done
mount -t tmpfs -o size=512m,mode=1777 tmpfs /dev/shm || exit 125
shift
ulimit -v 4000000
"$@"
`

// unconfined is the exit code of confine when it could not be done.
const unconfined = 125

// canConfine reports whether this process may make namespaces.
func (b *binary) canConfine(ctx context.Context) bool {
	if _, err := exec.LookPath("unshare"); err != nil {
		return false
	}
	b.confined = true
	_, err := b.start(ctx, time.Minute, 0, "true")
	return err == nil
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
	dir, err := os.MkdirTemp(b.work, "run-")
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(dir)
	reached := filepath.Join(dir, "reached")
	cmd := b.command(ctx, dir, args)
	cmd.Env = append(os.Environ(), environment(dir, reached, mutant, b.confined)...)
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

func (b *binary) command(ctx context.Context, dir string, args []string) *exec.Cmd {
	if b.confined {
		args = append([]string{"unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", confine, "sh", dir}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = b.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}
