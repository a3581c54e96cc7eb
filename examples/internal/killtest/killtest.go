// Package killtest holds the test that every example program has to pass: one
// that is killed and started again ends with the bits of one that was never
// disturbed.
package killtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

const asProgram = "EXAMPLE_AS_PROGRAM"

// Main is TestMain of a test binary that may also be the program itself.
func Main(m *testing.M, program func()) {
	if os.Getenv(asProgram) != "" {
		program()
		return
	}
	os.Exit(m.Run())
}

// Run trains to the last step without a disturbance, and again with a kill once
// the checkpoint of an earlier step is there, and compares the last checkpoints.
func Run(t *testing.T, killAt, steps int) {
	if testing.Short() {
		t.Skip("runs the program three times")
	}
	whole, killed := t.TempDir(), t.TempDir()
	finish(t, start(t, whole, steps))
	first := start(t, killed, steps)
	awaitFile(t, filepath.Join(killed, fmt.Sprintf("model.ckpt-%d.index", killAt)))
	first.Process.Kill() // it may have ended by itself
	first.Wait()
	finish(t, start(t, killed, steps))
	for _, suffix := range []string{".index", ".data-00000-of-00001"} {
		name := fmt.Sprintf("model.ckpt-%d%s", steps, suffix)
		if !bytes.Equal(read(t, killed, name), read(t, whole, name)) {
			t.Errorf("%s differs from that of an undisturbed run", name)
		}
	}
}

// start runs the program in a logdir up to the last step.
func start(t *testing.T, logdir string, steps int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-logdir", logdir, "-steps", strconv.Itoa(steps))
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stderr = new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func finish(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, cmd.Stderr)
	}
}

// awaitFile waits until the program has written a file.
func awaitFile(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if _, err := os.Stat(name); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("no %s within a minute", name)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
