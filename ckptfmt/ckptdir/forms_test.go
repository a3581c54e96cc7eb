package ckptdir

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	tfpb "github.com/trainerd/trainerd/proto"
)

// sharded makes a directory with TensorFlow's V1 checkpoints in two files, of
// the steps 2 and 3, each with a MetaGraph.
func sharded(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(fixtureDir, "ckpt_v1", "saver_sharded"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"model.ckpt-2.meta", "model.ckpt-3.meta"} {
		writeFile(t, filepath.Join(dir, name), "meta")
	}
	return dir
}

// The MetaGraph of a V1 checkpoint in several files is one of its files, though
// its name has no shard in it.
func TestShardedV1WithMeta(t *testing.T) {
	dir := sharded(t)
	list, err := List(dir)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, c := range list {
		size := int64(0)
		for _, f := range c.Files {
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			size += info.Size()
		}
		if len(c.Files) != 3 || filepath.Base(c.Files[2]) != fmt.Sprintf("model.ckpt-%d.meta", c.Step) || c.Bytes != size {
			t.Errorf("%s: %d bytes in %q, want %d", c.Prefix, c.Bytes, c.Files, size)
		}
	}
	if problems, err := Check(dir); err != nil || len(problems) > 0 {
		t.Errorf("problems %v, %v", problems, err)
	}
	before := fileNames(t, dir)
	if err := Move(list[1].Prefix, filepath.Join(dir, "best-3")); err == nil || !strings.Contains(err.Error(), "copy it instead") {
		t.Errorf("Move = %v", err)
	}
	if after := fileNames(t, dir); !slices.Equal(before, after) {
		t.Errorf("files %q became %q", before, after)
	}
	// Without the pattern, as its MetaGraph has it.
	if err := Remove(filepath.Join(dir, "model.ckpt-3"), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"checkpoint", "model.ckpt-2-00000-of-00002", "model.ckpt-2-00001-of-00002", "model.ckpt-2.meta"}
	if left := fileNames(t, dir); !slices.Equal(left, want) {
		t.Errorf("left %q", left)
	}
	writeFile(t, filepath.Join(dir, "other-2.meta"), "meta")
	if problems, err := Check(dir); err != nil || !slices.Equal(kindsOf(problems), []string{"orphan other-2.meta"}) {
		t.Errorf("with the MetaGraph of another: %q, %v", kindsOf(problems), err)
	}
	for _, name := range want[1:3] {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	problems, err := Check(dir)
	if got := kindsOf(problems); err != nil || !slices.Equal(got, []string{"orphan model.ckpt-2.meta", "orphan other-2.meta", "stale model.ckpt-2-?????-of-00002"}) {
		t.Errorf("without its shards: %q, %v", got, err)
	}
}

func kindsOf(problems []Problem) (kinds []string) {
	for _, p := range problems {
		kinds = append(kinds, string(p.Kind)+" "+filepath.Base(p.Path))
	}
	slices.Sort(kinds)
	return kinds
}

// Select finds a V1 checkpoint in several files by its plain prefix, and names
// the pattern, without which TensorFlow does not find it.
func TestSelectShardedV1(t *testing.T) {
	dir := sharded(t)
	if err := Select(filepath.Join(dir, "model.ckpt-2"), nil); err != nil {
		t.Fatal(err)
	}
	if latest, err := LatestCheckpoint(dir, nil); err != nil || filepath.Base(latest) != "model.ckpt-2-?????-of-00002" {
		t.Errorf("current: %s, %v", latest, err)
	}
}

// A path that the state file has keeps its form; so do timestamps, one for each
// path or none.
func TestSelectKeepsForms(t *testing.T) {
	dir := logdir(t)
	abs := filepath.Join(dir, "model.ckpt-10")
	for _, tt := range []struct{ before, want string }{
		{
			fmt.Sprintf("model_checkpoint_path: \"model.ckpt-30\"\nall_model_checkpoint_paths: %q\nall_model_checkpoint_paths: \"model.ckpt-30\"\n", abs),
			fmt.Sprintf("model_checkpoint_path: %q\nall_model_checkpoint_paths: \"model.ckpt-30\"\nall_model_checkpoint_paths: %q\n", abs, abs),
		},
		{
			"model_checkpoint_path: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\nall_model_checkpoint_timestamps: [1, 2]\n",
			"model_checkpoint_path: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\n",
		},
		{
			"model_checkpoint_path: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\nall_model_checkpoint_timestamps: 7\n",
			"model_checkpoint_path: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\nall_model_checkpoint_timestamps: 7.0\n",
		},
	} {
		writeFile(t, filepath.Join(dir, StateName), tt.before)
		if err := Select(abs, nil); err != nil {
			t.Fatal(err)
		}
		if got := readText(t, dir); got != tt.want {
			t.Errorf("%swas selected in\n%swant:\n%s", got, tt.before, tt.want)
		}
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, StateName)), os.MkdirAll(filepath.Join(dir, StateName, "below"), 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := Select(abs, nil); err == nil {
		t.Error("a directory was replaced by a state file")
	}
}

// After Move, state files name the new prefix in the form of the old one.
func TestMoveInState(t *testing.T) {
	for _, tt := range []struct {
		name, state string
		want        []string // model path, then all; "" where the file is the same
	}{
		{"current and listed", "model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: [\"m-1\", \"m-2\"]\n", []string{"b-2", "m-1", "b-2"}},
		{"absolute", "model_checkpoint_path: \"DIR/m-1\"\nall_model_checkpoint_paths: [\"DIR/m-1\", \"DIR/m-2\"]\n", []string{"DIR/m-1", "DIR/m-1", "DIR/b-2"}},
		{"current only", "model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: \"m-1\"\n", []string{"b-2", "m-1"}},
		{"not there", "model_checkpoint_path: \"m-1\"\nall_model_checkpoint_paths:   \"m-1\"\n", nil},
		{"no state file", "", nil},
		{"nonsense", "nonsense", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := twoOf(t, "V2")
			in := func(s string) string { return strings.ReplaceAll(s, "DIR", dir) }
			file := filepath.Join(dir, StateName)
			writeFile(t, file, in(tt.state))
			if tt.state == "" {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			if err := Move(filepath.Join(dir, "m-2"), filepath.Join(dir, "b-2")); err != nil {
				t.Fatal(err)
			}
			if _, err := Find(filepath.Join(dir, "m-2")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the old name: %v", err)
			}
			if err := verifyBundle(t, filepath.Join(dir, "b-2")); err != nil {
				t.Error(err)
			}
			if tt.want == nil {
				if b, _ := os.ReadFile(file); string(b) != in(tt.state) {
					t.Errorf("state file %q, want it as it was", b)
				}
				return
			}
			s, err := rawState(dir)
			if err != nil {
				t.Fatal(err)
			}
			got := append([]string{s.ModelCheckpointPath}, s.AllModelCheckpointPaths...)
			for i := range tt.want {
				tt.want[i] = in(tt.want[i])
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("state names %q, want %q", got, tt.want)
			}
		})
	}
}

// Files are linked under the new prefix in the order in which a checkpoint is
// published, so that one that stops half way is none.
func TestMoveStopped(t *testing.T) {
	for kind, last := range map[string]string{"V2": "b-2.index", "V1": "b-2"} {
		dir := twoOf(t, kind)
		// What is in the way stops the move before the file that makes the
		// checkpoint has its name.
		if err := os.Mkdir(filepath.Join(dir, last), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := Move(filepath.Join(dir, "m-2"), filepath.Join(dir, "b-2")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", kind, err)
		}
		checkIntact(t, kind, dir)
		before := "b-2.data-00000-of-00001"
		if kind == "V1" {
			before = "b-2.meta"
		}
		if names := fileNames(t, dir); !slices.Contains(names, before) || slices.Contains(names, "b-2.manifest.json") {
			t.Errorf("%s: files %q: want %s, which comes before %s", kind, names, before, last)
		}
		if err := Move(filepath.Join(dir, "m-2"), filepath.Join(dir, "none", "b-2")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: no such directory: %v", kind, err)
		}
	}
}

// A checkpoint that is being overwritten comes before the one that takes its
// name, whatever their times are.
func TestListPrevious(t *testing.T) {
	for _, swap := range []bool{false, true} {
		dir := t.TempDir()
		names := []string{"m-7", "m-7" + layout.PreviousSuffix, "m-6", "a-7"}
		if swap {
			slices.Reverse(names)
		}
		for _, name := range names {
			saveCheckpoint(t, filepath.Join(dir, name))
		}
		list, err := List(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range list {
			got = append(got, fmt.Sprint(filepath.Base(c.Prefix), " ", c.Step))
		}
		previous, next := slices.Index(got, "m-7.previous 7"), slices.Index(got, "m-7 7")
		if len(got) != 4 || got[0] != "m-6 6" || previous < 1 || next < previous {
			t.Errorf("got %q", got)
		}
	}
}

// An events file is never opened: a logdir may have thousands of them.
func TestListLeavesEventsFiles(t *testing.T) {
	dir := t.TempDir()
	kinds["V1"](t, filepath.Join(dir, "m-1"))
	if err := os.Rename(filepath.Join(dir, "m-1"), filepath.Join(dir, "events.out.tfevents.1.host")); err != nil {
		t.Fatal(err)
	}
	if list, err := List(dir); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// Only a path in the directory itself is that of a checkpoint there.
func TestListPathsElsewhere(t *testing.T) {
	dir := twoOf(t, "V2")
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, StateName), "model_checkpoint_path: \"sub/m-2\"\nall_model_checkpoint_paths: \"sub/m-2\"\nall_model_checkpoint_timestamps: 5\n")
	list, err := List(dir)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, c := range list {
		if c.Latest || c.Time.Unix() == 5 {
			t.Errorf("%s: current: %v, saved at %v", c.Prefix, c.Latest, c.Time)
		}
	}
}

// What Check says of the state file.
func TestCheckState(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"none", "", nil},
		{"nonsense", "nonsense", []string{"state checkpoint: " + `checkpoint state not readable: line 1: "nonsense" is not a field of the checkpoint state`}},
		{"in order", "model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: [\"m-1\", \"m-2\"]\n", nil},
		{"current one not listed", "model_checkpoint_path: \"m-3\"\nall_model_checkpoint_paths: \"m-1\"\n", []string{"stale m-3: names it as the current one, but it does not exist"}},
		{"other one gone", "model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: [\"m-0\", \"m-2\"]\n", []string{"stale m-0: names it, but it does not exist"}},
	} {
		dir := twoOf(t, "V2")
		file := filepath.Join(dir, StateName)
		writeFile(t, file, tt.text)
		if tt.text == "" {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		problems, err := Check(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range problems {
			text := strings.TrimLeft(strings.TrimPrefix(p.Err.Error(), file), ": ")
			got = append(got, fmt.Sprintf("%s %s: %s", p.Kind, filepath.Base(p.Path), text))
		}
		if tt.name == "nonsense" {
			if len(got) != 1 || !errors.Is(problems[0].Err, ErrState) || !strings.HasPrefix(got[0], "state checkpoint: ") {
				t.Errorf("nonsense: %q", got)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A directory is a leftover only by the name that shards are written under, and
// a damaged index is not one of Check's problems.
func TestCheckDirectories(t *testing.T) {
	dir := twoOf(t, "V2")
	for _, name := range []string{"images", "m-9_template", "m-9.index.tempstate1"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(dir, "m-9_temp"), "a file")
	writeFile(t, filepath.Join(dir, "m-1.index"), "damaged")
	if problems, err := Check(dir); err != nil || len(problems) > 0 {
		t.Errorf("%q, %v", kindsOf(problems), err)
	}
}

// A state that names a path twice, or an empty one, loses what is asked for and
// nothing else.
func TestForgetForms(t *testing.T) {
	for _, tt := range []struct {
		before *tfpb.CheckpointState
		want   string
	}{
		{
			&tfpb.CheckpointState{ModelCheckpointPath: "m-2", AllModelCheckpointPaths: []string{"m-1", "", "m-2", "m-1"}, AllModelCheckpointTimestamps: []float64{1, 2, 3, 4}},
			"model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: \"\"\nall_model_checkpoint_paths: \"m-2\"\nall_model_checkpoint_timestamps: 2.0\nall_model_checkpoint_timestamps: 3.0\n",
		},
		{
			&tfpb.CheckpointState{ModelCheckpointPath: "m-1", AllModelCheckpointPaths: []string{"m-0", "m-2"}},
			"model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: \"m-0\"\nall_model_checkpoint_paths: \"m-2\"\n",
		},
		{
			&tfpb.CheckpointState{ModelCheckpointPath: "m-2", AllModelCheckpointPaths: []string{"m-2", "m-1", "m-3"}},
			"model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: \"m-2\"\nall_model_checkpoint_paths: \"m-3\"\n",
		},
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, StateName), string(FormatState(tt.before)))
		if err := Forget(filepath.Join(dir, "m-1"), nil); err != nil {
			t.Fatal(err)
		}
		if got := readText(t, dir); got != tt.want {
			t.Errorf("got\n%swant\n%s", got, tt.want)
		}
		info, err := os.Stat(filepath.Join(dir, StateName))
		if err != nil {
			t.Fatal(err)
		}
		if err := Forget(filepath.Join(dir, "m-99"), nil); err != nil {
			t.Fatal(err)
		}
		if again, err := os.Stat(filepath.Join(dir, StateName)); err != nil || !os.SameFile(info, again) {
			t.Errorf("a file without the path was written again: %v", err)
		}
	}
}

// The order of checkpoints does not depend on that in which they were found, also
// where one of the same step was written between one and the one that takes its name.
func TestSortByAge(t *testing.T) {
	at := func(name string, step int64, secs int64) Checkpoint {
		return Checkpoint{Prefix: "d/" + name, Step: step, Time: time.Unix(secs, 0)}
	}
	found := []Checkpoint{at("m-7", 7, 1), at("a-7", 7, 2), at("m-7"+layout.PreviousSuffix, 7, 3), at("m-6", 6, 9), at("z-7"+layout.PreviousSuffix, 7, 4), at("b-7", 7, 1)}
	want := []string{"d/m-6", "d/b-7", "d/m-7.previous", "d/m-7", "d/a-7", "d/z-7.previous"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		r.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
		list := slices.Clone(found)
		sortByAge(list)
		var got []string
		for _, c := range list {
			got = append(got, c.Prefix)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// Control characters are octal, as TensorFlow writes them; a space is not one.
func TestFormatControlCharacters(t *testing.T) {
	text := string(FormatState(&tfpb.CheckpointState{ModelCheckpointPath: "\x1f \x7f"}))
	if text != "model_checkpoint_path: \"\\037 \\177\"\n" {
		t.Errorf("%q", text)
	}
}
