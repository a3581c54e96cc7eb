package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/daemon"
)

// TestFolderOfRuns names a folder of runs to commands that are about one.
func TestFolderOfRuns(t *testing.T) {
	dir := t.TempDir()
	run1 := filepath.Join(dir, "a")
	if err := os.Mkdir(run1, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run1, "run-report.json"), []byte(`{"outcome": "completed"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"status", "save", "stop", "logs"} {
		for _, c := range []struct{ dir, want string }{{dir, "is a folder of runs: `trainerd ls " + dir + "` lists them"}, {run1, ""}} {
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"trainerd", verb, c.dir}, nil, &out, &errs)
			if code != daemon.ExitNotRunning || strings.Contains(errs.String(), "folder of runs") != (c.want != "") || !strings.Contains(errs.String(), c.want) {
				t.Errorf("%s %s: exit code %d, %s", verb, c.dir, code, &errs)
			}
		}
	}
}
