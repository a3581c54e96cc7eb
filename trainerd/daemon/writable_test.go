package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// TestCheckOfLogdir checks jobs whose logdir a run could not write to.
func TestCheckOfLogdir(t *testing.T) {
	file := func(t *testing.T, name string) {
		t.Helper()
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	mkdir := func(t *testing.T, name string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	noRoot := func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root may write everywhere")
		}
	}
	for name, tt := range map[string]struct {
		spoil func(t *testing.T, logdir string)
		want  string // in the error, "" for none
	}{
		"none yet":                      {func(*testing.T, string) {}, ""},
		"empty":                         {func(t *testing.T, logdir string) { mkdir(t, logdir, 0o777) }, ""},
		"a file":                        {func(t *testing.T, logdir string) { mkdir(t, filepath.Dir(logdir), 0o777); file(t, logdir) }, "not a directory"},
		"below a file":                  {func(t *testing.T, logdir string) { file(t, filepath.Dir(logdir)) }, "not a directory"},
		"not to be written":             {func(t *testing.T, logdir string) { noRoot(t); mkdir(t, logdir, 0o555) }, "permission denied"},
		"not to be made":                {func(t *testing.T, logdir string) { noRoot(t); mkdir(t, filepath.Dir(logdir), 0o555) }, "permission denied"},
		"a lock that is a folder":       {func(t *testing.T, logdir string) { mkdir(t, filepath.Join(logdir, "trainerd.lock"), 0o777) }, "is a directory"},
		"a state file that is a folder": {func(t *testing.T, logdir string) { mkdir(t, filepath.Join(logdir, "checkpoint"), 0o777) }, "it is a folder"},
		"eval is a file":                {func(t *testing.T, logdir string) { mkdir(t, logdir, 0o777); file(t, filepath.Join(logdir, evalDir)) }, "not a directory"},
		"eval elsewhere": {func(t *testing.T, logdir string) {
			mkdir(t, logdir, 0o777)
			if err := os.Symlink(t.TempDir(), filepath.Join(logdir, evalDir)); err != nil {
				t.Fatal(err)
			}
		}, "is a link to"},
	} {
		t.Run(name, func(t *testing.T) {
			logdir := filepath.Join(t.TempDir(), "parent", "logs")
			tt.spoil(t, logdir)
			c := clustersConfig(t)
			var out bytes.Buffer
			err := Check(t.Context(), c.File(), []config.Override{{Flag: "--logdir " + logdir, Assignment: "logdir=" + logdir, Literal: true}}, &out)
			if tt.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "use another logdir") || ExitCode(err) != ExitIO {
				t.Errorf("got %v, exit code %d; want %s", err, ExitCode(err), tt.want)
			}
		})
	}
}

// TestWritableIsTried has a file system that has no files without a name, and that
// says that root may write to it.
func TestWritableIsTried(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("no /proc")
	}
	if err := writable("/proc"); err == nil {
		t.Error("/proc is said to be writable")
	}
}

// TestNoEvaluationElsewhere has a link in the place of the folder for the events
// of evaluations: nothing is written to where it leads.
func TestNoEvaluationElsewhere(t *testing.T) {
	c := clustersConfig(t)
	elsewhere := t.TempDir()
	if err := os.MkdirAll(c.Logdir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(c.Logdir, evalDir)); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), c, RunOptions{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
	if err == nil || !strings.Contains(err.Error(), "is a link to "+elsewhere) || ExitCode(err) != ExitIO {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) > 0 {
		t.Errorf("there is %v, %v", entries, err)
	}
}
