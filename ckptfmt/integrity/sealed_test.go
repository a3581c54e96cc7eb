package integrity_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
)

// TestIsSealed has forms that show by themselves that they are complete, and such as
// do not.
func TestIsSealed(t *testing.T) {
	for name, tc := range map[string]struct {
		parts, files []string
		want         bool
	}{
		"a file":                        {[]string{"ckpt-9.pt"}, []string{"ckpt-9.pt"}, true},
		"a bundle":                      {[]string{"c.index", "c.data-00000-of-00001"}, []string{"c.index", "c.data-00000-of-00001"}, true},
		"a folder":                      {[]string{"c-9"}, []string{"c-9/model.pt"}, false},
		"transformers":                  {[]string{"c-9"}, []string{"c-9/model.safetensors", "c-9/trainer_state.json"}, true},
		"transformers, cut":             {[]string{"c-9"}, []string{"c-9/model.safetensors", "c-9/optimizer.pt"}, false},
		"orbax":                         {[]string{"9"}, []string{"9/_CHECKPOINT_METADATA", "9/default/manifest.ocdbt"}, true},
		"orbax before its marks":        {[]string{"9"}, []string{"9/manifest.ocdbt", "9/_METADATA"}, true},
		"distributed":                   {[]string{"c-9"}, []string{"c-9/.metadata", "c-9/__0_0.distcp"}, true},
		"distributed, with other files": {[]string{"c-9"}, []string{"c-9/.metadata", "c-9/__0_0.distcp", "c-9/rng.pt"}, false},
		"a mark":                        {[]string{"c-9"}, []string{"c-9/w.bin", "c-9/_SUCCESS"}, true},
		"no mark":                       {[]string{"c-9"}, []string{"c-9/w.bin", "c-9/.gitattributes"}, false},
		"DeepSpeed":                     {[]string{"global_step9"}, []string{"global_step9/mp_rank_00_model_states.pt", "latest"}, true},
		"DeepSpeed, its first":          {[]string{"global_step9"}, []string{"global_step9/mp_rank_00_model_states.pt"}, false},
		"a folder and a file":           {[]string{"c-9", "c-9.json"}, []string{"c-9/w.bin", "c-9.json"}, false},
		"nothing":                       {[]string{"c-9"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range tc.files {
				file = filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte("x"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if got := integrity.IsSealed(root, tc.parts); got != tc.want {
				t.Errorf("IsSealed = %v, want %v", got, tc.want)
			}
		})
	}
}
