package integrity_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
)

// TestIsWhole has files that a program may have half written without a trace, and such
// as it cannot.
func TestIsWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"tensors":            {map[string]string{"c/w.safetensors": "x", "c/DONE": ""}, true},
		"archives and texts": {map[string]string{"c/w.pt": "PK\x03\x04", "c/o.bin": "PK\x03\x04", "c/no.npz": "PK\x05\x06", "c/state.json": "{}", "c/vocab.txt": "", "c/COMMITTED": ""}, true},
		"a bundle":           {map[string]string{"c/v.index": "x", "c/v.data-00000-of-00001": "x", "c/_SUCCESS": ""}, true},
		"distributed":        {map[string]string{"c/.metadata": "x", "c/__0_0.distcp": "x"}, true},
		"no mark":            {map[string]string{"c/w.safetensors": "x"}, false},
		"a pickle":           {map[string]string{"c/w.pkl": "\x80\x04.", "c/DONE": ""}, false},
		"orbax":              {map[string]string{"c/manifest.ocdbt": "\x0c\xdb\x3a\x2a", "c/_METADATA": ""}, false},
		"a tree":             {map[string]string{"c/manifest.ocdbt": "\x0c\xdb\x3a\x2a", "c/DONE": ""}, true},
		"no tree":            {map[string]string{"c/manifest.ocdbt": "\x0c\xdb\x3a", "c/DONE": ""}, false},
		"LightGBM":           {map[string]string{"c/w.model": "tree\nversion=v4\n", "c/DONE": ""}, true},
		"a short text":       {map[string]string{"c/w.model": "tree\n", "c/DONE": ""}, false},
		"HDF5":               {map[string]string{"c/w.h5": "\x89HDF\r\n\x1a\n", "c/DONE": ""}, false},
		"raw numbers":        {map[string]string{"c/w.bin": "x", "c/DONE": ""}, false},
		"a name to come":     {map[string]string{"c/w.safetensors.tmp": "x", "c/DONE": ""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "c"), 0o777); err != nil {
				t.Fatal(err)
			}
			for file, text := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if got := integrity.IsWhole(root, []string{"c"}); got != tc.want {
				t.Errorf("IsWhole = %v, want %v", got, tc.want)
			}
		})
	}
}

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
		"orbax without _METADATA":       {[]string{"9"}, []string{"9/manifest.ocdbt", "9/d"}, false},
		"orbax without its manifest":    {[]string{"9"}, []string{"9/_METADATA", "9/d"}, false},
		"orbax before its marks":        {[]string{"9"}, []string{"9/manifest.ocdbt", "9/_METADATA"}, true},
		"distributed":                   {[]string{"c-9"}, []string{"c-9/.metadata", "c-9/__0_0.distcp"}, true},
		"distributed, with other files": {[]string{"c-9"}, []string{"c-9/.metadata", "c-9/__0_0.distcp", "c-9/rng.pt"}, false},
		"Lightning's, distributed":      {[]string{"c-9.ckpt"}, []string{"c-9.ckpt/.metadata", "c-9.ckpt/__0_0.distcp", "c-9.ckpt/meta.pt"}, true},
		"Lightning's, cut":              {[]string{"c-9.ckpt"}, []string{"c-9.ckpt/.metadata", "c-9.ckpt/__0_0.distcp"}, false},
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

// TestIsWholeFileThatIsGone has a file that was removed meanwhile.
func TestIsWholeFileThatIsGone(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if integrity.IsWholeFile(root, []string{"w.pt"}, "w.pt") {
		t.Error("a file that is not there is whole")
	}
}

// TestGeneral has names of one kind, but for the numbers of processes.
func TestGeneral(t *testing.T) {
	for name, want := range map[string]string{
		"ckpt-10.bin": "ckpt-#.bin", "step10/rank_0.bin": "step#/rank_0.bin", "shard-1-of-2.bin": "shard-1-of-#.bin", "plain": "plain",
	} {
		if got := integrity.General(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestIsWholeFileThatCannotBeRead has a folder where a file is looked for.
func TestIsWholeFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "w.bin"), 0o777); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if integrity.IsWholeFile(root, []string{"w.bin"}, "w.bin") {
		t.Error("it is whole")
	}
}
