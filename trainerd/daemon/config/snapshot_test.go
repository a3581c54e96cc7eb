package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// What a snapshot says is read as the config that it was made of, whichever key
// is set.
func TestSnapshot(t *testing.T) {
	root := reflect.ValueOf(Default()).Elem()
	for _, text := range []string{familyJob, graphOfJob} {
		for _, key := range allKeys("", root) {
			value, with, _ := strings.Cut(setting[key], "&")
			if value == "" || key == "name" {
				continue
			}
			overrides := []Override{{Flag: "--set", Assignment: key + "=" + value}}
			for extra := range strings.SplitSeq(with, "&") {
				if extra = strings.TrimSpace(extra); extra != "" {
					overrides = append(overrides, Override{Flag: "--set", Assignment: extra})
				}
			}
			_, c, err := load(t, text, overrides...)
			if err != nil {
				continue // it is not for this kind of job
			}
			snapshot, err := c.Snapshot()
			if err != nil {
				t.Errorf("%s: %v", key, err)
				continue
			}
			name := filepath.Join(t.TempDir(), "job.toml")
			if err := os.WriteFile(name, snapshot, 0o666); err != nil {
				t.Fatal(err)
			}
			again, err := Load(name, nil)
			if err != nil {
				t.Errorf("%s: %v\n%s", key, err, snapshot)
				continue
			}
			c.Logdir = Absolute(c.Logdir)
			c.Train.EvalSteps = again.Train.EvalSteps // Eval.Steps has it
			absolute := cmp.FilterPath(func(p cmp.Path) bool {
				return strings.HasSuffix(p.String(), "File") || strings.HasSuffix(p.String(), "Labels") || strings.HasPrefix(p.String(), "Graph.") || strings.HasPrefix(p.String(), "WarmStart.") || strings.HasPrefix(p.String(), "Cluster.TLS") || p.String() == "Child.Dir"
			}, cmp.Comparer(func(a, b string) bool { return a == b || Absolute(a) == Absolute(b) }))
			if diff := cmp.Diff(c, again, cmpopts.IgnoreUnexported(Config{}), absolute); diff != "" {
				t.Errorf("%s (-the config +of its snapshot):\n%s\n%s", key, diff, snapshot)
			}
		}
	}
}

// The path of a recipe starts at the config's folder, and a snapshot lies in another.
func TestSnapshotOfRecipe(t *testing.T) {
	for value, want := range map[string]string{"mine.toml": "PLACE/mine.toml", "plain": "plain"} {
		dir := t.TempDir()
		t.Chdir(dir)
		if err := os.WriteFile("job.toml", []byte("logdir = 'logs'\n[child]\ncommand = ['true']\nrecipe = '"+value+"'\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := Load("job.toml", nil)
		if c == nil {
			t.Fatal(err)
		}
		snapshot, err := c.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if line := fmt.Sprintf("recipe = %q\n", strings.Replace(want, "PLACE", dir, 1)); !strings.Contains(string(snapshot), line) {
			t.Errorf("want %s in\n%s", line, snapshot)
		}
	}
}

// TestSnapshotOfOddPath has a logdir whose name is not UTF-8: the snapshot can be read.
func TestSnapshotOfOddPath(t *testing.T) {
	_, c, err := load(t, familyJob, Override{Flag: "--logdir old\xff", Assignment: "logdir=old\xff", Literal: true})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "job.toml")
	if err := os.WriteFile(name, snapshot, 0o666); err != nil {
		t.Fatal(err)
	}
	if again, err := Load(name, nil); err != nil || filepath.Base(again.Logdir) != "old\uFFFD" {
		t.Errorf("%v\n%s", err, snapshot)
	}
}
