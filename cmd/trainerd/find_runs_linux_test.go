package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/nobody"
	"github.com/trainerd/trainerd/trainerd/daemon"
)

// put makes empty files, with their folders.
func put(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFindRuns finds runs by links and in the logdirs of other runs, each once, but not the
// folders that a run makes in its logdir.
func TestFindRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "logs/a/trainerd.lock", "logs/a/best/checkpoint", "logs/a/inner/trainerd.lock", "logs/a/inner/best/checkpoint", "logs/a/zest/checkpoint",
		"logs/tf/checkpoint", "logs/notes/readme", "disk/big/trainerd.lock", "disk/other/file", "run/trainerd.lock", "run/best/checkpoint", "run/b/run-report.json")
	for link, to := range map[string]string{
		"linked": "logs", "logs/big": "../disk/big", "logs/big2": "../disk/big", "logs/latest": "a", "logs/other": "../disk/other", "logs/gone": "nowhere", "logs/up": "..",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ dirs, want []string }{
		{[]string{"logs"}, []string{"logs/a", "logs/a/inner", "logs/big", "logs/tf"}},
		{[]string{"linked"}, []string{"linked/a", "linked/a/inner", "linked/big", "linked/tf"}},
		{[]string{"logs/latest"}, []string{"logs/latest", "logs/latest/inner"}},
		{[]string{"logs", "logs/tf"}, []string{"logs/a", "logs/a/inner", "logs/big", "logs/tf"}},
		{[]string{"run"}, []string{"run", "run/b"}},
		{[]string{"disk/other"}, nil},
	} {
		runs, err := findRuns(t.Context(), c.dirs)
		if err != nil {
			t.Errorf("%q: %v", c.dirs, err)
		}
		var got []string
		for _, r := range runs {
			got = append(got, r.Logdir)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.dirs, got, c.want)
		}
	}
	t.Chdir("run")
	if runs, err := findRuns(t.Context(), []string{"."}); err != nil || len(runs) != 2 || runs[0].Logdir != "." || runs[1].Logdir != "b" {
		t.Errorf("in a logdir: %v, %v", runs, err)
	}
}

// TestUnreadRuns searches folders some of which may not be read: the runs in the others are
// returned, and the error says that some may be missing.
func TestUnreadRuns(t *testing.T) {
	dir := t.TempDir()
	logs := filepath.Join(dir, "logs")
	put(t, filepath.Join(logs, "mine", "trainerd.lock"), filepath.Join(logs, "theirs", "trainerd.lock"), filepath.Join(logs, "theirs2", "run", "checkpoint"))
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(filepath.Join(logs, "theirs"), 0), os.Chmod(filepath.Join(logs, "theirs2"), 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("theirs2/run", filepath.Join(logs, "service")); err != nil {
		t.Fatal(err)
	}
	nobody.Become(t)
	runs, err := findRuns(t.Context(), []string{logs})
	if len(runs) != 1 || filepath.Base(runs[0].Logdir) != "mine" {
		t.Errorf("the runs are %v", runs)
	}
	if !errors.Is(err, fs.ErrPermission) || daemon.ExitCode(err) != daemon.ExitIO {
		t.Errorf("the error is %v", err)
	}
	want := "a folder cannot be searched for runs: stat " + logs + "/service: permission denied; so it is with 2 more"
	if err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestLogdirOfService names a job of systemd, whose logdir its own user and root may see.
func TestLogdirOfService(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "private", "digits", "trainerd.lock"), filepath.Join(dir, "lib", "own", "trainerd.lock"))
	link := filepath.Join(dir, "lib", "digits")
	err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Symlink("../private/digits", link), os.Chmod(filepath.Join(dir, "private"), 0))
	if err != nil {
		t.Fatal(err)
	}
	nobody.Become(t)
	t.Chdir(dir)
	if got, err := logdirAmong(filepath.Join(dir, "lib"), "own"); err != nil || got != filepath.Join(dir, "lib", "own") {
		t.Errorf("a logdir that may be seen: %s, %v", got, err)
	}
	for _, arg := range []string{"digits", link} {
		_, err := logdirAmong(filepath.Join(dir, "lib"), arg)
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "as root") || daemon.ExitCode(err) != daemon.ExitIO {
			t.Errorf("%s: %v", arg, err)
		}
	}
	if _, err := logdirAmong(filepath.Join(dir, "lib"), "nowhere"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "trainerd ls lists") {
		t.Errorf("no job: %v", err)
	}
}

// TestRunsOfOthers lists and shows a run whose files were written to mislead a terminal.
func TestRunsOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a\nb")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	report := `{"outcome": "failed\u001b[2J", "last_step": 5, "error": "\u001b]0;title", "checkpoints": [{"name": "m\u001b[1A", "metrics": {"x\u001b[0m": 1}}]}`
	if err := os.WriteFile(filepath.Join(dir, "run-report.json"), []byte(report), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"trainerd", "ls", filepath.Dir(dir)}, {"trainerd", "status", dir}} {
		var out, errs bytes.Buffer
		run(t.Context(), args, nil, &out, &errs)
		if !strings.Contains(out.String(), "failed") || strings.ContainsAny(out.String(), "\x1b") || strings.Contains(out.String(), "a\nb") {
			t.Errorf("%q: %q %q", args, &out, &errs)
		}
	}
}
