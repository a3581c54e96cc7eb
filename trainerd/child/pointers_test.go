//go:build unix

package child

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/retention"
)

// TestPointersFollow has a damaged checkpoint that a program's own file names: that
// one names the newest verified one then, or is gone where there is none.
func TestPointersFollow(t *testing.T) {
	const state = "model_checkpoint_path: \"model.ckpt-20\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-20\"\n"
	for _, tc := range []struct{ name, pattern, good, bad, file, text, want string }{
		{"DeepSpeed", "global_step*", "global_step10/a.safetensors", "global_step20/a.safetensors", "latest", "global_step20", "global_step10"},
		{"DeepSpeed, the only one", "global_step*", "", "global_step20/a.safetensors", "latest", "global_step20", ""},
		{"DeepSpeed, it names another", "global_step*", "global_step10/a.safetensors", "global_step20/a.safetensors", "latest", "global_step10", "global_step10"},
		{"Megatron-LM", "iter_*", "iter_0000010/a.safetensors", "iter_0000020/a.safetensors", "latest_checkpointed_iteration.txt", "20\n", "10"},
		{"detectron2", "model_*", "model_0000010.safetensors", "model_0000020.safetensors", "last_checkpoint", "model_0000020.safetensors", "model_0000010.safetensors"},
		{"in a folder", "out/iter_*", "out/iter_0000010/a.safetensors", "out/iter_0000020/a.safetensors", "out/latest_checkpointed_iteration.txt", "20", "10"},
		{"TensorFlow", "model.ckpt-*", "model.ckpt-10", "model.ckpt-20.index", "checkpoint", state, "model_checkpoint_path: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, st := t.TempDir(), tensorsFile()
			if tc.good != "" {
				writeFile(t, filepath.Join(dir, tc.good), st)
			}
			writeFile(t, filepath.Join(dir, tc.bad), st[:20])
			writeFile(t, filepath.Join(dir, tc.file), tc.text)
			s := openShelf(t, dir, tc.pattern)
			s.refresh(true)
			(&run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}).quarantineDamaged(t.Context())
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
		{"hard", "runs/epoch_*", "runs/epoch_1/a.safetensors", "runs/epoch_2/a.safetensors", "runs/last.safetensors", "", "runs/epoch_1/a.safetensors"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, st := t.TempDir(), tensorsFile()
			if tc.good != "" {
				writeFile(t, filepath.Join(dir, tc.good), st)
			}
			writeFile(t, filepath.Join(dir, tc.bad), st[:20])
			link := filepath.Join(dir, tc.link)
			if filepath.IsAbs(tc.text) {
				tc.text, tc.want = dir+tc.text, dir+tc.want
			}
			if tc.text == "" {
				must(t, os.Link(filepath.Join(dir, tc.bad), link))
			} else {
				must(t, os.Symlink(tc.text, link))
			}
			s := openShelf(t, dir, tc.pattern)
			s.refresh(true)
			(&run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}).quarantineDamaged(t.Context())
			if tc.text == "" {
				if a, b := stat(t, link), stat(t, filepath.Join(dir, tc.want)); !os.SameFile(a, b) {
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

// TestLinkKeeps has a checkpoint that a link is to, and that no policy keeps.
func TestLinkKeeps(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"s-1.safetensors", "s-2.safetensors", "s-3.safetensors"} {
		writeFile(t, filepath.Join(dir, name), tensorsFile())
	}
	must(t, os.Symlink("s-1.safetensors", filepath.Join(dir, "best")))
	s := openShelf(t, dir, "s-*.safetensors")
	s.policy = []retention.Policy{retention.Last(1)}
	s.refresh(true)
	deleted, err := s.rotate()
	if err != nil || len(deleted) != 1 || deleted[0].Step != 2 {
		t.Errorf("deleted %v, %v; want step 2 alone", deleted, err)
	}
	if why := s.kept()[0].Why; len(why) != 1 || why[0] != "the link best is to it" {
		t.Errorf("step 1 is kept because %q", why)
	}
}

func stat(t *testing.T, name string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(name)
	must(t, err)
	return info
}
