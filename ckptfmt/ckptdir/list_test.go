package ckptdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// logdir makes a directory with checkpoints of steps 10, 20 and 30, the last
// the current one, and things that are none.
func logdir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var all []string
	for step := 10; step <= 30; step += 10 {
		prefix := filepath.Join(dir, fmt.Sprintf("model.ckpt-%d", step))
		saveCheckpoint(t, prefix)
		all = append(all, prefix)
		err := UpdateState(dir, &tfpb.CheckpointState{ModelCheckpointPath: prefix, AllModelCheckpointPaths: all}, &StateOptions{RelativePaths: true})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"model.ckpt-30.meta":                     "meta",
		"model.ckpt-40.data-00000-of-00001":      "never published",
		"model.ckpt-50.index.tempstate123":       "being written",
		"events.out.tfevents.1700000000.host":    "events",
		"graph.pbtxt":                            "",
		"notes-7":                                "no table",
		"model.ckpt-20.manifest.json":            "{}",
		"model.ckpt-20.data-00000-of-00001.copy": "not ours",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestList(t *testing.T) {
	dir := logdir(t)
	w, err := ckptfmt.CreateV1(filepath.Join(dir, "old-5"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := errors.Join(w.Add("a", ckptfmt.Scalar(int64(1))), w.Finish()); err != nil {
		t.Fatal(err)
	}
	got, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := func(names ...string) []string {
		for i, n := range names {
			names[i] = filepath.Join(dir, n)
		}
		return names
	}
	v2 := func(name string, more ...string) []string {
		return at(append([]string{name + ".index", name + ".data-00000-of-00001"}, more...)...)
	}
	want := []Checkpoint{
		{Prefix: filepath.Join(dir, "old-5"), Step: 5, Files: at("old-5")},
		{Prefix: filepath.Join(dir, "model.ckpt-10"), Step: 10, Files: v2("model.ckpt-10")},
		{Prefix: filepath.Join(dir, "model.ckpt-20"), Step: 20, Files: v2("model.ckpt-20", "model.ckpt-20.manifest.json")},
		{Prefix: filepath.Join(dir, "model.ckpt-30"), Step: 30, Files: v2("model.ckpt-30", "model.ckpt-30.meta"), Latest: true},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Checkpoint{}, "Time", "Bytes")); diff != "" {
		t.Error(diff)
	}
	for _, c := range got {
		if c.Bytes < 100 || c.Time.IsZero() {
			t.Errorf("%s: %d bytes, time %v", c.Prefix, c.Bytes, c.Time)
		}
	}
}

func TestListShardedV1(t *testing.T) {
	got, err := List(filepath.Join(fixtureDir, "ckpt_v1", "saver_sharded"))
	if err != nil {
		t.Fatal(err)
	}
	var prefixes []string
	for _, c := range got {
		prefixes = append(prefixes, fmt.Sprint(filepath.Base(c.Prefix), " ", c.Step, " ", len(c.Files), " ", c.Latest))
	}
	want := []string{"model.ckpt-2-?????-of-00002 2 2 false", "model.ckpt-3-?????-of-00002 3 2 true"}
	if !slices.Equal(prefixes, want) {
		t.Errorf("got %q", prefixes)
	}
}

func TestFindIsAsList(t *testing.T) {
	for _, dir := range []string{logdir(t), filepath.Join(fixtureDir, "ckpt_v1", "saver_sharded")} {
		list, err := List(dir)
		if err != nil || len(list) == 0 {
			t.Fatal(list, err)
		}
		for _, want := range list {
			got, err := Find(want.Prefix)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
	}
}

// TestFindAmongMany: of other checkpoints no more than the names of their files are read.
func TestFindAmongMany(t *testing.T) {
	dir := t.TempDir()
	prefix := filepath.Join(dir, "model.ckpt-1000")
	saveCheckpoint(t, prefix)
	for step := range 200 {
		if err := os.Link(prefix+".index", filepath.Join(dir, fmt.Sprintf("model.ckpt-%d.index", step))); err != nil {
			t.Skip(err)
		}
	}
	one := testing.AllocsPerRun(3, func() {
		if _, err := Find(prefix); err != nil {
			t.Fatal(err)
		}
	})
	all := testing.AllocsPerRun(3, func() {
		if list, err := List(dir); err != nil || len(list) != 201 {
			t.Fatal(len(list), err)
		}
	})
	if one > all/2 {
		t.Errorf("%v allocations for one checkpoint, %v for all", one, all)
	}
}

func TestRemoveCheckpoint(t *testing.T) {
	dir := logdir(t)
	remove := func(name, latest string, kept ...string) {
		t.Helper()
		if err := Remove(filepath.Join(dir, name), nil); err != nil {
			t.Fatal(err)
		}
		for _, f := range fileNames(t, dir) {
			if strings.HasPrefix(f, name+".") && !strings.HasSuffix(f, ".copy") {
				t.Errorf("%s is left", f)
			}
		}
		s, err := ReadState(dir, nil)
		if latest == "" {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("state %v, %v", s, err)
			}
			return
		}
		if err != nil || filepath.Base(s.ModelCheckpointPath) != latest || len(s.AllModelCheckpointPaths) != len(kept) {
			t.Errorf("without %s: state %v, %v", name, s, err)
		}
	}
	remove("model.ckpt-30", "model.ckpt-20", "model.ckpt-10", "model.ckpt-20")
	remove("model.ckpt-10", "model.ckpt-20", "model.ckpt-20")
	remove("model.ckpt-20", "")
	if err := Remove(filepath.Join(dir, "model.ckpt-20"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed twice: %v", err)
	}
	for _, name := range []string{"events.out.tfevents.1700000000.host", "graph.pbtxt", "model.ckpt-40.data-00000-of-00001"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
