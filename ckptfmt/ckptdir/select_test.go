package ckptdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

func readText(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, StateName))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSelectCheckpoint(t *testing.T) {
	dir := logdir(t)
	for _, tc := range []struct{ name, before, selected, want string }{
		{
			"an older one", "", "model.ckpt-20",
			"model_checkpoint_path: \"model.ckpt-20\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-30\"\nall_model_checkpoint_paths: \"model.ckpt-20\"\n",
		},
		{
			"with times", "model_checkpoint_path: \"model.ckpt-30\"\nall_model_checkpoint_paths: [\"model.ckpt-10\", \"model.ckpt-30\"]\nall_model_checkpoint_timestamps: [1, 2]\nlast_preserved_timestamp: 5", "model.ckpt-10",
			"model_checkpoint_path: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-30\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\nall_model_checkpoint_timestamps: 2.0\nall_model_checkpoint_timestamps: 1.0\nlast_preserved_timestamp: 5.0\n",
		},
		{
			"one that is not listed", "model_checkpoint_path: \"/elsewhere/m-1\"\nall_model_checkpoint_paths: \"/elsewhere/m-1\"\nall_model_checkpoint_timestamps: 1", "model.ckpt-10",
			"model_checkpoint_path: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"/elsewhere/m-1\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\n",
		},
		{
			"unreadable state", "nonsense", "model.ckpt-10",
			"model_checkpoint_path: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\n",
		},
	} {
		if tc.before != "" {
			if err := os.WriteFile(filepath.Join(dir, StateName), []byte(tc.before), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := Select(filepath.Join(dir, tc.selected), nil); err != nil {
			t.Fatal(err)
		}
		if got := readText(t, dir); got != tc.want {
			t.Errorf("%s:\n%swant:\n%s", tc.name, got, tc.want)
		}
	}
	before := readText(t, dir)
	if err := Select(filepath.Join(dir, "model.ckpt-99"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	if readText(t, dir) != before {
		t.Error("the state was changed")
	}
}

func TestNewestSound(t *testing.T) {
	dir := logdir(t)
	damage := func(name string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string, bad ...string) {
		t.Helper()
		c, damaged, err := NewestIntact(t.Context(), dir)
		if want == "" {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("found %v, %v", c, err)
			}
		} else if err != nil || filepath.Base(c.Prefix) != want {
			t.Errorf("found %s, %v; want %s", c.Prefix, err, want)
		}
		var names []string
		for _, u := range damaged {
			names = append(names, filepath.Base(u.Prefix))
			var corrupt *ckptfmt.CorruptError
			if !errors.As(u.Err, &corrupt) {
				t.Errorf("%s: %v", u.Prefix, u.Err)
			}
		}
		if strings.Join(names, " ") != strings.Join(bad, " ") {
			t.Errorf("damaged %q, want %q", names, bad)
		}
	}
	check("model.ckpt-30")
	damage("model.ckpt-30.data-00000-of-00001")
	check("model.ckpt-20", "model.ckpt-30")
	damage("model.ckpt-20.index")
	check("model.ckpt-10", "model.ckpt-30", "model.ckpt-20")
	damage("model.ckpt-10.index")
	check("", "model.ckpt-30", "model.ckpt-20", "model.ckpt-10")
}
