//go:build unix

package child

import (
	"os"
	"path/filepath"
	"testing"
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
