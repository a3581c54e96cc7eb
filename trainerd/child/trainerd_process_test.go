//go:build unix

package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// asTrainerd is the variable that makes the test binary a trainerd with this logdir,
// whose program is the script in asProgram.
const (
	asTrainerd = "CHILD_TRAINERD"
	asProgram  = "CHILD_PROGRAM"
)

// beTrainerd is a trainerd that looks after a program until it is killed.
func beTrainerd(dir string) {
	sv := &Supervisor{Command: []string{"/bin/sh", "-c", os.Getenv(asProgram)}, Logdir: dir, Checkpoints: "ckpt-*",
		LookEvery: 5 * time.Millisecond, Stdout: os.Stdout, Stderr: os.Stderr}
	os.Unsetenv(asTrainerd)
	if _, err := sv.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startTrainerd starts a trainerd in a process of its own.
func startTrainerd(t *testing.T, dir, program string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asTrainerd+"="+dir, asProgram+"="+program)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
