package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const asProgram = "EXAMPLE_AS_PROGRAM"

// TestMain lets the test binary be the program itself.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs the program in a logdir up to the last step.
func start(t *testing.T, logdir string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-logdir", logdir, "-steps", "120000")
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

// A run that is killed and started again ends with the bits of one that was
// never disturbed.
func TestKillAndResume(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program three times")
	}
	whole, killed := t.TempDir(), t.TempDir()
	finish(t, start(t, whole))
	first := start(t, killed)
	awaitFile(t, filepath.Join(killed, "model.ckpt-50000.index"))
	first.Process.Kill() // it may have ended by itself
	first.Wait()
	finish(t, start(t, killed))
	for _, suffix := range []string{".index", ".data-00000-of-00001"} {
		want, err := os.ReadFile(filepath.Join(whole, "model.ckpt-120000"+suffix))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(killed, "model.ckpt-120000"+suffix))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from that of an undisturbed run", suffix)
		}
	}
}
