package daemon

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

func writeText(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestElsewhere starts a job with a relative logdir in another folder than before: the check
// and the log of the run name the run that it does not continue.
func TestElsewhere(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"project/jobs", "project/logs/a", "project/logs/abs", "other/logs/own"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"project/logs/a", "project/logs/abs", "other/logs/own"} {
		writeText(t, filepath.Join(root, dir, logdir.LockFile), "")
	}
	job := filepath.Join(root, "project/jobs/job.toml")
	there := filepath.Join(root, "project/logs/a")
	for name, tt := range map[string]struct {
		cwd, logdir, set, want string
	}{
		"from elsewhere":           {"other", "logs/a", "", there},
		"from the config's":        {"project/jobs", "logs/a", "", there},
		"where it ran":             {"project", "logs/a", "", ""},
		"a run here":               {"other", "logs/own", "", ""},
		"never ran":                {"other", "logs/new", "", ""},
		"absolute":                 {"other", filepath.Join(root, "other/logs/a"), "", ""},
		"by a flag":                {"other", "logs/b", "logs/a", ""},
		"a worker, which has none": {"other", "logs/a", "worker", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(filepath.Join(root, tt.cwd))
			writeText(t, job, "logdir = '"+tt.logdir+"'\n[child]\ncommand = [\"true\"]\n")
			var set []config.Override
			if tt.set == "logs/a" {
				set = []config.Override{{Flag: "--logdir logs/a", Assignment: "logdir=logs/a", Literal: true}}
			}
			c, err := config.Load(job, set)
			if err != nil {
				t.Fatal(err)
			}
			c.Supervisor.IsChief = tt.set != "worker"
			if got := Elsewhere(c); got != tt.want {
				t.Errorf("Elsewhere: %q, want %q", got, tt.want)
			}
			var out, log bytes.Buffer
			if err := Check(t.Context(), job, set, &out); err != nil {
				t.Fatal(err)
			}
			warnElsewhere(c, slog.New(slog.NewTextHandler(&log, nil)))
			if tt.set != "worker" && strings.Contains(out.String(), "there is a run in "+there) != (tt.want != "") {
				t.Errorf("the check says: %s", out.String())
			}
			if strings.Contains(log.String(), "run="+there) != (tt.want != "") {
				t.Errorf("the run says: %s", log.String())
			}
		})
	}
}
