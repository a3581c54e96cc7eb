//go:build unix

package child

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// asTrainerd is the variable that makes the test binary a trainerd with this logdir,
// whose program is the script in asProgram.
const (
	asTrainerd = "CHILD_TRAINERD"
	asProgram  = "CHILD_PROGRAM"
	asNode     = "CHILD_NODE" // "1 of 2", none for one node
)

// beTrainerd is a trainerd that looks after a program until it is killed.
func beTrainerd(dir string) {
	sv := &Supervisor{Command: []string{"/bin/sh", "-c", os.Getenv(asProgram)}, Logdir: dir, Checkpoints: "ckpt-*",
		ScanEvery: 5 * time.Millisecond, Stdout: os.Stdout, Stderr: os.Stderr, Log: slog.New(diesAtSaves{slog.NewTextHandler(os.Stderr, nil)})}
	fmt.Sscanf(os.Getenv(asNode), "%d of %d", &sv.Node, &sv.Nodes)
	os.Unsetenv(asTrainerd)
	if _, err := sv.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// diesAtSaves is a log that kills its process with the announcement of the step in
// CHILD_DIES_AT.
type diesAtSaves struct{ slog.Handler }

func (d diesAtSaves) Handle(ctx context.Context, r slog.Record) error {
	err := d.Handler.Handle(ctx, r)
	r.Attrs(func(a slog.Attr) bool {
		if r.Message == "saved" && a.Key == "step" && a.Value.String() == os.Getenv("CHILD_DIES_AT") {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return true
	})
	return err
}

// startTrainerd starts a trainerd in a process of its own.
func startTrainerd(t *testing.T, dir, program string) *exec.Cmd {
	t.Helper()
	cmd := trainerdCommand(dir, program)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func trainerdCommand(dir, program string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asTrainerd+"="+dir, asProgram+"="+program)
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
