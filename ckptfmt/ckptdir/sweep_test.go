package ckptdir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// emptyFiles makes empty files below a new directory.
func emptyFiles(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Only what belongs to the checkpoint goes.
func TestRemoveFiles(t *testing.T) {
	dir := emptyFiles(t, "m-1.data-00000-of-00001", "m-1.index", "m-1.meta", "m-1.manifest.json", "m-10.index", "m-1.index.bak", "m-1")
	if err := RemoveFiles(filepath.Join(dir, "m-1"), nil); err != nil {
		t.Fatal(err)
	}
	if left := fileNames(t, dir); !slices.Equal(left, []string{"m-1", "m-1.index.bak", "m-10.index"}) {
		t.Errorf("left %q", left)
	}
}

func TestStepOf(t *testing.T) {
	for name, want := range map[string]int64{
		"m-0": 0, "dir-7/m-00000042": 42, "a-b-9": 9, "m": -1, "m-": -1, "m-x": -1, "m-1x": -1,
		"m-99999999999999999999": -1, "m-2-?????-of-00002": 2,
	} {
		if got := StepOf(name); got != want {
			t.Errorf("StepOf(%q) = %d, want %d", name, got, want)
		}
	}
}

func TestSweepTemps(t *testing.T) {
	const uuid = "0123456789abcdef0123456789abcdef"
	gone := []string{".trainerd-0123456789abcdef.tmp", "m-3.index.tempstate99"}
	stay := []string{".trainerd-xyz.tmp", "m-3.index", "notes.tmp", "m-3.index.tempstate"}
	parts := []string{
		"m-4_temp/part-00000-of-00002.index", "m-4_temp/part-00000-of-00002.data-00000-of-00001.tempstate5",
		"m-5_temp_" + uuid + "/part-00001-of-00002.data-00000-of-00001",
	}
	foreign := []string{"m-6_temp/part-00000-of-00001.index", "m-6_temp/thesis.txt", "my_templates/part-1"}
	dir := emptyFiles(t, slices.Concat(gone, stay, parts, foreign)...)

	removed, err := SweepTemps(dir, time.Hour, nil)
	if err != nil || len(removed) > 0 {
		t.Errorf("of the last hour: %q, %v", removed, err)
	}
	tomorrow := time.Now().Add(24 * time.Hour) // the clock was set back since
	for _, name := range slices.Concat(gone, parts) {
		if err := os.Chtimes(filepath.Join(dir, name), tomorrow, tomorrow); err != nil {
			t.Fatal(err)
		}
	}
	fsys := faultfs.New(1)
	if _, err := SweepTemps(dir, 0, &ckptfmt.FileOptions{FS: fsys}); !errors.Is(err, faultfs.ErrInjected) {
		t.Errorf("a failed removal: %v", err)
	}
	if _, err := SweepTemps(dir, 0, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(stay, foreign) {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if left := fileNames(t, dir); len(left) != len(stay)+2 {
		t.Errorf("left %q", left)
	}
}

func TestRemoveParts(t *testing.T) {
	dir := emptyFiles(t, "m-4_temp/part-00000-of-00002.index", "m-6_temp/part-00000-of-00001.index", "m-6_temp/thesis.txt")
	for _, name := range []string{"m-4_temp", "m-4_temp", "m-6_temp"} { // twice, for it may be gone
		if err := RemoveParts(filepath.Join(dir, name), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left := fileNames(t, dir); !slices.Equal(left, []string{"m-6_temp/part-00000-of-00001.index", "m-6_temp/thesis.txt"}) && !slices.Equal(left, []string{"m-6_temp"}) {
		t.Errorf("left %q", left)
	}
	dir = emptyFiles(t, "m-4_temp/part-00000-of-00002.index")
	fsys := faultfs.New(1)
	if err := RemoveParts(filepath.Join(dir, "m-4_temp"), &ckptfmt.FileOptions{FS: fsys}); !errors.Is(err, faultfs.ErrInjected) {
		t.Errorf("a failed removal: %v", err)
	}
}
