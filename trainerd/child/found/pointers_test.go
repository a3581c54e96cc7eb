//go:build unix

package found

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestLinksThatCannotBeMade: that is an error.
func TestLinksThatCannotBeMade(t *testing.T) {
	s := openStore(t, childtest.Logdir(t, "s-1"), "s-*")
	c := s.find()[key{step: 1}]
	for _, a := range []alias{{name: "none/hard", only: true}, {name: "none/soft", text: "s-2", only: true}, {name: "none", rest: "/x", only: true}, {name: "none", part: "t-#"},
		{name: "none/text", says: func(Checkpoint) string { return "" }}, {name: "none/more", says: func(Checkpoint) string { return "" }, more: true}} {
		if s.point(a, c) == nil {
			t.Errorf("%+v is no error", a)
		}
	}
	childtest.Must(t, os.Symlink("s-2", filepath.Join(s.root.Name(), "latest")))
	s.disk = childtest.PickyDisk{FS: s.disk, Logdir: s.root.Name(), Fails: func(op, _ string) bool { return op == "rename" }}
	if s.point(alias{name: "latest", text: "s-2", part: "s-#"}, c) == nil {
		t.Error("a link that cannot be replaced is no error")
	}
}

// TestLinkKeeps has a checkpoint that a link is to, and that no policy keeps.
func TestLinkKeeps(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"s-1.safetensors", "s-2.safetensors", "s-3.safetensors"} {
		childtest.Write(t, filepath.Join(dir, name), childtest.Tensors())
	}
	childtest.Must(t, os.Symlink("s-1.safetensors", filepath.Join(dir, "best")))
	s := openStore(t, dir, "s-*.safetensors")
	s.opts.Retention = []retention.Policy{retention.Last(1)}
	s.Refresh(true)
	deleted, err := s.Rotate()
	if err != nil || len(deleted) != 1 || deleted[0].Step != 2 {
		t.Errorf("deleted %v, %v; want step 2 alone", deleted, err)
	}
	if why := s.Retained()[0].Why; len(why) != 1 || why[0] != "the link best is to it" {
		t.Errorf("step 1 is kept because %q", why)
	}
	other := openStore(t, childtest.Logdir(t, "s-1", "s-10", "s-11"), "s-*")
	childtest.Must(t, os.Symlink("s-10", filepath.Join(other.root.Name(), "best")))
	other.opts.Retention = s.opts.Retention
	other.Refresh(true)
	if deleted, err := other.Rotate(); err != nil || !slices.Equal(steps(deleted), []int64{1}) {
		t.Errorf("deleted %v, %v; want step 1, whose name the other begins with", deleted, err)
	}
}

// TestPointersFollow has a damaged checkpoint that a program's own file names: that
// one names the newest verified one then, or is gone where there is none.
func TestPointersFollow(t *testing.T) {
	const state = "model_checkpoint_path: \"model.ckpt-20\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-20\"\n"
	for _, tc := range []struct{ name, pattern, good, bad, file, text, want string }{
		{"DeepSpeed", "global_step*", "global_step10/a.safetensors", "global_step20/a.safetensors", "latest", "global_step20", "global_step10"},
		{"DeepSpeed, the only one", "global_step*", "", "global_step20/a.safetensors", "latest", "global_step20", ""},
		{"DeepSpeed, it names another", "global_step*", "global_step10/a.safetensors", "global_step20/a.safetensors", "latest", "global_step10", "global_step10"},
		{"Megatron-LM", "iter_*", "iter_0000010/a.safetensors", "iter_0000020/a.safetensors", "latest_checkpointed_iteration.txt", "20\n", "10\n"},
		{"detectron2", "model_*", "model_0000010.safetensors", "model_0000020.safetensors", "last_checkpoint", "model_0000020.safetensors", "model_0000010.safetensors"},
		{"mmengine", "epoch_*", "epoch_10.safetensors", "epoch_20.safetensors", "last_checkpoint", "LOGDIR/epoch_20.safetensors", "LOGDIR/epoch_10.safetensors"},
		{"with zeros", "iter_*", "iter_0000010/a.safetensors", "iter_0000020/a.safetensors", "latest.txt", "0000020", "0000010"},
		{"a file of a number", "[0-9]*", "1/a.safetensors", "2/a.safetensors", "latest", "2/a.safetensors", "1/a.safetensors"},
		{"a file named checkpoint", "s-*", "s-10.safetensors", "s-20.safetensors", "checkpoint", "s-20.safetensors", "s-10.safetensors"},
		{"TensorFlow's state by another name", "s-*", "s-10.safetensors", "s-20.safetensors", "latest", "model_checkpoint_path: \"s-20.safetensors\"", "model_checkpoint_path: \"s-10.safetensors\""},
		{"nanotron", "00*", "0000010/a.safetensors", "0000020/a.safetensors", "latest.txt", "0000020", "0000010"},
		{"a file of it", "epoch_*", "epoch_10/a.safetensors", "epoch_20/a.safetensors", "best.txt", "./epoch_20/a.safetensors\n", "./epoch_10/a.safetensors\n"},
		{"a file that the one before lacks", "epoch_*", "epoch_10/a.safetensors", "epoch_20/b.safetensors", "best.txt", "epoch_20/b.safetensors", ""},
		{"from the folder above", "all/s-*", "all/s-10.safetensors", "all/s-20.safetensors", "last.txt", "all/s-20.safetensors", "all/s-10.safetensors"},
		{"JSON", "s-*", "s-10.safetensors", "s-20.safetensors", "latest.json", `{"path": "s-20.safetensors", "step": 20, "loss": 20.5}`, `{"path": "s-10.safetensors", "step": 10, "loss": 20.5}`},
		{"JSON of another step", "s-*", "s-10.safetensors", "s-20.safetensors", "latest.json", `{"step": 10, "epoch": 20}`, `{"step": 10, "epoch": 20}`},
		{"what names nothing", "s-*", "s-10.safetensors", "s-20.safetensors", "notes.txt", "s-20.safetensors", "s-20.safetensors"},
		{"in a folder", "out/iter_*", "out/iter_0000010/a.safetensors", "out/iter_0000020/a.safetensors", "out/latest_checkpointed_iteration.txt", "20", "10"},
		{"TensorFlow", "model.ckpt-*", "model.ckpt-10", "model.ckpt-20.index", "checkpoint", state, "model_checkpoint_path: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, st := t.TempDir(), childtest.Tensors()
			if tc.good != "" {
				childtest.Write(t, filepath.Join(dir, tc.good), st)
			}
			childtest.Write(t, filepath.Join(dir, tc.bad), st[:20])
			tc.text, tc.want = strings.ReplaceAll(tc.text, "LOGDIR", dir), strings.ReplaceAll(tc.want, "LOGDIR", dir)
			childtest.Write(t, filepath.Join(dir, tc.file), tc.text)
			s := openStore(t, dir, tc.pattern)
			s.Refresh(true)
			clearDamaged(t.Context(), s)
			if _, err := os.Stat(filepath.Join(dir, tc.bad)); !os.IsNotExist(err) {
				t.Fatalf("the damaged one is still there: %v", err)
			}
			got, err := os.ReadFile(filepath.Join(dir, tc.file))
			if string(got) != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("%s has %q, %v; want %q", tc.file, got, err, tc.want)
			}
		})
	}
}

// TestPointerToOneOfTwoFiles has files that name one of the two that a damaged checkpoint has, or
// what both begin with: each names the same of the checkpoint before.
func TestPointerToOneOfTwoFiles(t *testing.T) {
	for text, want := range map[string]string{"o-20.safetensors": "o-10.safetensors", "w-20.safetensors": "w-10.safetensors", "20": "10"} {
		dir := t.TempDir()
		for _, name := range []string{"o-10", "w-10", "o-20", "w-20"} {
			childtest.Write(t, filepath.Join(dir, name+".safetensors"), strings.TrimSuffix(childtest.Tensors(), strings.Repeat("345678", strings.Count(name, "20"))))
		}
		childtest.Write(t, filepath.Join(dir, "latest"), text)
		s := openStore(t, dir, "{w,o}-*")
		s.Refresh(true)
		childtest.Must(t, clearDamaged(t.Context(), s))
		if got := childtest.Read(t, filepath.Join(dir, "latest")); got != want {
			t.Errorf("%s has become %q, want %q", text, got, want)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"s_10.json": "{}", "s_10.safetensors": childtest.Tensors(), "s_20.json": "{", "s_20.safetensors": "x", "latest": "s_20"} {
		childtest.Write(t, filepath.Join(dir, name), text)
	}
	s := openStore(t, dir, "s_*.{json,safetensors}")
	s.Refresh(true)
	childtest.Must(t, clearDamaged(t.Context(), s))
	if got := childtest.Read(t, filepath.Join(dir, "latest")); got != "s_10" {
		t.Errorf("what both begin with has become %q", got)
	}
}

// TestPointerToOneOfMore has a file that names a damaged checkpoint of one file, before which is
// one of two: it names the same of these.
func TestPointerToOneOfMore(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"s-10.json": "{}", "s-10.safetensors": childtest.Tensors(), "s-20.safetensors": "x", "latest": "s-20.safetensors"} {
		childtest.Write(t, filepath.Join(dir, name), text)
	}
	s := openStore(t, dir, "s-*.*")
	s.Refresh(true)
	childtest.Must(t, clearDamaged(t.Context(), s))
	if got := childtest.Read(t, filepath.Join(dir, "latest")); got != "s-10.safetensors" {
		t.Errorf("it names %q", got)
	}
}

// TestPointerIsKept has a damaged checkpoint without an older one, named by a file that has more
// than its name: the program finds that no more, and nothing of it is lost.
func TestPointerIsKept(t *testing.T) {
	for text, kept := range map[string]bool{
		`{"path": "s-20.safetensors", "loss": 0.5}`: true,
		`{"path": "s-20.safetensors"}`:              true,
		"20 0.5 s-20.safetensors":                   true, // which names nothing
		" s-20.safetensors\n":                       false,
	} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, "s-20.safetensors"), childtest.Tensors()[:20])
		childtest.Write(t, filepath.Join(dir, "latest.json"), text)
		s := openStore(t, dir, "s-*")
		s.Refresh(true)
		clearDamaged(t.Context(), s)
		_, err := os.Stat(filepath.Join(dir, "latest.json"))
		aside, _ := filepath.Glob(filepath.Join(dir, "damaged", "latest.json-*", "latest.json"))
		switch there := err == nil; {
		case there != strings.HasPrefix(text, "20 "), !there && (len(aside) == 1) != kept:
			t.Errorf("%q: there is %v, aside are %v", text, err, aside)
		case len(aside) == 1 && childtest.Read(t, aside[0]) != text:
			t.Errorf("%q has become %q", text, childtest.Read(t, aside[0]))
		}
	}
}

// TestLinksFollow has a damaged checkpoint with second names, which are those of the
// newest verified one then, or gone where there is none.
func TestLinksFollow(t *testing.T) {
	for _, tc := range []struct{ name, pattern, good, bad, link, text, want string }{
		{"next to it", "s-*.safetensors", "s-10.safetensors", "s-20.safetensors", "latest", "s-20.safetensors", "s-10.safetensors"},
		{"to a file in it", "runs/epoch_*", "runs/epoch_1/a.safetensors", "runs/epoch_2/a.safetensors", "runs/last.safetensors", "epoch_2/a.safetensors", "epoch_1/a.safetensors"},
		{"from the folder above", "all/step-*", "all/step-1/a.safetensors", "all/step-2/a.safetensors", "newest", "all/step-2", "all/step-1"},
		{"absolute", "step-*", "step-1/a.safetensors", "step-2/a.safetensors", "newest", "/step-2", "/step-1"},
		{"to another", "step-*", "step-1/a.safetensors", "step-2/a.safetensors", "best", "step-1", "step-1"},
		{"the only one", "step-*", "", "step-2/a.safetensors", "latest", "step-2", ""},
		{"to one of two files, the other one missing", "{a,b}-*.safetensors", "a-10.safetensors b-10.safetensors", "b-20.safetensors", "newest", "b-20.safetensors", "b-10.safetensors"},
		{"to one of two files that the one before lacks", "s-*.*", "s-10.safetensors", "s-20.json s-20.safetensors", "newest", "s-20.json", ""},
		{"of another name", "*.safetensors", "s-10.safetensors", "t-20.safetensors", "newest", "t-20.safetensors", "s-10.safetensors"},
		{"hard", "runs/epoch_*", "runs/epoch_1/a.safetensors", "runs/epoch_2/a.safetensors", "runs/last.safetensors", "", "runs/epoch_1/a.safetensors"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, st := t.TempDir(), childtest.Tensors()
			for name := range strings.FieldsSeq(tc.good) {
				childtest.Write(t, filepath.Join(dir, name), st)
			}
			for name := range strings.FieldsSeq(tc.bad) {
				childtest.Write(t, filepath.Join(dir, name), st[:20])
			}
			link := filepath.Join(dir, tc.link)
			if filepath.IsAbs(tc.text) {
				tc.text, tc.want = dir+tc.text, dir+tc.want
			}
			if tc.text == "" {
				childtest.Must(t, os.Link(filepath.Join(dir, tc.bad), link))
			} else {
				childtest.Must(t, os.Symlink(tc.text, link))
			}
			s := openStore(t, dir, tc.pattern)
			s.Refresh(true)
			clearDamaged(t.Context(), s)
			if tc.text == "" {
				if a, b := childtest.Stat(t, link), childtest.Stat(t, filepath.Join(dir, tc.want)); !os.SameFile(a, b) {
					t.Errorf("%s is not %s", tc.link, tc.want)
				}
				return
			}
			if got, err := os.Readlink(link); got != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("%s is to %q, %v; want %q", tc.link, got, err, tc.want)
			}
		})
	}
}

// TestNoLinks has files next to a damaged checkpoint that look like second names of it and
// are none: all stay as they are.
func TestNoLinks(t *testing.T) {
	dir, st := t.TempDir(), childtest.Tensors()
	damaged := filepath.Join(dir, "s-20.safetensors")
	childtest.Write(t, damaged, st[:20])
	childtest.Must(t, os.Link(damaged, filepath.Join(dir, "s-last.safetensors"))) // another checkpoint
	files := map[string]string{"s-10.safetensors": st, "a.txt": st[len(st)-20:], "latest": "s-20.safetensors" + strings.Repeat(" ", 64<<10), "s-last.safetensors": st[:20]}
	for name, text := range files {
		if name != "s-last.safetensors" {
			childtest.Write(t, filepath.Join(dir, name), text)
		}
	}
	childtest.Must(t, syscall.Mkfifo(filepath.Join(dir, "last_checkpoint"), 0o666)) // nobody writes into it
	s := openStore(t, dir, "s-*.safetensors")
	s.Refresh(true)
	clearDamaged(t.Context(), s)
	if _, err := os.Lstat(damaged); !os.IsNotExist(err) {
		t.Fatalf("the damaged one is still there: %v", err)
	}
	for name, want := range files {
		if got := childtest.Read(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}

// TestBundleHasNoLinks has a bundle whose index is what the pattern means: its other files
// are moved aside with that, and get no name of another.
func TestBundleHasNoLinks(t *testing.T) {
	dir := t.TempDir()
	childtest.Write(t, filepath.Join(dir, "m-10.index.safetensors"), childtest.Tensors())
	for _, name := range []string{"m-20.index", "m-20.data-00000-of-00001"} {
		childtest.Write(t, filepath.Join(dir, name), "x")
	}
	s := openStore(t, dir, "m-*.index*")
	s.Refresh(true)
	childtest.Must(t, clearDamaged(t.Context(), s))
	if got := childtest.Below(t, dir); slices.ContainsFunc(got, func(name string) bool { return strings.HasPrefix(name, "m-20") }) || len(got) != 3 {
		t.Errorf("left %v", got)
	}
}

// TestPointerToAnotherFolder has a damaged checkpoint that a file names, next to nothing that
// it could name instead: what is in another folder, or has no step, is no such.
func TestPointerToAnotherFolder(t *testing.T) {
	for _, other := range []string{"b/s-10.safetensors", "a/best.safetensors"} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, other), childtest.Tensors())
		childtest.Must(t, os.Chtimes(filepath.Join(dir, other), time.Time{}, time.Unix(1_000_000, 0)))
		childtest.Write(t, filepath.Join(dir, "a/s-20.safetensors"), "x")
		name := filepath.Join(dir, "a/latest")
		childtest.Write(t, name, "s-20.safetensors"+strings.Repeat(" ", 64<<10-len("s-20.safetensors")))
		s := openStore(t, dir, "*/*.safetensors")
		s.Refresh(true)
		clearDamaged(t.Context(), s)
		if text, err := os.ReadFile(name); !os.IsNotExist(err) {
			t.Errorf("next to %s it has %q, %v", other, text, err)
		}
	}
}

// TestLinkToWhatIsBroughtBack has a link to a checkpoint that the program overwrites: it
// stays when the copy takes its place.
func TestLinkToWhatIsBroughtBack(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "last.safetensors"), filepath.Join(dir, "latest.link")
	childtest.Write(t, name, childtest.Tensors())
	childtest.Must(t, os.Symlink("last.safetensors", link))
	s := openStore(t, dir, "last.safetensors")
	s.Refresh(true)
	childtest.Write(t, name, "x")
	s.Refresh(true)
	clearDamaged(t.Context(), s)
	if got := childtest.Read(t, link); got != childtest.Tensors() {
		t.Errorf("it has %q", got)
	}
}

// TestHardLinkToWhatIsBroughtBack has a hard link to a checkpoint that the program overwrites in
// place: it has the copy, too. That the disk does not take that is said.
func TestHardLinkToWhatIsBroughtBack(t *testing.T) {
	for _, works := range []bool{true, false} {
		dir := t.TempDir()
		name, link := filepath.Join(dir, "last.safetensors"), filepath.Join(dir, "latest.link")
		childtest.Write(t, name, childtest.Tensors())
		childtest.Must(t, os.Link(name, link))
		s := openStore(t, dir, "last.safetensors")
		s.Refresh(true)
		childtest.Write(t, name, "x")
		s.Refresh(true)
		s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, below string) bool { return !works && op == "rename" && below == "latest.link" }}
		if err := clearDamaged(t.Context(), s); err == nil != works {
			t.Errorf("the disk works: %v; moving it aside: %v", works, err)
		}
		if got := childtest.Read(t, link); works && got != childtest.Tensors() {
			t.Errorf("the link has %q", got)
		}
	}
}

// TestNamesOfEachProcess has a damaged checkpoint of two processes, each with a folder that has
// a file that names its own part: all name the one before. They keep one, too.
func TestNamesOfEachProcess(t *testing.T) {
	dir := t.TempDir()
	for _, rank := range []string{"rank0", "rank1"} {
		for _, step := range []string{"10", "20", "30"} {
			childtest.Write(t, filepath.Join(dir, rank, "s-"+step+".safetensors"), childtest.Tensors())
		}
		childtest.Write(t, filepath.Join(dir, rank, "latest"), "s-30.safetensors")
	}
	childtest.Write(t, filepath.Join(dir, "rank1", "best"), "s-10.safetensors")
	childtest.Write(t, filepath.Join(dir, "rank1", "s-30.safetensors"), "x")
	s := openStore(t, dir, "*/s-*", retention.Last(1))
	s.Refresh(true)
	childtest.Must(t, clearDamaged(t.Context(), s))
	for _, rank := range []string{"rank0", "rank1"} {
		if got := childtest.Read(t, filepath.Join(dir, rank, "latest")); got != "s-20.safetensors" {
			t.Errorf("%s names %q", rank, got)
		}
	}
	if deleted, err := s.Rotate(); err != nil || len(deleted) > 0 {
		t.Errorf("deleted %v, %v", steps(deleted), err)
	}
}
