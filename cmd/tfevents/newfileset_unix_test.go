//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNoReader lets commands write to a pipe that nobody reads: files without their
// names are removed, and those that do not need the pipe are made.
func TestNoReader(t *testing.T) {
	dir := t.TempDir()
	images := filepath.Join(dir, "events.out.tfevents.1.images")
	writeImages(t, images, 500)
	torn := filepath.Join(dir, "torn.tfevents")
	data, err := os.ReadFile(images)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(torn, data[:len(data)-1], 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, made string // what there is afterwards, of what begins like it
		args       []string
		want       int
	}{
		{"files of an export", "", []string{"export", images, "--plugin", "images", "--files", filepath.Join(dir, "files")}, exitNoReader},
		{"its output is a file", "rows.csv", []string{"export", images, "--plugin", "images", "--files", filepath.Join(dir, "files"), "-o", filepath.Join(dir, "rows.csv")}, exitOK},
		{"damage is named meanwhile", "new.events", []string{"repair", torn, filepath.Join(dir, "new.events")}, exitNoReader},
	} {
		if got := runUnread(t, tc.args); got != tc.want {
			t.Errorf("%s: exit code %d, want %d", tc.name, got, tc.want)
		}
		if tc.made != "" {
			if _, err := os.Stat(filepath.Join(dir, tc.made)); err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "files")); !os.IsNotExist(err) {
			t.Errorf("%s: files are left over (%v)", tc.name, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".unfinished-*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// runUnread runs the command with outputs that nobody reads and returns its exit code,
// as shells show it.
func runUnread(t *testing.T, args []string) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd := exec.Command(self)
	cmd.Args = append([]string{"tfevents"}, args...) // by which TestMain knows it
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if exit.ExitCode() < 0 {
			return exitNoReader // by the signal
		}
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return exitOK
}
