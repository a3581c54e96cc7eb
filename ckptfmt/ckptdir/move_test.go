package ckptdir

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMoveCheckpoint(t *testing.T) {
	dir := logdir(t)
	from, to := filepath.Join(dir, "model.ckpt-30"), filepath.Join(dir, "best-30")
	if err := Move(from, to); err != nil {
		t.Fatal(err)
	}
	latest, err := LatestCheckpoint(dir, nil)
	if err != nil || latest != to {
		t.Errorf("current: %s, %v", latest, err)
	}
	if err := verifyBundle(t, to); err != nil {
		t.Error(err)
	}
	files := fileNames(t, dir)
	if !slices.Contains(files, "best-30.meta") || slices.ContainsFunc(files, func(n string) bool { return strings.HasPrefix(n, "model.ckpt-30") }) {
		t.Errorf("files %q", files)
	}
	s, err := ReadState(dir, nil)
	if err != nil || len(s.AllModelCheckpointPaths) != 3 || s.AllModelCheckpointPaths[2] != to {
		t.Errorf("state %v, %v", s, err)
	}
}

func TestMoveCheckpointElsewhere(t *testing.T) {
	dir, other := logdir(t), t.TempDir()
	to := filepath.Join(other, "kept-30")
	if err := Move(filepath.Join(dir, "model.ckpt-30"), to); err != nil {
		t.Fatal(err)
	}
	if err := verifyBundle(t, to); err != nil {
		t.Error(err)
	}
	latest, err := LatestCheckpoint(dir, nil)
	if err != nil || filepath.Base(latest) != "model.ckpt-20" {
		t.Errorf("current: %s, %v", latest, err)
	}
}

func TestMoveCheckpointRefuses(t *testing.T) {
	dir := logdir(t)
	before := fileNames(t, dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := Move(at("model.ckpt-30"), at("model.ckpt-20")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("onto another: %v", err)
	}
	if err := Move(at("model.ckpt-99"), at("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
	if after := fileNames(t, dir); !slices.Equal(before, after) {
		t.Errorf("files %q became %q", before, after)
	}
}
