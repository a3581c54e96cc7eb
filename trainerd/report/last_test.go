package report

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// What is left in a logdir says how its newest run ended.
func TestReadLast(t *testing.T) {
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	reported := func(dir string, r Run) {
		t.Helper()
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		write(dir, JSONName, string(b))
	}
	const state = "model_checkpoint_path: \"model.ckpt-7\"\nall_model_checkpoint_paths: \"model.ckpt-7\"\n"
	host, _ := os.Hostname()
	deadHere, _ := json.Marshal(logdir.Holder{Host: host, PID: 1 << 22, Start: time.Now()})
	ended := Run{Outcome: Completed, LastStep: 5, Ended: time.Now(), Checkpoints: []Checkpoint{{Name: "model.ckpt-5", Step: 5}}}
	for _, c := range []struct {
		name string
		make func(dir string)
		want string // the text and the checkpoint
	}{
		{"nothing", func(string) {}, "empty "},
		{"completed", func(dir string) { reported(dir, ended) }, "completed at step 5 model.ckpt-5"},
		{"stopped", func(dir string) {
			reported(dir, Run{Outcome: Stopped, StoppedBy: "SIGINT", LastStep: 3})
			write(dir, "checkpoint", state)
		}, "stopped at step 7 (by SIGINT) model.ckpt-7"},
		{"failed", func(dir string) { reported(dir, Run{Outcome: Failed, Error: "loss is NaN\nmore", LastStep: 3}) }, "failed at step 3 (loss is NaN) "},
		{"a report, then killed", func(dir string) {
			reported(dir, ended)
			write(dir, "checkpoint", state)
			write(dir, logdir.LockFile, string(deadHere))
		}, "killed at step 7"},
		{"released", func(dir string) { reported(dir, ended); write(dir, logdir.LockFile, "") }, "completed at step 5 model.ckpt-5"},
		{"a damaged report", func(dir string) { write(dir, JSONName, "{"); write(dir, "checkpoint", state) },
			"unknown at step 7 (run-report.json: unexpected end of JSON input) model.ckpt-7"},
		{"a folder instead of a report", func(dir string) {
			if err := os.Mkdir(filepath.Join(dir, JSONName), 0o777); err != nil {
				t.Fatal(err)
			}
		}, "unknown (read run-report.json: is a directory) "},
		{"checkpoints alone", func(dir string) { write(dir, "checkpoint", state) }, "stopped at step 7 model.ckpt-7"},
	} {
		dir := t.TempDir()
		c.make(dir)
		l, err := ReadLast(dir)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := strings.ReplaceAll(l.Text()+" "+l.Checkpoint, dir+string(filepath.Separator), "")
		if c.name == "a report, then killed" {
			got = got[:min(len(got), len(c.want))]
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if _, err := ReadLast(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// A metric that is not a number is one in JSON, too.
func TestLastInJSON(t *testing.T) {
	dir := t.TempDir()
	r := Run{Outcome: Completed, Checkpoints: []Checkpoint{{Name: "model.ckpt-5", Metrics: map[string]manifest.Metric{"f1": manifest.Metric(math.NaN())}}}}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, JSONName), b, 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := ReadLast(dir)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(l); err != nil || !strings.Contains(string(text), `"metrics":{"f1":"NaN"}`) {
		t.Errorf("%s, %v", text, err)
	}
}
