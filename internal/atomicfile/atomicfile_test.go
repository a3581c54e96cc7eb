package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

const (
	oldText = "old content"
	newText = "new content, which is longer"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, text := range []string{oldText, newText, ""} {
		if err := atomicfile.WriteFile(nil, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, name); got != text {
			t.Errorf("file has %q, want %q", got, text)
		}
	}
	if got := names(t, dir); got != "file" {
		t.Errorf("directory has %q", got)
	}
}

func TestWriteFileReplacesLinkNotItsTarget(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte(oldText), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	if err := atomicfile.WriteFile(nil, link, []byte(newText)); err != nil {
		t.Fatal(err)
	}
	if read(t, target) != oldText || read(t, link) != newText {
		t.Errorf("target %q, link %q", read(t, target), read(t, link))
	}
}

func TestCreateRefusesExistingTemp(t *testing.T) {
	dir := t.TempDir()
	temp := filepath.Join(dir, "temp")
	victim := filepath.Join(dir, "victim")
	if err := os.Symlink(victim, temp); err != nil {
		t.Skip(err)
	}
	if _, err := atomicfile.Create(nil, filepath.Join(dir, "file"), temp); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want ErrExist", err)
	}
	if _, err := os.Stat(victim); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link was followed: %v", err)
	}
}

func TestTempName(t *testing.T) {
	for _, name := range []string{"events.out.tfevents.1.host", "dir/checkpoint", ".hidden"} {
		temp := atomicfile.TempName(name)
		switch {
		case filepath.Dir(temp) != filepath.Dir(name):
			t.Errorf("%s is not next to %s", temp, name)
		case strings.Contains(temp, "tfevents"):
			t.Errorf("%s would be taken for an events file", temp)
		case !atomicfile.IsTemp(filepath.Base(temp)):
			t.Errorf("%s is not recognised", temp)
		case temp == atomicfile.TempName(name):
			t.Errorf("%s came twice", temp)
		}
	}
	for _, name := range []string{"", "checkpoint", ".trainerd-.tmp", ".trainerd-0123456789abcdeg.tmp", ".trainerd-0123456789abcdef.tmp2", ".trainerd-lock"} {
		if atomicfile.IsTemp(name) {
			t.Errorf("IsTemp(%q)", name)
		}
	}
}

func TestPendingNotPublished(t *testing.T) {
	dir := t.TempDir()
	p, err := atomicfile.Create(nil, filepath.Join(dir, "file"), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte(newText)); err != nil {
		t.Fatal(err)
	}
	if err := p.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); got != "" {
		t.Errorf("directory has %q", got)
	}
	if err := p.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Commit after Close = %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("second Close = %v", err)
	}
}

// Every operation fails once: the old file stays, or the new one is whole, no
// temporary file is left, and nothing is synced again.
func TestEveryOperationFails(t *testing.T) {
	for n := 1; ; n++ {
		dir := t.TempDir()
		name := filepath.Join(dir, "file")
		if err := atomicfile.WriteFile(nil, name, []byte(oldText)); err != nil {
			t.Fatal(err)
		}
		fsys := faultfs.New(n)
		err := atomicfile.WriteFile(fsys, name, []byte(newText))
		if fsys.Ops() < n {
			if n < 6 {
				t.Errorf("only %d operations", n-1)
			}
			return
		}
		if !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("operation %d: error %v", n, err)
		}
		if got := read(t, name); got != oldText && got != newText {
			t.Errorf("operation %d: file has %q", n, got)
		}
		if got := names(t, dir); got != "file" || fsys.Resynced() != "" {
			t.Errorf("operation %d: directory has %q; synced again: %q", n, got, fsys.Resynced())
		}
	}
}

// A power cut at any point leaves the old file or the new one, and the new one
// once WriteFile has returned.
func TestEveryCrash(t *testing.T) {
	root := t.TempDir()
	name := filepath.Join(root, "file")
	fsys := faultfs.New(0)
	if err := atomicfile.WriteFile(fsys, name, []byte(oldText)); err != nil {
		t.Fatal(err)
	}
	first := fsys.Ops()
	if err := atomicfile.WriteFile(fsys, name, []byte(newText)); err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(t.TempDir(), "disk")
	states := 0
	for n := first; n <= fsys.Ops(); n++ {
		for state, err := range fsys.Crashes(n, root, dst) {
			if err != nil {
				t.Fatal(err)
			}
			states++
			got := read(t, filepath.Join(dst, "file"))
			if got != newText && (got != oldText || n == fsys.Ops()) {
				t.Errorf("%s: file has %q", state, got)
			}
		}
	}
	if states < 12 {
		t.Errorf("only %d states", states)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}
