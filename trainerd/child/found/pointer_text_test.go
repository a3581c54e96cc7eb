//go:build unix

package found

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestPointerKeeps has a file that names the oldest of three checkpoints, in any form in which
// programs do so: that stays, though no policy keeps it, and the one in the middle goes.
func TestPointerKeeps(t *testing.T) {
	for _, tc := range []struct{ pattern, file, pointer, text string }{
		{"s_*", "s_#.safetensors", "latest", "s_1.safetensors"},
		{"s_*", "s_#.safetensors", "last.txt", "s_1.safetensors\n"},
		{"s_*", "s_#.safetensors", "latest-rank0.symlink", "./s_1.safetensors"},
		{"s_*", "s_#.safetensors", "last_checkpoint", "LOGDIR/s_1.safetensors"},
		{"s_*", "s_#.safetensors", "last_checkpoint", "log/s_1.safetensors"},
		{"s_*", "s_#.safetensors", "latest.json", `{"path": "s_1.safetensors", "saved": ["s_1.safetensors", "s_2.safetensors"]}`},
		{"s_*", "s_#.safetensors", "last.json", `{"loss": 2.5, "epoch": 2, "global_step": 1}`},
		{"s_*", "s_#.safetensors", "best.yaml", "loss: 2\npath: s_1.safetensors\n"},
		{"s_*", "s_#.safetensors", "RESUME_FROM", "s_1.safetensors"},
		{"s_*", "s_#.safetensors", "checkpoint", "model_checkpoint_path: \"s_1.safetensors\"\nall_model_checkpoint_paths: \"s_2.safetensors\"\nall_model_checkpoint_paths: \"s_1.safetensors\"\n"},
		{"epoch_*", "epoch_#.safetensors", "best.json", `{"epoch": 1, "step": 900}`},
		{"iter_*", "iter_000000#/a.safetensors", "latest_checkpointed_iteration.txt", "1\n"},
		{"iter_*", "iter_000000#/a.safetensors", "latest.txt", "0000001"},
		{"iter_*", "iter_000000#/a.safetensors", "best_model", "iter_0000001/a.safetensors"},
		{"iter_*", "iter_000000#/a.safetensors", "latest", "iter_0000001/"},
		{"all/s_*", "all/s_#.safetensors", "newest.txt", "s_1.safetensors"},
		{"all/s_*", "all/s_#.safetensors", "newest.txt", "all/s_1.safetensors"},
		{"*", "w_#/a.safetensors", "latest", "w_1"},
		{"{w,o}_*", "w_#.safetensors o_#.safetensors", "current", "o_1.safetensors"},
	} {
		dir := filepath.Join(t.TempDir(), "log")
		for _, step := range []string{"1", "2", "3"} {
			for file := range strings.FieldsSeq(tc.file) {
				childtest.Write(t, filepath.Join(dir, strings.ReplaceAll(file, "#", step)), childtest.Tensors())
			}
		}
		childtest.Write(t, filepath.Join(dir, tc.pointer), strings.ReplaceAll(tc.text, "LOGDIR", dir))
		s := openStore(t, dir, tc.pattern, retention.Last(1))
		s.Refresh(true)
		deleted, err := s.Rotate()
		if err != nil || !slices.Equal(steps(deleted), []int64{2}) {
			t.Errorf("%s with %q: deleted are %v, %v; want step 2 alone", tc.pointer, tc.text, steps(deleted), err)
			continue
		}
		want := "the file " + tc.pointer + " names it"
		if k := s.Retained()[slices.IndexFunc(s.known, func(c Checkpoint) bool { return c.Step == 1 })]; !slices.Equal(k.Why, []string{want}) {
			t.Errorf("%s with %q: it is kept because %q", tc.pointer, tc.text, k.Why)
		}
	}
}

// TestNoPointer has files that do not name a checkpoint, or are none by which a program finds
// one: they keep nothing.
func TestNoPointer(t *testing.T) {
	for name, text := range map[string]string{
		"notes.txt":        "s_1.safetensors",
		"latest.part":      "s_1.safetensors",
		"latest":           "s_10.safetensors",
		"last.txt":         "1.5",
		"last":             "",
		"best.json":        `{"epoch": 1, "loss": 1, "saved": ["s_1.safetensors"]}`,
		"newest":           "elsewhere/s_1.safetensors",
		"last_checkpoint":  "/elsewhere/s_1.safetensors",
		"current":          "s_1.safetensors" + strings.Repeat(" ", maxPointer),
		"checkpoints.json": `{"newest": "s_1.safetensors"}`,
		"last_config.yaml": "max_steps: 1\nsave_every_iter: 1\nwarmup_step: 1\nsteps: 1\n",
	} {
		dir := t.TempDir()
		for _, step := range []string{"1", "2"} {
			childtest.Write(t, filepath.Join(dir, "s_"+step+".safetensors"), childtest.Tensors())
		}
		childtest.Write(t, filepath.Join(dir, name), text)
		s := openStore(t, dir, "s_*.safetensors", retention.Last(1))
		s.Refresh(true)
		if deleted, err := s.Rotate(); err != nil || !slices.Equal(steps(deleted), []int64{1}) {
			t.Errorf("%s with %q: deleted are %v, %v; want step 1", name, text, steps(deleted), err)
		}
	}
}

// TestLogdirByAnotherName has a program that knows the logdir by the name of a link's target.
func TestLogdirByAnotherName(t *testing.T) {
	real, link := filepath.Join(t.TempDir(), "real"), filepath.Join(t.TempDir(), "link")
	for _, step := range []string{"1", "2"} {
		childtest.Write(t, filepath.Join(real, "s_"+step+".safetensors"), childtest.Tensors())
	}
	childtest.Must(t, os.Symlink(real, link))
	real, err := filepath.EvalSymlinks(real)
	childtest.Must(t, err)
	childtest.Write(t, filepath.Join(real, "latest"), filepath.Join(real, "s_1.safetensors"))
	s := openStore(t, link, "s_*", retention.Last(1))
	s.Refresh(true)
	if deleted, err := s.Rotate(); err != nil || len(deleted) > 0 {
		t.Errorf("deleted are %v, %v", steps(deleted), err)
	}
}

// TestCheckpointIsNoPointer has a checkpoint in a form of text, of a name as pointers have: what
// it says of steps is its own.
func TestCheckpointIsNoPointer(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"s_1.json": `{"step": 1}`, "s_2.json": `{"step": 2`, "last.json": `{"step": 2}`} {
		childtest.Write(t, filepath.Join(dir, name), text)
	}
	s := openStore(t, dir, "*.json")
	s.Refresh(true)
	clearDamaged(t.Context(), s)
	if _, err := os.Stat(filepath.Join(dir, "s_2.json")); !os.IsNotExist(err) {
		t.Errorf("the damaged one is still there: %v", err)
	}
	if got := childtest.Read(t, filepath.Join(dir, "last.json")); got != `{"step": 2}` {
		t.Errorf("last.json has %q", got)
	}
}

// TestCounterpart has the file of another checkpoint that is what one is of its own: there
// may be none, unless each has a single file.
func TestCounterpart(t *testing.T) {
	of := func(files ...string) Checkpoint { return Checkpoint{files: files} }
	for _, tc := range []struct {
		c    Checkpoint
		file int
		to   Checkpoint
		want string
	}{
		{of("a_20", "b_20"), 1, of("a_10", "b_10"), "b_10"},
		{of("a_20", "b_20"), 0, of("a_10", "b_10"), "a_10"},
		{of("a_20", "b_20"), 1, of("a_10"), ""},
		{of("a_20"), 0, of("b_10"), "b_10"},
	} {
		if got := counterpart(tc.c, tc.file, tc.to); got != tc.want {
			t.Errorf("%v of %v in %v: %q, want %q", tc.file, tc.c.files, tc.to.files, got, tc.want)
		}
	}
}

// TestNoPointerToTheFirst has a checkpoint of step 0, and a file of words: no word is its number.
func TestNoPointerToTheFirst(t *testing.T) {
	dir := childtest.Logdir(t, "s_0.bin", "s_1.bin")
	childtest.Write(t, filepath.Join(dir, "latest"), "none")
	s := openStore(t, dir, "s_*", retention.Last(1))
	s.Refresh(true)
	if deleted, err := s.Rotate(); err != nil || !slices.Equal(steps(deleted), []int64{0}) {
		t.Errorf("deleted are %v, %v", steps(deleted), err)
	}
}
