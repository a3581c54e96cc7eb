package found

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestElsewhere has a config, or a program, whose checkpoints have other names than before.
func TestElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		before, now, pattern, gone, want string
	}{
		"another format":              {"ckpt-5.safetensors", "", "ckpt-*.pt", "", "ckpt-5.safetensors"},
		"another folder":              {"a/ckpt-5.safetensors", "", "b/ckpt-*", "", "a/ckpt-5.safetensors"},
		"no pattern":                  {"ckpt-5.safetensors", "", "", "", "ckpt-5.safetensors"},
		"the same":                    {"ckpt-5.safetensors", "", "ckpt-*", "", ""},
		"gone":                        {"ckpt-5.safetensors", "", "ckpt-*.pt", "ckpt-5.safetensors", ""},
		"the program has passed it":   {"a/ckpt-5.safetensors", "b/ckpt-6.safetensors", "b/ckpt-*", "", ""},
		"the program has begun again": {"a/ckpt-5.safetensors", "b/ckpt-4.safetensors", "b/ckpt-*", "", "a/ckpt-5.safetensors"},
	} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, tc.before), childtest.Tensors())
		if added, bad := openStore(t, dir, tc.before).Refresh(true); len(added) != 1 || bad != nil {
			t.Fatalf("%s: before: %v, %v", name, added, bad)
		}
		if tc.now != "" {
			childtest.Write(t, filepath.Join(dir, tc.now), childtest.Tensors())
		}
		if tc.gone != "" {
			childtest.Must(t, os.Remove(filepath.Join(dir, tc.gone)))
		}
		s := openStore(t, dir, tc.pattern)
		s.ReadRecords()
		s.Refresh(true)
		c, ok := s.Elsewhere()
		if got := c.Path; ok != (tc.want != "") || ok && got != filepath.Join(dir, tc.want) {
			t.Errorf("%s: %s, %v; want %q", name, got, ok, tc.want)
		}
	}
}

// TestDamagedIsNotElsewhere has the newest checkpoint damaged, and one that nothing was recorded
// of: the pattern means both.
func TestDamagedIsNotElsewhere(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ckpt-5.safetensors", "ckpt-6.safetensors"} {
		childtest.Write(t, filepath.Join(dir, name), childtest.Tensors())
	}
	openStore(t, dir, "ckpt-*").Refresh(true)
	childtest.Write(t, filepath.Join(dir, "ckpt-6.safetensors"), "x")
	s := openStore(t, dir, "ckpt-*")
	s.ReadRecords()
	s.Refresh(true)
	s.records[keyOf("ckpt-7.safetensors", false)] = nil
	if c, ok := s.Elsewhere(); ok {
		t.Errorf("%s has a name that the pattern does not mean", c.Path)
	}
}

// TestLeftOut has the two files that Keras' BackupAndRestore saves, and patterns that mean one of
// them, both, or neither.
func TestLeftOut(t *testing.T) {
	for pattern, want := range map[string]string{
		"latest.weights.h5":                                 "{latest.weights.h5,training_metadata.json}",
		"backup/latest.weights.h5":                          "backup/{latest.weights.h5,training_metadata.json}",
		"*/latest.weights.h5":                               "*/{latest.weights.h5,training_metadata.json}",
		"{ckpt-*,backup/latest.weights.h5}":                 "backup/{latest.weights.h5,training_metadata.json}",
		"{backup/latest.weights.h5,training_metadata.json}": "backup/{latest.weights.h5,training_metadata.json}",
		"backup/{latest.weights.h5,training_metadata.json}": "",
		"{backup/latest.weights.h5,backup/training_*}":      "",
		"{training_metadata.json,latest.weights.h5}":        "",
		"backup/training_metadata.json":                     "",
		"backup/latest.*":                                   "",
		"other.weights.h5":                                  "",
		"":                                                  "",
	} {
		if got := openStore(t, t.TempDir(), pattern).LeftOut(); got != want {
			t.Errorf("%q leaves out %q, want %q", pattern, got, want)
		}
	}
}

// TestOutside has checkpoints on another disk, to which a link leads from the logdir.
func TestOutside(t *testing.T) {
	for name, tc := range map[string]struct{ link, to, pattern, want string }{
		"a folder":           {"ck", "big", "ck/ckpt-*", "ck"},
		"a folder by *":      {"run_1", "big", "*/ckpt-*", "run_1"},
		"of one alternative": {"ck", "big", "{a,ck}/ckpt-*", "ck"},
		"a file":             {"ckpt-5.pt", "big/ckpt-5.pt", "ckpt-*", "ckpt-5.pt"},
		"not of the pattern": {"data", "big", "ckpt-*", ""},
		"leads nowhere":      {"ck", "none", "ck/ckpt-*", ""},
		"within the logdir":  {"ck", "logdir/own", "ck/ckpt-*", ""},
	} {
		top := t.TempDir()
		dir := filepath.Join(top, "logdir")
		childtest.Write(t, filepath.Join(top, "big/ckpt-5.pt"), "weights")
		childtest.Write(t, filepath.Join(dir, "own/ckpt-5.pt"), "weights")
		to := filepath.Join("..", tc.to)
		if tc.to == "logdir/own" {
			to = "own"
		}
		childtest.Must(t, os.Symlink(to, filepath.Join(dir, tc.link)))
		got := openStore(t, dir, tc.pattern).Outside()
		if want := filepath.Join(dir, tc.want); tc.want == "" && got != "" || tc.want != "" && got != want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
